//! How TLS is known by its first bytes: a record's header, and a hello where it is a handshake's.

use super::super::{Guess, Side};
use super::{APPLICATION_DATA, HANDSHAKE, MAX_RECORD_BYTES};

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// No ClientHello is longer, with every key share of its time in it.
const MAX_HELLO_MESSAGE: u32 = 1 << 16;

/// Whether a stream that begins like this is TLS: a record's header, and a hello where it is a handshake's.
pub(super) fn sniff(side: Side, first: &[u8]) -> Guess {
    match first {
        [] => Guess::More,
        [kind, rest @ ..] if *kind == HANDSHAKE || *kind == APPLICATION_DATA => match rest {
            [] | [3] | [3, 0..=4] | [3, 0..=4, _] => Guess::More,
            [3, 0..=4, high, low, body @ ..] => {
                let len = u32::from(*high) << 8 | u32::from(*low);
                match (*kind, body.first()) {
                    _ if len == 0 || len > MAX_RECORD_BYTES => Guess::No,
                    (APPLICATION_DATA, _) => Guess::Yes,
                    (_, None) => Guess::More,
                    (_, Some(kind)) if *kind == hello_of(side) => Guess::Yes,
                    _ => Guess::No,
                }
            }
            _ => Guess::No,
        },
        _ => Guess::No,
    }
}

/// Whether a turn begins with this side's hello.
pub(super) fn begins_message(side: Side, first: &[u8]) -> bool {
    first.first() == Some(&HANDSHAKE) && sniff(side, first) == Guess::Yes
}

/// Whether a client's packet is a ClientHello from its beginning, as behind MySQL's SSLRequest in the same turn:
/// record and message must agree, as nothing before announces them.
pub(super) fn takes_over_turn(side: Side, first: &[u8]) -> bool {
    let &[
        HANDSHAKE,
        3,
        0..=4,
        high,
        low,
        CLIENT_HELLO,
        top,
        middle,
        bottom,
        3,
        0..=4,
        ..,
    ] = first
    else {
        return false;
    };
    let record = u32::from_be_bytes([0, 0, high, low]);
    let message = u32::from_be_bytes([0, top, middle, bottom]);
    side == Side::Client && record <= MAX_RECORD_BYTES && message + 4 >= record && message < MAX_HELLO_MESSAGE
}

fn hello_of(side: Side) -> u8 {
    match side {
        Side::Client => CLIENT_HELLO,
        Side::Server => SERVER_HELLO,
    }
}
