//! Tells the listener the notes. Readers only count bytes and name what they saw; that every `Begin` has exactly one
//! `End` or `Cut` before the next is settled here, once for all protocols. Knows no protocol.

use super::http1::Again;
use super::{At, Close, Listener, Memory, Note, Side};
use smol_str::SmolStr;

/// The messages that are open now.
#[derive(Debug, Default)]
pub(super) struct Open {
    client: Message,
    server: Message,
    /// A start line has been read at some time.
    pub(super) recognised: bool,
    /// What the server calls itself.
    pub(super) software: Option<Box<str>>,
}

#[derive(Debug, Default)]
struct Message {
    open: bool,
    named: bool,
    bytes: u64,
    last: At,
}

impl Open {
    #[inline(always)]
    fn message(&mut self, side: Side) -> &mut Message {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

/// Writes for one side, on behalf of one packet.
pub(super) struct Pen<'a, L> {
    open: &'a mut Open,
    listener: &'a mut L,
    side: Side,
    at: At,
}

impl<'a, L: Listener> Pen<'a, L> {
    pub(super) fn new(open: &'a mut Open, listener: &'a mut L, side: Side, at: At) -> Self {
        Pen {
            open,
            listener,
            side,
            at,
        }
    }

    /// For who reads further. By value, as a pen that nobody points to stays in registers.
    #[inline(always)]
    pub(super) fn lend(&mut self) -> Pen<'_, L> {
        Pen {
            open: self.open,
            listener: self.listener,
            ..*self
        }
    }

    pub(super) fn at(&self) -> At {
        self.at
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Whether a message of this side is open.
    #[inline(always)]
    pub(super) fn is_open(&mut self) -> bool {
        self.message(self.side).open
    }

    #[inline(always)]
    pub(super) fn other_is_open(&mut self) -> bool {
        self.message(self.side.other()).open
    }

    pub(super) fn memory(&mut self) -> &mut Memory {
        self.listener.memory()
    }

    /// Heads read before, on any stream.
    pub(super) fn again(&mut self) -> &mut Option<Box<Again>> {
        &mut self.listener.memory().again
    }

    /// So many bytes belong to this side's message, which begins with them if none is open.
    #[inline(always)]
    pub(super) fn count(&mut self, bytes: u64) {
        self.count_of(self.side, self.at, bytes);
    }

    /// The same for either side, and for an earlier packet.
    #[inline(always)]
    pub(super) fn count_of(&mut self, side: Side, at: At, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let message = self.message(side);
        if message.open {
            message.bytes = message.bytes.saturating_add(bytes);
            message.last = at;
        } else {
            *message = Message {
                open: true,
                named: false,
                bytes,
                last: at,
            };
            let other = self.message(side.other());
            let other = other.open.then_some((other.last, other.bytes));
            self.listener.note(Note::Begin { side, at, other });
        }
    }

    #[inline(always)]
    pub(super) fn request(&mut self, method: &SmolStr, target: &SmolStr) {
        self.name(Side::Client, Note::Request { method, target });
    }

    #[inline(always)]
    pub(super) fn response(&mut self, status: u16, interim: bool) {
        self.name(Side::Server, Note::Response { status, interim });
    }

    /// The open request is the first word of a dialogue: both sides say more before its answer ends.
    pub(super) fn dialogue(&mut self) {
        if self.is_open() {
            self.listener.note(Note::Dialogue);
        }
    }

    /// This side's message ended with the last byte that was counted.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        self.end_of(self.side);
    }

    /// The other side's message ended with its last byte, because this side speaks.
    pub(super) fn end_other(&mut self) {
        self.end_of(self.side.other());
    }

    /// This side's message ends with this packet, which brought no byte of it (a FIN).
    pub(super) fn end_here(&mut self) {
        self.end_here_of(self.side);
    }

    /// A side's message ends with this packet, whoever sent it.
    pub(super) fn end_here_of(&mut self, side: Side) {
        self.message(side).last = self.at;
        self.end_of(side);
    }

    /// This side's message, if one is open, stops before its end.
    pub(super) fn cut(&mut self, by: Close) {
        let side = self.side;
        let message = self.open.message(side);
        if std::mem::take(&mut message.open) {
            let note = Note::Cut {
                side,
                at: message.last,
                bytes: message.bytes,
                by,
            };
            self.listener.note(note);
        }
    }

    /// What is read from here on.
    pub(super) fn protocol(&mut self, name: &'static str) {
        self.listener.note(Note::Protocol(name));
    }

    /// What the server calls itself; the first name stays.
    pub(super) fn software(&mut self, name: Box<str>) {
        self.open.software.get_or_insert(name);
    }

    pub(super) fn lost(&mut self, reason: &'static str) {
        self.listener.note(Note::Lost {
            side: self.side,
            at: self.at,
            reason,
        });
    }

    /// Only a message of the side that speaks, and only once.
    #[inline(always)]
    fn name(&mut self, side: Side, note: Note<'_>) {
        if side != self.side {
            return;
        }
        let message = self.message(side);
        if message.open && !std::mem::replace(&mut message.named, true) {
            self.listener.note(note);
            self.open.recognised = true;
        }
    }

    /// A side's message ended with its last byte.
    #[inline(always)]
    pub(super) fn end_of(&mut self, side: Side) {
        let message = self.open.message(side);
        if std::mem::take(&mut message.open) {
            let note = Note::End {
                side,
                at: message.last,
                bytes: message.bytes,
            };
            self.listener.note(note);
        }
    }

    #[inline(always)]
    fn message(&mut self, side: Side) -> &mut Message {
        self.open.message(side)
    }
}
