pub(crate) mod classic;
mod lost;
pub(crate) mod modern;
pub(crate) mod talk;
mod vectors;

use super::{Connection, KeyLog, Sealed, Taker};
use crate::base::{At, Side};

/// What programs sent: by side, bytes with how many are missing before each stretch.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Heard {
    client: Vec<u8>,
    server: Vec<u8>,
    missing: Vec<(Side, u64)>,
}

impl Taker for Heard {
    fn plain(&mut self, side: Side, begun: At, at: At, bytes: &[u8]) {
        assert!(begun.frame <= at.frame);
        match side {
            Side::Client => self.client.extend(bytes),
            Side::Server => self.server.extend(bytes),
        }
    }

    fn missing(&mut self, side: Side, _: At, len: u64) {
        self.missing.push((side, len));
    }
}

/// A piece of a conversation: bytes, or so many that are not in the capture.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Bytes(Side, Vec<u8>),
    Missing(Side, u64),
}

use Part::{Bytes, Missing};
use Side::{Client, Server};

fn keys(text: &str) -> KeyLog {
    let mut log = KeyLog::default();
    log.read(text.as_bytes(), |issue| panic!("{issue:?}"));
    log
}

fn listen_in(parts: &[Part], log: &KeyLog, cut: impl Fn(&[u8]) -> Vec<Vec<u8>>) -> (Heard, Option<Sealed>) {
    let (mut connection, mut heard) = (Connection::new(), Heard::default());
    let mut at = At::default();
    for part in parts {
        match part {
            Bytes(side, bytes) => {
                for piece in cut(bytes) {
                    at.frame += 1;
                    connection.bytes(*side, at, &piece, log, &mut heard);
                }
            }
            Missing(side, len) => connection.missing(*side, at, *len, &mut heard),
        }
    }
    (heard, connection.sealed())
}

/// What is heard, the same however the bytes are cut.
fn listen(parts: &[Part], text: &str) -> (Heard, Option<Sealed>) {
    let log = keys(text);
    let uncut = listen_in(parts, &log, |bytes| vec![bytes.to_vec()]);
    for size in [1, 7, 1000] {
        let cut = listen_in(parts, &log, |bytes| {
            bytes.chunks(size).map(<[u8]>::to_vec).collect()
        });
        assert_eq!(uncut, cut, "in pieces of {size}");
    }
    uncut
}
