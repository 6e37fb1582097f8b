//! Recognises TLS by a record's header, and by the hello in a handshake record.

use super::super::{Guess, Side};
use super::{APPLICATION_DATA, HANDSHAKE, MAX_RECORD_BYTES};

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Upper bound on a ClientHello in bytes, with room for every key share.
const MAX_HELLO_MESSAGE: u32 = 1 << 16;

/// Whether a stream that begins with these bytes of `side` is TLS.
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

/// Whether a turn begins with the hello of its side.
pub(super) fn begins_message(side: Side, first: &[u8]) -> bool {
    first.first() == Some(&HANDSHAKE) && sniff(side, first) == Guess::Yes
}

/// Whether a packet of the client begins with a ClientHello, as after MySQL's SSLRequest in the same turn. The lengths
/// of record and message must agree, because no protocol is known that announced it.
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
