//! Heads of SIP and RTSP: the first line, and the few lines that pair messages. Remembers nothing.

use smol_str::{SmolStr, format_smolstr};

use crate::messages::framed::Length;
use crate::messages::text;

/// RFC 3261, 3262, 3265, 3311, 3428, 3515, 3903, 6086.
#[rustfmt::skip]
const SIP: [&str; 14] = [
    "INVITE", "ACK", "BYE", "CANCEL", "REGISTER", "OPTIONS", "INFO", "PRACK", "UPDATE", "SUBSCRIBE", "NOTIFY", "REFER",
    "MESSAGE", "PUBLISH",
];
/// RFC 2326 10, RFC 7826 13.
#[rustfmt::skip]
const RTSP: [&str; 12] = [
    "OPTIONS", "DESCRIBE", "ANNOUNCE", "SETUP", "PLAY", "PAUSE", "TEARDOWN", "GET_PARAMETER", "SET_PARAMETER",
    "REDIRECT", "RECORD", "PLAY_NOTIFY",
];
const SIP_SCHEMES: [&str; 3] = ["sip:", "sips:", "tel:"];
const RTSP_SCHEMES: [&str; 4] = ["rtsp://", "rtsps://", "rtspu://", "* RTSP/"];
const END: &[u8] = b"\r\n\r\n";
/// The longest body: a session's description has some kilobytes.
const MAX_BODY: u64 = 16 << 20;

pub(super) enum Line<'a> {
    Asks(&'static str, &'a [u8]),
    Answers(u16),
}

fn methods(rtsp: bool) -> &'static [&'static str] {
    if rtsp { &RTSP } else { &SIP }
}

fn schemes(rtsp: bool) -> &'static [&'static str] {
    if rtsp { &RTSP_SCHEMES } else { &SIP_SCHEMES }
}

fn versions(rtsp: bool) -> &'static [&'static str] {
    if rtsp {
        &["RTSP/1.0", "RTSP/2.0"]
    } else {
        &["SIP/2.0"]
    }
}

/// Whether these bytes are the beginning of that text, or it theirs.
fn agrees(bytes: &[u8], want: &str) -> bool {
    let same = |(got, want): (&u8, u8)| got.eq_ignore_ascii_case(&want);
    bytes.iter().zip(want.bytes()).all(same)
}

/// How the first line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    No,
    Perhaps,
    Surely,
}

fn begins(rtsp: bool, first: &[u8]) -> Begins {
    let whole = || first.get(..memchr::memchr(b'\n', first)?);
    let has_version = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        versions(rtsp)
            .iter()
            .any(|version| line.ends_with(version.as_bytes()))
    };
    let mut found = Begins::No;
    for version in versions(rtsp) {
        if agrees(first, version) {
            let code = first.get(version.len() + 1..version.len() + 4);
            let is_code = code.is_some_and(|code| code.iter().all(u8::is_ascii_digit));
            match code {
                None if whole().is_none() => found = Begins::Perhaps,
                Some(_) if is_code => return Begins::Surely,
                _ => {}
            }
        }
    }
    // every connection comes here, and most begin with another letter
    let may_be = |method: &&&str| first.is_empty() || method.as_bytes().first() == first.first();
    for method in methods(rtsp).iter().filter(may_be) {
        let Some(rest) = first
            .get(method.len()..)
            .filter(|_| first.starts_with(method.as_bytes()))
        else {
            if first.len() < method.len() && method.as_bytes().starts_with(first) {
                found = Begins::Perhaps;
            }
            continue;
        };
        let Some(target) = rest.strip_prefix(b" ") else {
            if rest.is_empty() {
                found = Begins::Perhaps;
            }
            continue;
        };
        let scheme = schemes(rtsp).iter().find(|scheme| agrees(target, scheme));
        match scheme {
            Some(_) if whole().is_some_and(|line| !has_version(line)) => {}
            Some(scheme) if target.len() >= scheme.len() => return Begins::Surely,
            Some(_) => found = Begins::Perhaps,
            None => {}
        }
    }
    found
}

/// These bytes begin a message, and nothing else begins so.
pub(super) fn sure(rtsp: bool, first: &[u8]) -> bool {
    begins(rtsp, first) == Begins::Surely
}

/// A first line that is sure is an answer's.
pub(super) fn answers(first: &[u8]) -> bool {
    first.starts_with(b"SIP/") || first.starts_with(b"RTSP/")
}

/// The length of the message that begins here, with its body.
pub(super) fn length(rtsp: bool, first: &[u8]) -> Length {
    if begins(rtsp, first) == Begins::No {
        return Length::Wrong;
    }
    let Some(head) = memchr::memmem::find(first, END).map(|end| end + END.len()) else {
        return Length::More;
    };
    let text = Text::of(first.get(..head).unwrap_or(first));
    let got = text.value(b"content-length").or_else(|| text.value(b"l"));
    let body = got.map_or(Some(0), number);
    match body {
        Some(body) if body <= MAX_BODY => Length::Is(head as u64 + body),
        _ => Length::Wrong,
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A head, line by line.
pub(super) struct Text<'a> {
    head: &'a [u8],
}

impl<'a> Text<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let end = memchr::memmem::find(bytes, END).unwrap_or(bytes.len());
        Text {
            head: bytes.get(..end).unwrap_or(bytes),
        }
    }

    fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.head
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    pub(super) fn line(&self) -> Option<Line<'a>> {
        let line = self.lines().next()?;
        let mut words = line.split(|byte| *byte == b' ');
        let (first, second) = (words.next()?, words.next()?);
        if answers(first) {
            return number(second)
                .and_then(|code| u16::try_from(code).ok())
                .map(Line::Answers);
        }
        let known = SIP
            .iter()
            .chain(&RTSP)
            .find(|method| method.as_bytes() == first)?;
        Some(Line::Asks(known, second))
    }

    /// What stands behind this name, in lower case.
    pub(super) fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.lines().skip(1).find_map(|line| {
            let (got, rest) = line.split_at_checked(name.len())?;
            let value = rest.trim_ascii_start().strip_prefix(b":")?;
            got.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
        })
    }

    /// What pairs a message: RTSP's number; SIP's number and method (RFC 3261 17.1.3), and the call.
    pub(super) fn key(&self, rtsp: bool) -> Option<u64> {
        let sequence = self.value(b"cseq")?;
        if rtsp {
            return number(sequence);
        }
        let call = self.value(b"call-id").or_else(|| self.value(b"i"))?;
        let words = sequence
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        // FNV-1a, which is short and the same on every machine
        let all = words.chain([call]).flat_map(|word| word.iter().chain(b" "));
        Some(all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        }))
    }
}

/// An address as it is shown: without parameters and passwords, and without a user that has a digit (a number that
/// somebody has).
pub(super) fn shown(address: &[u8]) -> SmolStr {
    let end = address
        .iter()
        .position(|byte| b";?".contains(byte))
        .unwrap_or(address.len());
    let name = text::name(address.get(..end).unwrap_or(address));
    let (scheme, rest) = match name.split_once("://") {
        Some((scheme, rest)) => (format_smolstr!("{scheme}://"), rest),
        None => match name.split_once(':') {
            Some((scheme, rest)) => (format_smolstr!("{scheme}:"), rest),
            None => return name,
        },
    };
    let place = rest.split('/').next().and_then(|place| place.rfind('@'));
    let (user, host) = match place.and_then(|at| Some((rest.get(..at)?, rest.get(at..)?))) {
        Some(parts) => parts,
        None if scheme == "tel:" => ("0", ""),
        None => ("", rest),
    };
    let user = user.split(':').next().unwrap_or_default();
    let user = if user.bytes().any(|byte| byte.is_ascii_digit()) {
        "?"
    } else {
        user
    };
    format_smolstr!("{scheme}{user}{host}")
}
