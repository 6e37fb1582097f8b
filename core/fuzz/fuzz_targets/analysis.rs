//! Analyses any bytes as a capture: no panic, consistent counts, and the same tables for any block size. The first byte
//! is the block size of a second pass, which only a quarter of the inputs get, since it doubles the time.

#![no_main]

use latpcap_core::engine::Engine;
use latpcap_core::table::NAMES;
use libfuzzer_sys::fuzz_target;

fn analysed<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> Engine {
    let mut engine = Engine::new();
    blocks.for_each(|block| engine.push(block));
    engine.finish();
    engine
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, file)) = data.split_first() else {
        return;
    };
    let mut whole = analysed([file].into_iter());
    let mut in_blocks = (*cut % 4 == 3).then(|| analysed(file.chunks(usize::from(*cut))));
    let frames = whole.frames();
    assert!(
        whole.stream_count() as u64 <= frames,
        "a frame opens at most one stream"
    );
    for name in NAMES {
        let batches = whole.pipeline().tables.take(name).map(|(_, batches)| batches);
        let rows: usize = batches.iter().flatten().map(|batch| batch.num_rows()).sum();
        if name == "events" {
            assert!(rows as u64 <= frames, "a frame has at most one row");
        }
        if let Some(again) = &mut in_blocks {
            let same = again.pipeline().tables.take(name).map(|(_, batches)| batches);
            assert_eq!(batches, same, "{name}");
            assert_eq!(frames, again.frames());
        }
    }
});
