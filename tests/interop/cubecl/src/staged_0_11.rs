//! What `staged.rs` is, on the toolkit of CubeCL 0.11: there a backend goes through its stores itself.

use cubecl::client::Client;
use cubecl::hash::{StableHash, StableHasher};
use cubecl::prelude::*;
use cubecl_environment::persistence::Store;
use cubecl_server::compiler::{
    CompilationRecording, KernelCacheKey, build_id_hash, compilation_store, store_compiled,
};

/// Obtains the instance of `scale` that `factor` makes.
pub fn compile(client: &Client, factor: u32) {
    let mut by_kernel: Store<KernelCacheKey, String> =
        compilation_store("staged", "text").expect("the cache is on");
    let mut by_source: Store<StableHash, KernelCacheKey> =
        compilation_store("staged-second-line", "text").expect("the cache is on");
    let kernel = crate::scale::create_dummy_kernel(
        client.properties_shared(),
        client.target_properties_shared(),
        CubeCount::Static(1, 1, 1),
        CubeDim::new_1d(64),
        unsafe { BufferArg::from_raw_parts(client.empty(256), 64) },
        unsafe { BufferArg::from_raw_parts(client.empty(256), 64) },
        factor,
    );
    let key = KernelCacheKey::new(&kernel.id(), build_id_hash());
    let mut recording = CompilationRecording::new(&kernel.id());
    if by_kernel.get_mut(&key).is_some() {
        return recording.loaded();
    }
    let definition = cubecl::define_kernel(&kernel).expect("it is defined");
    recording.defined(&definition);
    let source = definition.body.to_string();
    recording.source(&source);
    let hash = StableHasher::hash_one(&source);
    let held = by_source.get_mut(&hash).copied();
    let moved = held.and_then(|old| {
        by_source.purge_key(&hash);
        by_kernel.purge_key(&old)
    });
    let is_moved = moved.is_some();
    let stored = store_compiled(&mut by_kernel, key, moved.unwrap_or(source));
    store_compiled(&mut by_source, hash, key);
    if is_moved {
        recording.rekeyed(stored);
    } else {
        recording.compiled(stored);
    }
}
