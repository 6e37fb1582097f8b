//! How a connection through a proxy begins: the PROXY protocol (versions 1 and 2), SOCKS4 and SOCKS5 (RFC 1928, 1929).
//! Reads whom the connection is for, never a name or a password; what follows is recognised as at a stream's
//! beginning.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smol_str::{SmolStr, ToSmolStr, format_smolstr};

use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::MessageSink;
use super::tags::Tags;
use super::{FirstBytes, Guess, Kind, Listener, MessageReader, Outcome, Side, Status, Stretch, text};
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

/// How the two versions begin.
const LINE: &[u8] = b"PROXY ";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The longest line of version 1 (2.1).
const MAX_LINE: usize = 107;
/// Signature, version and command, family, length.
const BINARY: usize = 16;
/// So much of version 2's head is kept: addresses stand first.
const MAX_ADDRESSES: usize = BINARY + 36;

fn proxied(first: &FirstBytes<'_>) -> Guess {
    if first.side == Side::Server {
        return Guess::No;
    }
    let begins = |word: &[u8]| {
        let both = first.input.len().min(word.len());
        cursor::upto(first.input, both) == cursor::upto(word, both)
    };
    match (begins(LINE), begins(SIGNATURE), first.input.len()) {
        (true, _, 10..) => {
            let family = cursor::from(first.input, LINE.len());
            let known =
                family.starts_with(b"TCP4") || family.starts_with(b"TCP6") || family.starts_with(b"UNKN");
            if known { Guess::Yes } else { Guess::No }
        }
        (_, true, 13..) if first.input.get(12).is_some_and(|version| version >> 4 == 2) => Guess::Yes,
        (true, _, ..10) | (_, true, ..13) => Guess::More,
        _ => Guess::No,
    }
}

/// The head of the PROXY protocol, in which a proxy names its client.
#[derive(Debug, Default)]
pub(super) struct Proxy {
    head: Vec<u8>,
    /// Bytes of version 2's head that were read and not kept.
    skipped: usize,
}

impl MessageReader for Proxy {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
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

    fn resume(&mut self, _side: Side, _inside: bool) {
        *self = Proxy::default();
    }
}

/// Skips a head of the PROXY protocol that came whole, behind the greeting of a server that does not wait for it.
pub(super) fn skip_head<'a>(sink: &mut MessageSink<'_, impl Listener>, bytes: &'a [u8]) -> &'a [u8] {
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
    /// Reads the head and gives what stands behind it; an error where it is none, nothing where it goes on.
    fn read<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        bytes: &'a [u8],
    ) -> Option<Result<&'a [u8], &'a [u8]>> {
        for (at, byte) in bytes.iter().enumerate() {
            if self.head.len() < MAX_LINE {
                self.head.push(*byte);
            } else {
                self.skipped += 1;
            }
            match self.ends() {
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

    /// Whether the head is whole; none where it is none.
    fn ends(&self) -> Option<bool> {
        if self.head.starts_with(SIGNATURE) {
            let len = cursor::be16_at(&self.head, 14).map(usize::from);
            return Some(len.is_some_and(|len| self.head.len() + self.skipped >= BINARY + len));
        }
        if self.head.ends_with(b"\r\n") && !SIGNATURE.starts_with(&self.head) {
            return Some(true);
        }
        (self.head.len() < MAX_LINE).then_some(false)
    }

    /// Whom the proxy connects for; none where it names none (its own health checks).
    fn client(&self) -> Option<IpAddr> {
        if let Some(line) = self.head.strip_prefix(LINE) {
            let line = std::str::from_utf8(line).ok()?;
            return line.split_ascii_whitespace().nth(1)?.parse().ok();
        }
        let mut cursor = Cursor::new(cursor::from(cursor::upto(&self.head, MAX_ADDRESSES), 12));
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
/// Of the log-in by name and password (RFC 1929).
const LOG_IN: u8 = 1;
/// What a client requests: a connection.
const CONNECT: u8 = 1;
/// Methods of SOCKS5 that a client may offer: IANA has assigned ten.
const MAX_METHODS: u8 = 10;
/// A SOCKS4 request with a user's and a host's name (255 each); SOCKS5's messages are shorter.
const MAX_SOCKS: usize = 9 + 2 * 256;

/// The client's first message and the server's answer to it, as both are short.
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
            // a client may send its request at once
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

/// A connection through SOCKS until it is made.
#[derive(Debug, Default)]
pub(super) struct Socks {
    /// By side: the beginning of a message.
    held: [Vec<u8>; 2],
    /// SOCKS5's first message was read.
    greeted: bool,
    /// What the client has requested that is not answered yet, oldest first.
    open: [Option<Wanted>; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Method,
    LogIn,
    /// A connection, of SOCKS4 or SOCKS5; or anything else of SOCKS5.
    Connect4,
    Connect5,
    Other,
}

impl MessageReader for Socks {
    fn feed<'a>(&mut self, mut sink: MessageSink<'_, impl Listener>, stretch: Stretch<'a>) -> Outcome<'a> {
        let Stretch::Bytes(bytes) = stretch else {
            sink.lost("bytes of a SOCKS connection's set-up are missing");
            return Outcome::Lost(stretch);
        };
        let side = sink.side();
        for (at, byte) in bytes.iter().enumerate() {
            if let (Side::Client, true) = (side, self.is_requested()) {
                sink.lost("data before the SOCKS connection is made");
                return Outcome::Lost(Stretch::Bytes(cursor::from(bytes, at)));
            }
            let Some(held) = self.held.get_mut(side.index()) else {
                return Outcome::All;
            };
            held.push(*byte);
            sink.count(1);
            let message = std::mem::take(held);
            let step = match side {
                Side::Client => self.request(&mut sink, &message),
                Side::Server => self.answer(&mut sink, &message),
            };
            match step {
                Step::Goes if message.len() < MAX_SOCKS => {
                    if let Some(held) = self.held.get_mut(side.index()) {
                        *held = message;
                    }
                }
                Step::Ends => {}
                Step::Made => return Outcome::Restart(Stretch::Bytes(cursor::from(bytes, at + 1))),
                Step::Goes | Step::Wrong => {
                    sink.lost("not a message of SOCKS");
                    return Outcome::Lost(Stretch::Bytes(cursor::from(bytes, at + 1)));
                }
            }
        }
        Outcome::All
    }

    fn resume(&mut self, _side: Side, _inside: bool) {
        *self = Socks::default();
    }
}

enum Step {
    /// The message goes on.
    Goes,
    Ends,
    /// The connection is made: its own bytes follow.
    Made,
    Wrong,
}

impl Socks {
    /// A connection was requested: the client has to wait for its answer.
    fn is_requested(&self) -> bool {
        self.open
            .iter()
            .flatten()
            .any(|wanted| !matches!(wanted, Wanted::Method | Wanted::LogIn))
    }

    fn request(&mut self, sink: &mut MessageSink<'_, impl Listener>, message: &[u8]) -> Step {
        let (wanted, method, target) = match message {
            [VERSION_4, command, port_high, port_low, a, b, c, d, names @ ..] => {
                let mut ends = memchr::memchr_iter(0, names);
                // an address of 0.0.0.x stands for a host's name behind the user's
                let named = (*a, *b, *c) == (0, 0, 0) && *d != 0;
                let (Some(user), host) = (ends.next(), ends.next()) else {
                    return Step::Goes;
                };
                let host = match (named, host) {
                    (true, None) => return Step::Goes,
                    (true, Some(end)) => text::name(names.get(user + 1..end).unwrap_or_default()),
                    (false, _) => Ipv4Addr::new(*a, *b, *c, *d).to_smolstr(),
                };
                let port = u16::from_be_bytes([*port_high, *port_low]);
                (
                    if *command == CONNECT {
                        Wanted::Connect4
                    } else {
                        Wanted::Other
                    },
                    word(*command),
                    format_smolstr!("{host}:{port}"),
                )
            }
            [VERSION_4, ..] => return Step::Goes,
            [VERSION_5] | [VERSION_5, _] if !self.greeted => return Step::Goes,
            [VERSION_5, count, methods @ ..] if !self.greeted => {
                if methods.len() < usize::from(*count) {
                    return Step::Goes;
                }
                (Wanted::Method, "handshake", SmolStr::default())
            }
            [VERSION_5, command, _, rest @ ..] => match destination(rest) {
                Some(target) => (
                    if *command == CONNECT {
                        Wanted::Connect5
                    } else {
                        Wanted::Other
                    },
                    word(*command),
                    target,
                ),
                None => return Step::Goes,
            },
            [VERSION_5, ..] => return Step::Goes,
            [LOG_IN, rest @ ..] => {
                let secret = rest
                    .split_first()
                    .and_then(|(user, rest)| rest.get(usize::from(*user)..));
                match secret.and_then(<[u8]>::split_first) {
                    Some((len, secret)) if secret.len() >= usize::from(*len) => {
                        (Wanted::LogIn, "handshake", SmolStr::default())
                    }
                    _ => return Step::Goes,
                }
            }
            _ => return Step::Wrong,
        };
        let Some(free) = self.open.iter_mut().find(|open| open.is_none()) else {
            return Step::Wrong;
        };
        *free = Some(wanted);
        self.greeted = true;
        sink.request(&method.into(), &target);
        if matches!(wanted, Wanted::Method | Wanted::LogIn) {
            sink.kind(Kind::Setup);
        }
        sink.end();
        Step::Ends
    }

    fn answer(&mut self, sink: &mut MessageSink<'_, impl Listener>, message: &[u8]) -> Step {
        let [wanted, second, third] = self.open;
        let Some(wanted) = wanted else {
            return Step::Wrong;
        };
        let code = match (wanted, message) {
            (Wanted::Connect5 | Wanted::Other, [VERSION_5, code, _, rest @ ..]) => match destination(rest) {
                Some(_) => *code,
                None => return Step::Goes,
            },
            (Wanted::Method | Wanted::LogIn, [_, code]) => *code,
            (Wanted::Connect4, [0, code, _, _, _, _, _, _]) => code.wrapping_sub(0x5A),
            (_, [0, ..]) if wanted == Wanted::Connect4 => return Step::Goes,
            (_, [VERSION_5 | LOG_IN, ..]) if wanted != Wanted::Connect4 => return Step::Goes,
            _ => return Step::Wrong,
        };
        let error = match wanted {
            Wanted::Method => code == 0xFF,
            _ => code != 0,
        };
        let shown = if error { failure(wanted, code) } else { "ok" };
        sink.status(Status {
            code: None,
            text: Some(shown),
            error,
        });
        sink.end();
        self.open = [second, third, None];
        match wanted {
            Wanted::Connect4 | Wanted::Connect5 if !error => Step::Made,
            Wanted::Other => Step::Wrong,
            _ => Step::Ends,
        }
    }
}

/// Where a request of SOCKS5 goes to, or the answer's address; none while it is not whole.
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

fn word(command: u8) -> &'static str {
    match command {
        CONNECT => "CONNECT",
        2 => "BIND",
        3 => "UDP_ASSOCIATE",
        _ => "COMMAND",
    }
}

/// RFC 1928 6; of SOCKS4 there is one word for all.
fn failure(wanted: Wanted, code: u8) -> &'static str {
    match (wanted, code) {
        (Wanted::Method, _) => "no acceptable method",
        (Wanted::LogIn, _) => "log-in refused",
        (Wanted::Connect4, _) => "rejected",
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
