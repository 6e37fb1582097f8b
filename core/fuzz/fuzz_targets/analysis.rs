//! Any bytes as a capture, from the first to the tables: no panic, sums that agree, and the same rows however the
//! bytes are cut. The first byte says how they are cut.

#![no_main]

use latpcap_core::engine::Engine;
use latpcap_core::table::NAMES;
use libfuzzer_sys::fuzz_target;

/// The text of every table, and how many rows it has.
fn tables<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> (u64, Vec<(usize, String)>) {
    let mut engine = Engine::new();
    blocks.for_each(|block| engine.push(block));
    engine.finish();
    let frames = engine.frames();
    let rows = NAMES.map(|name| {
        let batches = engine
            .analysis()
            .tables
            .take(name)
            .map_or(Vec::new(), |(_, batches)| batches);
        let rows = batches.iter().map(|batch| batch.num_rows()).sum();
        let data: Vec<_> = batches
            .iter()
            .flat_map(|batch| batch.columns())
            .map(|c| c.to_data())
            .collect();
        (rows, format!("{data:?}"))
    });
    (frames, rows.into())
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, file)) = data.split_first() else {
        return;
    };
    let (frames, whole) = tables([file].into_iter());
    let rows = |name: &str| NAMES.iter().position(|n| *n == name).map_or(0, |at| whole[at].0);
    assert!(
        rows("events") as u64 <= frames * 16,
        "each frame has at most one row, tunnels included"
    );
    assert!(rows("streams") as u64 <= frames * 16);
    if *cut != 0 {
        let again = tables(file.chunks(usize::from(*cut) * 7));
        assert_eq!((frames, &whole), (again.0, &again.1));
    }
});
