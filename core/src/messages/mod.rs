//! Where a message begins and ends. Reads one stream's bytes in order, gives `Note`s to a `Listener`; knows nothing
//! of packets, sequence numbers or causes, only which packet brought a byte.
//!
//! `Messages` is the front: it looks at the first bytes of either side, picks the reader that knows
//! them (`PROTOCOLS`; ports play no part) and falls back to `turns` when that reader loses its way.
//!
//! # The notes that a user may see
//!
//! Per side: `( Begin  [Request | Response]  (End | Cut) )*`, and after the last piece at most a `Begin`
//! without its end until `close`. A `Request` is always of the client's open message, a `Response` of
//! the server's; each message has at most one. The two sides' messages may overlap (pipelining, a
//! response before the request's end), so pair the first unanswered request with the next response that
//! is not `interim`. `Begin` carries the packet of the message's first byte, `End` that of its last (but
//! that of the FIN for a body which only the FIN ends).
//!
//! `Lost` may stand anywhere. The message that is open then stays open and ends as a turn does: when
//! the other side speaks, or at the close. So from `Lost` on a message may have neither `Request` nor
//! `Response`. Reading goes on as turns until a turn begins with a start line that a protocol knows, or a packet
//! in a turn with the head of a protocol that the stream has spoken; the next `Request` or `Response` says so. A
//! ClientHello inside a turn names the turn's message.

mod banner;
mod http1;
#[allow(dead_code)] // no reader uses it yet
mod http2;
mod notes;
mod pen;
#[allow(dead_code)] // no reader uses it yet
mod pieces;
#[cfg(test)]
mod tests;
mod tls;
mod turns;
#[allow(dead_code)] // no reader uses it yet
mod websocket;

use crate::base::{At, Side};
pub use notes::{Close, Note, Piece};
use pen::{Open, Pen};

/// Who is told what the readers find, while they read.
pub trait Listener {
    fn note(&mut self, note: Note<'_>);

    /// What the readers of all streams remember together.
    fn memory(&mut self) -> &mut Memory;
}

/// What the readers of all streams remember together.
#[derive(Debug, Default)]
pub struct Memory {
    again: Option<Box<http1::Again>>,
    /// One of a stream that is over, for the next.
    http: Option<Box<http1::Http1>>,
}

impl Memory {
    fn http(&mut self) -> Box<http1::Http1> {
        let Some(mut reader) = self.http.take() else {
            return Box::default();
        };
        *reader = http1::Http1::default();
        reader
    }
}

/// What a protocol's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Yes,
    No,
    /// These few bytes may be the beginning of it.
    More,
}

/// One protocol: how to know it and who reads it. A new one is a file beside `turns.rs`, a line here and one in `Known`.
struct Protocol {
    name: &'static str,
    /// Whether a stream is of this protocol, by the first bytes of one side. `More` for at most `MAX_UNDECIDED` bytes.
    sniff: fn(Side, &[u8]) -> Guess,
    /// Whether a turn in the middle of a stream begins a message of this protocol: stricter, no `More`.
    opens: fn(Side, &[u8]) -> bool,
    /// Whether a packet in the middle of a turn begins one, on a stream that has spoken this protocol: strictest.
    resumes: fn(Side, &[u8]) -> bool,
    /// Whether a packet inside a turn carries on in this protocol, on a stream that spoke none: what the turn said
    /// before was the way to ask for it, and stays in its message.
    joins: fn(Side, &[u8]) -> bool,
    reader: fn(&mut Memory) -> Known,
}

const PROTOCOLS: [Protocol; 2] = [
    Protocol {
        name: http1::NAME,
        sniff: http1::sniff,
        opens: http1::opens,
        resumes: http1::resumes,
        joins: |_, _| false,
        reader: |memory| Known::Http(memory.http()),
    },
    Protocol {
        name: tls::NAME,
        sniff: tls::sniff,
        opens: tls::opens,
        resumes: |_, _| false, // where a turn ends is all that can be known
        joins: tls::joins,
        reader: |_| Known::Tls(Default::default()),
    },
];

/// Bytes of one side that may be held while no protocol is sure.
const MAX_UNDECIDED: usize = 32;

/// One protocol's reader for one stream. It tells with the pen, which keeps the order of the notes.
trait Reader {
    fn name(&self) -> &'static str;

    /// Reads the piece of the side that the pen stands for.
    fn feed<'a>(&mut self, pen: Pen<'_, impl Listener>, piece: Piece<'a>) -> Read<'a>;

    /// The side that the pen stands for says no more.
    fn close(&mut self, pen: &mut Pen<'_, impl Listener>, how: Close);

    /// After `Read::Lost`: `side` begins a message that `opens` or (`inside` a turn) `resumes` knows; forget what
    /// was half read.
    fn resume(&mut self, side: Side, inside: bool);
}

/// The reader of the protocol that was recognised; `Turns` while none was. An enum and no `dyn Reader`, so that a
/// reader and who hears it are compiled as one.
#[derive(Debug, Default)]
enum Known {
    #[default]
    Turns,
    Http(Box<http1::Http1>),
    Tls(Box<tls::Tls>),
}

/// Does the same with whichever reader it is.
macro_rules! with {
    ($known:expr, $reader:ident => $does:expr) => {
        match $known {
            Known::Turns => {
                let $reader = &mut turns::Turns;
                $does
            }
            Known::Http($reader) => $does,
            Known::Tls($reader) => $does,
        }
    };
}

impl Known {
    fn name(&self) -> &'static str {
        with!(self, reader => reader.name())
    }

    fn is_turns(&self) -> bool {
        matches!(self, Known::Turns)
    }
}

/// How far a reader came.
enum Read<'a> {
    All,
    /// The reader has told `Lost`; this (maybe empty) rest is not read and not counted yet.
    Lost(Piece<'a>),
}

/// Who would say this at the beginning of a message: tells client from server where no SYN was seen.
pub fn speaker(first: &[u8]) -> Option<Side> {
    let says = |side| PROTOCOLS.iter().any(|protocol| (protocol.opens)(side, first));
    [Side::Client, Side::Server].into_iter().find(|side| says(*side))
}

/// Both sides' messages of one stream. Small until the protocol is known and boxed from then on.
#[derive(Debug, Default)]
pub struct Messages {
    stage: Stage,
    open: Open,
    /// Kept while lost, for what it remembers of unanswered requests.
    reader: Known,
    undecided: Vec<(Side, At, Box<[u8]>)>,
    /// The server has spoken in turns: what follows is no greeting.
    greeted: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Undecided,
    Following,
    Turns,
}

impl Messages {
    pub fn new() -> Self {
        Messages::default()
    }

    /// The same in the place of another stream's, which is over.
    pub fn renew(&mut self, memory: &mut Memory) {
        if let Known::Http(reader) = std::mem::take(&mut self.reader) {
            memory.http = Some(reader);
        }
        *self = Messages::new();
    }

    /// "" while undecided, the protocol that was recognised last (also for what follows an upgrade), else "turns".
    pub fn protocol(&self) -> &'static str {
        match self.stage {
            Stage::Undecided => "",
            _ => self.reader.name(),
        }
    }

    /// What the server calls itself, as it said first.
    pub fn software(&self) -> Option<&str> {
        self.open.software.as_deref()
    }

    /// The next piece of `side`, which the packet `at` made readable.
    pub fn feed(&mut self, side: Side, at: At, piece: Piece<'_>, listener: &mut impl Listener) {
        // the same twice: each is compiled for its side
        match side {
            Side::Client => self.feed_of(Side::Client, at, piece, listener),
            Side::Server => self.feed_of(Side::Server, at, piece, listener),
        }
    }

    #[inline(always)]
    fn feed_of(&mut self, side: Side, at: At, piece: Piece<'_>, listener: &mut impl Listener) {
        if piece.is_empty() || self.stage == Stage::Undecided && !self.decided(side, at, piece, listener) {
            return;
        }
        if self.stage == Stage::Following {
            let open = &mut self.open;
            match with!(&mut self.reader, reader => reader.feed(Pen::new(open, listener, side, at), piece)) {
                Read::All => {}
                Read::Lost(rest) => self.lost(side, at, rest, listener),
            }
        } else {
            self.turn(side, at, piece, listener);
        }
    }

    /// `side` says no more. A RST or the capture's end closes both sides: call it for each.
    pub fn close(&mut self, side: Side, at: At, how: Close, listener: &mut impl Listener) {
        if self.stage == Stage::Undecided && !self.undecided.is_empty() {
            self.begin(Stage::Turns, listener);
        }
        let mut pen = Pen::new(&mut self.open, listener, side, at);
        match self.stage {
            Stage::Following => with!(&mut self.reader, reader => reader.close(&mut pen, how)),
            _ => turns::Turns.close(&mut pen, how),
        }
    }

    /// Whether this piece can be read now: the protocol is known with it. Else it is held.
    #[cold]
    fn decided(&mut self, side: Side, at: At, piece: Piece<'_>, listener: &mut impl Listener) -> bool {
        let decided = self.decide(side, piece, listener.memory());
        if let (None, Piece::Bytes(bytes)) = (decided, piece) {
            self.undecided.push((side, at, bytes.into()));
            return false;
        }
        self.begin(decided.unwrap_or(Stage::Turns), listener);
        true
    }

    /// Looks at a side's first bytes: `None` when they are too few to tell.
    fn decide(&mut self, side: Side, piece: Piece<'_>, memory: &mut Memory) -> Option<Stage> {
        let Piece::Bytes(bytes) = piece else {
            return Some(Stage::Turns);
        };
        let mut joined = Vec::new();
        let first = if self.undecided.is_empty() {
            bytes
        } else {
            let before = self.undecided.iter().filter(|(whose, ..)| *whose == side);
            before.for_each(|(.., held)| joined.extend_from_slice(held));
            joined.extend_from_slice(bytes);
            &joined
        };
        let mut stage = Some(Stage::Turns);
        for protocol in &PROTOCOLS {
            match (protocol.sniff)(side, first) {
                Guess::Yes => {
                    self.reader = (protocol.reader)(memory);
                    return Some(Stage::Following);
                }
                Guess::More if first.len() < MAX_UNDECIDED => stage = None,
                Guess::More | Guess::No => {}
            }
        }
        stage
    }

    /// The stream is known: reads what was held until now.
    fn begin(&mut self, stage: Stage, listener: &mut impl Listener) {
        self.stage = stage;
        listener.note(Note::Protocol(self.protocol()));
        for (side, at, bytes) in std::mem::take(&mut self.undecided) {
            self.feed(side, at, Piece::Bytes(&bytes), listener);
        }
    }

    /// The server's first words, which may say what it is.
    #[cold]
    fn greeting(&mut self, piece: Piece<'_>) {
        self.greeted = true;
        if let (Piece::Bytes(first), true) = (piece, self.reader.is_turns()) {
            self.open.software = banner::of_greeting(first);
        }
    }

    /// The reader cannot go on; this is what it left.
    #[cold]
    fn lost(&mut self, side: Side, at: At, rest: Piece<'_>, listener: &mut impl Listener) {
        self.stage = Stage::Turns;
        if !self.open.recognised {
            self.reader = Known::Turns;
            listener.note(Note::Protocol(self.protocol()));
        }
        turns::Turns.feed(Pen::new(&mut self.open, listener, side, at), rest);
    }

    /// Reads in turns, until a message begins that a reader can follow.
    #[inline(never)]
    fn turn(&mut self, side: Side, at: At, piece: Piece<'_>, listener: &mut impl Listener) {
        if side == Side::Server && !self.greeted {
            self.greeting(piece);
        }
        let mut pen = Pen::new(&mut self.open, listener, side, at);
        if let Piece::Bytes(first) = piece
            && follow_again(&mut self.reader, &mut pen, first)
        {
            self.stage = Stage::Following;
            return self.feed(side, at, piece, listener);
        }
        turns::Turns.feed(pen, piece);
    }
}

/// In turns: whether a message begins here that a reader can follow, and which.
fn follow_again(reader: &mut Known, pen: &mut Pen<'_, impl Listener>, first: &[u8]) -> bool {
    let (side, inside) = (pen.side(), pen.is_open());
    let begins = |protocol: &&Protocol| {
        if inside {
            (protocol.resumes)(side, first)
        } else {
            (protocol.opens)(side, first)
        }
    };
    if inside && reader.is_turns() {
        let joins = |protocol: &&Protocol| (protocol.joins)(side, first);
        let Some(protocol) = PROTOCOLS.iter().find(joins) else {
            return false;
        };
        *reader = (protocol.reader)(pen.memory());
        pen.protocol(reader.name());
        return true;
    }
    let Some(protocol) = PROTOCOLS.iter().find(begins) else {
        return false;
    };
    if reader.name() == protocol.name {
        with!(reader, known => known.resume(side, inside));
    } else if inside {
        return false;
    } else {
        *reader = (protocol.reader)(pen.memory());
    }
    // what was said so far was said in the old protocol
    pen.end();
    pen.end_other();
    pen.protocol(reader.name());
    true
}
