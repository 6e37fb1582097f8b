//! Chooses the reader of a stream. Bytes are held until the first bytes of both sides decide (`decided`). Where a
//! reader cannot go on, the stream is read in turns until a message begins that a reader can follow (`turn`). A stream
//! whose beginning is not in the capture is recognised by later turns of both sides (`MidStream`).

use super::readers::{AnyReader, KNOWN, Recognition};
use super::sink::Sink;
use super::{
    At, BySide, Close, FirstBytes, Guess, Listener, Memory, MessageReader, Messages, Note, Outcome, Protocol,
    Side, Stage, Stretch, interactive, server_software, turns,
};
use crate::cursor;

/// Upper bound on the bytes of one side held while a protocol answers `Guess::More`.
pub(super) const MAX_UNDECIDED: usize = 32;
/// Upper bound on the bytes of both sides held while a protocol answers `Guess::NeedsOtherSide`.
const MAX_HELD: usize = 4096;
/// Upper bound on the packets of both sides held meanwhile.
const MAX_HELD_PACKETS: usize = 512;
/// Upper bound on switches to another protocol within the bytes of one packet.
const MAX_SWITCHES: usize = 4;
/// Upper bound on nested tunnels of a connection; one packet may set up several.
const MAX_TUNNELS: u8 = 4;
/// Upper bound on the turns of a mid-stream capture that are compared with the protocols.
const MAX_TURNS: u32 = 32;
/// Consecutive echoed keys that prove an interactive session in a mid-stream capture. One or two packets of the same
/// length could be any request and its answer.
const MIN_ECHOES: u32 = 3;
/// Upper bound on the bytes kept of the packet that begins a turn.
const MAX_KEPT: usize = 512;

impl Messages {
    /// Whether the stream can be read with this stretch, by a reader or in turns. Else the stretch is held.
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
            && let Some(mid_stream) = self
                .mid_stream
                .as_mut()
                .filter(|mid_stream| mid_stream.is_beginning_missing)
        {
            mid_stream.keep(side, bytes);
            if let Some(reader) = mid_stream.interactive_reader() {
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

    /// Compares the first bytes of both sides with every protocol. `None` where more bytes are needed.
    fn decide(&mut self, side: Side, stretch: Stretch<'_>, memory: &mut Memory) -> Option<Stage> {
        let Stretch::Bytes(bytes) = stretch else {
            self.set_mid_stream();
            return Some(Stage::Turns);
        };
        let undecided_bytes = |of_side: Side| {
            let parts = self.undecided.iter().filter(move |(side, ..)| *side == of_side);
            parts
                .flat_map(|(.., bytes)| bytes.iter().copied())
                .collect::<Vec<_>>()
        };
        let (mut joined, other) = (Vec::new(), undecided_bytes(side.other()));
        let input = if self.undecided.is_empty() {
            bytes
        } else {
            joined.append(&mut undecided_bytes(side));
            joined.extend_from_slice(bytes);
            &joined
        };
        let first = FirstBytes {
            side,
            input,
            other: &other,
            began: self.undecided.first().map_or(side, |(whose, ..)| *whose),
        };
        let may_wait = input.len() < MAX_UNDECIDED;
        let may_hold = input.len() + other.len() <= MAX_HELD && self.undecided.len() < MAX_HELD_PACKETS;
        let mut stage = Some(Stage::Turns);
        for entry in &KNOWN {
            match (entry.sniff)(&first) {
                Guess::Yes => {
                    self.reader = (entry.reader)(memory);
                    return Some(Stage::Following);
                }
                Guess::More if may_wait => stage = None,
                Guess::NeedsOtherSide if may_hold => stage = None,
                Guess::More | Guess::NeedsOtherSide | Guess::No => {}
            }
        }
        stage
    }

    /// Sets the stage and reads the held bytes.
    pub(super) fn begin(&mut self, stage: Stage, listener: &mut impl Listener) {
        self.stage = stage;
        listener.note(Note::Protocol(self.reader.protocol()));
        for (side, at, bytes) in std::mem::take(&mut self.undecided) {
            let stretch = Stretch::Bytes(&bytes);
            if bytes.is_empty() {
                self.close(side, at, Close::Fin, listener);
            } else if stage == Stage::Following {
                self.feed(side, at, stretch, listener);
            } else {
                // no protocol fits these bytes: do not compare them a second time
                self.greeting_of(side, stretch);
                turns::Turns.feed(Sink::new(&mut self.open, listener, side, at), stretch);
            }
        }
    }

    /// Reads the server's software from the first bytes that it sends in turns.
    #[inline(always)]
    pub(super) fn greeting_of(&mut self, side: Side, stretch: Stretch<'_>) {
        if side == Side::Server && !self.has_greeted {
            self.greeting(stretch);
        }
    }

    #[cold]
    fn greeting(&mut self, stretch: Stretch<'_>) {
        self.has_greeted = true;
        if let Stretch::Bytes(first) = stretch
            && self.reader.is_turns()
        {
            self.open.software = server_software::of_greeting(first);
        }
    }

    /// Reads on in turns from `rest`, because the reader cannot go on.
    #[cold]
    pub(super) fn lost(&mut self, side: Side, at: At, rest: Stretch<'_>, listener: &mut impl Listener) {
        self.stage = Stage::Turns;
        self.open.take_mark(Side::Client);
        self.open.take_mark(Side::Server);
        if !self.open.is_recognised {
            self.reader = AnyReader::Turns;
            listener.note(Note::Protocol(Protocol::Turns));
        }
        if !self.holds_missing(side, at, rest, listener) {
            turns::Turns.feed(Sink::new(&mut self.open, listener, side, at), rest);
        }
    }

    /// Holds a hole of the client until the client's next bytes, and returns whether it does. The hole is noticed when
    /// the client sends again, mostly after the server's answer to the missing bytes. Counted at once, the hole would
    /// open a message that swallows this answer.
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
        // HTTP/1 pairs answers by their order, in which a missing request counts
        let is_keyed = !matches!(self.reader.protocol(), Protocol::Turns | Protocol::Http);
        let waits =
            is_keyed && side == Side::Client && !Sink::new(&mut self.open, listener, side, at).is_open();
        if waits {
            self.mid_stream.get_or_insert_default().hole = Some((at, missing));
        }
        waits
    }

    /// Whether the client's first bytes after a hole begin a request of the stream's protocol.
    fn is_request_behind_hole(&self, side: Side, stretch: Stretch<'_>) -> bool {
        let Stretch::Bytes(first) = stretch else {
            return false;
        };
        let protocol = self.reader.protocol();
        let begins = |entry: &Recognition| entry.protocol == protocol && (entry.begins_message)(side, first);
        side == Side::Client && KNOWN.iter().any(begins)
    }

    /// Reads on from `rest` with another protocol's reader.
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
            let sink = Sink::new(&mut self.open, listener, side, at);
            match self.reader.feed(sink, rest) {
                Outcome::All => return,
                Outcome::Lost(unread) => return self.lost(side, at, unread, listener),
                Outcome::Switch(reader, unread) => (next, rest) = (reader, unread),
                Outcome::Restart(unread) => return self.restart(side, at, unread, listener),
            }
        }
        self.lost(side, at, rest, listener);
    }

    /// Recognises the protocol inside a tunnel, as at a stream's beginning.
    #[cold]
    pub(super) fn restart(&mut self, side: Side, at: At, rest: Stretch<'_>, listener: &mut impl Listener) {
        self.tunnels += 1;
        if self.tunnels > MAX_TUNNELS {
            return self.lost(side, at, rest, listener);
        }
        self.open.take_mark(Side::Client);
        self.open.take_mark(Side::Server);
        (self.stage, self.reader, self.has_greeted) = (Stage::Undecided, AnyReader::Turns, false);
        self.feed(side, at, rest, listener);
    }

    /// Whether a hole of the client is held.
    pub(super) fn holds_hole(&self) -> bool {
        self.mid_stream
            .as_ref()
            .is_some_and(|mid_stream| mid_stream.hole.is_some())
    }

    /// Counts the held hole as the client's turn, or as a part of it.
    pub(super) fn release_hole(&mut self, listener: &mut impl Listener) {
        if let Some((at, missing)) = self
            .mid_stream
            .as_mut()
            .and_then(|mid_stream| mid_stream.hole.take())
        {
            let sink = Sink::new(&mut self.open, listener, Side::Client, at);
            turns::Turns.feed(sink, Stretch::Missing(missing));
        }
    }

    /// Reads a stretch in turns, unless it begins a message that a reader can follow.
    #[inline(never)]
    pub(super) fn turn(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) {
        self.greeting_of(side, stretch);
        if self.holds_hole() {
            if self.is_request_behind_hole(side, stretch) {
                // the hole was a whole request, and is in no message
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
        let mut sink = Sink::new(&mut self.open, listener, side, at);
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

/// Whether the client's bytes fit the protocol as at a stream's beginning, on a stream of this protocol.
fn restarts(entry: &Recognition, side: Side, first: &[u8]) -> bool {
    let first_bytes = FirstBytes {
        side,
        input: first,
        other: &[],
        began: side,
    };
    side == Side::Client && matches!((entry.sniff)(&first_bytes), Guess::Yes | Guess::NeedsOtherSide)
}

/// Switches `reader`, on a stream that is read in turns, if a message begins that a reader can follow.
fn resync(reader: &mut AnyReader, sink: &mut Sink<'_, impl Listener>, first: &[u8]) -> bool {
    let (side, inside) = (sink.side(), sink.is_open());
    let protocol = reader.protocol();
    let begins = |entry: &&Recognition| {
        if inside {
            (entry.begins_inside_turn)(side, first)
        } else {
            (entry.begins_message)(side, first) || entry.protocol == protocol && restarts(entry, side, first)
        }
    };
    if inside && reader.is_turns() {
        let takes_over = |entry: &&Recognition| (entry.takes_over_turn)(side, first);
        let Some(entry) = KNOWN.iter().find(takes_over) else {
            return false;
        };
        *reader = (entry.reader)(sink.memory());
        sink.protocol(reader.protocol());
        return true;
    }
    // inside a turn only the stream's own protocol may begin a message: check that one first
    if inside
        && !KNOWN
            .iter()
            .any(|entry| entry.protocol == protocol && begins(&entry))
    {
        return false;
    }
    let Some(entry) = KNOWN.iter().find(begins) else {
        return false;
    };
    if reader.protocol() == entry.protocol {
        reader.resume(side, inside);
    } else if inside {
        return false;
    } else {
        *reader = (entry.reader)(sink.memory());
    }
    // the open messages are turns from before
    sink.end();
    sink.end_other();
    sink.protocol(reader.protocol());
    true
}

/// Recognises a stream whose beginning is not in the capture. Its first bytes may lie inside an answer and prove
/// nothing. Where the newest turn of each side fits a protocol, as the first bytes of a whole stream would, the stream
/// is read in this protocol from there.
#[derive(Debug, Default)]
pub(super) struct MidStream {
    pub(super) is_beginning_missing: bool,
    /// A hole of the client (its packet and length), held until the next bytes show whether it was a request.
    pub(super) hole: Option<(At, u64)>,
    /// The first bytes of each side's newest turn.
    newest: BySide<Vec<u8>>,
    /// Turns compared so far.
    turns: u32,
    /// The protocol that the previous turn fitted.
    fitted: Option<Protocol>,
    /// Consecutive keys that were echoed: their protocol, the newest key's last byte, and their number.
    echoes: Option<(Protocol, u8, u32)>,
}

impl MidStream {
    fn keep(&mut self, side: Side, input: &[u8]) {
        if side == Side::Server {
            let echo = interactive::echo(&self.newest.client, input);
            let before = self.echoes.filter(|(protocol, ..)| Some(*protocol) == echo);
            // a byte that is repeated and echoed again and again may be a probe
            let typed = self.newest.client.last().copied().unwrap_or(0);
            let is_other = before.is_none_or(|(_, key, _)| typed != key);
            let count = before.map_or(0, |(.., count)| count) + u32::from(is_other);
            self.echoes = echo.map(|protocol| (protocol, typed, count));
        }
        self.newest[side] = cursor::upto(input, MAX_KEPT).to_vec();
    }

    /// The reader of an interactive session, once enough keys were echoed.
    fn interactive_reader(&self) -> Option<AnyReader> {
        let (protocol, _, count) = self.echoes?;
        (count >= MIN_ECHOES).then(|| interactive::logged_in_reader(protocol))
    }

    /// Takes the first bytes of a turn. Returns a reader once the newest turns of both sides prove its protocol.
    fn turn(&mut self, sink: &mut Sink<'_, impl Listener>, input: &[u8]) -> Option<AnyReader> {
        if self.turns >= MAX_TURNS {
            return None;
        }
        self.turns += 1;
        let side = sink.side();
        let other = &self.newest[side.other()];
        let first = FirstBytes {
            side,
            input,
            other,
            began: side.other(),
        };
        let fits = |entry: &&Recognition| !other.is_empty() && (entry.sniff)(&first) == Guess::Yes;
        let entry = KNOWN.iter().find(fits);
        self.keep(side, input);
        if let Some(reader) = self.interactive_reader() {
            return Some(reader);
        }
        let fitted = entry.map(|entry| entry.protocol);
        let previous = std::mem::replace(&mut self.fitted, fitted);
        // a single command of beanstalkd may look like memcached's (`delete 1`, `DELETED`); two in a row do not
        let recognition =
            entry.filter(|entry| entry.protocol != Protocol::Memcached || previous == fitted)?;
        Some((recognition.reader)(sink.memory()))
    }
}

/// Switches `reader` of an unknown mid-stream capture if both sides' newest turns prove a protocol.
fn follow_mid_stream(
    mid_stream: &mut Option<Box<MidStream>>,
    reader: &mut AnyReader,
    sink: &mut Sink<'_, impl Listener>,
    input: &[u8],
) -> bool {
    let is_unknown = reader.is_turns() && !sink.is_open();
    let Some(proven_reader) = mid_stream
        .as_mut()
        .filter(|mid_stream| mid_stream.is_beginning_missing && is_unknown)
        .and_then(|mid_stream| mid_stream.turn(sink, input))
    else {
        return false;
    };
    *reader = proven_reader;
    sink.end_other();
    sink.protocol(reader.protocol());
    true
}
