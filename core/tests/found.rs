//! What the fuzzers found once (core/fuzz/found) is read without a panic, cut into blocks or whole.

use std::fs;
use std::path::Path;

use latpcap_core::base::{At, Side};
use latpcap_core::engine::Engine;
use latpcap_core::frame::{self, Fragments, Packet, SeenFrame};
use latpcap_core::messages::{Close, Listener, Memory, Messages, Note, Stretch};

#[allow(clippy::expect_used)]
fn found(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/found")
        .join(target);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            (
                path.display().to_string(),
                fs::read(&path).expect("a file of the repository"),
            )
        })
        .collect()
}

#[test]
fn files() {
    for (name, bytes) in ["container", "analysis"].into_iter().flat_map(found) {
        let file = bytes.get(1..).unwrap_or_default();
        let frames = [file.len().max(1), 7, 1].map(|size| {
            let mut engine = Engine::new();
            file.chunks(size).for_each(|block| engine.push(block));
            engine.finish();
            engine.frames()
        });
        assert!(frames.iter().all(|n| *n == frames[0]), "{name}: {frames:?}");
    }
}

/// As the fuzz target reads them.
#[test]
fn messages() {
    struct Deaf(Memory);
    impl Listener for Deaf {
        fn note(&mut self, _: Note<'_>) {}
        fn memory(&mut self) -> &mut Memory {
            &mut self.0
        }
    }
    for (_, bytes) in found("messages") {
        let (mut deaf, known) = (Deaf(Memory::default()), usize::from(bytes[0]));
        let mut messages = match known.checked_sub(1) {
            None => Messages::new(),
            Some(place) => Messages::with_protocol_number(place, &mut deaf.0),
        };
        let mut rest = &bytes[1..];
        while let [how, len, more @ ..] = rest {
            let side = if how & 1 == 0 { Side::Client } else { Side::Server };
            let (here, behind) = more.split_at(usize::from(*len).min(more.len()));
            let (stretch, next) = match how & 2 {
                0 => (Stretch::Bytes(here), behind),
                _ => (Stretch::Missing(u64::from(*len)), more),
            };
            messages.feed(side, At::default(), stretch, &mut deaf);
            rest = next;
        }
        for side in Side::BOTH {
            messages.close(side, At::default(), Close::Fin, &mut deaf);
        }
    }
}

#[test]
fn frames() {
    for (name, bytes) in found("frame") {
        let [high, low, cut, rest @ ..] = &bytes[..] else {
            continue;
        };
        let link = u32::from(u16::from_be_bytes([*high, *low]));
        let mut fragments = Fragments::default();
        let (first, second) = rest.split_at(rest.len() * usize::from(*cut) / 255);
        for (frame, data) in [(1, first), (2, second), (3, rest)] {
            let mut packet = frame::decode(link, data, data.len() as u32 + u32::from(*cut));
            if let Packet::Foreign(foreign) = packet {
                packet = foreign.decode(foreign.data);
            }
            if let Packet::Tcp(segment) = packet {
                assert!(segment.payload.len() <= segment.len as usize, "{name}");
            }
            if let Packet::Fragment(fragment) = packet {
                let (time_ns, file, offset) = (0, 0, 0);
                let place = SeenFrame {
                    time_ns,
                    file,
                    frame,
                    offset,
                };
                let whole = fragments.add(&fragment, place);
                whole.map(|whole| matches!(whole.decode(), Packet::Tcp(_)));
            }
        }
        fragments.finish();
    }
}
