//! Any bytes as a capture, from the first to the tables: no panic, counts that agree, and the same rows however the
//! bytes are cut and however many streams lie open. The first byte says how, and how many.

#![no_main]

use latpcap_core::engine::Engine;
use latpcap_core::stream::MOST_AWAKE;
use latpcap_core::table::NAMES;
use libfuzzer_sys::fuzz_target;

fn analysed<'a>(blocks: impl Iterator<Item = &'a [u8]>, awake: usize) -> Engine {
    let mut engine = Engine::new();
    engine.keep_awake(awake);
    blocks.for_each(|block| engine.push(block));
    engine.finish();
    engine
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, file)) = data.split_first() else {
        return;
    };
    let mut whole = analysed([file].into_iter(), MOST_AWAKE);
    let mut again = (*cut != 0).then(|| analysed(file.chunks(usize::from(*cut) * 7), usize::from(*cut) % 4));
    let frames = whole.frames();
    assert!(
        whole.streams() as u64 <= frames,
        "a frame opens at most one stream"
    );
    for name in NAMES {
        let batches = whole.analysis().tables.take(name).map(|(_, batches)| batches);
        let rows: usize = batches.iter().flatten().map(|batch| batch.num_rows()).sum();
        if name == "events" {
            assert!(rows as u64 <= frames, "a frame has at most one row");
        }
        if let Some(again) = &mut again {
            let same = again.analysis().tables.take(name).map(|(_, batches)| batches);
            assert_eq!(batches, same, "{name}");
            assert_eq!(frames, again.frames());
        }
    }
});
