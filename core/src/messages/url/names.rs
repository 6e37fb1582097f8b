//! Names of parameters whose values are secrets, and values that look like one. docs/exchanges-and-causes.md has the
//! lists, too.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// Parts of secrets' names. Names are compared in lower case, without `-`, `_` and `.`.
#[rustfmt::skip]
const INSIDE: [&[u8]; 24] = [
    // `contrase`: "contraseña" in any encoding
    b"passw", b"passphrase", b"passord", b"secret", b"credential", b"privatekey", b"sessionid", b"kennwort",
    b"wachtwoord", b"motdepasse", b"contrase", b"geheim", b"lozinka", b"jelszo", b"salasana", b"losenord",
    b"adgangskode", b"matkhau", b"katasandi", b"csrf", b"aspxauth", b"mnemonic", b"captcharesponse",
    b"securehash",
];
/// Suffixes of secrets' names.
#[rustfmt::skip]
const ENDS: [&[u8]; 36] = [
    b"pwd", b"pwrd", b"newpass", b"oldpass", b"dbpass", b"userpass", b"token", b"signature", b"hmac",
    b"sessid", b"cscsid", b"oscsid", b"zenid", b"accesskeyid", b"samlresponse", b"samlrequest", b"samlart",
    b"wresult", b"passcode", b"clientassertion", b"verifier", b"loginchallenge", b"consentchallenge",
    b"logoutchallenge", b"signedrequest", b"turnstileresponse", b"securityanswer", b"cardnumber", b"pgtid",
    b"pgtiou", b"passkey", b"cookie", b"auth", b"loginpas", b"viewstate", b"challengeresponse",
];
/// Suffixes of secrets' names before a final `key`.
#[rustfmt::skip]
const KEYS: [&[u8]; 36] = [
    b"access", b"account", b"activation", b"admin", b"api", b"app", b"application", b"auth", b"client",
    b"consumer", b"decryption", b"developer", b"encryption", b"feed", b"function", b"functions", b"licence",
    b"license", b"login", b"master", b"priv", b"reset", b"resource", b"rl", b"sentry", b"server",
    b"service", b"session", b"shared", b"signing", b"ssh", b"storage", b"stream", b"subscription", b"user",
    b"write",
];
/// Suffixes of secrets' names before a final `code`.
#[rustfmt::skip]
const CODES: [&[u8]; 19] = [
    b"access", b"activation", b"app", b"auth", b"authorization", b"backup", b"confirmation", b"device",
    b"invite", b"login", b"oob", b"pairing", b"recovery", b"reset", b"security", b"unlock", b"user",
    b"verification", b"session",
];
/// Whole names of secrets, also in brackets or as the last word of a name (`user[pass]`, `new_pass`, `oldPwd`).
#[rustfmt::skip]
const WHOLE: [&[u8]; 38] = [
    b"pass", b"pwd", b"sig", b"jwt", b"sid", b"auth", b"authorization", b"otp", b"pin", b"puk", b"bearer",
    b"cred", b"pw", b"psw", b"pswd", b"totp", b"psk", b"hmac", b"sess", b"cvv", b"cvc", b"ssn", b"xsrf",
    b"mdp", b"senha", b"parola", b"haslo", b"heslo", b"clave", b"sifre", b"mima", b"assertion", b"pgt",
    b"unlock", b"stok", b"tan", b"mtan", b"smstan",
];
/// Suffixes that are ignored after the name of a secret (`token.value`, `otp_code`).
const SUFFIXES: [&[u8]; 9] = [
    b"old", b"new", b"value", b"code", b"hint", b"hash", b"repeat", b"again", b"sha",
];
/// Names, or last words of names, of secrets and of other values alike: an API key, a cache key. The value is taken as
/// a secret if it is long, has digits and letters, and no other characters.
#[rustfmt::skip]
const EITHER: [&[u8]; 32] = [
    // `md` is `md5`: digits at the end of a name are ignored
    b"tokens", b"key", b"session", b"ticket", b"nonce", b"sso", b"sign", b"hash", b"md", b"verify",
    b"share", b"license", b"licence", b"access", b"seed", b"autologin", b"onetime", b"basic", b"ak",
    b"appid", b"requesturi", b"canary", b"crumb", b"wpnonce", b"api", b"pareq", b"pares", b"creq", b"cres",
    b"lt", b"execution", b"attestation",
];
/// Such names whose value may have other characters, too: an OAuth code (RFC 6749 4.1.2), but not a country's code.
const WITH_SIGNS: [&[u8]; 6] = [b"code", b"tokens", b"session", b"ticket", b"nonce", b"sign"];
/// Names of a user; after a `:` in the value follows the password.
const USERS: [&[u8]; 5] = [b"login", b"user", b"username", b"userinfo", b"basic"];
/// Lower bound on the length of a secret. Keys and codes of known services have 20 characters and more, UUIDs 36.
pub(super) const SECRET_FROM: usize = 16;
/// Lower bound on the length of a secret whose name is one of `EITHER`, or whose place in a path is that of a secret.
pub(super) const NAMED_FROM: usize = 10;
/// Lower bound on the length of an OAuth code beside one of `GRANTED`. A country's code has two or three characters.
const GRANTED_FROM: usize = 8;
/// Lower bound on the length of a secret that mixes digits and letters of both cases, whatever its name.
const MIXED_FROM: usize = 10;
/// In such a secret, at least one in this many steps from character to character changes between digit and letter or
/// leads to a capital letter. Words written together (`iPhone14ProMax`) change less often.
const MAX_STEPS_PER_CHANGE: usize = 3;
/// Upper bound on the length of a secret's name.
pub(super) const MAX_PARAMETER_NAME: usize = 64;
/// Upper bound on the times that a name or a value is percent-decoded.
pub(super) const NESTED: u8 = 3;

/// The context that the rest of a URL gives to its parameters.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    /// An authorization server sent it: `code` is an OAuth code.
    pub(super) granted: bool,
    /// The path is that of a mailed link: values that look random prove who follows it.
    pub(super) mailed: bool,
    /// Another parameter names a user: `p` is the password, unless it is a number (of a page).
    pub(super) user: bool,
}

/// Percent-decodes a text once (RFC 3986, 2.1).
pub(super) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = byte.and_then(|_| after.get(2..)).unwrap_or(after);
    }
    Cow::Owned(out)
}

/// Percent-decodes a text `NESTED` times.
fn decoded_all(text: &[u8]) -> Cow<'_, [u8]> {
    let mut out = decoded(text);
    for _ in 1..NESTED {
        if memchr(b'%', &out).is_some() {
            out = Cow::Owned(decoded(&out).into_owned());
        }
    }
    out
}

/// Whether the parameter is a secret by its name, or by its name and value.
pub(super) fn is_secret(name: &[u8], value: &[u8], link: Link) -> bool {
    if name.len() > MAX_PARAMETER_NAME {
        return false;
    }
    let name = decoded_all(name);
    let without_brackets: Vec<u8> = name.iter().copied().filter(|byte| *byte != b'[').collect();
    is_decoded_secret(&without_brackets, value, link)
        || name
            .split(|byte| *byte == b'[')
            .any(|part| is_decoded_secret(part, value, link))
}

/// Whether a name has characters that the lists do not cover (other scripts, control characters, invalid escapes) and
/// a value that is not a number. It may be the name of a secret.
pub(super) fn is_foreign(name: &[u8], value: &[u8]) -> bool {
    let unread = |byte: &u8| !(byte.is_ascii_graphic() || *byte == b' ') || b"%\\".contains(byte);
    decoded_all(name).iter().any(unread) && !value.iter().all(u8::is_ascii_digit)
}

/// Whether a word of the value looks like a generated password.
pub(super) fn holds_mixed(value: &[u8]) -> bool {
    value.len() >= MIXED_FROM
        && decoded_all(value)
            .split(|byte| !byte.is_ascii_alphanumeric())
            .any(is_mixed)
}

fn is_mixed(word: &[u8]) -> bool {
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let steps = word.iter().zip(word.iter().skip(1)).filter(|(previous, next)| {
        let (previous, next) = (kind(previous), kind(next));
        // a capital letter begins a word
        previous != next && (previous.0 || next.0 || next.1)
    });
    let has = |is_kind: fn(&u8) -> bool| word.iter().any(is_kind);
    word.len() >= MIXED_FROM
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && MAX_STEPS_PER_CHANGE * steps.count() >= word.len() - 1
}

/// `is_secret` for a decoded name. Ignores digits at the end (`password2`), and compares the last word, too
/// (`new_password`, `newPassword`).
fn is_decoded_secret(name: &[u8], value: &[u8], link: Link) -> bool {
    let (mut all, mut last) = (Vec::with_capacity(name.len()), 0);
    let mut before = b'_';
    for byte in name {
        let is_of_word = byte.is_ascii_alphanumeric() || *byte >= 0x80;
        if !is_of_word || byte.is_ascii_uppercase() && before.is_ascii_lowercase() {
            last = all.len();
        }
        if is_of_word {
            all.push(byte.to_ascii_lowercase());
        }
        before = *byte;
    }
    let digits = all.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let all = all.get(..all.len() - digits).unwrap_or_default();
    let last = all.get(last..).unwrap_or_default();
    let bare = SUFFIXES
        .iter()
        .find_map(|end| all.strip_suffix(*end))
        .unwrap_or(all);
    let ends = |ends: &[&[u8]], name: &[u8]| ends.iter().any(|end| name.ends_with(end));
    let is = |name: &[u8]| ends(&ENDS, name) || WHOLE.contains(&name);
    INSIDE.iter().any(|word| memmem::find(all, word).is_some())
        || is(all)
        || is(bare)
        || WHOLE.contains(&last)
        || all.strip_suffix(b"key").is_some_and(|stem| ends(&KEYS, stem))
        || all.strip_suffix(b"code").is_some_and(|stem| ends(&CODES, stem))
        || may_be_secret(&[all, last], value, link)
}

/// Whether the value makes the parameter a secret, where the name alone does not decide.
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

/// Whether a value of at least `from` bytes has digits and letters.
pub(super) fn is_random(value: &[u8], from: usize) -> bool {
    value.len() >= from && value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// `is_random`, and has no other characters than those of base64 in URLs (RFC 4648, 5).
pub(super) fn is_plain(value: &[u8], from: usize) -> bool {
    let end = value.len() - value.iter().rev().take_while(|byte| **byte == b'=').count();
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    is_random(value, from) && value.iter().take(end).all(is_base64)
}
