//! Any bytes as frames of any link type: what comes out lies inside them. The first two bytes are the link type,
//! the next one the captured share; a second frame follows the first, so that fragments can meet.

#![no_main]

use latpcap_core::frame::{Fragments, Packet, SeenFrame, decode};
use libfuzzer_sys::fuzz_target;

/// Gives how many fragments came along: a frame that holds layers for other readers is looked at in several ways.
fn look(packet: &Packet<'_>, held: usize, fragments: &mut Fragments, frame: u64) -> usize {
    match packet {
        Packet::Tcp(s) | Packet::Beyond(s, _) => {
            assert!(s.payload.len() <= (s.len as usize).min(held));
            0
        }
        Packet::Icmp(icmp) => {
            assert!(icmp.quoted.is_none_or(|s| s.payload.len() <= held));
            0
        }
        Packet::Foreign(foreign) => {
            // any reader may answer with any bytes
            let inner = foreign.data.get(4..).unwrap_or_default();
            look(&foreign.decode(foreign.data), held, fragments, frame)
                + look(&foreign.decode(&[0x45; 40]), held, fragments, frame)
                + look(&foreign.layer("link", 1, inner), held, fragments, frame)
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
            1 + whole.map_or(0, |whole| look(&whole.decode(), 65_535, fragments, frame))
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
    let mut came = 0;
    for (frame, data) in [(1, first), (2, second), (3, rest)] {
        let original = data.len() as u32 + u32::from(*cut);
        came += look(&decode(link, data, original), data.len(), &mut fragments, frame);
    }
    fragments.finish();
    assert!(fragments.issues.len() <= came);
});
