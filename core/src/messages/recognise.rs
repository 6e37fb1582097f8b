//! Which reader follows a stream. Until that is sure, what both sides sent first is held (`decided`). Where a reader
//! cannot go on, or hands both sides to another, the stream is read in turns until a message begins that a reader can
//! follow (`turn`). A stream whose beginning is not in the capture is recognised by later turns of both sides
//! (`MidStream`).

use super::readers::{AnyReader, KNOWN, Recognition};
use super::sink::MessageSink;
use super::{
    At, Close, FirstBytes, Guess, Listener, Memory, MessageReader, Messages, Note, Outcome, Protocol, Side,
    Stage, Stretch, interactive, server_software, turns,
};
use crate::cursor;

/// Bytes of one side that may be held while a reader answers `Guess::More`.
pub(super) const MAX_UNDECIDED: usize = 32;
/// Bytes and packets of both sides that may be held while a reader answers `Guess::NeedsOtherSide`.
const MAX_HELD: usize = 4096;
const MAX_HELD_PACKETS: usize = 512;
/// Protocols that one packet's bytes may pass through.
const MAX_SWITCHES: usize = 4;
/// Tunnels in tunnels that are followed; each may hold the next in the same packet.
const MAX_TUNNELS: u8 = 4;
/// Turns that are matched before a stream joined in the middle stays unknown.
const MAX_TURNS: u32 = 32;
/// Keys with their echoes, in a row, that show a session which was joined in the middle. Two packets of one length may be
/// any request and its answer.
const ECHOES: u32 = 3;
/// Bytes kept of the packet that begins a turn.
const MAX_KEPT: usize = 512;

impl Messages {
    /// Whether the protocol is known with this stretch, so that it can be read now. Else the stretch is held.
    #[cold]
    pub(super) fn decided(
        &mut self,
        side: Side,
        at: At,
        stretch: Stretch<'_>,
        listener: &mut impl Listener,
    ) -> bool {
        let mut decided = self.decide(side, stretch, listener.memory());
        if let Stretch::Bytes(bytes) = stretch
            && decided != Some(Stage::Following)
            && self.undecided.last().is_none_or(|(whose, ..)| *whose != side)
            && let Some(mid_stream) = self.mid_stream.as_mut().filter(|mid_stream| mid_stream.middle)
        {
            mid_stream.keep(side, bytes);
            if let Some(reader) = mid_stream.session() {
                (self.reader, decided) = (reader, Some(Stage::Following));
            }
        }
        if let (None, Stretch::Bytes(bytes)) = (decided, stretch) {
            self.undecided.push((side, at, bytes.into()));
            return false;
        }
        self.begin(decided.unwrap_or(Stage::Turns), listener);
        true
    }

    /// Matches the first bytes of both sides with all protocols. `None`: more bytes are needed.
    fn decide(&mut self, side: Side, stretch: Stretch<'_>, memory: &mut Memory) -> Option<Stage> {
        let Stretch::Bytes(bytes) = stretch else {
            self.set_mid_stream();
            return Some(Stage::Turns);
        };
        let held = |of: Side| {
            let before = self.undecided.iter().filter(move |(whose, ..)| *whose == of);
            before
                .flat_map(|(.., held)| held.iter().copied())
                .collect::<Vec<_>>()
        };
        let (mut all, other) = (Vec::new(), held(side.other()));
        let input = if self.undecided.is_empty() {
            bytes
        } else {
            all.append(&mut held(side));
            all.extend_from_slice(bytes);
            &all
        };
        let first = FirstBytes {
            side,
            input,
            other: &other,
            began: self.undecided.first().map_or(side, |(whose, ..)| *whose),
        };
        let few = input.len() < MAX_UNDECIDED;
        let fits = input.len() + other.len() <= MAX_HELD && self.undecided.len() < MAX_HELD_PACKETS;
        let mut stage = Some(Stage::Turns);
        for known in &KNOWN {
            match (known.sniff)(&first) {
                Guess::Yes => {
                    self.reader = (known.reader)(memory);
                    return Some(Stage::Following);
                }
                Guess::More if few => stage = None,
                Guess::NeedsOtherSide if fits => stage = None,
                Guess::More | Guess::NeedsOtherSide | Guess::No => {}
            }
        }
        stage
    }

    /// The stream is known: reads what was held until now.
    pub(super) fn begin(&mut self, stage: Stage, listener: &mut impl Listener) {
        self.stage = stage;
        listener.note(Note::Protocol(self.reader.protocol()));
        for (side, at, bytes) in std::mem::take(&mut self.undecided) {
            let held = Stretch::Bytes(&bytes);
            if bytes.is_empty() {
                self.close(side, at, Close::Fin, listener);
            } else if stage == Stage::Following {
                self.feed(side, at, held, listener);
            } else {
                // no protocol begins so: it is not matched a second time
                self.greeting_of(side, held);
                turns::Turns.feed(MessageSink::new(&mut self.open, listener, side, at), held);
            }
        }
    }

    /// Reads the server's software from its first bytes.
    #[inline(always)]
    pub(super) fn greeting_of(&mut self, side: Side, stretch: Stretch<'_>) {
        if side == Side::Server && !self.greeted {
            self.greeting(stretch);
        }
    }

    #[cold]
    fn greeting(&mut self, stretch: Stretch<'_>) {
        self.greeted = true;
        if let (Stretch::Bytes(first), true) = (stretch, self.reader.is_turns()) {
            self.open.software = server_software::of_greeting(first);
        }
    }

    /// The reader cannot go on; `rest` is not read yet.
    #[cold]
    pub(super) fn lost(&mut self, side: Side, at: At, rest: Stretch<'_>, listener: &mut impl Listener) {
        self.stage = Stage::Turns;
        self.open.take_mark(Side::Client);
        self.open.take_mark(Side::Server);
        if !self.open.recognised {
            self.reader = AnyReader::Turns;
            listener.note(Note::Protocol(Protocol::Turns));
        }
        if !self.holds_missing(side, at, rest, listener) {
            turns::Turns.feed(MessageSink::new(&mut self.open, listener, side, at), rest);
        }
    }

    /// Whether missing bytes of the client are held until its next bytes. A hole is seen when its sender goes on, and an
    /// answer mostly lies between the missing bytes and the next request: counted now, they would open a message that
    /// swallows that answer.
    fn holds_missing(
        &mut self,
        side: Side,
        at: At,
        stretch: Stretch<'_>,
        listener: &mut impl Listener,
    ) -> bool {
        let Stretch::Missing(missing) = stretch else {
            return false;
        };
        // HTTP/1's answers are paired by their place, and a request that is missing has one
        let keyed = !matches!(self.reader.protocol(), Protocol::Turns | Protocol::Http);
        let waits =
            keyed && side == Side::Client && !MessageSink::new(&mut self.open, listener, side, at).is_open();
        if waits {
            self.mid_stream.get_or_insert_default().hole = Some((at, missing));
        }
        waits
    }

    /// Whether the client's first bytes behind a hole begin a request.
    fn asks_behind_hole(&self, side: Side, stretch: Stretch<'_>) -> bool {
        let Stretch::Bytes(first) = stretch else {
            return false;
        };
        let spoken = self.reader.protocol();
        let asks = |known: &Recognition| known.protocol == spoken && (known.begins_message)(side, first);
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
                Outcome::All => return,
                Outcome::Lost(left) => return self.lost(side, at, left, listener),
                Outcome::Switch(reader, left) => (next, rest) = (reader, left),
                Outcome::Restart(left) => return self.restart(side, at, left, listener),
            }
        }
        self.lost(side, at, rest, listener);
    }

    /// A tunnel is made: what it carries is recognised as at a stream's beginning.
    #[cold]
    pub(super) fn restart(&mut self, side: Side, at: At, rest: Stretch<'_>, listener: &mut impl Listener) {
        self.tunnels += 1;
        if self.tunnels > MAX_TUNNELS {
            return self.lost(side, at, rest, listener);
        }
        self.open.take_mark(Side::Client);
        self.open.take_mark(Side::Server);
        (self.stage, self.reader, self.greeted) = (Stage::Undecided, AnyReader::Turns, false);
        self.feed(side, at, rest, listener);
    }

    /// Missing bytes of the client are held.
    pub(super) fn holds_hole(&self) -> bool {
        self.mid_stream
            .as_ref()
            .is_some_and(|mid_stream| mid_stream.hole.is_some())
    }

    /// Counts the held missing bytes as the client's turn, or a part of it.
    pub(super) fn release_hole(&mut self, listener: &mut impl Listener) {
        if let Some((at, missing)) = self
            .mid_stream
            .as_mut()
            .and_then(|mid_stream| mid_stream.hole.take())
        {
            let sink = MessageSink::new(&mut self.open, listener, Side::Client, at);
            turns::Turns.feed(sink, Stretch::Missing(missing));
        }
    }

    /// Reads in turns, until a message begins that a reader can follow.
    #[inline(never)]
    pub(super) fn turn(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) {
        self.greeting_of(side, stretch);
        if self.holds_hole() {
            if self.asks_behind_hole(side, stretch) {
                // the missing bytes were a whole request, of which nothing is known
                self.mid_stream
                    .as_mut()
                    .and_then(|mid_stream| mid_stream.hole.take());
            } else {
                self.release_hole(listener);
            }
        }
        if self.holds_missing(side, at, stretch, listener) {
            return;
        }
        let mut sink = MessageSink::new(&mut self.open, listener, side, at);
        if let Stretch::Bytes(first) = stretch
            && (resync(&mut self.reader, &mut sink, first)
                || follow_mid_stream(&mut self.mid_stream, &mut self.reader, &mut sink, first))
        {
            self.stage = Stage::Following;
            return self.feed(side, at, stretch, listener);
        }
        turns::Turns.feed(sink, stretch);
    }
}

/// On a stream that has spoken this protocol: whether the client begins as at a stream's beginning.
fn restarts(known: &Recognition, side: Side, first: &[u8]) -> bool {
    let asks = FirstBytes {
        side,
        input: first,
        other: &[],
        began: side,
    };
    side == Side::Client && matches!((known.sniff)(&asks), Guess::Yes | Guess::NeedsOtherSide)
}

/// In turns: switches `reader` where a message begins here that it can follow.
fn resync(reader: &mut AnyReader, sink: &mut MessageSink<'_, impl Listener>, first: &[u8]) -> bool {
    let (side, inside) = (sink.side(), sink.is_open());
    let spoken = reader.protocol();
    let begins = |known: &&Recognition| {
        if inside {
            (known.begins_inside_turn)(side, first)
        } else {
            (known.begins_message)(side, first) || known.protocol == spoken && restarts(known, side, first)
        }
    };
    if inside && reader.is_turns() {
        let joins = |known: &&Recognition| (known.takes_over_turn)(side, first);
        let Some(known) = KNOWN.iter().find(joins) else {
            return false;
        };
        *reader = (known.reader)(sink.memory());
        sink.protocol(reader.protocol());
        return true;
    }
    // inside a message only its own protocol goes on: few need to be looked for
    if inside
        && !KNOWN
            .iter()
            .any(|known| known.protocol == spoken && begins(&known))
    {
        return false;
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
    // the open messages belong to the protocol before
    sink.end();
    sink.end_other();
    sink.protocol(reader.protocol());
    true
}

/// What both sides sent first in their last turns. A capture may begin inside an answer, which proves nothing. Where a
/// later turn of each side fits a protocol as the first bytes of a whole stream would, the stream speaks it from there.
#[derive(Debug, Default)]
pub(super) struct MidStream {
    /// The beginning is not in the capture.
    middle: bool,
    /// Missing bytes of the client, held until its next bytes show whether they were a request.
    pub(super) hole: Option<(At, u64)>,
    client: Vec<u8>,
    server: Vec<u8>,
    turns: u32,
    /// The protocol that the turn before fitted.
    fitted: Option<Protocol>,
    /// Keys that somebody pressed and their echoes, in a row: of which protocol, the newest, how many.
    echoes: Option<(Protocol, u8, u32)>,
}

impl MidStream {
    pub(super) fn begins(&mut self) {
        self.middle = true;
    }

    fn last(&mut self, side: Side) -> &mut Vec<u8> {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn keep(&mut self, side: Side, input: &[u8]) {
        if side == Side::Server {
            let echo = interactive::echo(&self.client, input);
            let before = self.echoes.filter(|(protocol, ..)| Some(*protocol) == echo);
            // a byte that comes back again and again may be a probe
            let newest = self.client.last().copied().unwrap_or(0);
            let differs = before.is_none_or(|(_, key, _)| newest != key);
            let count = before.map_or(0, |(.., count)| count) + u32::from(differs);
            self.echoes = echo.map(|protocol| (protocol, newest, count));
        }
        *self.last(side) = cursor::upto(input, MAX_KEPT).to_vec();
    }

    /// The reader of a session in which somebody types, once enough keys have come back.
    fn session(&self) -> Option<AnyReader> {
        let (protocol, _, count) = self.echoes?;
        (count >= ECHOES).then(|| interactive::typed(protocol))
    }

    /// A side begins a turn with these bytes. Gives the reader where both sides' last turns prove its protocol.
    fn turn(&mut self, sink: &mut MessageSink<'_, impl Listener>, input: &[u8]) -> Option<AnyReader> {
        if self.turns >= MAX_TURNS {
            return None;
        }
        self.turns += 1;
        let side = sink.side();
        let other = std::mem::take(self.last(side.other()));
        let first = FirstBytes {
            side,
            input,
            other: &other,
            began: side.other(),
        };
        let fits = |known: &&Recognition| !other.is_empty() && (known.sniff)(&first) == Guess::Yes;
        let known = KNOWN.iter().find(fits);
        *self.last(side.other()) = other;
        self.keep(side, input);
        if let Some(reader) = self.session() {
            return Some(reader);
        }
        let now = known.map(|known| known.protocol);
        let before = std::mem::replace(&mut self.fitted, now);
        // one command of a work queue is memcached's, too (beanstalkd: `delete 1`, `DELETED`), two in a row are none
        let sure = known.filter(|known| known.protocol != Protocol::Memcached || before == now)?;
        Some((sure.reader)(sink.memory()))
    }
}

/// In turns of no known protocol: switches `reader` where both sides speak one from this packet on.
pub(super) fn follow_mid_stream(
    mid_stream: &mut Option<Box<MidStream>>,
    reader: &mut AnyReader,
    sink: &mut MessageSink<'_, impl Listener>,
    input: &[u8],
) -> bool {
    let Some(turns) = mid_stream
        .as_mut()
        .filter(|turns| turns.middle && reader.is_turns() && !sink.is_open())
    else {
        return false;
    };
    let Some(known) = turns.turn(sink, input) else {
        return false;
    };
    *reader = known;
    sink.end_other();
    sink.protocol(reader.protocol());
    true
}
