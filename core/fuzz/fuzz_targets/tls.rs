//! Reads any text as a key log and any bytes as a TLS connection: no panic, and the same result for any block size.
//! Input: length of the key log (two bytes) and the log. Then parts: a byte with the side (bit 0) and whether the part
//! is missing (bit 1), two bytes of length, and the bytes.

#![no_main]

use latpcap_core::base::{At, Side};
use latpcap_core::decrypt::{Connection, KeyLog, Sealed, Taker};
use libfuzzer_sys::fuzz_target;

/// The plaintext of each side, and the lengths of missing bytes.
#[derive(Default, PartialEq, Debug)]
struct Plaintext(Vec<(Side, Vec<u8>, u64)>);

impl Plaintext {
    fn part(&mut self, side: Side, bytes: &[u8], missing: u64) {
        self.0.push((side, bytes.to_vec(), missing));
    }
}

impl Taker for Plaintext {
    fn plain(&mut self, side: Side, begun: At, at: At, bytes: &[u8]) {
        assert!(begun.frame <= at.frame && !bytes.is_empty());
        self.part(side, bytes, 0);
    }

    fn missing(&mut self, side: Side, _: At, len: u64) {
        self.part(side, &[], len);
    }
}

fn decrypted(keys: &KeyLog, script: &[u8], size: usize) -> (Plaintext, Option<Sealed>) {
    let (mut connection, mut plaintext, mut at) = (Connection::new(), Plaintext::default(), At::default());
    let mut rest = script;
    while let [how, high, low, more @ ..] = rest {
        let side = if how & 1 == 0 { Side::Client } else { Side::Server };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if how & 2 != 0 {
            connection.missing(side, at, len as u64, &mut plaintext);
            rest = more;
            continue;
        }
        let (bytes, after) = more.split_at(len.min(more.len()));
        for piece in bytes.chunks(size) {
            at.frame += 1;
            connection.bytes(side, at, piece, keys, &mut plaintext);
        }
        rest = after;
    }
    (plaintext, connection.sealed())
}

fuzz_target!(|data: &[u8]| {
    let [high, low, rest @ ..] = data else {
        return;
    };
    let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let (text, script) = rest.split_at(len);
    let (mut keys, mut issues) = (KeyLog::default(), 0);
    keys.read(text, |_| issues += 1);
    assert!(keys.len() + issues <= text.len() + 2);
    let whole = decrypted(&keys, script, usize::MAX);
    assert_eq!(whole, decrypted(&keys, script, 7));
});
