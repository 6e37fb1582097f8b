//! What of a URL is no name: the password before its host, and values of parameters whose names are those of secrets,
//! also in other words for the same bytes (`%70assword`, `user[password]`), in URLs that a value or a path holds, and
//! behind `#`; and what of a query looks like a secret, whatever its name. Knows no protocol.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memchr3, memmem, memrchr, memrchr3};

/// Stands for a secret.
const MASK: &[u8] = b"?";
/// A parameter is a secret where its name, without `-`, `_` and `.`, has one of these in it, in any case.
const INSIDE: [&[u8]; 13] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"passwort",
    b"secret",
    b"credential",
    b"privatekey",
    b"sessionid",
    b"kennwort",
    b"wachtwoord",
    b"motdepasse",
    b"contrase", // "contraseña" in any encoding
    b"csrf",
];
/// Or ends with one of these.
const ENDS: [&[u8]; 24] = [
    b"pwd",
    b"newpass",
    b"oldpass",
    b"dbpass",
    b"token",
    b"apikey",
    b"signature",
    b"hmac",
    b"sessid",
    b"sessionkey",
    b"authkey",
    b"privkey",
    b"masterkey",
    b"encryptionkey",
    b"signingkey",
    b"sharedkey",
    b"sshkey",
    b"accesskey",
    b"accesskeyid",
    b"samlresponse",
    b"passcode",
    b"userpass",
    b"clientassertion",
    b"verifier",
];
/// Or is one of these, or has one of these in brackets or as its last word (`new_pass`, `oldPwd`).
const WHOLE: [&[u8]; 26] = [
    b"pass",
    b"pwd",
    b"sig",
    b"jwt",
    b"sid",
    b"auth",
    b"authorization",
    b"otp",
    b"pin",
    b"bearer",
    b"cred",
    b"pw",
    b"psw",
    b"pswd",
    b"totp",
    b"psk",
    b"hmac",
    b"sess",
    b"cvv",
    b"cvc",
    b"xsrf",
    b"mdp",
    b"senha",
    b"parola",
    b"haslo",
    b"heslo",
];
/// Behind the name of a secret these change nothing (`token.value`, `otp_code`).
const BEHIND: [&[u8]; 8] = [
    b"old", b"new", b"value", b"code", b"hint", b"hash", b"repeat", b"again",
];
/// These name secrets and harmless things alike: an OAuth code (RFC 6749 4.1.2) or a country's, an API key or a cache's.
/// A secret is long and has digits and letters; an API key has no other signs.
const EITHER: [&[u8]; 9] = [
    b"code",
    b"tokens",
    b"key",
    b"session",
    b"ticket",
    b"assertion",
    b"nonce",
    b"sso",
    b"sign",
];
/// Keys and codes of known services have 20 and more characters; UUIDs have 36.
const SECRET_FROM: usize = 16;
/// A value that mixes digits with letters of both cases at random is a secret from here on, whatever its name.
const MIXED_FROM: usize = 10;
/// In such a value one step in three at least leads from a digit to a letter, back, or to a capital letter; words that
/// are written together (`iPhone14ProMax`) have fewer such steps.
const STEADY: usize = 3;
/// Tokens of known services begin so, wherever they stand; what belongs to them is letters, digits and these signs.
const BEGINS: [&[u8]; 28] = [
    b"eyJ",
    b"ghp_",
    b"gho_",
    b"ghs_",
    b"ghu_",
    b"ghr_",
    b"github_pat_",
    b"glpat-",
    b"npm_",
    b"pypi-",
    b"dckr_pat_",
    b"hf_",
    b"sk-proj-",
    b"sk-ant-",
    b"sk_live_",
    b"sk_test_",
    b"rk_live_",
    b"whsec_",
    b"shpat_",
    b"xoxa-",
    b"xoxb-",
    b"xoxp-",
    b"xapp-",
    b"SG.",
    b"AIza",
    b"AKIA",
    b"ASIA",
    b"ya29.",
];
/// A long random segment of a path behind one that ends so is a secret: it was mailed to somebody.
const BEFORE: [&[u8]; 8] = [
    b"reset",
    b"verify",
    b"confirm",
    b"invite",
    b"activate",
    b"unsubscribe",
    b"magic",
    b"magic-link",
];
const OF_TOKENS: &[u8] = b"-_.";
/// Longer names of parameters are none of these.
const MAX_PARAMETER_NAME: usize = 64;
/// URLs inside values of URLs are looked at so deep.
const NESTED: u8 = 3;

/// The URL, or its path and query, as it may be shown.
#[inline(always)]
pub(super) fn shown(url: &[u8]) -> Cow<'_, [u8]> {
    let plain = memchr3(b'?', b'@', b';', url).is_none() && memchr2(b'%', b'#', url).is_none();
    if plain && !may_hold_token(url) {
        return Cow::Borrowed(url);
    }
    let found = if plain {
        Cow::Borrowed(url)
    } else {
        masked(url, NESTED)
    };
    match without_tokens(&found) {
        Some(shown) => Cow::Owned(shown),
        None => found,
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || OF_TOKENS.contains(&byte)
}

/// Whether `SECRET_FROM` letters and digits stand together: then each so many-th byte of the URL has one of them.
#[inline(always)]
fn may_hold_token(url: &[u8]) -> bool {
    let mut steps = url.iter().enumerate().skip(SECRET_FROM - 1).step_by(SECRET_FROM);
    steps.any(|(place, byte)| is_of_token(*byte) && is_in_token(url, place))
}

#[cold]
fn is_in_token(url: &[u8], place: usize) -> bool {
    let (before, behind) = url.split_at_checked(place).unwrap_or_default();
    let long = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| is_of_token(**byte)).count();
    long(&mut before.iter().rev()) + long(&mut behind.iter()) >= SECRET_FROM
}

/// Without what is a secret by its own look or by the segment of the path before it (`/reset-password/...`); None where
/// there is none.
#[inline(never)]
fn without_tokens(url: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut before, mut query, mut hides): (_, &[u8], _, _) = (Vec::new(), &[], false, false);
    let ends = |byte: &u8| !is_of_token(*byte);
    let mut rest = url;
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
        let (sign, behind) = behind.split_at(behind.len().min(1));
        let named = !query && (is_secret(before, &[]) || BEFORE.iter().any(|one| ends_with(before, one)));
        let secret = is_random(word, false) && (named || BEGINS.iter().any(|begin| word.starts_with(begin)))
            // of a bot's own path: /bot123456:secret/
            || !query && is_random(word, false) && is_bot(before);
        out.extend_from_slice(if secret { MASK } else { word });
        out.extend_from_slice(sign);
        (hides, query) = (hides | secret, query | sign.contains(&b'?'));
        (before, rest) = (word, behind);
    }
    hides.then_some(out)
}

fn is_bot(segment: &[u8]) -> bool {
    let number = segment.strip_prefix(b"bot").unwrap_or_default();
    !number.is_empty() && number.iter().all(u8::is_ascii_digit)
}

fn ends_with(text: &[u8], end: &[u8]) -> bool {
    text.len() >= end.len()
        && text
            .get(text.len() - end.len()..)
            .is_some_and(|last| last.eq_ignore_ascii_case(end))
}

/// A host, with or without a port, as it may be shown: no password stands before it.
#[inline(always)]
pub(super) fn host(host: &str) -> Cow<'_, str> {
    match host.rsplit_once('@') {
        None => Cow::Borrowed(host),
        Some((before, behind)) => {
            let user = before.split_once(':').map_or(before, |(user, _)| user);
            Cow::Owned(format!("{user}:?@{behind}"))
        }
    }
}

#[cold]
#[inline(never)]
fn masked(url: &[u8], deep: u8) -> Cow<'_, [u8]> {
    let (place, query) = url.split_at(memchr2(b'?', b'#', url).unwrap_or(url.len()));
    let (mut out, mut hides) = (Vec::with_capacity(url.len()), false);
    // parameters of a path (RFC 3986, 3.3): nothing of it is shown behind a secret
    let (place, sealed) = match memchr(b';', place) {
        Some(mark) => {
            let (path, behind) = place.split_at(mark + 1);
            let (shown, hidden) = parameters(behind, deep);
            let kept = path.len() + shown.len();
            (place.get(..kept).unwrap_or(place), !hidden.is_empty())
        }
        None => (place, false),
    };
    let encoded =
        memchr2(b'%', b':', place).filter(|_| memchr(b'%', place).is_some() && holds_secret(place, deep));
    match (password(place), encoded) {
        (Some((before, behind)), None) => {
            out.extend([before, MASK, behind].concat());
            hides = true;
        }
        (_, Some(mark)) => {
            out.extend_from_slice(place.get(..mark).unwrap_or_default());
            out.extend_from_slice(MASK);
            hides = true;
        }
        (None, None) => out.extend_from_slice(place),
    }
    if sealed {
        out.extend_from_slice(MASK);
        hides = true;
    }
    let mut rest = query;
    while !rest.is_empty() {
        let behind = rest.get(1..).unwrap_or_default(); // the first is `?`, `&` or `#`
        let (part, next) = rest.split_at(memchr2(b'&', b'#', behind).map_or(rest.len(), |mark| mark + 1));
        let (shown, hidden) = parameters(part, deep);
        out.extend_from_slice(shown);
        if !hidden.is_empty() {
            out.extend_from_slice(MASK);
            hides = true;
        }
        rest = next;
    }
    if hides {
        Cow::Owned(out)
    } else {
        Cow::Borrowed(url)
    }
}

/// What may be shown between two `&`, with the sign before it, and the rest. Some separate parameters by `;`, and in
/// others' values it stands for itself: nothing behind a secret is shown.
fn parameters(part: &[u8], deep: u8) -> (&[u8], &[u8]) {
    let mut begin = usize::from(part.first().is_some_and(|first| b"?&#".contains(first)));
    let whole = part.get(begin..).unwrap_or_default();
    let sign = part.first().is_some_and(|first| b"?&#".contains(first));
    if memchr(b'=', whole).is_none() && (holds_secret(whole, deep) || sign && holds_mixed(whole)) {
        return part.split_at(begin); // the sign between name and value is encoded
    }
    while let Some(equals) = part.get(begin..).and_then(|rest| memchr(b'=', rest)) {
        let value = begin + equals + 1;
        let name = part.get(begin..value - 1).unwrap_or_default();
        let name = memrchr3(b'?', b';', b'/', name)
            .and_then(|mark| name.get(mark + 1..))
            .unwrap_or(name);
        let rest = part.get(value..).unwrap_or_default();
        let end = memchr(b';', rest).unwrap_or(rest.len());
        let holds = rest.get(..end).unwrap_or(rest);
        if is_secret(name, holds) || is_foreign(name, holds) || holds_mixed(holds) || holds_secret(rest, deep)
        {
            return part.split_at_checked(value).unwrap_or((part, &[]));
        }
        match part.get(value..).and_then(|rest| memchr(b';', rest)) {
            Some(end) => begin = value + end + 1,
            None => break,
        }
    }
    (part, &[])
}

/// Does a value hold a secret itself, plain or encoded, as a URL does or its query?
fn holds_secret(value: &[u8], deep: u8) -> bool {
    let Some(deep) = deep.checked_sub(1) else {
        return false;
    };
    let plain = decoded(value);
    let inner = &*plain;
    // what stands plain in a value is found where it stands; encoded, or behind a mark of its own, it is found here
    let marked = memchr3(b'?', b':', b'@', inner).is_some() || memchr(b'>', inner).is_some();
    if !marked && plain.len() == value.len() {
        return false;
    }
    let query = memchr(b'?', inner).map_or(0, |mark| mark + 1);
    let parts = inner.get(query..).unwrap_or_default();
    password(inner).is_some()
        || in_text(inner, plain.len() != value.len())
        || parts
            .split(|byte| b"&#".contains(byte))
            .any(|part| !parameters(part, deep).1.is_empty())
        || plain.len() != value.len() && holds_secret(inner, deep)
}

/// Is there a member `"password": ...`, an element `<password>...`, or, in what was encoded, a setting `password=...`?
fn in_text(text: &[u8], encoded: bool) -> bool {
    let is_sign = |byte: &u8| b":>".contains(byte) || encoded && *byte == b'=';
    let signs = text.iter().enumerate().filter(|(_, byte)| is_sign(byte));
    signs.into_iter().any(|(place, _)| {
        let (before, behind) = text.split_at_checked(place).unwrap_or_default();
        let ends = |byte: &u8| !(is_of_token(*byte) || *byte >= 0x80);
        let quote = |byte: &u8| b"'\" ".contains(byte);
        let before = before.get(..before.len() - before.iter().rev().take_while(|byte| quote(byte)).count());
        let before = before.unwrap_or_default();
        let name = before.rsplit(ends).next().unwrap_or_default();
        let value = behind.get(1..).unwrap_or_default();
        let value = value
            .get(value.iter().take_while(|byte| quote(byte)).count()..)
            .unwrap_or_default();
        let value = value.split(ends).next().unwrap_or_default();
        !value.is_empty() && is_secret(name, value)
    })
}

/// The bytes that percent signs stand for (RFC 3986, 2.1).
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = byte.and_then(|_| behind.get(2..)).unwrap_or(behind);
    }
    Cow::Owned(out)
}

/// What stands before and behind the first password: of `scheme://user:password@host`, of `//user:password@host`, and of
/// a host alone (CONNECT). A proxy may have made one slash of two.
fn password(place: &[u8]) -> Option<(&[u8], &[u8])> {
    let alone = (!place.starts_with(b"/") || place.starts_with(b"//")).then_some(0);
    let schemes = memmem::find_iter(place, b":/").map(|mark| mark + 1);
    alone.into_iter().chain(schemes).find_map(|begin| {
        let rest = place.get(begin..)?;
        let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
        let authority = rest.get(slashes..)?;
        let authority = authority.get(..memchr(b'/', authority).unwrap_or(authority.len()))?;
        let at = memrchr(b'@', authority)?;
        let colon = memchr(b':', authority.get(..at)?)? + 1;
        let begin = begin + slashes;
        Some((place.get(..begin + colon)?, place.get(begin + at..)?))
    })
}

fn is_secret(name: &[u8], value: &[u8]) -> bool {
    if name.len() > MAX_PARAMETER_NAME {
        return false;
    }
    let mut name = decoded(name).into_owned();
    for _ in 1..NESTED {
        name = decoded(&name).into_owned();
    }
    let whole: Vec<u8> = name.iter().copied().filter(|byte| *byte != b'[').collect();
    named(&whole, value) || name.split(|byte| *byte == b'[').any(|part| named(part, value))
}

/// A name of letters that no rule here reads (of other scripts, control characters, or escapes that are none) may be
/// that of a secret, where its value is more than a number.
fn is_foreign(name: &[u8], value: &[u8]) -> bool {
    let mut name = decoded(name).into_owned();
    for _ in 1..NESTED {
        name = decoded(&name).into_owned();
    }
    let unread = |byte: &u8| !(byte.is_ascii_graphic() || *byte == b' ') || *byte == b'%';
    name.iter().any(unread) && !value.iter().all(u8::is_ascii_digit)
}

/// Does one of its words look like a password that a program made?
fn holds_mixed(value: &[u8]) -> bool {
    if value.len() < MIXED_FROM {
        return false;
    }
    let mut plain = decoded(value);
    for _ in 1..NESTED {
        plain = Cow::Owned(decoded(&plain).into_owned());
    }
    plain.split(|byte| !byte.is_ascii_alphanumeric()).any(is_mixed)
}

fn is_mixed(word: &[u8]) -> bool {
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let steps = word.iter().zip(word.iter().skip(1)).filter(|(one, next)| {
        let (one, next) = (kind(one), kind(next));
        // a capital letter begins a word
        one != next && (one.0 || next.0 || next.1)
    });
    let has = |of: fn(&u8) -> bool| word.iter().any(of);
    word.len() >= MIXED_FROM
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && STEADY * steps.count() >= word.len() - 1
}

/// `password2` is named as `password` is, and `new_password` and `newPassword` are.
fn named(name: &[u8], value: &[u8]) -> bool {
    let (mut all, mut last) = (Vec::with_capacity(name.len()), 0);
    let mut before = b'_';
    for byte in name {
        let part = byte.is_ascii_alphanumeric() || *byte >= 0x80;
        if !part || byte.is_ascii_uppercase() && before.is_ascii_lowercase() {
            last = all.len();
        }
        if part {
            all.push(byte.to_ascii_lowercase());
        }
        before = *byte;
    }
    let digits = all.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let all = all.get(..all.len() - digits).unwrap_or_default();
    let bare = BEHIND
        .iter()
        .find_map(|end| all.strip_suffix(*end))
        .unwrap_or(all);
    let is = |name: &[u8]| ENDS.iter().any(|end| name.ends_with(end)) || WHOLE.contains(&name);
    INSIDE.iter().any(|word| memmem::find(all, word).is_some())
        || is(all)
        || is(bare)
        || WHOLE.contains(&all.get(last..).unwrap_or_default())
        || EITHER.contains(&all) && is_random(value, all == b"key")
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
            ("/token/3f9a0c2be17744d", "/token/3f9a0c2be17744d"),
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
            ("/cb?code=SplxlOBeZQQYbYS6&state=x", "/cb?code=?&state=x"),
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

    #[test]
    fn a_long_name_is_no_secrets() {
        let longest = format!("/?{}token=s3", "x".repeat(MAX_PARAMETER_NAME - 5));
        assert!(shown(longest.as_bytes()).ends_with(b"token=?"));
        let longer = format!("/?x{}", &longest[2..]);
        assert!(shown(longer.as_bytes()).ends_with(b"token=s3"));
    }
}
