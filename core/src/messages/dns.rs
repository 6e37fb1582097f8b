//! DNS over TCP (RFC 1035 4.2.2, RFC 7766). Each message has a 2-byte length before it. One exchange is a query and the
//! response with its id; responses come in any order. The reader takes header and question; `records.rs` reads
//! addresses for the table of names. Of a zone transfer only the first message of the response is counted.

mod message;
mod records;

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::{BySide, Close, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Stretch};
pub use message::Message;
use message::{HEADER, MAX_QUESTION_BYTES};
pub use records::addresses;

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::Dns,
    sniff,
    begins_message,
    reader: |_| AnyReader::Dns(Box::default()),
    ..Recognition::NEVER
};
/// Bytes of the length before each message.
const LENGTH: usize = 2;
/// Upper bound on the bytes kept of a response, for the addresses in it.
const MAX_ANSWER: usize = 4096;
/// Upper bound on the high byte of a query's length: no query is longer than 4 KiB.
const LONGEST_QUERY: u8 = 0x10;

#[derive(Debug, Default)]
pub(super) struct Dns {
    sides: BySide<Half>,
}

/// Per-direction state of the reader.
#[derive(Debug, Default)]
struct Half {
    /// The length field that is being read, and how many bytes of it were.
    length: [u8; LENGTH],
    have: usize,
    /// Length of the present message.
    len: usize,
    /// Bytes of the message that are still to come.
    remaining: usize,
    /// The message's beginning: header and question, and a response's records.
    head: Vec<u8>,
    /// Bytes after `head` are missing, so that no more is kept.
    has_hole: bool,
}

/// A stream is DNS if the server repeats the id of what looks like a query.
fn sniff(first: &FirstBytes<'_>) -> Guess {
    match first.side {
        Side::Client if first.input.len() < LENGTH + HEADER => match may_be_query(first.input) {
            true => Guess::More,
            false => Guess::No,
        },
        Side::Client if framed(Side::Client, first.input).is_some() => Guess::NeedsOtherSide,
        Side::Server if first.other.is_empty() => Guess::No,
        Side::Server if first.input.len() < LENGTH + HEADER => Guess::More,
        Side::Server => match (
            framed(Side::Server, first.input),
            framed(Side::Client, first.other),
        ) {
            (Some(answer), Some(_)) if has_query(first.other, answer.id) => Guess::Yes,
            _ => Guess::No,
        },
        Side::Client => Guess::No,
    }
}

/// Whether a query may begin with these few bytes.
fn may_be_query(first: &[u8]) -> bool {
    let plausible = |(offset, byte): (usize, &u8)| match offset {
        0 => *byte <= LONGEST_QUERY,
        4 => byte & 0x80 == 0,
        6 | 8 | 10 | 12 => *byte == 0, // counts below 256
        7 => *byte == 1,
        _ => true,
    };
    first.iter().enumerate().all(plausible)
}

/// Whether a turn is exactly one message.
fn begins_message(side: Side, first: &[u8]) -> bool {
    let is_whole = |len: usize| first.len() == LENGTH + len;
    length(first).is_some_and(is_whole) && framed(side, first).is_some_and(|message| message.name.is_some())
}

fn length(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.split_first_chunk::<LENGTH>()?;
    Some(usize::from(u16::from_be_bytes(*length)))
}

/// Returns the message that these bytes begin with. None if this side does not send it.
fn framed(side: Side, bytes: &[u8]) -> Option<Message> {
    let (len, body) = (length(bytes)?, bytes.get(LENGTH..)?);
    let message = Message::parse(body.get(..len.min(body.len()))?)?;
    (len >= HEADER && message.is_answer == (side == Side::Server)).then_some(message)
}

/// Whether one of the queries has this id.
fn has_query(mut queries: &[u8], id: u16) -> bool {
    while let Some(query) = framed(Side::Client, queries) {
        if query.id == id {
            return true;
        }
        let len = length(queries).unwrap_or(0);
        queries = queries.get(LENGTH + len..).unwrap_or_default();
    }
    false
}

impl MessageReader for Dns {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let half = &mut self.sides[sink.side()];
        match stretch {
            Stretch::Bytes(bytes) => half.read_bytes(&mut sink, bytes),
            Stretch::Missing(missing) => {
                // a hole inside the records hides no name and no end
                if half.head.len() >= MAX_QUESTION_BYTES && missing <= half.remaining as u64 {
                    half.remaining -= missing as usize;
                    half.has_hole = true;
                    half.end(&mut sink);
                    return Outcome::All;
                }
                sink.lost("a message's beginning is not in the capture");
                Outcome::Lost(stretch)
            }
        }
    }

    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, _how: Close) {
        self.sides[sink.side()] = Half::default();
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = Dns::default();
    }
}

impl Half {
    fn read_bytes<'a>(&mut self, sink: &mut Sink<'_, impl Listener>, mut bytes: &'a [u8]) -> Outcome<'a> {
        while let Some((next, rest)) = bytes.split_first() {
            sink.mark();
            if self.remaining > 0 {
                let (body, after) = bytes.split_at_checked(self.remaining).unwrap_or((bytes, &[]));
                let max_kept = match sink.side() {
                    _ if self.has_hole => 0,
                    Side::Client => MAX_QUESTION_BYTES,
                    Side::Server => MAX_ANSWER,
                };
                let room = max_kept.saturating_sub(self.head.len());
                self.head.extend_from_slice(body.get(..room).unwrap_or(body));
                self.remaining -= body.len();
                bytes = after;
                self.end(sink);
                continue;
            }
            if let Some(slot) = self.length.get_mut(self.have) {
                *slot = *next;
            }
            self.have += 1;
            if self.have == LENGTH {
                self.len = usize::from(u16::from_be_bytes(self.length));
                (self.have, self.remaining) = (0, self.len);
                if self.len < HEADER {
                    sink.lost("not a DNS message");
                    return Outcome::Lost(Stretch::Bytes(bytes));
                }
            }
            bytes = rest;
        }
        Outcome::All
    }

    /// Reports the message, if it is whole.
    fn end(&mut self, sink: &mut Sink<'_, impl Listener>) {
        if self.remaining > 0 {
            return;
        }
        let (head, bytes) = (std::mem::take(&mut self.head), (LENGTH + self.len) as u64);
        self.has_hole = false;
        let (side, Some(message)) = (sink.side(), Message::parse(&head)) else {
            return sink.unmark();
        };
        if message.is_answer != (side == Side::Server) {
            return sink.unmark();
        }
        let at = match side {
            Side::Client => sink.marked(),
            Side::Server => sink.at(),
        };
        sink.dns(at, &head);
        let mut exchange = sink.exchange(u64::from(message.id));
        if side == Side::Client {
            exchange.begin_request(Kind::Request);
            exchange.name(message.request_name());
            exchange.count(bytes);
            exchange.end_request();
        } else {
            exchange.begin_answer();
            exchange.piece(bytes);
            exchange.status(message.status());
            exchange.end_answer();
        }
    }
}
