//! Recognises HTTP/1 by its start line.

use super::head::{self, is_method};
use memchr::memchr;

use super::skip_line_ends;
use crate::cursor;
use crate::messages::lines::first_word;
use crate::messages::{Guess, Side};

/// Methods that are recognised by name alone (RFC 9110, 5789, 4918, 3253, and those of proxies and UPnP).
#[rustfmt::skip]
const METHODS: [&[u8]; 24] = [
    b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND",
    b"PROPPATCH", b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"REPORT", b"SEARCH", b"PURGE", b"NOTIFY",
    b"SUBSCRIBE", b"UNSUBSCRIBE", b"M-SEARCH", b"MKCALENDAR",
];
pub(super) const VERSION: &[u8] = b"HTTP/1.";
/// Methods that SIP or RTSP have, too.
const SHARED: [&[u8]; 3] = [b"OPTIONS", b"NOTIFY", b"SUBSCRIBE"];
/// Prefixes of the targets of SIP and RTSP.
const OTHER_TARGETS: [&[u8]; 5] = [b"sip:", b"sips:", b"tel:", b"rtsp", b"* RTSP"];

/// Whether a stream that begins with these bytes of `side` is HTTP/1.
pub(in crate::messages) fn sniff(side: Side, first: &[u8]) -> Guess {
    let (is_http, may_become) = match side {
        Side::Client => {
            let first = skip_line_ends(first);
            let word = first_word(first);
            let target = first.get(word.len() + 1..).unwrap_or_default();
            let has_method = word.len() < first.len() && METHODS.contains(&word);
            if has_method && target.is_empty() {
                return Guess::More;
            }
            let is_request = has_method && may_begin_target(target);
            if is_request && SHARED.contains(&word) {
                if OTHER_TARGETS.iter().any(|prefix| target.starts_with(prefix)) {
                    return Guess::No;
                }
                if OTHER_TARGETS.iter().any(|prefix| prefix.starts_with(target)) {
                    return Guess::More;
                }
            }
            (
                is_request || begins_message(side, first),
                METHODS.iter().any(|method| method.starts_with(first)),
            )
        }
        Side::Server => (first.starts_with(VERSION), VERSION.starts_with(first)),
    };
    match (is_http, may_become) {
        (true, _) => Guess::Yes,
        (false, true) => Guess::More,
        (false, false) => Guess::No,
    }
}

/// Whether a target may begin with these bytes: not with a character that no URI has (RFC 3986 2), as `CONNECT {` of
/// NATS does.
fn may_begin_target(target: &[u8]) -> bool {
    target.first().is_none_or(|first| !b"{}\"<>\\^`|".contains(first))
}

/// Whether these bytes begin with a whole start line, or with a known method and a path.
pub(in crate::messages) fn begins_message(side: Side, first: &[u8]) -> bool {
    if side == Side::Server {
        return head::status(first, false).is_some();
    }
    let mut words = first.splitn(3, |byte| *byte == b' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return false;
    };
    if METHODS.contains(&method) && target.starts_with(b"/") {
        return true;
    }
    let version = words.next().unwrap_or_default();
    let line_ends = matches!(version.get(8), Some(b'\r' | b'\n'));
    is_method(method) && line_ends && version.get(..8).is_some_and(|version| may_start(side, version))
}

/// Whether these bytes surely begin a head: a whole start line, then a header or the empty line.
pub(in crate::messages) fn begins_inside_turn(side: Side, first: &[u8]) -> bool {
    let line_end = |bytes: &[u8]| memchr(b'\n', bytes);
    let begins = match side {
        Side::Client => first.first().is_some_and(u8::is_ascii_uppercase),
        Side::Server => first.starts_with(VERSION),
    };
    let Some((line, rest)) = begins
        .then(|| first.split_at_checked(line_end(first)? + 1))
        .flatten()
    else {
        return false;
    };
    let rest = cursor::upto(rest, line_end(rest).unwrap_or(rest.len()));
    let name = rest.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_header = name.len() < rest.len() && is_method(name); // a header's name and a method are both tokens
    begins_message(side, first)
        && may_start(side, line.trim_ascii_end())
        && (is_header || rest == b"\r" || rest.is_empty())
}

/// Whether a line without its end may be a start line. True for every line that `head::parse` accepts.
pub(super) fn may_start(side: Side, line: &[u8]) -> bool {
    match side {
        Side::Client => line.ends_with(b"HTTP/1.1") || line.ends_with(b"HTTP/1.0"),
        Side::Server => head::status(line, true).is_some(),
    }
}
