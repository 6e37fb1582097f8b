//! Which names are those of secrets, and which values look like one. The lists stand in docs/exchanges-and-causes.md.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// A parameter is a secret where its name, without `-`, `_` and `.`, has one of these in it, in any case.
const INSIDE: [&[u8]; 24] = [
    b"passw",
    b"passphrase",
    b"passord",
    b"secret",
    b"credential",
    b"privatekey",
    b"sessionid",
    b"kennwort",
    b"wachtwoord",
    b"motdepasse",
    b"contrase", // "contraseña" in any encoding
    b"geheim",
    b"lozinka",
    b"jelszo",
    b"salasana",
    b"losenord",
    b"adgangskode",
    b"matkhau",
    b"katasandi",
    b"csrf",
    b"aspxauth",
    b"mnemonic",
    b"captcharesponse",
    b"securehash",
];
/// Or ends with one of these.
const ENDS: [&[u8]; 36] = [
    b"pwd",
    b"pwrd",
    b"newpass",
    b"oldpass",
    b"dbpass",
    b"userpass",
    b"token",
    b"signature",
    b"hmac",
    b"sessid",
    b"cscsid",
    b"oscsid",
    b"zenid",
    b"accesskeyid",
    b"samlresponse",
    b"samlrequest",
    b"samlart",
    b"wresult",
    b"passcode",
    b"clientassertion",
    b"verifier",
    b"loginchallenge",
    b"consentchallenge",
    b"logoutchallenge",
    b"signedrequest",
    b"turnstileresponse",
    b"securityanswer",
    b"cardnumber",
    b"pgtid",
    b"pgtiou",
    b"passkey",
    b"cookie",
    b"auth",
    b"loginpas",
    b"viewstate",
    b"challengeresponse",
];
/// Or ends with one of these and `key`.
const KEYS: [&[u8]; 36] = [
    b"access",
    b"account",
    b"activation",
    b"admin",
    b"api",
    b"app",
    b"application",
    b"auth",
    b"client",
    b"consumer",
    b"decryption",
    b"developer",
    b"encryption",
    b"feed",
    b"function",
    b"functions",
    b"licence",
    b"license",
    b"login",
    b"master",
    b"priv",
    b"reset",
    b"resource",
    b"rl",
    b"sentry",
    b"server",
    b"service",
    b"session",
    b"shared",
    b"signing",
    b"ssh",
    b"storage",
    b"stream",
    b"subscription",
    b"user",
    b"write",
];
/// Or ends with one of these and `code`.
const CODES: [&[u8]; 19] = [
    b"access",
    b"activation",
    b"app",
    b"auth",
    b"authorization",
    b"backup",
    b"confirmation",
    b"device",
    b"invite",
    b"login",
    b"oob",
    b"pairing",
    b"recovery",
    b"reset",
    b"security",
    b"unlock",
    b"user",
    b"verification",
    b"session",
];
/// Or is one of these, or has one of these in brackets or as its last word (`new_pass`, `oldPwd`).
const WHOLE: [&[u8]; 38] = [
    b"pass",
    b"pwd",
    b"sig",
    b"jwt",
    b"sid",
    b"auth",
    b"authorization",
    b"otp",
    b"pin",
    b"puk",
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
    b"ssn",
    b"xsrf",
    b"mdp",
    b"senha",
    b"parola",
    b"haslo",
    b"heslo",
    b"clave",
    b"sifre",
    b"mima",
    b"assertion",
    b"pgt",
    b"unlock",
    b"stok",
    b"tan",
    b"mtan",
    b"smstan",
];
/// Behind the name of a secret these change nothing (`token.value`, `otp_code`).
const BEHIND: [&[u8]; 9] = [
    b"old", b"new", b"value", b"code", b"hint", b"hash", b"repeat", b"again", b"sha",
];
/// These name secrets and harmless things alike, as a whole or as the last word: an API key or a cache's.
/// A secret is long and has digits and letters, and no other signs.
const EITHER: [&[u8]; 32] = [
    b"tokens",
    b"key",
    b"session",
    b"ticket",
    b"nonce",
    b"sso",
    b"sign",
    b"hash",
    b"md", // `md5`: digits at the end are none of the name
    b"verify",
    b"share",
    b"license",
    b"licence",
    b"access",
    b"seed",
    b"autologin",
    b"onetime",
    b"basic",
    b"ak",
    b"appid",
    b"requesturi",
    b"canary",
    b"crumb",
    b"wpnonce",
    b"api",
    b"pareq",
    b"pares",
    b"creq",
    b"cres",
    b"lt",
    b"execution",
    b"attestation",
];
/// Of these a long secret may have other signs, too: an OAuth code (RFC 6749 4.1.2) or a country's.
const WITH_SIGNS: [&[u8]; 6] = [b"code", b"tokens", b"session", b"ticket", b"nonce", b"sign"];
/// A user's name; with `:` the password stands behind it.
const USERS: [&[u8]; 5] = [b"login", b"user", b"username", b"userinfo", b"basic"];
/// Keys and codes of known services have 20 and more characters; UUIDs have 36.
pub(super) const SECRET_FROM: usize = 16;
/// Where the name may be that of a secret.
pub(super) const NAMED_FROM: usize = 10;
/// An OAuth code stands beside what its request had (`state`); one of a country has two or three characters.
const GRANTED_FROM: usize = 8;
/// A value that mixes digits with letters of both cases at random is a secret from here on, whatever its name.
const MIXED_FROM: usize = 10;
/// In such a value one step in three at least leads from a digit to a letter, back, or to a capital letter; words that
/// are written together (`iPhone14ProMax`) have fewer such steps.
const STEADY: usize = 3;
/// Longer names of parameters are none of these.
pub(super) const MAX_PARAMETER_NAME: usize = 64;
/// Names and values are decoded so often.
pub(super) const NESTED: u8 = 3;

/// What the rest of a URL shows of its parameters.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    /// An authorization server sent it: `code` is one of OAuth.
    pub(super) granted: bool,
    /// It was mailed to somebody: what looks random in it proves who that is.
    pub(super) mailed: bool,
    /// A user is named in it: `p` is the password, if no number, which is that of a page.
    pub(super) user: bool,
}

/// The bytes that percent signs stand for (RFC 3986, 2.1).
pub(super) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
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

fn decoded_all(text: &[u8]) -> Cow<'_, [u8]> {
    let mut plain = decoded(text);
    for _ in 1..NESTED {
        if memchr(b'%', &plain).is_some() {
            plain = Cow::Owned(decoded(&plain).into_owned());
        }
    }
    plain
}

pub(super) fn is_secret(name: &[u8], value: &[u8], link: Link) -> bool {
    if name.len() > MAX_PARAMETER_NAME {
        return false;
    }
    let name = decoded_all(name);
    let whole: Vec<u8> = name.iter().copied().filter(|byte| *byte != b'[').collect();
    named(&whole, value, link)
        || name
            .split(|byte| *byte == b'[')
            .any(|part| named(part, value, link))
}

/// A name of letters that no rule here reads (of other scripts, control characters, or escapes that are none) may be
/// that of a secret, where its value is more than a number.
pub(super) fn is_foreign(name: &[u8], value: &[u8]) -> bool {
    let unread = |byte: &u8| !(byte.is_ascii_graphic() || *byte == b' ') || b"%\\".contains(byte);
    decoded_all(name).iter().any(unread) && !value.iter().all(u8::is_ascii_digit)
}

/// Does one of its words look like a password that a program made?
pub(super) fn holds_mixed(value: &[u8]) -> bool {
    value.len() >= MIXED_FROM
        && decoded_all(value)
            .split(|byte| !byte.is_ascii_alphanumeric())
            .any(is_mixed)
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
fn named(name: &[u8], value: &[u8], link: Link) -> bool {
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
    let last = all.get(last..).unwrap_or_default();
    let bare = BEHIND
        .iter()
        .find_map(|end| all.strip_suffix(*end))
        .unwrap_or(all);
    let ends = |ends: &[&[u8]], name: &[u8]| ends.iter().any(|end| name.ends_with(end));
    let is = |name: &[u8]| ends(&ENDS, name) || WHOLE.contains(&name);
    INSIDE.iter().any(|word| memmem::find(all, word).is_some())
        || is(all)
        || is(bare)
        || WHOLE.contains(&last)
        || all.strip_suffix(b"key").is_some_and(|of| ends(&KEYS, of))
        || all.strip_suffix(b"code").is_some_and(|of| ends(&CODES, of))
        || may_be_secret(&[all, last], value, link)
}

/// Is a value one, whose name alone does not decide?
fn may_be_secret(names: &[&[u8]], value: &[u8], link: Link) -> bool {
    let is = |list: &[&[u8]]| names.iter().any(|name| list.contains(name));
    is(&EITHER) && is_plain(value, NAMED_FROM)
        || is(&WITH_SIGNS) && is_random(value, SECRET_FROM)
        || link.granted && is(&[b"code"]) && value.len() >= GRANTED_FROM
        || link.user && is(&[b"p"]) && value.iter().any(u8::is_ascii_alphabetic)
        || is_plain(value, NAMED_FROM) && names.iter().any(|name| name.ends_with(b"sid"))
        || link.mailed && is_plain(value, NAMED_FROM)
        || is(&USERS) && memchr(b':', &decoded(value)).is_some_and(|mark| mark + 1 < value.len())
}

/// Has it digits and letters?
pub(super) fn is_random(value: &[u8], from: usize) -> bool {
    value.len() >= from && value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// And no other signs than those of base64 in URLs and its end (RFC 4648, 5)?
pub(super) fn is_plain(value: &[u8], from: usize) -> bool {
    let end = value.len() - value.iter().rev().take_while(|byte| **byte == b'=').count();
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    is_random(value, from) && value.iter().take(end).all(known)
}
