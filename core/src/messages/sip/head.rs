//! Heads of SIP and RTSP: the first line, and the headers that pair messages. Stateless.

use smol_str::{SmolStr, format_smolstr};

use crate::messages::framed::Length;
use crate::messages::text;

/// Methods of SIP (RFC 3261, 3262, 3265, 3311, 3428, 3515, 3903, 6086).
#[rustfmt::skip]
const SIP: [&str; 14] = [
    "INVITE", "ACK", "BYE", "CANCEL", "REGISTER", "OPTIONS", "INFO", "PRACK", "UPDATE", "SUBSCRIBE", "NOTIFY", "REFER",
    "MESSAGE", "PUBLISH",
];
/// Methods of RTSP (RFC 2326 10, RFC 7826 13).
#[rustfmt::skip]
const RTSP: [&str; 12] = [
    "OPTIONS", "DESCRIBE", "ANNOUNCE", "SETUP", "PLAY", "PAUSE", "TEARDOWN", "GET_PARAMETER", "SET_PARAMETER",
    "REDIRECT", "RECORD", "PLAY_NOTIFY",
];
const SIP_SCHEMES: [&str; 3] = ["sip:", "sips:", "tel:"];
const RTSP_SCHEMES: [&str; 4] = ["rtsp://", "rtsps://", "rtspu://", "* RTSP/"];
const END: &[u8] = b"\r\n\r\n";
/// Upper bound on a body; a session description has some kilobytes.
const MAX_BODY: u64 = 16 << 20;

/// The first line of a head.
pub(super) enum Line<'a> {
    /// Method and address.
    Request(&'static str, &'a [u8]),
    /// Status code.
    Response(u16),
}

fn methods(is_rtsp: bool) -> &'static [&'static str] {
    if is_rtsp { &RTSP } else { &SIP }
}

fn schemes(is_rtsp: bool) -> &'static [&'static str] {
    if is_rtsp { &RTSP_SCHEMES } else { &SIP_SCHEMES }
}

fn versions(is_rtsp: bool) -> &'static [&'static str] {
    if is_rtsp {
        &["RTSP/1.0", "RTSP/2.0"]
    } else {
        &["SIP/2.0"]
    }
}

/// Whether bytes and text are equal up to the end of the shorter one, without regard to case.
fn agrees(bytes: &[u8], want: &str) -> bool {
    let is_same = |(got, want): (&u8, u8)| got.eq_ignore_ascii_case(&want);
    bytes.iter().zip(want.bytes()).all(is_same)
}

/// Whether bytes begin a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    No,
    Perhaps,
    Surely,
}

/// Whether these bytes begin a message: a version and a status code, or a method and an address.
fn begins(is_rtsp: bool, first: &[u8]) -> Begins {
    let first_line = || first.get(..memchr::memchr(b'\n', first)?);
    let has_version = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        versions(is_rtsp)
            .iter()
            .any(|version| line.ends_with(version.as_bytes()))
    };
    let mut begins = Begins::No;
    // 1. a response
    for version in versions(is_rtsp) {
        if agrees(first, version) {
            let code = first.get(version.len() + 1..version.len() + 4);
            let is_code = code.is_some_and(|code| code.iter().all(u8::is_ascii_digit));
            match code {
                None if first_line().is_none() => begins = Begins::Perhaps,
                Some(_) if is_code => return Begins::Surely,
                _ => {}
            }
        }
    }
    // 2. a request; the first bytes of every connection are checked, and most begin with another letter
    let may_be = |method: &&&str| first.is_empty() || method.as_bytes().first() == first.first();
    for method in methods(is_rtsp).iter().filter(may_be) {
        let Some(rest) = first
            .get(method.len()..)
            .filter(|_| first.starts_with(method.as_bytes()))
        else {
            if first.len() < method.len() && method.as_bytes().starts_with(first) {
                begins = Begins::Perhaps;
            }
            continue;
        };
        let Some(target) = rest.strip_prefix(b" ") else {
            if rest.is_empty() {
                begins = Begins::Perhaps;
            }
            continue;
        };
        let scheme = schemes(is_rtsp).iter().find(|scheme| agrees(target, scheme));
        match scheme {
            Some(_) if first_line().is_some_and(|line| !has_version(line)) => {}
            Some(scheme) if target.len() >= scheme.len() => return Begins::Surely,
            Some(_) => begins = Begins::Perhaps,
            None => {}
        }
    }
    begins
}

/// Whether these bytes begin a message, and no other protocol begins like this.
pub(super) fn is_sure(is_rtsp: bool, first: &[u8]) -> bool {
    begins(is_rtsp, first) == Begins::Surely
}

/// Whether a first line that is sure is a response's.
pub(super) fn is_response(first: &[u8]) -> bool {
    first.starts_with(b"SIP/") || first.starts_with(b"RTSP/")
}

/// Returns the length of the message that these bytes begin, with its body.
pub(super) fn length(is_rtsp: bool, first: &[u8]) -> Length {
    if begins(is_rtsp, first) == Begins::No {
        return Length::Wrong;
    }
    let Some(head) = memchr::memmem::find(first, END).map(|end| end + END.len()) else {
        return Length::More;
    };
    let text = Text::of(first.get(..head).unwrap_or(first));
    let length = text.value(b"content-length").or_else(|| text.value(b"l"));
    match length.map_or(Some(0), number) {
        Some(body) if body <= MAX_BODY => Length::Is(head as u64 + body),
        _ => Length::Wrong,
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The lines of a head.
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
        if is_response(first) {
            return number(second)
                .and_then(|code| u16::try_from(code).ok())
                .map(Line::Response);
        }
        let method = SIP
            .iter()
            .chain(&RTSP)
            .find(|listed| listed.as_bytes() == first)?;
        Some(Line::Request(method, second))
    }

    /// Returns the value of a header; `name` is in lower case.
    pub(super) fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.lines().skip(1).find_map(|line| {
            let (got, rest) = line.split_at_checked(name.len())?;
            let value = rest.trim_ascii_start().strip_prefix(b":")?;
            got.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
        })
    }

    /// Returns what pairs a message: in RTSP the CSeq; in SIP a hash of CSeq, with its method (RFC 3261 17.1.3), and
    /// Call-ID.
    pub(super) fn key(&self, is_rtsp: bool) -> Option<u64> {
        let sequence = self.value(b"cseq")?;
        if is_rtsp {
            return number(sequence);
        }
        let call = self.value(b"call-id").or_else(|| self.value(b"i"))?;
        let words = sequence
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        // FNV-1a: short, and the same on every machine
        let all = words.chain([call]).flat_map(|word| word.iter().chain(b" "));
        Some(all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        }))
    }
}

/// Returns an address as it is shown: without parameters and password, and `?` for a user with a digit, which may be a
/// telephone number.
pub(super) fn masked(address: &[u8]) -> SmolStr {
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
    let at_sign = rest.split('/').next().and_then(|authority| authority.rfind('@'));
    let (user, host) = match at_sign.and_then(|at| Some((rest.get(..at)?, rest.get(at..)?))) {
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
