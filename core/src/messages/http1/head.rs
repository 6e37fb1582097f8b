//! HTTP/1 heads: the start line, the headers that decide where the body ends, and those that the tables show.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request, Response, Status};
use memchr::{memchr, memrchr};
use smol_str::SmolStr;

use super::lines::end_of_head;
use super::recognise::VERSION;
use crate::messages::pieces::BodySplitter;
use crate::messages::tags::{TagName, Tags};
use crate::messages::{Kind, Side, text, url, waits};

/// Upper bound on a host name (RFC 1035 2.3.4) with a port.
const MAX_HOST: usize = 253 + 6;
/// Headers parsed at first, enough for nearly every head. Heads with more are parsed again with `MAX_HEADERS`.
const HEADERS: usize = 128;
const MAX_HEADERS: usize = 1024;

/// The kinds of methods that matter to the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodKind {
    Head,
    Connect,
    /// The response waits for events; the request has this kind.
    WaitsForEvents(Kind),
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    Request {
        method: SmolStr,
        target: SmolStr,
        /// The `Host` header; "" where there is none.
        host: SmolStr,
        kind: MethodKind,
    },
    Response {
        status: u16,
    },
}

/// The framing of a body, as the head gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    None,
    Length(u64),
    Chunked,
    UntilClose,
    /// No body: both sides go on in another protocol.
    Switched(Upgrade),
}

/// A protocol that a 101 switches to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upgrade {
    WebSocket,
    /// RFC 7540 3.2.
    Http2,
}

/// A whole head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Length in bytes, with the empty line.
    pub(super) len: usize,
    pub(super) start: Start,
    /// The framing of the body, or why it cannot be known. A response to HEAD has no body, whatever this is.
    pub(super) body: Result<Body, &'static str>,
    /// The splitter of a streamed response.
    pub(super) pieces: Option<BodySplitter>,
    pub(super) tags: Option<Box<Tags>>,
}

impl Head {
    fn new(len: usize, start: Start, framing: Framing) -> Self {
        let body = match start {
            Start::Request { .. } => framing.of_request(),
            Start::Response { status } => framing.of_response(status),
        };
        Head {
            len,
            start,
            body,
            pieces: None,
            tags: None,
        }
    }

    /// Reads the headers that matter to a 101 or a streamed response.
    #[cold]
    fn read_more(&mut self, headers: &[Header<'_>]) {
        if matches!(self.start, Start::Response { status: 101 }) {
            self.body = upgrade(headers).map_or(self.body, |to| Ok(Body::Switched(to)));
            return;
        }
        let is_plain =
            value(headers, "content-encoding").is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity"));
        let kind = value(headers, "content-type").and_then(|kind| std::str::from_utf8(kind).ok());
        let status = value(headers, "grpc-status")
            .and_then(decimal)
            .and_then(|code| code.try_into().ok());
        self.pieces = kind
            .filter(|_| is_plain)
            .and_then(BodySplitter::of)
            .map(|pieces| pieces.with_status(status));
    }
}

impl Start {
    fn request(method: &str, target: SmolStr, host: SmolStr) -> Self {
        let kind = MethodKind::of(method, &target);
        Start::Request {
            method: SmolStr::new(method),
            target,
            host,
            kind,
        }
    }
}

/// The values of the headers that frame the body.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Framing {
    is_chunked: bool,
    /// There is a transfer coding other than identity. Unless the last one is chunked, only the close ends the body.
    is_coded: bool,
    length: Option<u64>,
    wrong: Option<&'static str>,
}

/// Parses a head of `side` at the beginning of `bytes`. `None` if it is not whole or not valid.
#[inline(never)]
pub(super) fn parse(side: Side, bytes: &[u8]) -> Option<Head> {
    end_of_head(&[], bytes)?; // a quick check: with a short snap length most heads are not whole
    match parse_up_to::<HEADERS>(side, bytes) {
        Err(httparse::Error::TooManyHeaders) => parse_up_to::<MAX_HEADERS>(side, bytes).ok()?,
        parsed => parsed.ok()?,
    }
}

fn parse_up_to<const N: usize>(side: Side, bytes: &[u8]) -> Result<Option<Head>, httparse::Error> {
    let mut config = ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .ignore_invalid_headers_in_requests(true);
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; N];
    let head = match side {
        Side::Client => {
            let mut request = Request::new(&mut []);
            match config.parse_request_with_uninit_headers(&mut request, bytes, &mut headers)? {
                Status::Partial => return Ok(None),
                Status::Complete(len) => {
                    let target = text::name(&url::shown(request.path.unwrap_or_default().as_bytes()));
                    let host = host(request.headers);
                    let start = Start::request(request.method.unwrap_or_default(), target, host);
                    let mut head = Head::new(len, start, framing(request.headers));
                    head.tags = tags(request.headers);
                    head
                }
            }
        }
        Side::Server => {
            let mut response = Response::new(&mut []);
            match config.parse_response_with_uninit_headers(&mut response, bytes, &mut headers)? {
                Status::Partial => return Ok(None),
                Status::Complete(len) => {
                    let status = response.code.unwrap_or_default();
                    let mut head = Head::new(len, Start::Response { status }, framing(response.headers));
                    head.tags = tags(response.headers);
                    let streams = matches!(head.body, Ok(Body::Chunked | Body::UntilClose));
                    if status == 101 || streams || is_grpc_web(response.headers) {
                        head.read_more(response.headers);
                    }
                    head
                }
            }
        }
    };
    Ok(Some(head))
}

fn tags(headers: &[Header<'_>]) -> Option<Box<Tags>> {
    let mut tags = Tags::default();
    for header in headers {
        if let Some(name) = TagName::of(header.name.as_bytes()) {
            tags.add(name, header.value);
        }
    }
    (!tags.is_empty()).then(|| Box::new(tags))
}

/// Returns the value of the first header with this name.
fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    let named = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| header.value.trim_ascii())
}

fn is_grpc_web(headers: &[Header<'_>]) -> bool {
    const KIND: &[u8] = b"application/grpc-web";
    let begins = |kind: &[u8]| {
        kind.get(..KIND.len())
            .is_some_and(|kind| kind.eq_ignore_ascii_case(KIND))
    };
    value(headers, "content-type").is_some_and(begins)
}

/// Returns the value of `Host` (RFC 9110 7.2), "" where there is none.
fn host(headers: &[Header<'_>]) -> SmolStr {
    value(headers, "host").map_or(SmolStr::default(), |host| {
        let shown = String::from_utf8_lossy(host);
        match url::host(&shown) {
            Cow::Borrowed(_) => text::name_up_to(host, MAX_HOST, false),
            Cow::Owned(shown) => text::name_up_to(shown.as_bytes(), MAX_HOST, false),
        }
    })
}

/// Returns the protocol in `Upgrade` (RFC 9110 7.8).
fn upgrade(headers: &[Header<'_>]) -> Option<Upgrade> {
    let to = value(headers, "upgrade")?;
    if to.eq_ignore_ascii_case(b"websocket") {
        Some(Upgrade::WebSocket)
    } else {
        to.eq_ignore_ascii_case(b"h2c").then_some(Upgrade::Http2)
    }
}

fn framing(headers: &[Header<'_>]) -> Framing {
    let mut framing = Framing::default();
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            // RFC 9110 8.6: a list of equal values counts as one value; receivers reject any other list
            for value in header.value.split(|byte| *byte == b',') {
                match (decimal(value.trim_ascii()), framing.length) {
                    (None, _) => framing.wrong = Some("content-length is not a number"),
                    (Some(new), Some(old)) if new != old => {
                        framing.wrong = Some("content-length is given twice with different values");
                    }
                    (length, _) => framing.length = length,
                }
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            // RFC 9110 5.6.1: recipients ignore empty elements of a list
            let codings = header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            for coding in codings.filter(|coding| !coding.is_empty()) {
                framing.is_chunked = coding.eq_ignore_ascii_case(b"chunked");
                framing.is_coded |= !coding.eq_ignore_ascii_case(b"identity");
            }
        }
    }
    framing
}

impl Framing {
    /// The body of a request (RFC 9112 6.3).
    fn of_request(self) -> Result<Body, &'static str> {
        match self {
            Framing { is_chunked: true, .. } => Ok(Body::Chunked),
            Framing { is_coded: true, .. } => {
                Err("request with a transfer coding that does not show its end")
            }
            Framing {
                wrong: Some(reason), ..
            } => Err(reason),
            Framing {
                length: None | Some(0),
                ..
            } => Ok(Body::None),
            Framing {
                length: Some(length), ..
            } => Ok(Body::Length(length)),
        }
    }

    /// The body of a response (RFC 9112 6.3) that is neither interim, nor to HEAD or CONNECT, nor a 101.
    fn of_response(self, status: u16) -> Result<Body, &'static str> {
        match self {
            _ if matches!(status, 204 | 304) => Ok(Body::None),
            Framing { is_chunked: true, .. } => Ok(Body::Chunked),
            Framing { is_coded: true, .. } => Ok(Body::UntilClose),
            Framing {
                wrong: Some(reason), ..
            } => Err(reason),
            Framing { length: Some(0), .. } => Ok(Body::None),
            Framing {
                length: Some(length), ..
            } => Ok(Body::Length(length)),
            Framing { length: None, .. } => Ok(Body::UntilClose),
        }
    }
}

impl MethodKind {
    /// The kind of a method, whose name is case-sensitive (RFC 9110 9.1).
    fn of(method: &str, target: &str) -> MethodKind {
        match method {
            "HEAD" => MethodKind::Head,
            "CONNECT" => MethodKind::Connect,
            "GET" => waits::of_target(target).map_or(MethodKind::Other, MethodKind::WaitsForEvents),
            _ => MethodKind::Other,
        }
    }
}

/// Parses the start line alone, for a head that cannot be parsed. `is_cut`: the bytes may end inside the line; an
/// incomplete target is then returned with an ellipsis.
pub(super) fn start_line(side: Side, bytes: &[u8], is_cut: bool) -> Option<Start> {
    let end = memchr(b'\n', bytes);
    let line = bytes.get(..end.unwrap_or(bytes.len()))?.trim_ascii_end();
    match side {
        Side::Client => {
            let (method, rest) = split_at_space(line)?;
            let target = match memrchr(b' ', rest) {
                Some(space) if end.is_some() => text::name(&url::shown(rest.get(..space)?.trim_ascii())),
                _ if is_cut => text::cut_name(&url::shown(rest.split(|byte| *byte == b' ').next()?)),
                _ => return None,
            };
            let method = std::str::from_utf8(method)
                .ok()
                .filter(|method| is_method(method.as_bytes()))?;
            Some(Start::request(method, target, SmolStr::default()))
        }
        Side::Server => status(line, end.is_some()).map(|status| Start::Response { status }),
    }
}

/// Parses the status in a status line. `is_whole`: the line ends where the bytes end.
pub(super) fn status(line: &[u8], is_whole: bool) -> Option<u16> {
    let (version, rest) = split_at_space(line)?;
    let is_ended = rest.get(3).map_or(is_whole, u8::is_ascii_whitespace);
    if !version.starts_with(VERSION) || !is_ended {
        return None;
    }
    u16::try_from(decimal(rest.get(..3)?)?).ok()
}

/// Whether the bytes are a token (RFC 9110 5.6.2), as methods and header names are.
pub(super) fn is_method(bytes: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(token)
}

fn split_at_space(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, after) = line.split_at_checked(memchr(b' ', line)?)?;
    Some((before, after.trim_ascii_start()))
}

/// Parses digits. A sign or a space is refused, because servers differ in how they read it.
fn decimal(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold((!digits.is_empty()).then_some(0u64)?, |value, digit| {
            let digit = char::from(*digit).to_digit(10)?;
            value.checked_mul(10)?.checked_add(u64::from(digit))
        })
}
