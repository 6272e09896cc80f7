//! What CubeCL's own reader finds in an environment is what a file of JSON says is there.
//!
//! `ENVIRONMENT` names the environment; `EXPECTED` a file with the members `sessions` and `compilations`.

use cubecl_environment::persistence::{Access, Database};
use cubecl_environment::records::{Records, Session, Stamped};
use cubecl_server::compiler::{CompilationOutcome, CompilationRecord};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

fn nanos(duration: Duration) -> String {
    duration.as_nanos().to_string()
}

fn session(session: &Session) -> Value {
    json!({
        "id": session.id.0.to_string(),
        "started_unix_ms": session.started_unix_ms,
        "cubecl_version": session.cubecl_version,
        "label": session.label,
        "process": session.process,
        "os": session.os,
        "arch": session.arch,
    })
}

fn compilation(stamped: &Stamped<CompilationRecord>) -> Value {
    let record = &stamped.record;
    json!({
        "session": stamped.stamp.session.0.to_string(),
        "seq": stamped.stamp.seq,
        "offset": nanos(stamped.stamp.offset),
        "kernel": record.kernel,
        "id": format!("{:032x}", record.key.id),
        "build_id": format!("{:032x}", record.key.build_id),
        "ir": record.ir,
        "outcome": match record.outcome {
            CompilationOutcome::Compiled => "compiled",
            CompilationOutcome::Loaded => "loaded",
            CompilationOutcome::Rekeyed => "rekeyed",
        },
        "duration": nanos(duration(record)),
        "source": record.source,
    })
}

#[cfg(feature = "work")]
fn duration(record: &CompilationRecord) -> Duration {
    record.work
}

#[cfg(not(feature = "work"))]
fn duration(record: &CompilationRecord) -> Duration {
    record.duration
}

#[test]
fn the_records_are_those_that_were_written() {
    let environment = std::env::var("ENVIRONMENT").expect("ENVIRONMENT names one");
    let expected = std::fs::read_to_string(std::env::var("EXPECTED").expect("EXPECTED names a file"));
    let expected: Value = serde_json::from_str(&expected.expect("it can be read")).expect("it is JSON");

    for access in [Access::ReadOnly, Access::ReadWrite] {
        let database = Database::open_at(Path::new(&environment), access).expect("it opens");
        let records = Records::new(&database);
        let sessions: Vec<Value> = records.sessions().iter().map(session).collect();
        let compilations: Vec<Value> = records.read().iter().map(compilation).collect();

        assert_eq!(expected, json!({"sessions": sessions, "compilations": compilations}));
    }
}
