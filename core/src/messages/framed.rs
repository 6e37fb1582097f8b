//! The reader of all protocols whose messages have their length in a head: `Framed` finds where each message begins
//! and ends, keeps its first bytes and counts the rest. The protocol's `WireFormat` interprets those first bytes.
//!
//! A hole inside a message whose head was read counts as bytes of the message. After any other hole it is not known
//! where the next message begins: this side is then searched, packet by packet, for whole messages.

use smol_str::SmolStr;

use super::readers::AnyReader;
use super::sink::Sink;
use super::{At, BySide, FirstBytes, Guess, Listener, MessageReader, Outcome, Side, Stretch, tls};
use crate::cursor;

/// The length of a message, as its first bytes give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Too few bytes to know.
    More,
    /// Length of the whole message in bytes, its head included.
    Is(u64),
    /// No message of this protocol.
    Wrong,
}

/// The part that a message plays in an exchange. The format returns it when the head is read; `Framed` reports it when
/// the message is whole. The numbers are keys of exchanges.
#[derive(Debug, Default)]
pub(super) enum Role {
    /// Not reported.
    #[default]
    Ignored,
    /// Not reported, but the next message begins with it: the sender's kernel may hold that one back because of it.
    Prelude,
    /// Bytes of the exchange, which goes on.
    Part(u64),
    /// The last message of the request (sent by the client) or of the answer (sent by the server).
    Last(u64),
    /// The last message of the request, for protocols in which either side may send one.
    Request(u64),
    /// The last message of the answer to such a request.
    Answer(u64),
    /// The last message of a request that gets no answer.
    Unanswered(u64),
    /// An interim answer: the final one follows.
    Interim(u64),
    /// The last message of a push.
    Push(PushedMessage),
}

impl Role {
    /// The last message of a push that belongs to no subscription. The target is "" where it has none.
    pub(super) fn push(method: &'static str, target: impl Into<SmolStr>) -> Self {
        Role::Push(PushedMessage {
            method,
            target: target.into(),
            ..PushedMessage::default()
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct PushedMessage {
    /// The packet of its first byte, if it began with an earlier message.
    pub(super) since: Option<At>,
    pub(super) method: &'static str,
    pub(super) target: SmolStr,
    /// Bytes of its earlier messages.
    pub(super) bytes: u64,
    pub(super) subscription: Option<u64>,
}

/// The first bytes of a message, at most `WireFormat::MAX_HEAD`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) bytes: &'a [u8],
    /// Length of the whole message in bytes.
    pub(super) len: u64,
}

/// The message format of one protocol.
pub(super) trait WireFormat: Default {
    /// Upper bound on the bytes kept of a message to name it; at least the length of its length field.
    const MAX_HEAD: usize;
    /// Lower bound on the bytes that distinguish an incomplete message from bytes that fit by chance.
    const MIN_PROOF: usize;
    /// The reason of `Note::Lost` where no message begins.
    const LOST_REASON: &'static str;

    fn length(&self, side: Side, first: &[u8]) -> Length;

    /// Whether `side` may send this message, whose head may be cut off. Used where reading begins in mid-stream.
    fn fits(_side: Side, _head: Head<'_>) -> bool {
        true
    }

    /// Whether messages of `side` have a constant by which they are recognised even without their end.
    fn has_magic(_side: Side) -> bool {
        false
    }

    /// Interprets a message whose head is read.
    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role;

    /// Forgets state that depends on every message of `side`, because some are missing.
    fn lost(&mut self, _side: Side) {}

    /// Whether TLS follows the message that was read last.
    fn starts_tls(&self) -> bool {
        false
    }
}

/// How bytes fit a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    No,
    /// They fit, but the last message is incomplete.
    Cut,
    /// They are whole messages.
    Whole,
}

/// Iterates over the heads of consecutive messages of `side`.
struct Heads<'a, D> {
    format: D,
    side: Side,
    rest: &'a [u8],
}

impl<'a, D: WireFormat> Heads<'a, D> {
    fn new(side: Side, rest: &'a [u8]) -> Self {
        let format = D::default();
        Heads { format, side, rest }
    }

    /// The next head, or how the bytes fit where no whole message follows.
    fn next(&mut self) -> Result<Head<'a>, Fit> {
        if self.rest.is_empty() {
            return Err(Fit::Whole);
        }
        let len = match self.format.length(self.side, self.rest) {
            Length::More => return Err(Fit::Cut),
            Length::Is(len) if len > 0 => len,
            _ => return Err(Fit::No),
        };
        let (message, after) = cursor::split(self.rest, usize::try_from(len).unwrap_or(usize::MAX));
        let bytes = cursor::upto(message, D::MAX_HEAD);
        let head = Head { bytes, len };
        if !D::fits(self.side, head) {
            return Err(Fit::No);
        }
        if (message.len() as u64) < len {
            return Err(Fit::Cut);
        }
        self.rest = after;
        Ok(head)
    }
}

/// How bytes fit that begin with a message of `side`.
pub(super) fn fit<D: WireFormat>(side: Side, bytes: &[u8]) -> Fit {
    if bytes.is_empty() {
        return Fit::No;
    }
    let mut heads = Heads::<D>::new(side, bytes);
    loop {
        if let Err(fit) = heads.next() {
            return fit;
        }
    }
}

/// Recognises protocols that the bytes of one side do not prove: those of both sides have to fit, and one of them has
/// to be whole messages.
pub(super) fn sniff<D: WireFormat>(first: &FirstBytes<'_>) -> Guess {
    match fits_both::<D>(first) {
        Err(guess) => guess,
        Ok((Fit::Cut, Fit::Cut)) if !D::has_magic(first.side) => Guess::No,
        Ok(_) => Guess::Yes,
    }
}

/// Recognises protocols that fitting lengths do not prove either: one side has to repeat an id of the other.
pub(super) fn sniff_by_id<D: WireFormat>(
    first: &FirstBytes<'_>,
    id: fn(Side, &[u8]) -> Option<u64>,
) -> Guess {
    if let Err(guess) = fits_both::<D>(first) {
        return guess;
    }
    let ids = |side, bytes| {
        let mut heads = Heads::<D>::new(side, bytes);
        let mut ids = Vec::new();
        loop {
            // the last message may be incomplete and show its id all the same
            let rest = heads.rest;
            let next = heads.next();
            ids.extend(id(side, next.map_or(rest, |head| head.bytes)));
            if next.is_err() {
                return ids;
            }
        }
    };
    let input = ids(first.side, first.input);
    let repeated = ids(first.side.other(), first.other)
        .iter()
        .any(|id| input.contains(id));
    if repeated {
        Guess::Yes
    } else {
        Guess::NeedsOtherSide
    }
}

fn fits_both<D: WireFormat>(first: &FirstBytes<'_>) -> Result<(Fit, Fit), Guess> {
    let (input, other) = (
        fit::<D>(first.side, first.input),
        fit::<D>(first.side.other(), first.other),
    );
    match (input, other) {
        (Fit::No, _) => Err(Guess::No),
        (Fit::Cut, _) if first.input.len() < D::MIN_PROOF => Err(Guess::More),
        (_, _) if first.other.is_empty() => Err(Guess::NeedsOtherSide),
        (_, Fit::No) => Err(Guess::No),
        fits => Ok(fits),
    }
}

/// The reader of both sides.
#[derive(Debug, Default)]
pub(super) struct Framed<D> {
    sides: BySide<Half>,
    format: D,
}

/// Why no more of the format's messages are read.
enum Leave {
    Lost,
    Tls,
}

/// Per-direction state: the message that is being read.
#[derive(Debug, Default)]
struct Half {
    head: Vec<u8>,
    /// Length in bytes, once the first bytes show it.
    len: Option<u64>,
    /// Bytes read, once the head is.
    have: u64,
    /// The message's role, once its head is read.
    role: Option<Role>,
    /// It is not known where the next message begins.
    is_searching: bool,
}

impl<D: WireFormat> MessageReader for Framed<D> {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.read_bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err((Leave::Lost, rest)) => Outcome::Lost(Stretch::Bytes(rest)),
                Err((Leave::Tls, rest)) => {
                    Outcome::Switch(AnyReader::Tls(Box::<tls::Tls>::default()), Stretch::Bytes(rest))
                }
            },
            Stretch::Missing(missing) => {
                self.skip_hole(&mut sink, missing);
                Outcome::All
            }
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        for side in Side::BOTH {
            self.sides[side] = Half::default();
            self.format.lost(side);
        }
    }
}

impl<D: WireFormat> Framed<D> {
    /// Reads bytes. The error is the rest that is not a message, after `Lost` was noted, or that is TLS.
    fn read_bytes<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), (Leave, &'a [u8])> {
        let side = sink.side();
        if self.sides[side].is_searching {
            match fit::<D>(side, bytes) {
                Fit::Whole => {}
                Fit::Cut if D::has_magic(side) && bytes.len() >= D::MIN_PROOF => {}
                _ => return Ok(()),
            }
            self.sides[side].is_searching = false;
        }
        while !bytes.is_empty() {
            if self.format.starts_tls() && self.sides[side].len.is_none() {
                return Err((Leave::Tls, bytes));
            }
            sink.mark();
            let half = &mut self.sides[side];
            if half.role.is_some() {
                let remaining = half.len.unwrap_or(0).saturating_sub(half.have);
                let body_len = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
                bytes = bytes.get(body_len..).unwrap_or_default();
                self.count_body(sink, body_len as u64);
                continue;
            }
            let unread = bytes;
            if !self.read_head(sink, &mut bytes) {
                sink.lost(D::LOST_REASON);
                return Err((Leave::Lost, unread));
            }
        }
        Ok(())
    }

    /// Takes bytes of a message's head off the front of `bytes`. Returns false where no message begins.
    fn read_head(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: &mut &[u8]) -> bool {
        let side = sink.side();
        let (format, half) = match side {
            Side::Client => (&mut self.format, &mut self.sides.client),
            Side::Server => (&mut self.format, &mut self.sides.server),
        };
        // byte by byte up to the length, so that no byte of the next message is taken
        while half.len.is_none() {
            let Some((first, rest)) = bytes.split_first() else {
                return true;
            };
            half.head.push(*first);
            *bytes = rest;
            match format.length(side, &half.head) {
                Length::More if half.head.len() < D::MAX_HEAD => {}
                Length::Is(len) if len >= half.head.len() as u64 => half.len = Some(len),
                _ => return false,
            }
        }
        let len = half.len.unwrap_or(0);
        let wanted = usize::try_from(len).unwrap_or(usize::MAX).min(D::MAX_HEAD);
        let piece_len = wanted.saturating_sub(half.head.len()).min(bytes.len());
        let (piece, rest) = bytes.split_at_checked(piece_len).unwrap_or((bytes, &[]));
        half.head.extend_from_slice(piece);
        *bytes = rest;
        if half.head.len() < wanted {
            return true;
        }
        self.finish_head(sink);
        true
    }

    /// Gives the head to the format, which returns the message's role.
    fn finish_head(&mut self, sink: &mut Sink<'_, impl Listener>) {
        let (format, half) = match sink.side() {
            Side::Client => (&mut self.format, &mut self.sides.client),
            Side::Server => (&mut self.format, &mut self.sides.server),
        };
        let (bytes, len) = (std::mem::take(&mut half.head), half.len.unwrap_or(0));
        half.role = Some(format.message(sink, Head { bytes: &bytes, len }));
        self.count_body(sink, bytes.len() as u64);
    }

    /// Counts bytes of a message whose head is read, and reports the message at its end.
    fn count_body(&mut self, sink: &mut Sink<'_, impl Listener>, bytes: u64) {
        let half = &mut self.sides[sink.side()];
        half.have += bytes;
        let is_whole = half.len.is_none_or(|len| half.have >= len);
        if let Some(
            Role::Part(key)
            | Role::Last(key)
            | Role::Request(key)
            | Role::Answer(key)
            | Role::Unanswered(key)
            | Role::Interim(key),
        ) = half.role
        {
            sink.exchange(key).piece(bytes);
        }
        if !is_whole {
            return;
        }
        let Half { role, have, .. } = std::mem::take(half);
        match role.unwrap_or_default() {
            Role::Prelude => return,
            Role::Ignored | Role::Part(_) => {}
            Role::Last(key) if sink.side() == Side::Client => sink.exchange(key).end_request(),
            Role::Request(key) => sink.exchange(key).end_request(),
            Role::Last(key) | Role::Answer(key) => sink.exchange(key).end_answer(),
            Role::Interim(key) => sink.exchange(key).interim(),
            Role::Unanswered(key) => sink.exchange(key).end_unanswered(),
            Role::Push(push) => {
                let first = push.since.unwrap_or_else(|| sink.marked());
                let PushedMessage {
                    method,
                    target,
                    bytes,
                    subscription,
                    ..
                } = push;
                sink.push_since(first, method, &target, bytes + have, subscription);
            }
        }
        sink.unmark();
    }

    /// Passes over a hole.
    fn skip_hole(&mut self, sink: &mut Sink<'_, impl Listener>, missing: u64) {
        let side = sink.side();
        let half = &mut self.sides[side];
        let read = if half.role.is_some() {
            half.have
        } else {
            half.head.len() as u64
        };
        let remaining = half.len.unwrap_or(0).saturating_sub(read);
        if half.role.is_none() && half.head.len() >= D::MIN_PROOF && missing <= remaining {
            self.finish_head(sink); // the hole is in its head: the bytes before the hole have to do
        }
        let half = &mut self.sides[side];
        if half.role.is_some() && missing <= remaining {
            return self.count_body(sink, missing);
        }
        *half = Half {
            is_searching: true,
            ..Half::default()
        };
        sink.unmark();
        self.format.lost(side);
    }
}
