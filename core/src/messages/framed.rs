//! Protocols whose messages say their length in their head. Reads where each begins and ends, keeps as much of it as
//! names it, counts the rest; its `WireFormat` knows what a message means.
//!
//! A hole inside a message whose head was read is counted. Any other hole hides where the next begins: this side is
//! then searched, packet by packet, for messages that fit, and the other side is read on.

use smol_str::SmolStr;

use super::readers::AnyReader;
use super::sink::MessageSink;
use super::{At, BySide, FirstBytes, Guess, Listener, MessageReader, Outcome, Side, Stretch, tls};
use crate::cursor;

/// What a message's first bytes say of its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Too few bytes to tell.
    More,
    /// So many bytes, the head with them.
    Is(u64),
    /// No message of this protocol.
    Wrong,
}

/// What a message is, known when its head is read; the note follows when it is whole.
#[derive(Debug, Default)]
pub(super) enum Role {
    /// No note.
    #[default]
    Ignored,
    /// No note; but the sender's kernel may hold the next message for it, which then begins with it.
    Prelude,
    /// Bytes of the exchange with this key, which goes on.
    Part(u64),
    /// The request, or the answer, of this exchange ends with it.
    Last(u64),
    /// Where either side may send requests: the request of this exchange ends with it, or its answer.
    Request(u64),
    Answer(u64),
    /// The request of this exchange ends with it, and nobody answers it.
    Unanswered(u64),
    /// What came so far of this exchange is no answer: that is still to come.
    Interim(u64),
    /// A push ends with it.
    Push(PushedMessage),
}

#[derive(Debug, Default)]
pub(super) struct PushedMessage {
    /// Where it began, if that was an earlier message.
    pub(super) since: Option<At>,
    pub(super) method: &'static str,
    pub(super) target: SmolStr,
    /// Of the messages before the one that ends it.
    pub(super) bytes: u64,
    pub(super) subscription: Option<u64>,
}

/// A message's head: all of a short one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) bytes: &'a [u8],
    /// Of the whole message.
    pub(super) len: u64,
}

/// One protocol's messages.
pub(super) trait WireFormat: Default {
    /// So much of a message is kept for its name. More than any length field needs.
    const MAX_HEAD: usize;
    /// The fewest bytes that tell one side's message from chance.
    const MIN_PROOF: usize;
    /// Why reading ends where no message stands.
    const LOST_REASON: &'static str;

    fn length(&self, side: Side, first: &[u8]) -> Length;

    /// Whether this side may say what begins so (`head` may be cut); for who joins in the middle.
    fn fits(side: Side, head: Head<'_>) -> bool;

    /// A message of this side whose end is not in its packet is known too: it has a mark that chance has not.
    fn has_magic(side: Side) -> bool;

    /// A message's head is read, or all of it.
    fn message(&mut self, sink: &mut MessageSink<'_, impl Listener>, head: Head<'_>) -> Role;

    /// Messages of `side` are not in the capture.
    fn lost(&mut self, side: Side);

    /// Whether TLS follows the message that was read last.
    fn starts_tls(&self) -> bool {
        false
    }
}

/// How well bytes fit a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    No,
    /// The last message goes on behind them.
    Cut,
    Whole,
}

/// The heads of the messages that `side` sends here, one behind the other; how well the bytes fit where none follows.
struct Heads<'a, D> {
    format: D,
    side: Side,
    rest: &'a [u8],
}

impl<'a, D: WireFormat> Heads<'a, D> {
    fn of(side: Side, rest: &'a [u8]) -> Self {
        let format = D::default();
        Heads { format, side, rest }
    }

    fn next(&mut self) -> Result<Head<'a>, Fit> {
        if self.rest.is_empty() {
            return Err(Fit::Whole);
        }
        let len = match self.format.length(self.side, self.rest) {
            Length::More => return Err(Fit::Cut),
            Length::Is(len) if len > 0 => len,
            _ => return Err(Fit::No),
        };
        let (whole, behind) = cursor::split(self.rest, usize::try_from(len).unwrap_or(usize::MAX));
        let bytes = cursor::upto(whole, D::MAX_HEAD);
        let head = Head { bytes, len };
        if !D::fits(self.side, head) {
            return Err(Fit::No);
        }
        if (whole.len() as u64) < len {
            return Err(Fit::Cut);
        }
        self.rest = behind;
        Ok(head)
    }
}

/// Whether `side` may say this from a message's beginning on.
pub(super) fn fit<D: WireFormat>(side: Side, bytes: &[u8]) -> Fit {
    if bytes.is_empty() {
        return Fit::No;
    }
    let mut heads = Heads::<D>::of(side, bytes);
    loop {
        if let Err(fit) = heads.next() {
            return fit;
        }
    }
}

/// For protocols that one side alone does not prove: both sides' first bytes have to fit, one of them up to its end.
pub(super) fn sniff<D: WireFormat>(first: &FirstBytes<'_>) -> Guess {
    match fits_both::<D>(first) {
        Err(guess) => guess,
        Ok((Fit::Cut, Fit::Cut)) if !D::has_magic(first.side) => Guess::No,
        Ok(_) => Guess::Yes,
    }
}

/// For those that two fitting lengths do not prove either: one side has to repeat a number of the other.
pub(super) fn sniff_by_id<D: WireFormat>(
    first: &FirstBytes<'_>,
    id: fn(Side, &[u8]) -> Option<u64>,
) -> Guess {
    if let Err(guess) = fits_both::<D>(first) {
        return guess;
    }
    let ids = |side, bytes| {
        let mut heads = Heads::<D>::of(side, bytes);
        let mut ids = Vec::new();
        loop {
            // of the last message so much may be here
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

/// Reads both sides.
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

/// One side.
#[derive(Debug, Default)]
struct Half {
    head: Vec<u8>,
    /// Of the message that is being read, once its first bytes show it.
    len: Option<u64>,
    /// Bytes of it that were read.
    have: u64,
    /// Its head was read: what it is.
    role: Option<Role>,
    /// Where the next message begins is not known.
    searching: bool,
}

impl<D: WireFormat> MessageReader for Framed<D> {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        match stretch {
            Stretch::Bytes(bytes) => match self.bytes(&mut sink, bytes) {
                Ok(()) => Outcome::All,
                Err((Leave::Lost, rest)) => Outcome::Lost(Stretch::Bytes(rest)),
                Err((Leave::Tls, rest)) => {
                    Outcome::Switch(AnyReader::Tls(Box::<tls::Tls>::default()), Stretch::Bytes(rest))
                }
            },
            Stretch::Missing(missing) => {
                self.missing(&mut sink, missing);
                Outcome::All
            }
        }
    }

    fn resume(&mut self, _side: Side, _inside: bool) {
        for side in [Side::Client, Side::Server] {
            self.sides[side] = Half::default();
            self.format.lost(side);
        }
    }
}

impl<D: WireFormat> Framed<D> {
    /// Reads bytes; the error is the rest that is no message, after `Lost` has been written, or that is TLS.
    fn bytes<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        mut bytes: &'a [u8],
    ) -> Result<(), (Leave, &'a [u8])> {
        let side = sink.side();
        if self.sides[side].searching {
            match fit::<D>(side, bytes) {
                Fit::Whole => {}
                Fit::Cut if D::has_magic(side) && bytes.len() >= D::MIN_PROOF => {}
                _ => return Ok(()),
            }
            self.sides[side].searching = false;
        }
        while !bytes.is_empty() {
            if self.format.starts_tls() && self.sides[side].len.is_none() {
                return Err((Leave::Tls, bytes));
            }
            sink.mark();
            let half = &mut self.sides[side];
            if half.role.is_some() {
                let left = half.len.unwrap_or(0).saturating_sub(half.have);
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                bytes = bytes.get(here..).unwrap_or_default();
                self.body(sink, here as u64);
                continue;
            }
            let here = bytes;
            if !self.head(sink, &mut bytes) {
                sink.lost(D::LOST_REASON);
                return Err((Leave::Lost, here));
            }
        }
        Ok(())
    }

    /// Takes as much of a message's head as is here; false where no message stands.
    fn head(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: &mut &[u8]) -> bool {
        let side = sink.side();
        let (format, half) = match side {
            Side::Client => (&mut self.format, &mut self.sides.client),
            Side::Server => (&mut self.format, &mut self.sides.server),
        };
        // the length is looked for byte by byte, so that nothing behind the message is taken
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
        let here = wanted.saturating_sub(half.head.len()).min(bytes.len());
        let (piece, rest) = bytes.split_at_checked(here).unwrap_or((bytes, &[]));
        half.head.extend_from_slice(piece);
        *bytes = rest;
        if half.head.len() < wanted {
            return true;
        }
        self.tell(sink);
        true
    }

    /// The message's head is as long as it will be.
    fn tell(&mut self, sink: &mut MessageSink<'_, impl Listener>) {
        let (format, half) = match sink.side() {
            Side::Client => (&mut self.format, &mut self.sides.client),
            Side::Server => (&mut self.format, &mut self.sides.server),
        };
        let (bytes, len) = (std::mem::take(&mut half.head), half.len.unwrap_or(0));
        half.role = Some(format.message(sink, Head { bytes: &bytes, len }));
        self.body(sink, bytes.len() as u64);
    }

    /// So many bytes more of the message whose head was read.
    fn body(&mut self, sink: &mut MessageSink<'_, impl Listener>, bytes: u64) {
        let half = &mut self.sides[sink.side()];
        half.have += bytes;
        let ends = half.len.is_none_or(|len| half.have >= len);
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
        if !ends {
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

    /// So many bytes are not in the capture.
    fn missing(&mut self, sink: &mut MessageSink<'_, impl Listener>, missing: u64) {
        let side = sink.side();
        let half = &mut self.sides[side];
        let read = if half.role.is_some() {
            half.have
        } else {
            half.head.len() as u64
        };
        let left = half.len.unwrap_or(0).saturating_sub(read);
        if half.role.is_none() && half.head.len() >= D::MIN_PROOF && missing <= left {
            self.tell(sink); // what is here of its head has to do
        }
        let half = &mut self.sides[side];
        if half.role.is_some() && missing <= left {
            return self.body(sink, missing);
        }
        *half = Half {
            searching: true,
            ..Half::default()
        };
        sink.unmark();
        self.format.lost(side);
    }
}
