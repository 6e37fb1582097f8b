//! Any text as a key log and any bytes as a TLS connection: no panic, and the same said and sealed however the bytes are
//! cut. First the length of the key log (two bytes) and the log; then parts: a byte for the side (bit 0) and whether it is
//! a hole (bit 1), two bytes for the length, the bytes.

#![no_main]

use latpcap_core::base::{At, Side};
use latpcap_core::decrypt::{Connection, KeyLog, Sealed, Taker};
use libfuzzer_sys::fuzz_target;

/// What was said, and how many bytes are missing where.
#[derive(Default, PartialEq, Debug)]
struct Heard(Vec<(Side, Vec<u8>, u64)>);

impl Heard {
    fn part(&mut self, side: Side, bytes: &[u8], missing: u64) {
        self.0.push((side, bytes.to_vec(), missing));
    }
}

impl Taker for Heard {
    fn plain(&mut self, side: Side, begun: At, at: At, bytes: &[u8]) {
        assert!(begun.frame <= at.frame && !bytes.is_empty());
        self.part(side, bytes, 0);
    }

    fn missing(&mut self, side: Side, _: At, len: u64) {
        self.part(side, &[], len);
    }
}

fn heard(keys: &KeyLog, script: &[u8], size: usize) -> (Heard, Option<Sealed>) {
    let (mut connection, mut heard, mut at) = (Connection::new(), Heard::default(), At::default());
    let mut rest = script;
    while let [how, high, low, more @ ..] = rest {
        let side = if how & 1 == 0 { Side::Client } else { Side::Server };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if how & 2 != 0 {
            connection.missing(side, at, len as u64, &mut heard);
            rest = more;
            continue;
        }
        let (bytes, after) = more.split_at(len.min(more.len()));
        for piece in bytes.chunks(size) {
            at.frame += 1;
            connection.bytes(side, at, piece, keys, &mut heard);
        }
        rest = after;
    }
    (heard, connection.sealed())
}

fuzz_target!(|data: &[u8]| {
    let [high, low, rest @ ..] = data else {
        return;
    };
    let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let (text, script) = rest.split_at(len);
    let (mut keys, mut told) = (KeyLog::default(), 0);
    keys.read(text, |_| told += 1);
    assert!(keys.len() + told <= text.len() + 2);
    let whole = heard(&keys, script, usize::MAX);
    assert_eq!(whole, heard(&keys, script, 7));
});
