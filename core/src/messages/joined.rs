//! A stream whose beginning is not in the capture, while no protocol is known: what both sides said first in their
//! last turns. A capture may begin inside an answer, which tells nothing. Where a later turn of each side fits a
//! protocol as the first bytes of a whole stream would, the stream speaks it from there on.

use super::readers::{AnyReader, KNOWN, Recognition};
use super::sink::MessageSink;
use super::{At, First, Guess, Listener, Protocol, Side};
use crate::cursor;

/// Turns that are looked at: what is no protocol's in all of them is none that is known.
const MAX_TURNS: u32 = 32;
/// So much is kept of the packet that begins a turn.
const MAX_KEPT: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The beginning is not in the capture.
    middle: bool,
    /// Bytes of the client that are not in the capture: what it says next will tell whether they were a request.
    pub(super) hole: Option<(At, u64)>,
    client: Vec<u8>,
    server: Vec<u8>,
    turns: u32,
    /// What the turn before fitted.
    fitted: Option<Protocol>,
}

impl Joined {
    pub(super) fn begins(&mut self) {
        self.middle = true;
    }

    fn last(&mut self, side: Side) -> &mut Vec<u8> {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn keep(&mut self, side: Side, said: &[u8]) {
        *self.last(side) = cursor::upto(said, MAX_KEPT).to_vec();
    }

    /// A side begins a turn with these bytes: who reads on from here, where both sides' last turns prove it.
    fn turn(&mut self, sink: &mut MessageSink<'_, impl Listener>, said: &[u8]) -> Option<AnyReader> {
        if self.turns >= MAX_TURNS {
            return None;
        }
        self.turns += 1;
        let side = sink.side();
        let other = std::mem::take(self.last(side.other()));
        let first = First {
            side,
            said,
            other: &other,
            began: side.other(),
        };
        let fits = |known: &&Recognition| !other.is_empty() && (known.sniff)(&first) == Guess::Yes;
        let known = KNOWN.iter().find(fits);
        *self.last(side.other()) = other;
        self.keep(side, said);
        let now = known.map(|known| known.protocol);
        let before = std::mem::replace(&mut self.fitted, now);
        // one command of a work queue is memcached's, too (beanstalkd: `delete 1`, `DELETED`), two in a row are none
        let sure = known.filter(|known| known.protocol != Protocol::Memcached || before == now)?;
        Some((sure.reader)(sink.memory()))
    }
}

/// In turns of no known protocol: whether both sides speak one from this packet on.
pub(super) fn follow(
    joined: &mut Option<Box<Joined>>,
    reader: &mut AnyReader,
    sink: &mut MessageSink<'_, impl Listener>,
    said: &[u8],
) -> bool {
    let Some(turns) = joined
        .as_mut()
        .filter(|turns| turns.middle && reader.is_turns() && !sink.is_open())
    else {
        return false;
    };
    let Some(known) = turns.turn(sink, said) else {
        return false;
    };
    *reader = known;
    sink.end_other();
    sink.protocol(reader.protocol());
    true
}

/// What was held while a protocol was looked for is read in turns.
pub(super) fn heard(
    joined: &mut Option<Box<Joined>>,
    sink: &mut MessageSink<'_, impl Listener>,
    said: &[u8],
) {
    if let Some(joined) = joined.as_mut().filter(|joined| joined.middle && !sink.is_open()) {
        joined.keep(sink.side(), said);
    }
}
