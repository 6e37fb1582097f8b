//! Where a reader loses its way, or gives both sides to another: in turns, until a message begins that one can follow.

use super::readers::{AnyReader, KNOWN, Recognition};
use super::sink::MessageSink;
use super::{
    At, First, Guess, Listener, MessageReader, Messages, Note, Protocol, Read, Side, Stage, Stretch, joined,
    turns,
};

/// Protocols that one packet's bytes may pass through.
const MAX_SWITCHES: usize = 4;

impl Messages {
    /// The reader cannot go on; this is what it left.
    #[cold]
    pub(super) fn lost(&mut self, side: Side, at: At, rest: Stretch<'_>, listener: &mut impl Listener) {
        self.stage = Stage::Turns;
        self.open.take_mark(Side::Client);
        self.open.take_mark(Side::Server);
        if !self.open.recognised {
            self.reader = AnyReader::Turns;
            listener.note(Note::Protocol(Protocol::Turns));
        }
        if !self.keeps(side, at, rest, listener) {
            turns::Turns.feed(MessageSink::new(&mut self.open, listener, side, at), rest);
        }
    }

    /// A hole is seen when its sender goes on, and between what is missing and a client's next request lies an answer
    /// mostly: whether these missing bytes wait for what is said next.
    fn keeps(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) -> bool {
        let Stretch::Missing(missing) = stretch else {
            return false;
        };
        // HTTP/1's answers are paired by their place, and a request that is missing has one
        let keyed = !matches!(self.reader.protocol(), Protocol::Turns | Protocol::Http);
        let waits =
            keyed && side == Side::Client && !MessageSink::new(&mut self.open, listener, side, at).is_open();
        if waits {
            self.joined.get_or_insert_default().hole = Some((at, missing));
        }
        waits
    }

    /// Whether the client asks with its first bytes behind a hole, as it may in the middle of a stream.
    fn asks_behind_hole(&self, side: Side, stretch: Stretch<'_>) -> bool {
        let Stretch::Bytes(first) = stretch else {
            return false;
        };
        let spoken = self.reader.protocol();
        let asks = |known: &Recognition| known.protocol == spoken && (known.opens)(side, first);
        side == Side::Client && KNOWN.iter().any(asks)
    }

    /// The stream goes on in another protocol.
    #[cold]
    pub(super) fn switch(
        &mut self,
        side: Side,
        at: At,
        reader: AnyReader,
        rest: Stretch<'_>,
        listener: &mut impl Listener,
    ) {
        let (mut next, mut rest) = (reader, rest);
        for _ in 0..MAX_SWITCHES {
            self.reader = next;
            listener.note(Note::Protocol(self.reader.protocol()));
            if rest.is_empty() {
                return;
            }
            let sink = MessageSink::new(&mut self.open, listener, side, at);
            match self.reader.feed(sink, rest) {
                Read::All => return,
                Read::Lost(left) => return self.lost(side, at, left, listener),
                Read::Switch(reader, left) => (next, rest) = (reader, left),
            }
        }
        self.lost(side, at, rest, listener);
    }

    /// Missing bytes of the client wait for what it says next.
    pub(super) fn holds(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.hole.is_some())
    }

    /// What is missing of the client was its turn, or a part of it.
    pub(super) fn tell_hole(&mut self, listener: &mut impl Listener) {
        if let Some((at, missing)) = self.joined.as_mut().and_then(|joined| joined.hole.take()) {
            let sink = MessageSink::new(&mut self.open, listener, Side::Client, at);
            turns::Turns.feed(sink, Stretch::Missing(missing));
        }
    }

    /// Reads in turns, until a message begins that a reader can follow.
    #[inline(never)]
    pub(super) fn turn(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) {
        self.greeting_of(side, stretch);
        if self.holds() {
            if self.asks_behind_hole(side, stretch) {
                // nothing is known of a request that is missing as a whole
                self.joined.as_mut().and_then(|joined| joined.hole.take());
            } else {
                self.tell_hole(listener);
            }
        }
        if self.keeps(side, at, stretch, listener) {
            return;
        }
        let mut sink = MessageSink::new(&mut self.open, listener, side, at);
        if let Stretch::Bytes(first) = stretch
            && (follow_again(&mut self.reader, &mut sink, first)
                || joined::follow(&mut self.joined, &mut self.reader, &mut sink, first))
        {
            self.stage = Stage::Following;
            return self.feed(side, at, stretch, listener);
        }
        turns::Turns.feed(sink, stretch);
    }
}

/// On a stream that has spoken this protocol: whether the client asks as it may have at the stream's beginning.
fn asks_again(known: &Recognition, side: Side, first: &[u8]) -> bool {
    let asks = First {
        side,
        said: first,
        other: &[],
        began: side,
    };
    side == Side::Client && matches!((known.sniff)(&asks), Guess::Yes | Guess::Other)
}

/// In turns: whether a message begins here that a reader can follow, and which.
fn follow_again(reader: &mut AnyReader, sink: &mut MessageSink<'_, impl Listener>, first: &[u8]) -> bool {
    let (side, inside) = (sink.side(), sink.is_open());
    let spoken = reader.protocol();
    let begins = |known: &&Recognition| {
        if inside {
            (known.resumes)(side, first)
        } else {
            (known.opens)(side, first) || known.protocol == spoken && asks_again(known, side, first)
        }
    };
    if inside && reader.is_turns() {
        let joins = |known: &&Recognition| (known.joins)(side, first);
        let Some(known) = KNOWN.iter().find(joins) else {
            return false;
        };
        *reader = (known.reader)(sink.memory());
        sink.protocol(reader.protocol());
        return true;
    }
    let Some(known) = KNOWN.iter().find(begins) else {
        return false;
    };
    if reader.protocol() == known.protocol {
        reader.resume(side, inside);
    } else if inside {
        return false;
    } else {
        *reader = (known.reader)(sink.memory());
    }
    // what was said so far was said in the old protocol
    sink.end();
    sink.end_other();
    sink.protocol(reader.protocol());
    true
}
