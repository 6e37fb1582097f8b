//! The types between the packet layer and the readers: `Stretch` and `Close` go into a reader, `Note`s come out.

use smol_str::SmolStr;

use super::readers::Protocol;
use super::tags::Tags;
use crate::base::{At, Side};
use crate::decrypt::Sealed;

/// The next part of one side's byte stream, after reassembly: in order and without overlap.
///
/// A snap length of 96 bytes makes a segment of 1,448 bytes `Bytes` (its first bytes) and then `Missing` (the rest).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stretch<'a> {
    Bytes(&'a [u8]),
    /// The length of a hole: bytes that were sent but are not in the capture, cut off by the snap length or in a frame
    /// that the capture dropped.
    Missing(u64),
}

impl Stretch<'_> {
    /// Length on the wire in bytes.
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

/// The kind of an exchange, which decides whether the time until its answer counts as a delay.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request that the server answers at once.
    Request,
    /// A request whose answer waits for an event (BLPOP, a Kafka fetch, IMAP IDLE).
    LongPoll,
    /// A request whose answer is a stream of pieces, each sent when an event happens (server-sent events, a call of
    /// gRPC with several answers).
    EventStream,
    /// An exchange before the first request: a greeting, a log-in, a TLS handshake. It belongs to the connect.
    Setup,
    /// A request that subscribes: after its answer the server sends pushes for it. It becomes an `EventStream` where
    /// it gets no answer.
    Subscription,
    /// A turn of a stream whose protocol is not known.
    #[default]
    Turn,
}

impl Kind {
    /// The word in tables; `None` for a turn.
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

/// Lowest reply code of three digits that is an error (RFC 9110 15; FTP and SMTP number theirs alike).
pub const FIRST_ERROR: u16 = 400;

/// The status of an answer, as the protocol gives it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    /// The protocol's number, if it has one: 404, 550.
    pub code: Option<u16>,
    /// The protocol's word, or a number that does not fit `code`: `57014`, `NXDOMAIN`, `WRONGTYPE`.
    pub text: Option<&'a str>,
    pub error: bool,
}

impl<'a> Status<'a> {
    pub(super) const fn new(code: Option<u16>, text: Option<&'a str>, error: bool) -> Self {
        Status { code, text, error }
    }

    /// The status of a protocol that has no numbers.
    pub(super) const fn word(text: &'a str, error: bool) -> Self {
        Status::new(None, Some(text), error)
    }

    /// "ok", or the word of an error.
    pub(super) fn ok_unless(error: Option<&'a str>) -> Self {
        Status::word(error.unwrap_or("ok"), error.is_some())
    }

    /// A reply code of three digits, as of HTTP, FTP and SMTP.
    pub(super) const fn reply_code(code: u16) -> Self {
        Status::new(Some(code), None, code >= FIRST_ERROR)
    }
}

/// The name of a request: `GET`, `/index.html`, `example.org`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RequestName<'a> {
    pub method: &'a str,
    /// Path, table, topic; "" where the protocol has none.
    pub target: &'a str,
    /// The server's name in the request; "" where it has none.
    pub host: &'a str,
}

impl<'a> RequestName<'a> {
    /// The name of a request without a host.
    pub(super) const fn new(method: &'a str, target: &'a str) -> Self {
        RequestName {
            method,
            target,
            host: "",
        }
    }
}

/// The parameters of a TLS connection, as its handshake shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsSetup {
    /// 0x0303 is TLS 1.2, 0x0304 is 1.3. None: no ServerHello was read.
    pub version: Option<u16>,
    /// Round trips before the client could send data. None: the handshake did not finish.
    pub round_trips: Option<u8>,
    /// Whether the server resumed an earlier session (by id, ticket or pre-shared key). None: unknown.
    pub resumed: Option<bool>,
    /// The server name that the client requested (SNI).
    pub server_name: Option<SmolStr>,
    /// The protocol that the server chose (ALPN). None: no choice, or an encrypted one.
    pub alpn: Option<SmolStr>,
    /// The protocols that the client offered (ALPN), separated by commas.
    pub offered: Option<SmolStr>,
}

/// A whole message of the server that answers no request. Reported at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Push<'a> {
    /// Packet of the first byte.
    pub first: At,
    /// Packet of the last byte.
    pub last: At,
    /// Bytes on the wire.
    pub bytes: u64,
    pub method: &'a str,
    pub target: &'a str,
    /// The number of its subscription, as in `ExchangeEvent::Subscribes`.
    pub subscription: Option<u64>,
}

/// An event of an exchange that has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeEvent<'a> {
    /// The request's first byte.
    RequestBegin(Kind),
    RequestName(RequestName<'a>),
    Tags(&'a Tags),
    /// More bytes of the request or the answer.
    Bytes(u64),
    /// The request's last byte.
    RequestEnd,
    /// The request is whole and will get no answer.
    Unanswered,
    /// The request subscribes: pushes with this number belong to it. Reported while the request is open.
    Subscribes(u64),
    /// The answer's first byte.
    AnswerBegin,
    Status(Status<'a>),
    /// The answer is a stream of events: each piece is sent when its event happens.
    IsEventStream,
    /// A piece of the answer's body ends.
    Piece,
    /// The answer so far was interim (100 Continue): the final one follows.
    Interim,
    /// The answer's last byte.
    AnswerEnd,
    /// Both sides send more before the answer ends, as in a log-in.
    Dialogue,
    /// Either side reset the exchange.
    Reset,
    /// The answer cannot be identified: it is missing from the capture, or looks like answers to other requests.
    GivenUp,
    /// Gives this key to the oldest request without one: the request of HTTP/1 that HTTP/2 answers after an upgrade.
    Adopt,
}

/// An event of HTTP/2's flow control (RFC 9113 5.2), for the side that sends the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEvent {
    /// The connection is read from its first byte on.
    Begins,
    /// A DATA frame begins; `bytes` includes the padding.
    Sends { stream: u32, bytes: u32 },
    /// A DATA frame ends; with `last` its stream ends, too.
    Sent { last: bool },
    /// WINDOW_UPDATE: the other side may send `bytes` more on a stream, or on the connection (stream 0).
    Grants { stream: u32, bytes: u32 },
    /// SETTINGS_INITIAL_WINDOW_SIZE: the window of the other side's new streams, in bytes.
    Initial(u32),
    /// Frames may be missing from here on.
    Lost,
}

/// What a reader reports, in the order of the bytes. "The newest message" of a side is the one begun last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// The first byte of a message. `other` is the progress of the other side's open message: its newest packet and
    /// its bytes up to that.
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
    /// Trace ids and client addresses in the head of this side's newest message.
    Tags {
        side: Side,
        tags: &'a Tags,
    },
    /// Tags of all later requests of the connection, from the head of a proxy.
    ConnectionTags(&'a Tags),
    /// The kind of the client's newest message, if not the protocol's usual one. Reported before its end.
    Kind(Kind),
    /// The client's newest message begins a dialogue (a handshake), whose last message ends the answer. Either side
    /// may send that message; `End` is reported for the server.
    Dialogue,
    /// The status line of the server's newest message. `interim` is true for 1xx, which does not answer the request;
    /// 101 does, because it is the last message of HTTP on its connection.
    Response {
        status: u16,
        interim: bool,
    },
    /// The status of the server's newest message, for protocols other than HTTP.
    Status(Status<'a>),
    /// The server's newest message is a stream of events: each piece is sent when its event happens.
    IsEventStream,
    /// A piece of the body of the server's newest message ends in this packet.
    Piece {
        at: At,
    },
    /// The message's last byte. `bytes` counts head and body as on the wire.
    End {
        side: Side,
        at: At,
        bytes: u64,
    },
    /// The message stopped before its end; `at` is the packet of its last byte in the capture.
    Cut {
        side: Side,
        at: At,
        bytes: u64,
        by: Close,
    },
    /// An event of the exchange with this key.
    Keyed {
        key: u64,
        side: Side,
        at: At,
        event: ExchangeEvent<'a>,
    },
    Push(Push<'a>),
    /// A key log is there, but the records of this connection cannot be decrypted (any more).
    Sealed {
        at: At,
        why: Sealed,
    },
    /// The TLS handshake finished, or failed.
    TlsSetup {
        at: At,
        setup: &'a TlsSetup,
    },
    /// FTP: the data connection of the next transfer will go to this port of either side.
    DataPort {
        at: At,
        port: u16,
    },
    /// FTP: this command transfers its data on the announced data connection.
    Transfer {
        method: &'a str,
        target: &'a str,
    },
    /// A whole message of DNS. `at` is the packet of a question's first byte, or of an answer's last.
    Dns {
        side: Side,
        at: At,
        message: &'a [u8],
    },
    /// Flow control of HTTP/2, for the side whose bytes are read.
    Flow(FlowEvent),
    /// The reader cannot follow the messages from here on. `reason` is a lower-case phrase.
    Lost {
        side: Side,
        at: At,
        reason: &'static str,
    },
    /// The protocol of the stream from here on.
    Protocol(Protocol),
}
