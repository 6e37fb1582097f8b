//! FastCGI 1.0 (Open Market's specification), between a web server and PHP-FPM or another application server. Records
//! with a header of 8 bytes carry numbered requests: the CGI parameters, the body, and an answer that begins with CGI
//! header lines (RFC 3875 6). An exchange goes from BEGIN_REQUEST to END_REQUEST.

use std::borrow::Cow;

use smol_str::SmolStr;

use super::framed::{Framed, Head, Length, Role, WireFormat};
use super::readers::{AnyReader, Protocol, Recognition};
use super::sink::Sink;
use super::tags::{TagName, Tags};
use super::{FirstBytes, Guess, Kind, Listener, RequestName, Side, Status, text, url};
use crate::cursor::{self, Cursor};

pub(super) const RECOGNITION: Recognition = Recognition {
    protocol: Protocol::FastCgi,
    sniff,
    begins_message: |side, first| side == Side::Client && begins(first) == Guess::Yes,
    begins_inside_turn: |side, first| side == Side::Client && begins(first) == Guess::Yes,
    reader: |_| AnyReader::FastCgi(Box::default()),
    ..Recognition::NEVER
};

pub(super) type Reader = Framed<FastCgi>;

/// Bytes of a record's header: version, type, request id, content length, padding length, a zero (3.3).
const HEADER: usize = 8;
const VERSION: u8 = 1;
/// Record types (8).
const BEGIN: u8 = 1;
const ABORT: u8 = 2;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const DATA: u8 = 8;
const GET_VALUES: u8 = 9;
const VALUES: u8 = 10;
const UNKNOWN: u8 = 11;
/// Upper bound on requests whose answer has not begun; beyond it the oldest is dropped.
const MAX_WAITING: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct FastCgi {
    /// Ids of the requests whose answer has not begun.
    waiting: Vec<u16>,
}

fn sniff(first: &FirstBytes<'_>) -> Guess {
    match first.side {
        Side::Client => begins(first.input),
        // in mid-stream: the client's newest turn began a request
        Side::Server if begins(first.other) == Guess::Yes => {
            match FastCgi::default().length(Side::Server, first.input) {
                Length::Is(_) => Guess::Yes,
                Length::More => Guess::More,
                Length::Wrong => Guess::No,
            }
        }
        Side::Server => Guess::No,
    }
}

/// Whether bytes begin with BEGIN_REQUEST: a record of 16 bytes, few of which vary.
fn begins(input: &[u8]) -> Guess {
    let fits = |(offset, byte): (usize, &u8)| match (offset, *byte) {
        (0, VERSION) | (1, BEGIN) | (2 | 3 | 6, _) | (5, 8) | (9, 1..=3) | (10, 0 | 1) => true,
        (4 | 7 | 8 | 11..=15, byte) => byte == 0,
        _ => false,
    };
    let begin = cursor::upto(input, 16);
    match begin.iter().enumerate().all(fits) {
        false => Guess::No,
        true if begin.len() < 16 => Guess::More,
        true => Guess::Yes,
    }
}

impl WireFormat for FastCgi {
    // most requests' parameters, and the head of an answer
    const MAX_HEAD: usize = 8192;
    const MIN_PROOF: usize = HEADER;
    const LOST_REASON: &'static str = "not a record of FastCGI";

    fn length(&self, side: Side, first: &[u8]) -> Length {
        let kind = cursor::u8_at(first, 1);
        let is_sent_by_side = kind.is_none_or(|kind| match side {
            Side::Client => matches!(kind, BEGIN | ABORT | PARAMS | STDIN | DATA | GET_VALUES),
            Side::Server => matches!(kind, END | STDOUT | STDERR | VALUES | UNKNOWN),
        });
        if !is_sent_by_side || first.first().is_some_and(|version| *version != VERSION) {
            return Length::Wrong;
        }
        match (
            cursor::be16_at(first, 4),
            cursor::u8_at(first, 6),
            first.len() >= HEADER,
        ) {
            (Some(len), Some(padding), true) => {
                Length::Is(HEADER as u64 + u64::from(len) + u64::from(padding))
            }
            _ => Length::More,
        }
    }

    fn message(&mut self, sink: &mut Sink<'_, impl Listener>, head: Head<'_>) -> Role {
        let (Some(kind), Some(id)) = (cursor::u8_at(head.bytes, 1), cursor::be16_at(head.bytes, 2)) else {
            return Role::Ignored;
        };
        let (key, len) = (u64::from(id), cursor::be16_at(head.bytes, 4).unwrap_or(0));
        let content = cursor::upto(cursor::from(head.bytes, HEADER), usize::from(len));
        match kind {
            BEGIN => {
                if self.waiting.len() >= MAX_WAITING {
                    self.waiting.remove(0);
                }
                self.waiting.retain(|waits| *waits != id);
                self.waiting.push(id);
                sink.exchange(key).begin_request(Kind::Request);
            }
            PARAMS => parameters(sink, key, content),
            STDIN if len == 0 => return Role::Last(key),
            STDOUT => self.begin_answer(sink, id, content),
            END => {
                self.begin_answer(sink, id, b"");
                report_refusal(sink, key, content);
                return Role::Last(key);
            }
            ABORT | STDIN | DATA | STDERR => {}
            _ => return Role::Ignored,
        }
        Role::Part(key)
    }
}

impl FastCgi {
    /// Begins the answer with the first output of a request. Its head has the status; without `Status` it is 200.
    fn begin_answer(&mut self, sink: &mut Sink<'_, impl Listener>, id: u16, content: &[u8]) {
        let Some(index) = self.waiting.iter().position(|waits| *waits == id) else {
            return;
        };
        self.waiting.remove(index);
        let mut exchange = sink.exchange(u64::from(id));
        exchange.begin_answer();
        if content.is_empty() {
            return; // the program ended without output
        }
        let lines = content
            .split(|byte| *byte == b'\n')
            .take_while(|line| !line.trim_ascii().is_empty());
        let status = lines
            .filter_map(|line| line.split_first_chunk::<7>())
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"status:"))
            .find_map(|(_, value)| {
                let digits = value.trim_ascii().get(..3)?;
                std::str::from_utf8(digits).ok()?.parse::<u16>().ok()
            });
        let code = status.unwrap_or(200);
        exchange.status(Status::reply_code(code));
    }
}

/// Reports the status of an END_REQUEST by which the server refused the request (5.5).
fn report_refusal(sink: &mut Sink<'_, impl Listener>, key: u64, content: &[u8]) {
    let words = match cursor::u8_at(content, 4) {
        Some(1) => "cannot multiplex",
        Some(2) => "overloaded",
        Some(3) => "unknown role",
        _ => return,
    };
    sink.exchange(key).status(Status::word(words, true));
}

/// Reads the length of a name or a value: one byte, or four if the highest bit is set (3.4).
fn length(cursor: &mut Cursor<'_>) -> Option<usize> {
    let first = cursor.u8()?;
    if first & 0x80 == 0 {
        return Some(usize::from(first));
    }
    let (high, low) = (cursor.u8()?, cursor.u16be()?);
    Some(usize::from(first & 0x7F) << 24 | usize::from(high) << 16 | usize::from(low))
}

/// Names the request by its parameters: variables of CGI, and headers of HTTP as `HTTP_…`.
fn parameters(sink: &mut Sink<'_, impl Listener>, key: u64, content: &[u8]) {
    let (mut method, mut target, mut script, mut host, mut server) =
        <(&[u8], &[u8], &[u8], &[u8], &[u8])>::default();
    let mut tags = Tags::default();
    let mut cursor = Cursor::new(content);
    while let (Some(name), Some(value)) = (length(&mut cursor), length(&mut cursor))
        && let (Some(name), Some(value)) = (cursor.take(name), cursor.take(value))
    {
        match name {
            b"REQUEST_METHOD" => method = value,
            b"REQUEST_URI" => target = value,
            b"SCRIPT_NAME" => script = value,
            b"HTTP_HOST" => host = value,
            b"SERVER_NAME" => server = value,
            _ => {
                let header = name
                    .strip_prefix(b"HTTP_")
                    .map(|name| name.iter().map(dashed).collect::<Vec<_>>());
                if let Some(name) = header.and_then(|header| TagName::of(&header)) {
                    tags.add(name, value);
                }
            }
        }
    }
    let target: Cow<'_, [u8]> = url::shown(if target.is_empty() { script } else { target });
    let host = if host.is_empty() { server } else { host };
    let mut exchange = sink.exchange(key);
    exchange.name(RequestName {
        method: &text::name_up_to(method, 32, false),
        target: &text::name(&target),
        host: &SmolStr::new(url::host(&String::from_utf8_lossy(host))),
    });
    exchange.tags(&tags);
}

/// Restores the dashes of header names, which CGI writes as underscores.
fn dashed(byte: &u8) -> u8 {
    if *byte == b'_' { b'-' } else { *byte }
}
