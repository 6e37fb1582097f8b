//! Where a message begins and ends. Reads one stream's bytes in order, gives `Note`s to a `Listener`; knows nothing
//! of packets, sequence numbers or causes, only which packet brought a byte.
//!
//! `Messages` is the front: it looks at the first bytes of both sides, picks the reader that knows
//! them (`readers.rs`; ports play no part) and falls back to `turns` when that reader loses its way.
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
//! Protocols that answer in any order name the exchange of each event by a key (`Keyed`): `RequestBegin [RequestName] [Tags]
//! RequestEnd AnswerBegin [Status] AnswerEnd`, with `Bytes` and `Piece` between them; `notes.rs` has all events.
//! `Reset`, `Unanswered` and `GivenUp` may end it anywhere, and either side may send the request. A
//! `Push` is a whole message of the server that answers nothing. What is neither request nor answer (keepalives,
//! acknowledgements of the application, what a client sends and nobody answers) is in no note.
//!
//! `Lost` may stand anywhere. The message that is open then stays open and ends as a turn does: when
//! the other side speaks, or at the close. So from `Lost` on a message may have neither `Request` nor
//! `Response`. Reading goes on as turns until a turn begins with a start line that a protocol knows, or a packet
//! in a turn with the head of a protocol that the stream has spoken; the next `Request` or `Response` shows it. A
//! ClientHello inside a turn names the turn's message.
//!
//! A reader keeps what it knows of one direction in a `Half` of its own, two of them in an array by `Side`.

mod amqp;
mod beanstalk;
mod commands;
mod dnp3;
pub mod dns;
mod enip;
pub mod errors;
mod fastcgi;
mod framed;
mod gearman;
mod http1;
mod http2;
mod interactive;
mod iscsi;
mod iso;
mod kafka;
mod ldap;
mod length_prefixed;
mod lines;
mod memcached;
mod memory;
mod modbus;
mod mongodb;
mod mqtt;
mod mysql;
mod nats;
mod notes;
mod opcua;
mod openflow;
mod pending_queue;
mod pieces;
mod postgres;
mod proxy;
mod rabbit_streams;
mod readers;
mod recognise;
mod redis;
mod rpc;
mod server_software;
mod sink;
mod sip;
mod smb;
mod sql;
mod stomp;
mod synchrophasor;
mod tags;
#[cfg(test)]
mod tests;
mod text;
mod tls;
mod turns;
mod url;
mod waits;
mod websocket;

use crate::base::{At, BySide, Side};
pub use memory::Memory;
pub use notes::{Close, ExchangeEvent, FlowEvent, Kind, Note, Push, RequestName, Status, Stretch, TlsSetup};
pub use readers::Protocol;
use readers::{AnyReader, KNOWN};
use sink::{MessageSink, Open};
pub use tags::Tags;

/// Receives what the readers find, while they read.
pub trait Listener {
    fn note(&mut self, note: Note<'_>);

    /// What the readers of all streams remember together.
    fn memory(&mut self) -> &mut Memory;
}

/// What a protocol's first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Yes,
    No,
    /// These few bytes may be the beginning of it: ask again with more of this side's.
    More,
    /// They may be it, and the other side's answer will tell: ask again when it has spoken.
    NeedsOtherSide,
}

/// The first bytes of both sides, as far as they were read.
#[derive(Debug, Clone, Copy)]
struct FirstBytes<'a> {
    /// The side that sends now, and all its bytes.
    side: Side,
    input: &'a [u8],
    /// All bytes of the other side.
    other: &'a [u8],
    /// Who spoke first.
    began: Side,
}

/// One protocol's reader for one stream. It writes to the sink, which keeps the order of the notes.
trait MessageReader {
    /// Reads the next stretch of the side that the sink stands for.
    fn feed<'a>(&mut self, sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a>;

    /// The side that the sink stands for sends no more.
    fn close(&mut self, sink: &mut MessageSink<'_, impl Listener>, how: Close) {
        sink.cut(how);
    }

    /// After `Outcome::Lost`: `side` begins a message that `opens` or (`inside` a turn) `resumes` knows; forget what
    /// was half read.
    fn resume(&mut self, side: Side, inside: bool);
}

/// How far a reader came.
enum Outcome<'a> {
    All,
    /// The reader has given `Lost`; this (maybe empty) rest is not read and not counted yet.
    Lost(Stretch<'a>),
    /// Both sides go on in the protocol of this reader, this one with the rest.
    Switch(AnyReader, Stretch<'a>),
    /// What was read is the way to a connection's own bytes, which both sides begin now, this one with the rest.
    Restart(Stretch<'a>),
}

/// Why a reader of packets does not go on, and what it has not read.
enum Stop<'a> {
    /// `None`: nothing of the stretch was read.
    Lost(&'static str, Option<&'a [u8]>),
    /// Both sides go on in TLS.
    Encrypted(&'a [u8]),
}

/// What a reader gives for this stretch.
fn feed_outcome<'a>(
    read: Result<(), Stop<'a>>,
    sink: &mut MessageSink<'_, impl Listener>,
    stretch: Stretch<'a>,
) -> Outcome<'a> {
    match read {
        Ok(()) => Outcome::All,
        Err(Stop::Encrypted(rest)) => {
            Outcome::Switch(AnyReader::Tls(Box::<tls::Tls>::default()), Stretch::Bytes(rest))
        }
        Err(Stop::Lost(reason, rest)) => {
            sink.lost(reason);
            Outcome::Lost(rest.map_or(stretch, Stretch::Bytes))
        }
    }
}

/// The side that would begin a message so: distinguishes client from server where no SYN was seen. Else the only side
/// that would go on so.
pub fn likely_sender(first: &[u8]) -> Option<Side> {
    let sides = [Side::Client, Side::Server];
    let begins = |side| KNOWN.iter().any(|known| (known.begins_message)(side, first));
    let goes_on = |side| KNOWN.iter().any(|known| (known.begins_inside_turn)(side, first));
    sides.into_iter().find(|side| begins(*side)).or_else(|| {
        let [client, server] = sides.map(goes_on);
        let only = if client { Side::Client } else { Side::Server };
        (client != server).then_some(only)
    })
}

/// Both sides' messages of one stream. Small until the protocol is known and boxed from then on.
#[derive(Debug, Default)]
pub struct Messages {
    stage: Stage,
    open: Open,
    /// Kept while lost, for what it remembers of unanswered requests.
    reader: AnyReader,
    /// Bytes that are held while no protocol is sure; none stand for a FIN.
    undecided: Vec<(Side, At, Box<[u8]>)>,
    /// The server has spoken in turns: what follows is no greeting.
    greeted: bool,
    /// Tunnels that this connection was led through.
    tunnels: u8,
    /// Where bytes are not in the capture.
    mid_stream: Option<Box<recognise::MidStream>>,
}

/// What is seen of a stream that is read in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnUnit {
    Segments,
    /// Of TLS, sealed.
    Records,
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

    /// A stream of the protocol that stands at this place of all known ones (behind the last the first again),
    /// whatever its first bytes are: so that a fuzzer need not guess how each is recognised.
    #[doc(hidden)]
    pub fn with_protocol_number(place: usize, memory: &mut Memory) -> Self {
        let known = KNOWN.iter().cycle().nth(place % KNOWN.len());
        Messages {
            stage: Stage::Following,
            reader: known.map(|known| (known.reader)(memory)).unwrap_or_default(),
            ..Messages::default()
        }
    }

    /// Of a data connection for another stream's request.
    pub fn read_as_data_connection(&mut self) {
        self.stage = Stage::Following;
        self.reader = AnyReader::FtpData(Box::default());
    }

    /// Of a stream whose beginning is not in the capture.
    pub fn set_mid_stream(&mut self) {
        self.mid_stream.get_or_insert_default().begins();
    }

    /// Reuses the state of a stream that is over.
    pub fn reset(&mut self, memory: &mut Memory) {
        if let AnyReader::Http(reader) = std::mem::take(&mut self.reader) {
            memory.http = Some(reader);
        }
        *self = Messages::new();
    }

    /// The protocol that was recognised last (also for what follows an upgrade, or lies inside TLS), else turns; none
    /// while undecided.
    pub fn protocol(&self) -> Option<Protocol> {
        match &self.reader {
            _ if self.stage == Stage::Undecided => None,
            AnyReader::Tls(tls) => tls.inner_protocol().or(Some(Protocol::Tls)),
            AnyReader::WebSocket(frames) => frames.inner_protocol().or(Some(Protocol::WebSocket)),
            reader => Some(reader.protocol()),
        }
    }

    /// The server software, by its first message.
    pub fn software(&self) -> Option<&str> {
        let own = self.open.software.as_deref();
        match &self.reader {
            AnyReader::Tls(tls) => tls.inner_software().or(own),
            _ => own,
        }
    }

    /// Bytes were read that no note covers yet.
    #[inline(always)]
    pub fn has_held_bytes(&self) -> bool {
        self.open.has_marks() || !self.undecided.is_empty() || self.holds_hole()
    }

    /// The next stretch of `side`, which the packet `at` made readable.
    pub fn feed(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) {
        // the same twice: each is compiled for its side
        match side {
            Side::Client => self.feed_of(Side::Client, at, stretch, listener),
            Side::Server => self.feed_of(Side::Server, at, stretch, listener),
        }
    }

    #[inline(always)]
    fn feed_of(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) {
        if stretch.is_empty() || self.stage == Stage::Undecided && !self.decided(side, at, stretch, listener)
        {
            return;
        }
        if self.stage == Stage::Following {
            let sink = MessageSink::new(&mut self.open, listener, side, at);
            match self.reader.feed(sink, stretch) {
                Outcome::All => {}
                Outcome::Lost(rest) => self.lost(side, at, rest, listener),
                Outcome::Switch(reader, rest) => self.switch(side, at, reader, rest, listener),
                Outcome::Restart(rest) => self.restart(side, at, rest, listener),
            }
        } else {
            self.turn(side, at, stretch, listener);
        }
    }

    /// The units of its turns, where no protocol is known.
    pub fn turn_unit(&self) -> Option<TurnUnit> {
        match &self.reader {
            AnyReader::Tls(tls) if self.stage == Stage::Following => tls.turns().then_some(TurnUnit::Records),
            _ => (self.stage == Stage::Turns || self.both_were_held()).then_some(TurnUnit::Segments),
        }
    }

    /// Both sides have spoken, and no protocol is sure.
    fn both_were_held(&self) -> bool {
        let mut sides = self.undecided.iter().map(|(side, ..)| *side);
        let first = sides.next();
        sides.any(|side| Some(side) != first)
    }

    /// `side` goes on after a silence that ended its turn.
    pub fn silence(&mut self, side: Side, at: At, listener: &mut impl Listener) {
        if self.stage == Stage::Undecided {
            self.begin(Stage::Turns, listener);
        }
        self.release_hole(listener);
        MessageSink::new(&mut self.open, listener, side, at).end();
    }

    /// The length so far of the client's message that has no end yet.
    pub fn open_request_bytes(&self) -> Option<u64> {
        self.open.open_request_bytes()
    }

    /// `side` sends no more. A RST or the capture's end closes both sides: call it for each.
    pub fn close(&mut self, side: Side, at: At, how: Close, listener: &mut impl Listener) {
        if self.stage == Stage::Undecided && !self.undecided.is_empty() {
            if how == Close::Fin && self.undecided.iter().all(|(whose, ..)| *whose == side) {
                // a client that has sent all: the other side's answer will decide
                return self.undecided.push((side, at, Box::default()));
            }
            self.begin(Stage::Turns, listener);
        }
        self.release_hole(listener);
        let mut sink = MessageSink::new(&mut self.open, listener, side, at);
        match self.stage {
            Stage::Following => self.reader.close(&mut sink, how),
            _ => turns::Turns.close(&mut sink, how),
        }
        self.open.take_mark(side);
    }
}
