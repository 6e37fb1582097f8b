//! The words between packets and messages: which packet brought a byte, what a message is, what a reader reports of it.

use smol_str::SmolStr;

use super::readers::Protocol;
use super::tags::Tags;
use crate::base::{At, Side};
use crate::decrypt::Sealed;

/// The next stretch of one side's stream, in order and without overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch<'a> {
    Bytes(&'a [u8]),
    /// So many bytes were on the wire but are not in the capture (snap length, or the capture dropped a frame).
    Missing(u64),
}

impl Stretch<'_> {
    /// Bytes on the wire.
    pub fn len(self) -> u64 {
        match self {
            Stretch::Bytes(bytes) => bytes.len() as u64,
            Stretch::Missing(len) => len,
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Why a side's stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    Fin,
    Rst,
    CaptureEnd,
}

/// What an exchange of messages is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request by the protocol.
    Request,
    /// A request whose answer waits for an event (BLPOP, a Kafka fetch, IMAP IDLE).
    LongPoll,
    /// A request whose answer is a stream: each piece comes when there is something to say (server-sent events, a call
    /// of gRPC with several answers).
    EventStream,
    /// What comes before the first request: a greeting, a log-in, a TLS handshake. It belongs to the connect.
    Setup,
    /// A request that subscribes: what the server sends for it comes behind its answer. Where nobody answers it, it
    /// is an `EventStream` in the end.
    Subscription,
    /// A turn: all bytes of one side until the other speaks; no protocol is known.
    // (the last two take another way when they are over)
    #[default]
    Turn,
}

impl Kind {
    /// None where no protocol names it.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Kind::Request | Kind::Subscription => Some("request"),
            Kind::LongPoll => Some("long_poll"),
            Kind::EventStream => Some("event_stream"),
            Kind::Setup => Some("handshake"),
            Kind::Turn => None,
        }
    }
}

/// How an answer ended, in the protocol's own words.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    /// Where the protocol has a number: 404, 550.
    pub code: Option<u16>,
    /// Where it has a word, or a number wider than `code`: `57014`, `NXDOMAIN`, `WRONGTYPE`.
    pub text: Option<&'a str>,
    pub error: bool,
}

/// What a request is called.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RequestName<'a> {
    pub method: &'a str,
    /// "" where the protocol has none.
    pub target: &'a str,
    /// The server's name in the request; "" where it has none.
    pub host: &'a str,
}

/// How TLS was set up, as its hellos tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsSetup {
    /// 0x0303 is TLS 1.2, 0x0304 is 1.3. None: no ServerHello was read.
    pub version: Option<u16>,
    /// So often the client waited for the server before it could send data. None: the handshake was not over.
    pub round_trips: Option<u8>,
    /// The server went on in a session of before (an id, a ticket or a key of it). None: unknown.
    pub resumed: Option<bool>,
    /// The server that the client requested.
    pub server_name: Option<SmolStr>,
    /// The protocol that the server chose (ALPN). None: none, or that is hidden.
    pub alpn: Option<SmolStr>,
    /// Those that the client offered, separated by commas.
    pub offered: Option<SmolStr>,
}

/// A message of the server that answers nothing, given when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Push<'a> {
    pub first: At,
    pub last: At,
    /// As on the wire.
    pub bytes: u64,
    pub method: &'a str,
    pub target: &'a str,
    /// The subscription that it belongs to.
    pub subscription: Option<u64>,
}

/// What a reader reports of the exchange with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeEvent<'a> {
    /// The request's first byte.
    RequestBegin(Kind),
    RequestName(RequestName<'a>),
    Tags(&'a Tags),
    /// So many bytes more, of the request or the answer.
    Bytes(u64),
    /// The request's last byte.
    RequestEnd,
    /// The request is whole, and has no answer.
    Unanswered,
    /// The request subscribes: pushes with this number belong to it. Given while the request is open.
    Subscribes(u64),
    /// The answer's first byte.
    AnswerBegin,
    Status(Status<'a>),
    /// The answer is a stream of events: its pieces come as they happen.
    Streams,
    /// A piece of the answer's body.
    Piece,
    /// The response so far was interim (as a 100 Continue): the answer is still to come.
    Interim,
    /// The answer's last byte.
    AnswerEnd,
    /// Both sides send more before the answer ends.
    Dialogue,
    /// Either side reset the exchange.
    Reset,
    /// Its answer is in bytes that are not in the capture, or cannot be distinguished from others.
    GivenUp,
    /// The oldest request without a key has this key from now on.
    Adopt,
}

/// Frames that HTTP/2's flow control counts (RFC 9113 5.2), of the side that sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEvent {
    /// The connection is read from its first byte on.
    Begins,
    /// A DATA frame begins; padding counts.
    Sends { stream: u32, bytes: u32 },
    /// And ends; with `last` its stream does, too.
    Sent { last: bool },
    /// The other side may send so much more, on a stream or on the connection (0).
    Grants { stream: u32, bytes: u32 },
    /// What the other side may send on each stream before any grant.
    Initial(u32),
    /// Where frames begin is not known any more.
    Lost,
}

/// Notes of a reader, in the order of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// The first byte of a message of this side, and how far the other side's open message has come: its newest
    /// packet, and its bytes until then.
    Begin {
        side: Side,
        at: At,
        other: Option<(At, u64)>,
    },
    /// The request line of the client's newest message.
    Request {
        method: &'a SmolStr,
        target: &'a SmolStr,
    },
    /// The server's name in the client's newest message.
    Host(&'a SmolStr),
    /// What the head of this side's newest message names beside its request.
    Tags {
        side: Side,
        tags: &'a Tags,
    },
    /// What is true of all requests of the connection from here on.
    ConnectionTags(&'a Tags),
    /// What the client's newest message is; given before its end.
    Kind(Kind),
    /// The client's newest message begins a dialogue (a handshake): the answer ends when it is over, and
    /// either side may have sent the last message (`End` is of the server's all the same).
    Dialogue,
    /// The status line of the server's newest message; `interim` for 1xx, which does not answer the request
    /// (but 101 does: it is the last message of HTTP on its connection).
    Response {
        status: u16,
        interim: bool,
    },
    /// The status of the server's newest message in words, or with words.
    Status(Status<'a>),
    /// The pieces of the server's newest message come when there is something to say.
    Streams,
    /// This packet brought a piece of the body of the server's newest message.
    Piece {
        at: At,
    },
    /// The message's last byte. `bytes` counts heads and bodies as on the wire.
    End {
        side: Side,
        at: At,
        bytes: u64,
    },
    /// The message stopped before its end (`at` is its last byte that was seen).
    Cut {
        side: Side,
        at: At,
        bytes: u64,
        by: Close,
    },
    /// A message of an exchange with a key.
    Keyed {
        key: u64,
        side: Side,
        at: At,
        event: ExchangeEvent<'a>,
    },
    Push(Push<'a>),
    /// There are keys for TLS, and its records cannot be opened (any more). They are read as records from here on.
    Sealed {
        at: At,
        why: Sealed,
    },
    /// How TLS was set up: its handshake is over, or ends here.
    TlsSetup {
        at: At,
        how: &'a TlsSetup,
    },
    /// A connection to this port of either side will carry what the next transfer gives.
    DataPort {
        at: At,
        port: u16,
    },
    /// A command gives or takes its data on a connection of its own.
    Transfer {
        method: &'a str,
        target: &'a str,
    },
    /// A message of DNS is whole; `at` is where a question began, or an answer ended.
    Dns {
        side: Side,
        at: At,
        message: &'a [u8],
    },
    /// What HTTP/2's flow control counts, of the side whose bytes are read.
    Flow(FlowEvent),
    /// From here on the reader cannot follow the messages of this stream, and why (lower-case phrase).
    Lost {
        side: Side,
        at: At,
        reason: &'static str,
    },
    /// What this stream speaks from here on, as far as it is known.
    Protocol(Protocol),
}
