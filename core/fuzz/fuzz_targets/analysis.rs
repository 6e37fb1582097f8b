//! Any bytes as a capture, from the first to the tables: no panic, counts that agree, and the same rows however the
//! bytes are cut. The first byte says whether they are read again, cut, and where: reading again costs as much as the
//! first time, so that a quarter of the inputs has to do.

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
    let mut again = (*cut % 4 == 3).then(|| analysed(file.chunks(usize::from(*cut))));
    let frames = whole.frames();
    assert!(
        whole.streams() as u64 <= frames,
        "a frame opens at most one stream"
    );
    for name in NAMES {
        let batches = whole.pipeline().tables.take(name).map(|(_, batches)| batches);
        let rows: usize = batches.iter().flatten().map(|batch| batch.num_rows()).sum();
        if name == "events" {
            assert!(rows as u64 <= frames, "a frame has at most one row");
        }
        if let Some(again) = &mut again {
            let same = again.pipeline().tables.take(name).map(|(_, batches)| batches);
            assert_eq!(batches, same, "{name}");
            assert_eq!(frames, again.frames());
        }
    }
});
