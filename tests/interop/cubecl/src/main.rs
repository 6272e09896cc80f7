//! Writes CubeCL environments as real programs do: `producer STEP...`, each step in turn.
//!
//! `cubecl.toml` in the working directory says where the environment is and how much it records.
//!
//! | step            | what it does                                                            |
//! |-----------------|-------------------------------------------------------------------------|
//! | `label:TEXT`    | names the session                                                       |
//! | `scale:N`       | launches a kernel of which N makes an instance                          |
//! | `shift:N`       | the same with another kernel                                            |
//! | `tune:N`        | asks a tuner with two candidates for the key N                          |
//! | `staged:N`      | compiles an instance through a backend that keeps artifacts by source   |
//! | `memory:TEXT`   | records the device's memory                                             |
//! | `mark:TEXT`     | opens a mark, which `end:` closes                                       |
//! | `switch:NAME`   | switches to another environment, or to the same one in a new session    |
//! | `line:`         | prints a line and waits for one on standard input                       |

#[cfg_attr(feature = "work", path = "staged.rs")]
#[cfg_attr(not(feature = "work"), path = "staged_0_11.rs")]
mod staged;

use cubecl::client::Client;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::tune::{LocalTuner, Tunable, TunableSet, local_tuner};
use cubecl::{AutotuneKey, Device, environment, records};
use serde::{Deserialize, Serialize};

const LENGTH: usize = 64;

/// Makes one build differ from another whose kernels are the same.
pub const BUILD: &str = match option_env!("PRODUCER_BUILD") {
    Some(build) => build,
    None => "first",
};

#[cube(launch, create_dummy_kernel)]
pub fn scale(input: &[f32], output: &mut [f32], #[comptime] factor: u32) {
    if ABSOLUTE_POS < input.len() {
        output[ABSOLUTE_POS] = input[ABSOLUTE_POS] * f32::cast_from(factor);
    }
}

#[cube(launch)]
fn shift(input: &[f32], output: &mut [f32], #[comptime] by: u32) {
    if ABSOLUTE_POS < input.len() {
        output[ABSOLUTE_POS] = input[ABSOLUTE_POS] + f32::cast_from(by);
    }
}

type Buffers = (Client, Handle, Handle);

#[derive(AutotuneKey, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Shape {
    rows: usize,
    columns: usize,
}

static TUNER: LocalTuner<Shape, u32> = local_tuner!("double");

struct Program {
    client: Client,
    input: Handle,
    output: Handle,
    marks: Vec<records::Mark>,
}

impl Program {
    fn new() -> Self {
        let client = Device::default().client();
        let values: Vec<u8> = (0..LENGTH).flat_map(|n| (n as f32).to_ne_bytes()).collect();
        let input = client.create_from_slice(&values);
        let output = client.empty(values.len());
        Self { client, input, output, marks: Vec::new() }
    }

    fn step(&mut self, name: &str, value: &str) {
        match name {
            "label" => records::label(value),
            "scale" => launch_scale(&self.buffers(), number(value)),
            "shift" => launch_shift(&self.buffers(), number(value)),
            "tune" => self.tune(number(value) as usize),
            "staged" => staged::compile(&self.client, number(value)),
            "memory" => self.client.record_memory(value),
            "mark" => self.marks.push(records::Mark::new(value)),
            "end" => drop(self.marks.pop().expect("a mark is open")),
            "switch" => environment::activate(value),
            "line" => wait_for_line(),
            _ => panic!("there is no step {name}"),
        }
        self.client.read_one(self.output.clone()).expect("the launches ran");
    }

    fn buffers(&self) -> Buffers {
        (self.client.clone(), self.input.clone(), self.output.clone())
    }

    fn tune(&self, rows: usize) {
        let set = TUNER.init(&0, || {
            TunableSet::new(
                |(_, rows): &(Buffers, usize)| Shape { rows: *rows, columns: LENGTH },
                |_: &Shape, inputs: &(Buffers, usize)| inputs.clone(),
            )
            .with(Tunable::new("by scale", |(buffers, _): (Buffers, usize)| {
                launch_scale(&buffers, 2);
                Ok::<(), String>(())
            }))
            .with(Tunable::new("by shift", |(buffers, _): (Buffers, usize)| {
                launch_shift(&buffers, 2);
                Ok::<(), String>(())
            }))
        });
        TUNER.execute(&0, &self.client, set, (self.buffers(), rows));
    }
}

fn launch_scale((client, input, output): &Buffers, factor: u32) {
    scale::launch(
        client,
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(LENGTH as u32),
        unsafe { BufferArg::from_raw_parts(input.clone(), LENGTH) },
        unsafe { BufferArg::from_raw_parts(output.clone(), LENGTH) },
        factor,
    );
}

fn launch_shift((client, input, output): &Buffers, by: u32) {
    shift::launch(
        client,
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(LENGTH as u32),
        unsafe { BufferArg::from_raw_parts(input.clone(), LENGTH) },
        unsafe { BufferArg::from_raw_parts(output.clone(), LENGTH) },
        by,
    );
}

fn number(value: &str) -> u32 {
    value.parse().unwrap_or_else(|_| panic!("{value} is no number"))
}

fn wait_for_line() {
    println!("waiting");
    std::io::stdin().read_line(&mut String::new()).expect("standard input is open");
}

fn main() {
    eprintln!("producer, {BUILD} build");
    let mut program = Program::new();
    for step in std::env::args().skip(1) {
        let (name, value) = step.split_once(':').expect("a step is NAME:VALUE");
        program.step(name, value);
    }
}
