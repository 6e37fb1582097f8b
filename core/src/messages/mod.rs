//! Finds where the messages of a TCP stream begin and end. A reader takes the stream's bytes in order and reports
//! `Note`s to a `Listener`. It knows no sequence numbers and no causes, only which packet (`At`) brought a byte.
//!
//! `Messages` is the entry point, one per stream. It compares the first bytes of both sides with every known protocol
//! (`readers.rs`; ports play no part) and hands the stream to that protocol's reader. When the reader cannot go on,
//! the stream is read in turns (`turns.rs`).
//!
//! # Vocabulary of the readers
//!
//! - Stretch: the next bytes of one side, or the length of a hole (bytes that are not in the capture).
//! - Turn: all bytes that one side sends until the other side sends.
//! - Key: a number that names an exchange, for protocols that answer in any order.
//! - Mark: the packet of a message's first byte, kept until the reader knows whether the message gets a note.
//! - Half: the per-direction state of a reader, two of them in a `BySide`.
//!
//! # Order of the notes
//!
//! Per side: `( Begin  [Request | Response]  (End | Cut) )*`. Example, a GET in packet 4 and its response in packets
//! 6 to 9: `Begin(client, 4) Request(GET /) End(client, 4) Begin(server, 6) Response(200) End(server, 9)`.
//! A `Request` belongs to the client's open message, a `Response` to the server's; each message has at most one. The
//! messages of both sides may overlap (pipelining, a response before the request's end): pair the oldest unanswered
//! request with the next response that is not `interim`. `Begin` has the packet of the message's first byte, `End` that
//! of its last; for a body that the FIN ends, `End` has the packet of the FIN.
//!
//! Protocols that answer in any order report `Keyed` events instead: `RequestBegin [RequestName] [Tags] RequestEnd
//! AnswerBegin [Status] AnswerEnd`, with `Bytes` and `Piece` between them. `Reset`, `Unanswered` and `GivenUp` may end
//! an exchange at any point, and either side may send the request. A `Push` is a whole message of the server that
//! answers no request. Other messages (keepalives, application-level acknowledgements) get no note.
//!
//! `Lost` may come at any point. The open message then ends as a turn does, when the other side sends or at the close,
//! so a message may have neither `Request` nor `Response`. The stream is read in turns until a predicate of
//! `Recognition` finds the beginning of a message again.

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
pub use notes::{
    Close, ExchangeEvent, FIRST_ERROR, FlowEvent, Kind, Note, Push, RequestName, Status, Stretch, TlsSetup,
};
pub use readers::Protocol;
use readers::{AnyReader, KNOWN};
use sink::{Open, Sink};
pub use tags::Tags;

/// Receives what the readers find, while they read.
pub trait Listener {
    fn note(&mut self, note: Note<'_>);

    /// What the readers of all streams remember together.
    fn memory(&mut self) -> &mut Memory;
}

/// Whether bytes are of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Yes,
    No,
    /// Too few bytes of this side to decide.
    More,
    /// The bytes fit, but only the other side's answer can confirm the protocol.
    NeedsOtherSide,
}

/// The bytes of both sides since the stream's beginning, as far as they were read.
#[derive(Debug, Clone, Copy)]
struct FirstBytes<'a> {
    /// The side of the newest bytes.
    side: Side,
    /// All bytes of `side`.
    input: &'a [u8],
    /// All bytes of the other side.
    other: &'a [u8],
    /// The side that sent first.
    began: Side,
}

/// One protocol's reader for one stream. It reports to the sink, which keeps the notes in order.
trait MessageReader {
    /// Reads the next stretch of `sink.side()`, which the packet `sink.at()` made readable.
    fn feed<'a>(&mut self, sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a>;

    /// Ends the stream of `sink.side()`.
    fn close(&mut self, sink: &mut Sink<'_, impl Listener>, how: Close) {
        sink.cut(how);
    }

    /// Goes on after `Outcome::Lost` and some turns: the next bytes of `side` begin a message, as `begins_message` or
    /// (`is_inside_turn`) `begins_inside_turn` found. Drops every partly read message.
    fn resume(&mut self, side: Side, is_inside_turn: bool);
}

/// How a reader left a stretch.
enum Outcome<'a> {
    /// The stretch was read to its end.
    All,
    /// The reader has noted `Lost`. The rest, which may be empty, is neither read nor counted in a message.
    Lost(Stretch<'a>),
    /// From the rest on, both sides speak the protocol of this reader: STARTTLS, or a 101 of HTTP.
    Switch(AnyReader, Stretch<'a>),
    /// A tunnel is set up (SOCKS, CONNECT). The rest begins the stream inside it, whose protocol is not known yet.
    Restart(Stretch<'a>),
}

/// Why the reader of memcached, MySQL, PostgreSQL or Redis leaves a stretch before its end, and the rest of it.
enum Stop<'a> {
    /// The reason for the note, and the rest; `None` is the whole stretch.
    Lost(&'static str, Option<&'a [u8]>),
    /// Both sides go on in TLS.
    Encrypted(&'a [u8]),
}

/// Notes why reading stopped, and returns the outcome of `MessageReader::feed`.
fn feed_outcome<'a>(
    read: Result<(), Stop<'a>>,
    sink: &mut Sink<'_, impl Listener>,
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

/// Returns the side that sends such bytes in a known protocol, to distinguish client and server where the capture has
/// no SYN. `GET / HTTP/1.1` gives the client. `None` where no protocol decides.
pub fn likely_sender(first: &[u8]) -> Option<Side> {
    let begins_message = |side| KNOWN.iter().any(|entry| (entry.begins_message)(side, first));
    let begins_inside_turn = |side| KNOWN.iter().any(|entry| (entry.begins_inside_turn)(side, first));
    Side::BOTH
        .into_iter()
        .find(|side| begins_message(*side))
        .or_else(|| {
            let [client, server] = Side::BOTH.map(begins_inside_turn);
            let only = if client { Side::Client } else { Side::Server };
            (client != server).then_some(only)
        })
}

/// The messages of one stream, both sides. Small until the protocol is known; the reader is boxed.
#[derive(Debug, Default)]
pub struct Messages {
    stage: Stage,
    open: Open,
    /// Kept while the stream is read in turns after `Lost`, because it knows the unanswered requests.
    reader: AnyReader,
    /// Bytes held until the protocol is decided. An empty slice stands for the FIN of its side.
    undecided: Vec<(Side, At, Box<[u8]>)>,
    /// The server has sent in turns, so its next bytes are not a greeting that names its software.
    has_greeted: bool,
    /// Number of tunnels that this connection was set up through, one inside the other.
    tunnels: u8,
    /// State for streams with holes, or whose beginning is not in the capture.
    mid_stream: Option<Box<recognise::MidStream>>,
}

/// The smallest unit of data that is visible in a stream that is read in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnUnit {
    Segments,
    /// Encrypted TLS records.
    Records,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No protocol is decided: bytes are held.
    #[default]
    Undecided,
    /// `Messages::reader` reads the bytes.
    Following,
    /// No protocol is known, or its reader has lost its place.
    Turns,
}

impl Messages {
    pub fn new() -> Self {
        Messages::default()
    }

    /// A stream of the protocol `KNOWN[number % KNOWN.len()]`, whatever its first bytes are. Lets a fuzzer reach each
    /// reader without bytes that are recognised.
    #[doc(hidden)]
    pub fn with_protocol_number(number: usize, memory: &mut Memory) -> Self {
        let entry = KNOWN.iter().cycle().nth(number % KNOWN.len());
        Messages {
            stage: Stage::Following,
            reader: entry.map(|entry| (entry.reader)(memory)).unwrap_or_default(),
            ..Messages::default()
        }
    }

    /// Reads the stream as a data connection of FTP, which a control connection announced.
    pub fn read_as_data_connection(&mut self) {
        self.stage = Stage::Following;
        self.reader = AnyReader::FtpData(Box::default());
    }

    /// Marks the stream's beginning as missing from the capture.
    pub fn set_mid_stream(&mut self) {
        self.mid_stream.get_or_insert_default().is_beginning_missing = true;
    }

    /// Makes this the state of a new stream.
    pub fn reset(&mut self, memory: &mut Memory) {
        memory.recycle(std::mem::take(&mut self.reader));
        *self = Messages::new();
    }

    /// The protocol recognised last (after an upgrade the new one, inside TLS the decrypted one), else turns. `None`
    /// while undecided.
    pub fn protocol(&self) -> Option<Protocol> {
        match &self.reader {
            _ if self.stage == Stage::Undecided => None,
            AnyReader::Tls(tls) => tls.inner_protocol().or(Some(Protocol::Tls)),
            AnyReader::WebSocket(frames) => frames.inner_protocol().or(Some(Protocol::WebSocket)),
            reader => Some(reader.protocol()),
        }
    }

    /// The server software that the server's first messages name.
    pub fn software(&self) -> Option<&str> {
        let named = self.open.software.as_deref();
        match &self.reader {
            AnyReader::Tls(tls) => tls.inner_software().or(named),
            _ => named,
        }
    }

    /// Whether bytes were read that no note covers yet.
    #[inline(always)]
    pub fn has_unreported_bytes(&self) -> bool {
        self.open.has_marks() || !self.undecided.is_empty() || self.holds_hole()
    }

    /// Reads the next stretch of `side`, which the packet `at` made readable.
    pub fn feed(&mut self, side: Side, at: At, stretch: Stretch<'_>, listener: &mut impl Listener) {
        // a constant side in each call, so that each direction is compiled by itself
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
            let sink = Sink::new(&mut self.open, listener, side, at);
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

    /// The unit of data where the stream is read in turns; `None` where a protocol is followed.
    pub fn turn_unit(&self) -> Option<TurnUnit> {
        match &self.reader {
            AnyReader::Tls(tls) if self.stage == Stage::Following => {
                tls.is_read_in_turns().then_some(TurnUnit::Records)
            }
            _ => (self.stage == Stage::Turns || self.is_undecided_on_both_sides())
                .then_some(TurnUnit::Segments),
        }
    }

    /// Whether bytes of both sides are held because no protocol is decided.
    fn is_undecided_on_both_sides(&self) -> bool {
        let mut sides = self.undecided.iter().map(|(side, ..)| *side);
        let first = sides.next();
        sides.any(|side| Some(side) != first)
    }

    /// Ends the turn of `side`, which sends again after a long pause.
    pub fn silence(&mut self, side: Side, at: At, listener: &mut impl Listener) {
        if self.stage == Stage::Undecided {
            self.begin(Stage::Turns, listener);
        }
        self.release_hole(listener);
        Sink::new(&mut self.open, listener, side, at).end();
    }

    /// Bytes read of the client's open message; `None` where none is open.
    pub fn open_request_bytes(&self) -> Option<u64> {
        self.open.open_request_bytes()
    }

    /// Ends the stream of `side`. A RST or the capture's end closes both sides: call this for each.
    pub fn close(&mut self, side: Side, at: At, how: Close, listener: &mut impl Listener) {
        if self.stage == Stage::Undecided && !self.undecided.is_empty() {
            if how == Close::Fin && self.undecided.iter().all(|(whose, ..)| *whose == side) {
                // only this side has sent: the other side's answer will decide
                return self.undecided.push((side, at, Box::default()));
            }
            self.begin(Stage::Turns, listener);
        }
        self.release_hole(listener);
        let mut sink = Sink::new(&mut self.open, listener, side, at);
        match self.stage {
            Stage::Following => self.reader.close(&mut sink, how),
            _ => turns::Turns.close(&mut sink, how),
        }
        self.open.take_mark(side);
    }
}
