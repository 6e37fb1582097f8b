//! Masks secrets in URLs by `?`: the password before the host, values of parameters with the name of a secret
//! (`password`, also as `%70assword` or `user[password]`), and values that look like generated secrets. Looks into
//! URLs inside parameters and paths, and after `#`, too. `/a?access_token=s3&b=c` gives `/a?access_token=?&b=c`.

mod names;
mod path;
mod text;

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3, memmem, memrchr, memrchr3};
use names::{Link, NESTED, decoded, holds_mixed, is_foreign, is_secret};

/// The replacement of a secret.
const MASK: &[u8] = b"?";
/// Parameters that name a user.
const OF_USERS: [&[u8]; 4] = [b"?u=", b"&u=", b"user=", b"username="];
/// Parameters beside the `code` that an OAuth authorization server returns (RFC 6749 4.1, RFC 9207).
const GRANTED: [&[u8]; 5] = [
    b"state=",
    b"iss=",
    b"client_id=",
    b"redirect_uri=",
    b"grant_type=",
];

/// Masks the secrets in a URL, or in a path and query.
#[inline(always)]
pub(super) fn shown(url: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = memchr3(b'?', b'@', b';', url).is_none() && memchr3(b'%', b'#', b'=', url).is_none();
    if is_plain && !path::may_hold_token(url) {
        return Cow::Borrowed(url);
    }
    let (masked_url, path_len) = if is_plain {
        (Cow::Borrowed(url), url.len())
    } else {
        masked(url)
    };
    match path::without_tokens(&masked_url, path_len) {
        Some(shown) => Cow::Owned(shown),
        None => masked_url,
    }
}

/// Masks the password before a host: `me:s3@h:80` gives `me:?@h:80`.
#[inline(always)]
pub(super) fn host(host: &str) -> Cow<'_, str> {
    match host.rsplit_once('@') {
        None => Cow::Borrowed(host),
        Some((before, after)) => {
            let user = before.split_once(':').map_or(before, |(user, _)| user);
            Cow::Owned(format!("{user}:?@{after}"))
        }
    }
}

/// Masks passwords and parameters. Returns the URL and the length of its path, which `path::without_tokens` then masks.
#[cold]
#[inline(never)]
fn masked(url: &[u8]) -> (Cow<'_, [u8]>, usize) {
    let (path, query) = url.split_at(memchr2(b'?', b'#', url).unwrap_or(url.len()));
    let look = Look {
        deep: NESTED,
        link: Link {
            granted: GRANTED.iter().any(|name| memmem::find(query, name).is_some()),
            mailed: path::is_mailed(path),
            user: OF_USERS.iter().any(|name| memmem::find(query, name).is_some()),
        },
    };
    let (mut out, mut hides) = (Vec::with_capacity(url.len()), false);
    // 1. parameters in the path (RFC 3986, 3.3): all of the path after a secret is masked
    let (path, ends_masked) = match memchr(b';', path) {
        Some(mark) => {
            let (before, after) = path.split_at(mark + 1);
            let (shown, hidden) = parameters(after, look);
            let kept = before.len() + shown.len();
            (path.get(..kept).unwrap_or(path), !hidden.is_empty())
        }
        None => (path, false),
    };
    // 2. a password before the host, or an encoded URL in the path that holds a secret
    let encoded =
        memchr2(b'%', b':', path).filter(|_| memchr(b'%', path).is_some() && holds_secret(path, look));
    match (password(path), encoded) {
        (Some((before, after)), None) => {
            out.extend([before, MASK, after].concat());
            hides = true;
        }
        (_, Some(mark)) => {
            out.extend_from_slice(path.get(..mark).unwrap_or_default());
            out.extend_from_slice(MASK);
            hides = true;
        }
        (None, None) => out.extend_from_slice(path),
    }
    if ends_masked {
        out.extend_from_slice(MASK);
        hides = true;
    }
    // 3. the query and the fragment, one parameter at a time
    let path_len = out.len();
    hides |= push_query(&mut out, query, look);
    if hides {
        (Cow::Owned(out), path_len)
    } else {
        (Cow::Borrowed(url), path_len)
    }
}

/// Appends the query and the fragment with their secrets masked. Returns whether there were any.
fn push_query(out: &mut Vec<u8>, query: &[u8], look: Look) -> bool {
    let (mut rest, mut names_secret, mut hides) = (query, false, false);
    while !rest.is_empty() {
        let after_mark = rest.get(1..).unwrap_or_default(); // the first is `?`, `&` or `#`
        let next_mark = memchr2(b'&', b'#', after_mark).map_or(rest.len(), |index| index + 1);
        let (parameter, next) = rest.split_at(next_mark);
        let (mut shown, mut hidden) = parameters(parameter, look);
        // a secret in two parameters: name=password&value=...
        let value_start = memchr(b'=', parameter).map_or(parameter.len(), |index| index + 1);
        let (name, value) = parameter.split_at(value_start);
        let is_value = || decoded(name).trim_ascii_end().ends_with(b"value=") || name.ends_with(b"value]=");
        if names_secret && is_value() {
            (shown, hidden) = (name, value);
        }
        names_secret = is_secret(value, MASK, Link::default());
        out.extend_from_slice(shown);
        if !hidden.is_empty() {
            out.extend_from_slice(MASK);
            hides = true;
        }
        rest = next;
    }
    hides
}

/// The context of a value.
#[derive(Clone, Copy)]
struct Look {
    /// Remaining levels of URLs inside values.
    deep: u8,
    link: Link,
}

/// Splits the text between two `&`, with the sign before it, into what may be shown and what has to be masked. As `;`
/// may separate parameters or be part of a value, all after a secret is masked.
fn parameters(part: &[u8], look: Look) -> (&[u8], &[u8]) {
    let mut begin = usize::from(part.first().is_some_and(|first| b"?&#".contains(first)));
    let text = part.get(begin..).unwrap_or_default();
    let has_sign = begin > 0;
    let Some(first) = memchr(b'=', text) else {
        // the `=` between name and value is encoded, or another sign
        let mark = text.iter().position(|byte| b";:/,".contains(byte));
        let (name, value) = text.split_at(mark.unwrap_or(text.len()));
        let hides = holds_secret(text, look)
            || has_sign && (holds_mixed(text) || value.len() > 1 && is_secret(name, value, look.link));
        return part.split_at(if hides { begin } else { part.len() });
    };
    if password(part.get(begin + first + 1..).unwrap_or_default()).is_some() {
        return part.split_at(begin + first + 1);
    }
    // each byte is read once, so that the time is linear in the length
    while let Some(equals) = part.get(begin..).and_then(|rest| memchr(b'=', rest)) {
        let value = begin + equals + 1;
        let name = part.get(begin..value - 1).unwrap_or_default();
        let name = memrchr3(b'?', b';', b'/', name)
            .and_then(|mark| name.get(mark + 1..))
            .unwrap_or(name);
        let rest = part.get(value..).unwrap_or_default();
        let end = memchr(b';', rest).unwrap_or(rest.len());
        let holds = rest.get(..end).unwrap_or(rest);
        if !holds.is_empty() && is_secret(name, holds, look.link)
            || is_foreign(name, holds)
            || holds_mixed(holds)
            || holds_secret(holds, look)
        {
            return part.split_at_checked(value).unwrap_or((part, &[]));
        }
        if end == rest.len() {
            break;
        }
        begin = value + end + 1;
    }
    (part, &[])
}

/// Whether a value contains a secret, plain or encoded, as a URL or a query does.
fn holds_secret(value: &[u8], look: Look) -> bool {
    let Some(deep) = look.deep.checked_sub(1) else {
        return false;
    };
    let look = Look { deep, ..look };
    let decoded_value = decoded(value);
    let inner = &*decoded_value;
    // callers find secrets in clear text; left are values that are encoded or have separators of their own
    let marked = |byte: &u8| b"?:@>=+ '\"/".contains(byte);
    if decoded_value.len() == value.len() && !inner.iter().any(marked) {
        return false;
    }
    let query = memchr(b'?', inner).map_or(0, |mark| mark + 1);
    let parameters_part = inner.get(query..).unwrap_or_default();
    password(inner).is_some()
        || text::holds_setting(inner)
        // Oracle's: jdbc:oracle:thin:user/password@host
        || memchr(b'@', inner).is_some() && memmem::find(inner, b"jdbc:").is_some()
        || parameters_part
            .split(|byte| b"&#".contains(byte))
            .any(|part| !parameters(part, look).1.is_empty())
        || memchr(b'/', inner).is_some() && path::without_tokens(inner, inner.len()).is_some()
        || decoded_value.len() != value.len() && holds_secret(inner, look)
}

/// Splits a URL around its first password and returns what comes before and after it. Reads
/// `scheme://user:password@host`, `//user:password@host` and `user:password@host` (CONNECT). One slash is enough,
/// because proxies may merge two.
fn password(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let alone = (!url.starts_with(b"/") || url.starts_with(b"//")).then_some(0);
    let schemes = memmem::find_iter(url, b":/").map(|mark| mark + 1);
    alone.into_iter().chain(schemes).find_map(|begin| {
        let rest = url.get(begin..)?;
        let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
        let authority = rest.get(slashes..)?;
        let authority = authority.get(..memchr(b'/', authority).unwrap_or(authority.len()))?;
        let at = memrchr(b'@', authority)?;
        let user = authority.get(..at)?;
        let hidden = match memchr(b':', user) {
            Some(colon) => colon + 1,
            // a token alone, after a scheme
            None if begin > 0 && names::is_plain(user, names::SECRET_FROM) => 0,
            None => return None,
        };
        let begin = begin + slashes;
        Some((url.get(..begin + hidden)?, url.get(begin + at..)?))
    })
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
            ("/a?b=?token=s3", "/a?b=?"),
            ("/a?b={\"token\": \"s3\"}&c=1", "/a?b=?&c=1"),
            ("/a?b=%7B%22a%22:1,%22Pass_word%22%3A%22s3%22}", "/a?b=?"),
            ("/a?b={\"page\":\"token\"}", "/a?b={\"page\":\"token\"}"),
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
            ("//me:s3@h/b", "//me:?@h/b"),
            ("me:s3@h:443", "me:?@h:443"),
            ("/a;jsessionid=s3", "/a;jsessionid=?"),
            ("/a;v=1/b?c=d", "/a;v=1/b?c=d"),
            ("/a;JSESSIONID=s3?b=c", "/a;JSESSIONID=??b=c"),
            ("/a?user[password]=s3", "/a?user[password]=?"),
            ("/a?user%5Bpassword%5D=s3&b=c", "/a?user%5Bpassword%5D=?&b=c"),
            ("/a?%70assword=s3", "/a?%70assword=?"),
            ("/a?u=http://me:s3@h/", "/a?u=?"),
            ("/a?u=http%3A%2F%2Fme%3As3%40h%2F&b=c", "/a?u=?&b=c"),
            ("/a?u=%2Fb%3Ftoken%3Ds3", "/a?u=?"),
            ("/a?u=%252Fb%253Ftoken%253Ds3", "/a?u=?"),
            ("/a?u=%2Fb%3Fc%3Dd", "/a?u=%2Fb%3Fc%3Dd"),
            ("/a?PHPSESSID=s3", "/a?PHPSESSID=?"),
            ("/a#access_token=s3", "/a#access_token=?"),
            ("/a?b=c#d=e&id_token=s3", "/a?b=c#d=e&id_token=?"),
            ("/a?login%5Bpass%5D=s3", "/a?login%5Bpass%5D=?"),
            ("/a?p%61ss[x]=s3", "/a?p%61ss[x]=?"),
            ("/a?%2570assword=s3", "/a?%2570assword=?"),
            (
                "/a?password1=s3&my_secret_word=s3",
                "/a?password1=?&my_secret_word=?",
            ),
            ("/a?token%3Ds3&b=c", "/a??&b=c"),
            ("/a?u=me:s3@h", "/a?u=?"),
            ("/b/http:%2F%2Fme:s3@h/", "/b/http?"),
            ("/b/http%3a%2f%2fme%3as3%40h", "/b/http?"),
            ("/b%20c/d", "/b%20c/d"),
            ("/a?b=%2Fc%2F%252Fa%253Bpwd%253Ds3&d", "/a?b=?&d"),
            ("//me:s3%40h/", "//me?"),
            ("https:/me:s3@h/b", "https:/me:?@h/b"),
            ("http://h/b/http://me:s3@g/", "http://h/b/http://me:?@g/"),
            ("/a?session=4&ticket=5&nonce=6", "/a?session=4&ticket=5&nonce=6"),
            ("/a?session=3f9a0c2be17744d1&b=c", "/a?session=?&b=c"),
            ("/reset/3f9a0c2be17744d1a/x", "/reset/?/x"),
            ("/reset-password/3f9a0c2be17744d1", "/reset-password/?"),
            ("/token/3f9a0c2be17744d1", "/token/?"),
            ("/token/3f9a0c2b/x", "/token/?/x"),
            ("/token/3f9a0c2", "/token/3f9a0c2"),
            ("/reset/3f9a0c2be1", "/reset/?"),
            ("/reset/3f9a0c2be", "/reset/3f9a0c2be"),
            ("/reset/style-2024.css", "/reset/style-2024.css"),
            ("/webhooks/overview-2024-11", "/webhooks/overview-2024-11"),
            ("/reset/MQ/bk2x-3f9a0c2be1/", "/reset/MQ/?/"),
            ("http://me:s3@h/reset/3f9a0c2be1", "http://me:?@h/reset/?"),
            ("/(S(3f9a0c2b))/a", "/(S(?))/a"),
            ("/(X(1)A(s3)F(3f9a0c2b))/a(b)", "/(X(1)A(?)F(?))/a(b)"),
            ("/services/T0A/B0B/3f9a0c2be1", "/services/T0A/B0B/?"),
            ("/services/T0A/b0b/3f9a0c2be1", "/services/T0A/b0b/3f9a0c2be1"),
            (
                "/api/webhooks/123456789012/3f9a0c2be1",
                "/api/webhooks/123456789012/?",
            ),
            ("/p/3f9a0c2be1/n/b&3f9a0c2be1/announce", "/p/?/n/b&?/announce"),
            ("/p/3f9a0c2be1/m", "/p/3f9a0c2be1/m"),
            ("/i/s--3f9a0c2b--/a.jpg", "/i/?/a.jpg"),
            ("/ical/private-3f9a0c2be1/basic.ics", "/ical/?/basic.ics"),
            ("/ical/private-note-3f9a0c2be1", "/ical/private-note-3f9a0c2be1"),
            ("/password=s3/x", "/password=?/x"),
            ("/proxy/me:3f9a0c2b@h/", "/proxy/me:?@h/"),
            ("/auth/magic?t=3f9a0c2be1&u=me", "/auth/magic?t=?&u=me"),
            ("/auth?t=3f9a0c2be1", "/auth?t=3f9a0c2be1"),
            (
                "/a?name=password&value=s3&name=b&value=c",
                "/a?name=password&value=?&name=b&value=c",
            ),
            (
                "/a?p[0][name]=pass&p[0][value]=s3",
                "/a?p[0][name]=pass&p[0][value]=?",
            ),
            ("/a?b=c,password=s3&d=e~hmac=s3", "/a?b=?&d=?"),
            ("/a?h=Authorization:+Basic+s3&i=X-Api-Key:+s3", "/a?h=?&i=?"),
            ("/a?h=Basic+3f9a0c2b&i=basic+course101", "/a?h=?&i=?"),
            ("/a?h=basic+course", "/a?h=basic+course"),
            ("/a?f=password eq 's3'&g=token is valid", "/a?f=?&g=?"),
            (
                "/a?f=a password of mine&g=token,page:2",
                "/a?f=a password of mine&g=token,page:2",
            ),
            ("/a?c=run+--password+s3&d=--page+2", "/a?c=?&d=--page+2"),
            ("/a?p={\"password\":\"$!%\"}", "/a?p=?"),
            ("/a?p={\"password\":\"\"}", "/a?p={\"password\":\"\"}"),
            ("/a?login=me:s3&user=me:&n=me:s3", "/a?login=?&user=me:&n=me:s3"),
            ("/a?j=jdbc:oracle:thin:me/s3@h&k=a/b@h", "/a?j=?&k=a/b@h"),
            ("/a?g=https://3f9a0c2be17744d1@h/", "/a?g=?"),
            (
                "/a?subscription-key=s3&writeKey=s3&rlkey=s3",
                "/a?subscription-key=?&writeKey=?&rlkey=?",
            ),
            (
                "/a?sort_key=s3&partitionKey=s3&turkey=s3",
                "/a?sort_key=s3&partitionKey=s3&turkey=s3",
            ),
            (
                "/a?device_code=s3&country_code=s3",
                "/a?device_code=?&country_code=s3",
            ),
            ("/items/3f9a0c2be17744d1", "/items/3f9a0c2be17744d1"),
            ("/a/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln/b", "/a/?/b"),
            ("/a?b=ghp_0123456789abcdefABCD&c=1", "/a?b=?&c=1"),
            (
                "/bot123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc/getMe",
                "/bot123456789:?/getMe",
            ),
            (
                "/a?pw=s3&passcode=s3&code_verifier=s3",
                "/a?pw=?&passcode=?&code_verifier=?",
            ),
            (
                "/a?new_pass=s3&oldPwd=s3&pin_code=s3&token.value=s3",
                "/a?new_pass=?&oldPwd=?&pin_code=?&token.value=?",
            ),
            (
                "/a?bypass=1&compass=n&zip_code=2&page.value=3&aside=4",
                "/a?bypass=1&compass=n&zip_code=2&page.value=3&aside=4",
            ),
            (
                "/a?pass%20word=s3&contrase%C3%B1a=s3",
                "/a?pass%20word=?&contrase%C3%B1a=?",
            ),
            ("/a?b={'pwd':'s3'}&c={password:s3}", "/a?b=?&c=?"),
            ("/a?b=%3Cpassword%3Es3%3C/password%3E&c=1", "/a?b=?&c=1"),
            ("/a?b=user=a%20password=s3", "/a?b=?"),
            ("/a?b=type:a,page:2&t=12:30", "/a?b=type:a,page:2&t=12:30"),
            ("/bot123:3f9a0c2be17744d1/x", "/bot123:?/x"),
            ("/robot123:3f9a0c2be17744d1/x", "/robot123:3f9a0c2be17744d1/x"),
            (
                "/a?t=SG.3f9a0c2be17744d1.3f9a&u=hf_3f9a0c2be17744d1",
                "/a?t=?&u=?",
            ),
            ("/tokens-of-the-year-2024-all", "/tokens-of-the-year-2024-all"),
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
            ("/cb?code=Splxlobezqqybys6&b=x", "/cb?code=?&b=x"),
            // 8 and 7, beside what an authorization server sends
            ("/cb?code=splxlobe&state=x", "/cb?code=?&state=x"),
            ("/cb?code=splxlob&state=x", "/cb?code=splxlob&state=x"),
            // 10 and 9
            ("/cb?key=3f9a0c2be1&share=3f9a0c2be", "/cb?key=?&share=3f9a0c2be"),
            ("/cb?code=splxlobezqqyby6", "/cb?code=splxlobezqqyby6"),
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
            ("/find?key=BQzaSyD9tSrke72Pou;b=c", "/find?key=?"),
            (
                "/find?monkey=bqzasyd9tsrke72pou",
                "/find?monkey=bqzasyd9tsrke72pou",
            ),
            ("/find?monkey=BQzaSyD9tSrke72Pou&b=c", "/find?monkey=?&b=c"),
            ("/find?a=zQ7vKp2Lm", "/find?a=zQ7vKp2Lm"),
            ("/find?a=zQ7vKp2LmX", "/find?a=?"),
            ("/find?zQ7vKp2LmX", "/find??"),
            ("/find?a=x%2Fy%252FzQ7vKp2LmX", "/find?a=?"),
            (
                "/find?a=iPhone14ProMax&b=jQuery1124034567_12&c=2024-01-31T12:00:00Z&d=createdAtDesc",
                "/find?a=iPhone14ProMax&b=jQuery1124034567_12&c=2024-01-31T12:00:00Z&d=createdAtDesc",
            ),
            (
                "/find?a=0b8f3c1e-7a52-4d5e-9c3b-2f1a6d7e8c90",
                "/find?a=0b8f3c1e-7a52-4d5e-9c3b-2f1a6d7e8c90",
            ),
            ("/zQ7vKp2LmX/b", "/zQ7vKp2LmX/b"),
            (
                "/a?%E5%AF%86%E7%A0%81=s3&p%C0%B3=s3&n%E4chste=7",
                "/a?%E5%AF%86%E7%A0%81=?&p%C0%B3=?&n%E4chste=7",
            ),
            (
                "/a?%u0070assword=s3&id_token_hint=s3",
                "/a?%u0070assword=?&id_token_hint=?",
            ),
        ] {
            assert_eq!(String::from_utf8_lossy(&shown(url.as_bytes())), seen, "{url}");
        }
    }

    #[test]
    fn hosts_have_no_passwords() {
        for (given, seen) in [
            ("h:80", "h:80"),
            ("me:s3@h:80", "me:?@h:80"),
            ("me:a@b@h", "me:?@h"),
        ] {
            assert_eq!(host(given), seen, "{given}");
        }
    }

    /// Nested as it may be: each level looked at all settings after each setting, and 1,000 characters took minutes.
    #[test]
    fn a_url_costs_what_it_is_long() {
        for (begin, part, end) in [
            ("/a?", "x=1;", "@"),
            ("/a?x=", "/?y=1;", "@"),
            ("/a?x=", "a:b=", ""),
            ("/a?x=", "a%253Db%3B", ""),
            ("/", "a;b=1/", "?q"),
            ("/a?", "[a", "=1"),
            ("/", "reset/aB3", "?x=1"),
        ] {
            let url = format!("{begin}{}{end}", part.repeat(10_000));
            assert!(shown(url.as_bytes()).len() <= url.len(), "{begin}{part}");
        }
    }

    #[test]
    fn a_long_name_is_no_secrets() {
        let longest = format!("/?{}token=s3", "x".repeat(names::MAX_PARAMETER_NAME - 5));
        assert!(shown(longest.as_bytes()).ends_with(b"token=?"));
        let longer = format!("/?x{}", &longest[2..]);
        assert!(shown(longer.as_bytes()).ends_with(b"token=s3"));
    }
}
