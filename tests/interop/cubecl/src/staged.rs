//! A backend on CubeCL's own toolkit that keeps its artifacts by kernel and by source.
//!
//! Those of CUDA and of HIP do so, which need a GPU; wgpu's keeps them by kernel only and so never rekeys.
//! What this one finalizes is the kernel's text itself: it stores, loads and rekeys, and cannot launch.

use cubecl::client::Client;
use cubecl::prelude::*;
use cubecl_server::compiler::{
    ArtifactCompiler, ArtifactId, ArtifactStore, CompilationError, CompilationRecording, CompilationTarget,
    KernelLoader, StoreNames,
};
use cubecl_server::kernel::{CubeKernel, define_kernel};
use cubecl_server::logging::ServerLogger;
use cubecl_server::server::LaunchError;

struct Lowering;

impl ArtifactCompiler for Lowering {
    type Variant = ();
    type Lowered = String;
    type Artifact = String;

    fn lower(
        &self,
        kernel: &dyn CubeKernel,
        _id: &ArtifactId<()>,
        recording: &mut CompilationRecording,
        _logger: &ServerLogger,
    ) -> Result<String, LaunchError> {
        let definition = define_kernel(kernel)?;
        recording.defined(&definition);
        let source = definition.body.to_string();
        recording.source(&source);
        Ok(source)
    }

    fn source(lowered: &String) -> Option<&str> {
        Some(lowered)
    }

    fn finalize(&self, _id: &ArtifactId<()>, lowered: String) -> Result<String, LaunchError> {
        Ok(lowered)
    }
}

struct Staged {
    store: ArtifactStore<String>,
}

impl CompilationTarget for Staged {
    type Compiler = Lowering;
    type Loaded = usize;

    fn compiler(&self) -> &Lowering {
        &Lowering
    }

    fn persists(&self) -> bool {
        self.store.persists()
    }

    fn stored(&mut self, id: &ArtifactId<()>) -> Option<String> {
        self.store.take(&id.kernel)
    }

    fn stored_for_source(&mut self, source: &str) -> Option<String> {
        self.store.take_by_source(source)
    }

    fn load(&mut self, _id: &ArtifactId<()>, artifact: &String) -> Result<usize, CompilationError> {
        Ok(artifact.len())
    }

    fn store(&mut self, id: &ArtifactId<()>, artifact: String, source: Option<&str>) -> bool {
        self.store.keep(&id.kernel, artifact, source)
    }
}

/// Obtains the instance of `scale` that `factor` makes.
pub fn compile(client: &Client, factor: u32) {
    let names = StoreNames { kernels: "staged", sources: "staged-second-line" };
    let mut loader = KernelLoader::new(Staged { store: ArtifactStore::with_sources(names, "text") });
    let kernel = crate::scale::create_dummy_kernel(
        client.properties_shared(),
        client.target_properties_shared(),
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(64),
        unsafe { BufferArg::from_raw_parts(client.empty(256), 64) },
        unsafe { BufferArg::from_raw_parts(client.empty(256), 64) },
        factor,
    );
    let id = ArtifactId { kernel: kernel.id(), variant: () };
    loader.load(&kernel, &id, &ServerLogger::default()).expect("it compiles");
}
