//! The beginning of a proxied connection: the PROXY protocol (HAProxy's proxy-protocol.txt, versions 1 and 2), SOCKS4
//! and SOCKS5 (RFC 1928, 1929). Reads the client's address and the destination, no user name or password. The bytes
//! after it are recognised as at a stream's beginning.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smol_str::{SmolStr, ToSmolStr, format_smolstr};

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::tags::Tags;
use super::{BySide, FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Status, Stretch, text};
use crate::cursor::{self, Cursor};

pub(super) const PROXY: Recognition = Recognition {
    protocol: Protocol::Proxy,
    sniff: proxied,
    reader: |_| AnyReader::Proxy(Box::default()),
    ..Recognition::NEVER
};
pub(super) const SOCKS: Recognition = Recognition {
    protocol: Protocol::Socks,
    sniff: socks,
    reader: |_| AnyReader::Socks(Box::default()),
    ..Recognition::NEVER
};

/// The first bytes of version 1.
const LINE: &[u8] = b"PROXY ";
/// The first bytes of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Upper bound on the line of version 1 in bytes (2.1), and on the bytes kept of version 2's head.
const MAX_LINE: usize = 107;
/// Bytes of version 2 before the addresses: signature, version and command, family, length.
const BINARY_HEADER: usize = 16;

fn proxied(first: &FirstBytes<'_>) -> Guess {
    if first.side == Side::Server {
        return Guess::No;
    }
    let begins = |word: &[u8]| {
        let common = first.input.len().min(word.len());
        cursor::upto(first.input, common) == cursor::upto(word, common)
    };
    match (begins(LINE), begins(SIGNATURE), first.input.len()) {
        (true, _, 10..) => {
            let family = cursor::from(first.input, LINE.len());
            let is_family =
                family.starts_with(b"TCP4") || family.starts_with(b"TCP6") || family.starts_with(b"UNKN");
            if is_family { Guess::Yes } else { Guess::No }
        }
        (_, true, 13..) if first.input.get(12).is_some_and(|version| version >> 4 == 2) => Guess::Yes,
        (true, _, ..10) | (_, true, ..13) => Guess::More,
        _ => Guess::No,
    }
}

/// The reader of the PROXY protocol's head, in which a proxy names its client.
#[derive(Debug, Default)]
pub(super) struct Proxy {
    head: Vec<u8>,
    /// Bytes of version 2's head that were read but not kept.
    skipped: usize,
}

impl MessageReader for Proxy {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let (Side::Client, Stretch::Bytes(bytes)) = (sink.side(), stretch) else {
            sink.lost("the head of the PROXY protocol is not whole");
            return Outcome::Lost(stretch);
        };
        match self.read(&mut sink, bytes) {
            Some(Ok(rest)) => Outcome::Restart(Stretch::Bytes(rest)),
            Some(Err(rest)) => {
                sink.lost("not the head of the PROXY protocol");
                Outcome::Lost(Stretch::Bytes(rest))
            }
            None => Outcome::All,
        }
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = Proxy::default();
    }
}

/// Skips a whole head of the PROXY protocol at the beginning of `bytes`, for servers that greet before they read it.
pub(super) fn skip_head<'a>(sink: &mut Sink<'_, impl Listener>, bytes: &'a [u8]) -> &'a [u8] {
    if !bytes.starts_with(LINE) && !bytes.starts_with(SIGNATURE) {
        return bytes;
    }
    let mut proxy = Proxy::default();
    match proxy.read(sink, bytes) {
        Some(Ok(rest)) => rest,
        _ => bytes,
    }
}

impl Proxy {
    /// Reads the head. Returns the bytes after it, an error with the unread bytes where it is not a head, and `None`
    /// where it is not whole yet.
    fn read<'a>(
        &mut self,
        sink: &mut Sink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Option<Result<&'a [u8], &'a [u8]>> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.head.len() < MAX_LINE {
                self.head.push(*byte);
            } else {
                self.skipped += 1;
            }
            match self.is_whole() {
                Some(true) => {
                    if let Some(client) = self.client() {
                        let tags = Tags {
                            forwarded_for: client.to_smolstr(),
                            ..Tags::default()
                        };
                        sink.connection_tags(&tags);
                    }
                    return Some(Ok(cursor::from(bytes, at + 1)));
                }
                Some(false) => {}
                None => return Some(Err(cursor::from(bytes, at))),
            }
        }
        None
    }

    /// Whether the head is whole; `None` where the bytes are not a head.
    fn is_whole(&self) -> Option<bool> {
        if self.head.starts_with(SIGNATURE) {
            let len = cursor::be16_at(&self.head, 14).map(usize::from);
            return Some(len.is_some_and(|len| self.head.len() + self.skipped >= BINARY_HEADER + len));
        }
        if self.head.ends_with(b"\r\n") && !SIGNATURE.starts_with(&self.head) {
            return Some(true);
        }
        (self.head.len() < MAX_LINE).then_some(false)
    }

    /// The client's address; `None` where the head has none, as in health checks of the proxy itself.
    fn client(&self) -> Option<IpAddr> {
        if let Some(line) = self.head.strip_prefix(LINE) {
            let line = std::str::from_utf8(line).ok()?;
            return line.split_ascii_whitespace().nth(1)?.parse().ok();
        }
        let mut cursor = Cursor::new(cursor::from(&self.head, SIGNATURE.len()));
        let (command, family, len) = (cursor.u8()? & 0xF, cursor.u8()? >> 4, cursor.u16be()?);
        match (command, family, len) {
            (1, 1, 12..) => Some(Ipv4Addr::from(cursor.u32be()?).into()),
            (1, 2, 36..) => Some(ipv6(&mut cursor)?.into()),
            _ => None,
        }
    }
}

fn ipv6(cursor: &mut Cursor<'_>) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(*cursor.take(16)?.first_chunk::<16>()?))
}

const VERSION_4: u8 = 4;
const VERSION_5: u8 = 5;
/// The version of the log-in by name and password (RFC 1929).
const LOG_IN: u8 = 1;
/// The command of a request for a connection.
const CONNECT: u8 = 1;
/// Upper bound on the methods that a client of SOCKS5 offers; IANA has assigned ten.
const MAX_METHODS: u8 = 10;
/// Upper bound on a message in bytes: a SOCKS4 request with names of user and host (255 each).
const MAX_SOCKS: usize = 9 + 2 * 256;

/// Recognises SOCKS by the client's first message and the server's answer, because both are short.
fn socks(first: &FirstBytes<'_>) -> Guess {
    let (client, server) = match first.side {
        Side::Client => (first.input, first.other),
        Side::Server => (first.other, first.input),
    };
    if first.began == Side::Server {
        return Guess::No;
    }
    let answered = match client {
        [VERSION_5] | [VERSION_4] => return Guess::More,
        [VERSION_5, count @ 1..=MAX_METHODS, methods @ ..] => {
            let (offered, more) = cursor::split(methods, usize::from(*count));
            // a client may send its log-in or its request at once
            if !matches!(more, [] | [VERSION_5 | LOG_IN, ..]) {
                return Guess::No;
            }
            match server {
                [] | [VERSION_5] => None,
                [VERSION_5, 0xFF, ..] => Some(true),
                [VERSION_5, method, ..] => Some(offered.contains(method)),
                _ => Some(false),
            }
        }
        [VERSION_4, CONNECT | 2, _, _, _, _, _, _, rest @ ..] if rest.last() == Some(&0) => match server {
            [] | [0] => None,
            [0, 0x5A..=0x5D, _, _, _, _, _, _] => Some(true),
            _ => Some(false),
        },
        _ => return Guess::No,
    };
    match answered {
        None => Guess::NeedsOtherSide,
        Some(true) => Guess::Yes,
        Some(false) => Guess::No,
    }
}

/// The reader of SOCKS, up to the answer that the connection is set up.
#[derive(Debug, Default)]
pub(super) struct Socks {
    /// Per `Side`, the beginning of a message.
    unread: BySide<Vec<u8>>,
    /// The client's first message was read.
    has_greeted: bool,
    /// Unanswered requests of the client, oldest first.
    open: [Option<Request>; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Method,
    LogIn,
    /// A connection by SOCKS4.
    Connect4,
    /// A connection by SOCKS5.
    Connect5,
    /// Any other command: it ends the reading.
    Other,
}

impl Request {
    /// The request with this command; `connect` is the one for a connection.
    fn of(command: u8, connect: Request) -> Request {
        if command == CONNECT {
            connect
        } else {
            Request::Other
        }
    }
}

impl MessageReader for Socks {
    fn feed<'a>(&mut self, mut sink: Sink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let Stretch::Bytes(bytes) = stretch else {
            sink.lost("bytes of a SOCKS connection's set-up are missing");
            return Outcome::Lost(stretch);
        };
        let side = sink.side();
        for (at, byte) in bytes.iter().enumerate() {
            if side == Side::Client && self.is_requested() {
                sink.lost("data before the SOCKS connection is made");
                return Outcome::Lost(Stretch::Bytes(cursor::from(bytes, at)));
            }
            self.unread[side].push(*byte);
            sink.count(1);
            let message = std::mem::take(&mut self.unread[side]);
            let step = match side {
                Side::Client => self.read_request(&mut sink, &message),
                Side::Server => self.read_answer(&mut sink, &message),
            };
            match step {
                Step::Partly if message.len() < MAX_SOCKS => self.unread[side] = message,
                Step::Whole => {}
                Step::Connected => return Outcome::Restart(Stretch::Bytes(cursor::from(bytes, at + 1))),
                Step::Partly | Step::Wrong => {
                    sink.lost("not a message of SOCKS");
                    return Outcome::Lost(Stretch::Bytes(cursor::from(bytes, at + 1)));
                }
            }
        }
        Outcome::All
    }

    fn resume(&mut self, _side: Side, _is_inside_turn: bool) {
        *self = Socks::default();
    }
}

/// How far a message was read.
enum Step {
    Partly,
    Whole,
    /// Whole, and the bytes of the proxied connection follow.
    Connected,
    Wrong,
}

impl Socks {
    /// Whether a connection was requested, so that the client has to wait for the answer.
    fn is_requested(&self) -> bool {
        self.open
            .iter()
            .flatten()
            .any(|request| !matches!(request, Request::Method | Request::LogIn))
    }

    /// Reads the client's message as far as it was received.
    fn read_request(&mut self, sink: &mut Sink<'_, impl Listener>, message: &[u8]) -> Step {
        let parsed = match message {
            [VERSION_4, command, rest @ ..] => destination_4(rest).map(|target| {
                (
                    Request::of(*command, Request::Connect4),
                    method_of(*command),
                    target,
                )
            }),
            [VERSION_5] | [VERSION_5, _] if !self.has_greeted => None,
            [VERSION_5, count, methods @ ..] if !self.has_greeted => (methods.len() >= usize::from(*count))
                .then(|| (Request::Method, "handshake", SmolStr::default())),
            [VERSION_5, command, _, rest @ ..] => destination(rest).map(|target| {
                (
                    Request::of(*command, Request::Connect5),
                    method_of(*command),
                    target,
                )
            }),
            [LOG_IN, rest @ ..] => {
                has_log_in(rest).then(|| (Request::LogIn, "handshake", SmolStr::default()))
            }
            [VERSION_4 | VERSION_5, ..] => None,
            _ => return Step::Wrong,
        };
        let Some((request, method, target)) = parsed else {
            return Step::Partly;
        };
        let Some(free) = self.open.iter_mut().find(|open| open.is_none()) else {
            return Step::Wrong;
        };
        *free = Some(request);
        self.has_greeted = true;
        sink.request(&method.into(), &target);
        if matches!(request, Request::Method | Request::LogIn) {
            sink.kind(Kind::Setup);
        }
        sink.end();
        Step::Whole
    }

    /// Reads the server's message as far as it was received.
    fn read_answer(&mut self, sink: &mut Sink<'_, impl Listener>, message: &[u8]) -> Step {
        let [request, second, third] = self.open;
        let Some(request) = request else {
            return Step::Wrong;
        };
        let code = match (request, message) {
            (Request::Connect5 | Request::Other, [VERSION_5, code, _, rest @ ..]) => {
                match destination(rest) {
                    Some(_) => *code,
                    None => return Step::Partly,
                }
            }
            (Request::Method | Request::LogIn, [_, code]) => *code,
            (Request::Connect4, [0, code, _, _, _, _, _, _]) => code.wrapping_sub(0x5A),
            (_, [0, ..]) if request == Request::Connect4 => return Step::Partly,
            (_, [VERSION_5 | LOG_IN, ..]) if request != Request::Connect4 => return Step::Partly,
            _ => return Step::Wrong,
        };
        let is_error = match request {
            Request::Method => code == 0xFF,
            _ => code != 0,
        };
        let word_shown = if is_error { failure(request, code) } else { "ok" };
        sink.status(Status::word(word_shown, is_error));
        sink.end();
        self.open = [second, third, None];
        match request {
            Request::Connect4 | Request::Connect5 if !is_error => Step::Connected,
            Request::Other => Step::Wrong,
            _ => Step::Whole,
        }
    }
}

/// Returns the host and port of a SOCKS4 request; `None` while they are not whole.
fn destination_4(bytes: &[u8]) -> Option<SmolStr> {
    let mut cursor = Cursor::new(bytes);
    let (port, address) = (cursor.u16be()?, cursor.u32be()?);
    let mut names = cursor.rest().split(|byte| *byte == 0);
    // each name is followed by a zero byte, so the last part is not one
    let (_user, host, after) = (names.next()?, names.next()?, names.next());
    // SOCKS4A: with the address 0.0.0.x a host name follows the user name
    let host = match (1..=0xFF).contains(&address) {
        true => after.map(|_| text::name(host))?,
        false => Ipv4Addr::from(address).to_smolstr(),
    };
    Some(format_smolstr!("{host}:{port}"))
}

/// Whether a log-in's name and password are whole.
fn has_log_in(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(bytes);
    let mut has_text = || {
        cursor
            .u8()
            .and_then(|len| cursor.take(usize::from(len)))
            .is_some()
    };
    has_text() && has_text()
}

/// Returns the address and port of a SOCKS5 request or answer; `None` while they are not whole.
fn destination(bytes: &[u8]) -> Option<SmolStr> {
    let mut cursor = Cursor::new(bytes);
    let host = match cursor.u8()? {
        1 => Ipv4Addr::from(cursor.u32be()?).to_smolstr(),
        4 => format_smolstr!("[{}]", ipv6(&mut cursor)?),
        3 => {
            let len = cursor.u8()?;
            text::name(cursor.take(usize::from(len))?)
        }
        _ => return None,
    };
    Some(format_smolstr!("{host}:{}", cursor.u16be()?))
}

/// The method of a request with this command.
fn method_of(command: u8) -> &'static str {
    match command {
        CONNECT => "CONNECT",
        2 => "BIND",
        3 => "UDP_ASSOCIATE",
        _ => "COMMAND",
    }
}

/// The status of a refused request (RFC 1928 6); SOCKS4 has one for all reasons.
fn failure(request: Request, code: u8) -> &'static str {
    match (request, code) {
        (Request::Method, _) => "no acceptable method",
        (Request::LogIn, _) => "log-in refused",
        (Request::Connect4, _) => "rejected",
        (_, 2) => "not allowed",
        (_, 3) => "network unreachable",
        (_, 4) => "host unreachable",
        (_, 5) => "connection refused",
        (_, 6) => "TTL expired",
        (_, 7) => "command not supported",
        (_, 8) => "address type not supported",
        _ => "general failure",
    }
}
