//! Reads any bytes as the messages of a connection: no panic, and notes in a valid order. The first byte is the reader
//! (0: recognised by content, as in a capture). Stretches follow: a byte with the sender (bit 0) and whether the
//! stretch is missing (bit 1), a byte with its length, and its bytes.

#![no_main]

use latpcap_core::base::{At, Side};
use latpcap_core::messages::{Close, Listener, Memory, Messages, Note, Stretch};
use libfuzzer_sys::fuzz_target;

#[derive(Default)]
struct Checked {
    open: [bool; 2],
    memory: Memory,
}

impl Listener for Checked {
    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::Begin { side, .. } => assert!(!std::mem::replace(&mut self.open[side.index()], true)),
            Note::End { side, .. } | Note::Cut { side, .. } => {
                assert!(std::mem::replace(&mut self.open[side.index()], false));
            }
            Note::Request { .. } => assert!(self.open[0]),
            Note::Response { .. } => assert!(self.open[1]),
            _ => {}
        }
    }

    fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((known, mut rest)) = data.split_first() else {
        return;
    };
    let (mut checked, mut at) = (Checked::default(), At::default());
    let mut messages = match usize::from(*known).checked_sub(1) {
        None => Messages::new(),
        Some(place) => Messages::with_protocol_number(place, &mut checked.memory),
    };
    while let [how, len, more @ ..] = rest {
        let side = if how & 1 == 0 { Side::Client } else { Side::Server };
        let (bytes, after) = more.split_at(usize::from(*len).min(more.len()));
        at.frame += 1;
        if how & 2 == 0 {
            messages.feed(side, at, Stretch::Bytes(bytes), &mut checked);
            rest = after;
        } else {
            messages.feed(side, at, Stretch::Missing(u64::from(*len)), &mut checked);
            rest = more;
        }
    }
    for side in [Side::Client, Side::Server] {
        messages.close(side, at, Close::Fin, &mut checked);
    }
    assert_eq!(checked.open, [false; 2]);
});
