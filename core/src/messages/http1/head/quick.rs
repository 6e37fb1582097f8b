//! The plain head, which nearly every one is, read in one pass over its line ends. Gives what `httparse` would
//! give, or nothing: whatever is unusual is left to it, so that leniency has one place.

use memchr::{memchr, memchr3};

use super::{Framing, Head, MAX_HEADERS, Start, shortened};
use crate::messages::Side;

const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";

/// A whole head with plain lines at the beginning of `bytes`.
pub(super) fn parse(side: Side, bytes: &[u8]) -> Option<Head> {
    let (line, mut rest) = line(bytes)?;
    let start = match side {
        Side::Client => request(line)?,
        Side::Server => response(line)?,
    };
    let mut framing = Framing::default();
    for _ in 0..MAX_HEADERS {
        let (line, behind) = self::line(rest)?;
        rest = behind;
        match line.first() {
            None => {
                let len = bytes.len() - rest.len();
                return Some(Head::new(len, start, framing));
            }
            Some(b' ' | b'\t') => return None, // a folded line
            Some(b'c' | b'C') => {
                if let Some(value) = value(line, LENGTH)? {
                    if framing.length.is_some() {
                        return None;
                    }
                    framing.length = Some(number(value)?);
                }
            }
            Some(b't' | b'T') => {
                if let Some(value) = value(line, CODING)? {
                    if framing.coded || !value.eq_ignore_ascii_case(b"chunked") {
                        return None;
                    }
                    (framing.chunked, framing.coded) = (true, true);
                }
            }
            Some(_) => {}
        }
    }
    None
}

/// The first line without its end, and what follows. A NUL or a lone CR or LF makes a head unusual.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, end) = bytes.split_at_checked(memchr3(b'\r', b'\n', 0, bytes)?)?;
    Some((line, end.strip_prefix(b"\r\n")?))
}

/// The header's value if it bears this name. Outer none: it nearly does, with a space before the colon.
#[allow(clippy::option_option)]
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<Option<&'a [u8]>> {
    let Some((head, rest)) = line.split_at_checked(name.len()) else {
        return Some(None);
    };
    if !head.eq_ignore_ascii_case(name) {
        return Some(None);
    }
    match rest.split_first()? {
        (b':', value) => Some(Some(value.trim_ascii())),
        (b' ' | b'\t', _) => None,
        _ => Some(None),
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.len() > 18 {
        return None; // may not fit
    }
    super::decimal(digits)
}

fn request(line: &[u8]) -> Option<Start> {
    let (method, rest) = word(line)?;
    let (target, version) = word(rest)?;
    let plain = |word: &[u8]| !word.is_empty() && word.iter().fold(true, |ok, b| ok & b.is_ascii_graphic());
    let upper = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    if !upper || !plain(target) || !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
        return None;
    }
    Some(Start::request(
        std::str::from_utf8(method).ok()?,
        shortened(target),
    ))
}

fn response(line: &[u8]) -> Option<Start> {
    let (version, rest) = word(line)?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let plain = |b: &u8| b.is_ascii_graphic() || *b == b' ';
    if !matches!(version, b"HTTP/1.1" | b"HTTP/1.0")
        || !(reason.is_empty() || reason.starts_with(b" "))
        || !reason.iter().fold(true, |ok, b| ok & plain(b))
    {
        return None;
    }
    let status = u16::try_from(super::decimal(digits)?).ok()?;
    Some(Start::Response { status })
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (word, rest) = line.split_at_checked(memchr(b' ', line)?)?;
    Some((word, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Body, parse_thoroughly};
    use super::*;

    const PARTS: &[&str] = &[
        "GET ",
        "POST ",
        "get ",
        "/",
        "/a?b=c ",
        " HTTP/1.1",
        " HTTP/1.0",
        "HTTP/1.1 ",
        "HTTP/1.0 200",
        "200 OK",
        "304",
        " ",
        "\r\n",
        "\r\n",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        "\t",
        ":",
        ": ",
        "Content-Length: 12",
        "content-length:0",
        "Content-Length : 5",
        "Content-Length: 1, 1",
        "Content-LengthX: 3",
        "Content-Length: +4",
        "Transfer-Encoding: chunked",
        "transfer-encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Cookie: a",
        "Host: x",
        "no colon",
        " folded",
        "é",
        "\0",
        "\x7f",
        "\x01",
        "99999999999999999999",
        "Content-Length:",
        "Transfer-Encoding:",
    ];

    fn heads() -> impl Strategy<Value = Vec<u8>> {
        let begin = prop_oneof![
            Just("GET / HTTP/1.1\r\n"),
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.0 204\r\n"),
            Just("")
        ];
        let parts = prop::collection::vec(prop::sample::select(PARTS), 0..12);
        let end = prop_oneof![Just("\r\n\r\nbody"), Just("")];
        (begin, parts, end)
            .prop_map(|(begin, parts, end)| [begin, &parts.concat(), end].concat().into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn what_it_reads_is_what_httparse_reads(bytes in heads()) {
            for side in [Side::Client, Side::Server] {
                if let Some(head) = parse(side, &bytes) {
                    prop_assert_eq!(Some(head), parse_thoroughly(side, &bytes));
                }
            }
        }
    }

    #[test]
    fn plain_heads_are_read() {
        let request = b"GET /x HTTP/1.1\r\nHost: a\r\nCookie: b\r\n\r\n";
        assert_eq!(parse(Side::Client, request).map(|h| h.len), Some(request.len()));
        let response = b"HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 612\r\n\r\nbody";
        let head = parse(Side::Server, response);
        assert_eq!(
            head.map(|h| (h.len, h.body)),
            Some((response.len() - 4, Ok(Body::Length(612))))
        );
    }
}
