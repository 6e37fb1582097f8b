//! What of a URL is no name: the password before its host, and values of parameters that say they are secrets. Knows no
//! protocol, and reads nothing behind `#`.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem, memrchr};

/// Stands for a secret.
const MASK: &[u8] = b"?";
/// A parameter is a secret where its name, without `-`, `_` and `.`, ends with one of these, in any case.
const ENDS: [&[u8]; 7] = [
    b"token",
    b"password",
    b"passwd",
    b"passphrase",
    b"secret",
    b"apikey",
    b"signature",
];
/// Or is one of these.
const WHOLE: [&[u8]; 7] = [b"pass", b"pwd", b"sig", b"jwt", b"sid", b"sessionid", b"auth"];
/// These name secrets and harmless things alike: an OAuth code (RFC 6749 4.1.2) or a country's, an API key or a cache's.
/// A secret is long and has digits and letters; an API key has no other signs.
const EITHER: [&[u8]; 2] = [b"code", b"key"];
/// Keys and codes of known services have 20 and more characters; UUIDs have 36.
const SECRET_FROM: usize = 16;
/// Longer names of parameters are none of these.
const LONGEST: usize = 64;

/// The URL, or its path and query, as it may be shown.
#[inline(always)]
pub(super) fn shown(url: &[u8]) -> Cow<'_, [u8]> {
    if memchr2(b'?', b'@', url).is_none() {
        return Cow::Borrowed(url);
    }
    masked(url)
}

#[cold]
#[inline(never)]
fn masked(url: &[u8]) -> Cow<'_, [u8]> {
    let (place, query) = url.split_at(memchr(b'?', url).unwrap_or(url.len()));
    let (mut out, mut hides) = (Vec::with_capacity(url.len()), false);
    match password(place) {
        Some((before, behind)) => {
            out.extend([before, MASK, behind].concat());
            hides = true;
        }
        None => out.extend_from_slice(place),
    }
    for (place, part) in query.split(|byte| *byte == b'&').enumerate() {
        if place > 0 {
            out.push(b'&');
        }
        let (shown, hidden) = parameters(part);
        out.extend_from_slice(shown);
        if !hidden.is_empty() {
            out.extend_from_slice(MASK);
            hides = true;
        }
    }
    if hides {
        Cow::Owned(out)
    } else {
        Cow::Borrowed(url)
    }
}

/// What may be shown between two `&`, and the rest. Some separate parameters by `;`, and in others' values it stands for
/// itself: nothing behind a secret is shown.
fn parameters(part: &[u8]) -> (&[u8], &[u8]) {
    let mut begin = 0;
    while let Some(equals) = part.get(begin..).and_then(|rest| memchr(b'=', rest)) {
        let value = begin + equals + 1;
        let name = part.get(begin..value - 1).unwrap_or_default();
        let name = memrchr(b'?', name)
            .and_then(|mark| name.get(mark + 1..))
            .unwrap_or(name);
        let rest = part.get(value..).unwrap_or_default();
        let end = memchr(b';', rest).unwrap_or(rest.len());
        if is_secret(name, rest.get(..end).unwrap_or(rest)) {
            return part.split_at_checked(value).unwrap_or((part, &[]));
        }
        match part.get(value..).and_then(|rest| memchr(b';', rest)) {
            Some(end) => begin = value + end + 1,
            None => break,
        }
    }
    (part, &[])
}

/// What stands before and behind the password of `scheme://user:password@host`.
fn password(place: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = memmem::find(place, b"://")? + 3;
    let authority = place.get(begin..)?;
    let authority = authority.get(..memchr(b'/', authority).unwrap_or(authority.len()))?;
    let at = memrchr(b'@', authority)?;
    let colon = memchr(b':', authority.get(..at)?)? + 1;
    Some((place.get(..begin + colon)?, place.get(begin + at..)?))
}

fn is_secret(name: &[u8], value: &[u8]) -> bool {
    if name.len() > LONGEST {
        return false;
    }
    let name: Vec<u8> = name
        .iter()
        .filter(|byte| !b"-_.".contains(byte))
        .map(u8::to_ascii_lowercase)
        .collect();
    let name = name.as_slice();
    ENDS.iter().any(|end| name.ends_with(end))
        || WHOLE.contains(&name)
        || EITHER.contains(&name) && is_random(value, name == b"key")
}

/// `plain`: of letters, digits, `-` and `_` alone.
fn is_random(value: &[u8], plain: bool) -> bool {
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    value.len() >= SECRET_FROM
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && (!plain || value.iter().all(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_names_stay() {
        for (url, seen) in [
            ("/a?b=c&d", "/a?b=c&d"),
            ("/a?access_token=s3&b=c", "/a?access_token=?&b=c"),
            ("/a?b=c&X-Amz-Signature=s3", "/a?b=c&X-Amz-Signature=?"),
            ("/a?b=c;pwd=s3;d&sid=s3", "/a?b=c;pwd=?&sid=?"),
            ("/a?token=s3=?&b", "/a?token=?&b"),
            ("/a?b=?token=s3", "/a?b=?token=s3"),
            (
                "/a?tokens=3&side=4&author=me&token",
                "/a?tokens=3&side=4&author=me&token",
            ),
            ("/a?token=", "/a?token="),
            ("http://me:s3@h/b?c=d", "http://me:?@h/b?c=d"),
            ("http://me:s3:s3@h", "http://me:?@h"),
            ("http://me@h:80/b", "http://me@h:80/b"),
            ("http://h/a:b@c", "http://h/a:b@c"),
            ("/@me:s", "/@me:s"),
            ("?", "?"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&shown(url.as_bytes())), seen, "{url}");
        }
    }

    #[test]
    fn long_codes_and_keys_are_secrets_and_short_ones_are_names() {
        for (url, seen) in [
            // 16 characters and 15
            ("/cb?code=SplxlOBeZQQYbYS6&state=x", "/cb?code=?&state=x"),
            ("/cb?code=SplxlOBeZQQYbY6", "/cb?code=SplxlOBeZQQYbY6"),
            ("/cb?code=4%2F0AX4XfWjYc8-a", "/cb?code=?"),
            ("/maps?key=AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", "/maps?key=?"),
            (
                "/find?code=US&key=user:1234567890abc",
                "/find?code=US&key=user:1234567890abc",
            ),
            ("/find?key=2024-01-31-2359-59", "/find?key=2024-01-31-2359-59"),
            (
                "/find?key=a-name-without-digits",
                "/find?key=a-name-without-digits",
            ),
            ("/find?key=AIzaSyD9tSrke72Pou;b=c", "/find?key=?"),
            (
                "/find?monkey=AIzaSyD9tSrke72Pou",
                "/find?monkey=AIzaSyD9tSrke72Pou",
            ),
        ] {
            assert_eq!(String::from_utf8_lossy(&shown(url.as_bytes())), seen, "{url}");
        }
    }

    #[test]
    fn a_long_name_is_no_secrets() {
        let longest = format!("/?{}token=s3", "x".repeat(LONGEST - 5));
        assert!(shown(longest.as_bytes()).ends_with(b"token=?"));
        let longer = format!("/?x{}", &longest[2..]);
        assert!(shown(longer.as_bytes()).ends_with(b"token=s3"));
    }
}
