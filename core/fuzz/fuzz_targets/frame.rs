//! Decodes any bytes as frames of any link type: payloads must lie inside the frame. Input: two bytes of link type, a
//! byte that says where to split the rest into two frames, and the rest. Two frames, so that fragments can be
//! reassembled.

#![no_main]

use latpcap_core::frame::{Fragments, Packet, SeenFrame, decode};
use libfuzzer_sys::fuzz_target;

/// Checks a packet, and returns the number of fragments in it. A layer for a `LinkReader` is read in several ways.
fn check(packet: &Packet<'_>, captured: usize, fragments: &mut Fragments, frame: u64) -> usize {
    match packet {
        Packet::Tcp(s) | Packet::LengthBeyondFrame(s, _) => {
            assert!(s.payload.len() <= (s.len as usize).min(captured));
            0
        }
        Packet::Icmp(icmp) => {
            assert!(icmp.quoted.is_none_or(|s| s.payload.len() <= captured));
            0
        }
        Packet::Foreign(foreign) => {
            // A `LinkReader` may return any bytes.
            let inner = foreign.data.get(4..).unwrap_or_default();
            check(&foreign.decode(foreign.data), captured, fragments, frame)
                + check(&foreign.decode(&[0x45; 40]), captured, fragments, frame)
                + check(&foreign.layer("link", 1, inner), captured, fragments, frame)
        }
        Packet::Fragment(fragment) => {
            let (time_ns, file, offset) = (0, 0, 0);
            let place = SeenFrame {
                time_ns,
                file,
                frame,
                offset,
            };
            let whole = fragments.add(fragment, place);
            1 + whole.map_or(0, |whole| check(&whole.decode(), 65_535, fragments, frame))
        }
        _ => 0,
    }
}

fuzz_target!(|data: &[u8]| {
    let [high, low, cut, rest @ ..] = data else {
        return;
    };
    let link = u32::from(u16::from_be_bytes([*high, *low]));
    let mut fragments = Fragments::default();
    let (first, second) = rest.split_at(rest.len() * usize::from(*cut) / 255);
    let mut fragment_count = 0;
    for (frame, data) in [(1, first), (2, second), (3, rest)] {
        let original = data.len() as u32 + u32::from(*cut);
        fragment_count += check(&decode(link, data, original), data.len(), &mut fragments, frame);
    }
    fragments.finish();
    assert!(fragments.issues.len() <= fragment_count);
});
