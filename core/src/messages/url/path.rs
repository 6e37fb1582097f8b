//! Secrets in the path of a URL, recognised by the segments before them or by their form.

use super::names::{self, Link, NAMED_FROM, SECRET_FROM};

/// Prefixes of tokens of known services. Masked in the whole URL, not only in the path.
#[rustfmt::skip]
const TOKEN_PREFIXES: [&[u8]; 28] = [
    b"eyJ", b"ghp_", b"gho_", b"ghs_", b"ghu_", b"ghr_", b"github_pat_", b"glpat-", b"npm_", b"pypi-",
    b"dckr_pat_", b"hf_", b"sk-proj-", b"sk-ant-", b"sk_live_", b"sk_test_", b"rk_live_", b"whsec_",
    b"shpat_", b"xoxa-", b"xoxb-", b"xoxp-", b"xapp-", b"SG.", b"AIza", b"AKIA", b"ASIA", b"ya29.",
];
/// Words in the paths of mailed links.
#[rustfmt::skip]
const MAILED: [&[u8]; 17] = [
    b"reset", b"recover", b"recovery", b"verify", b"verification", b"confirm", b"confirmation", b"invite",
    b"invitation", b"activate", b"activation", b"unsubscribe", b"magic", b"magiclink", b"passwordless",
    b"optout", b"otl",
];
/// Segments before the path of a webhook, which is a secret: it is all that a client needs to post there.
#[rustfmt::skip]
const POSTS: [&[u8]; 9] = [
    b"hook", b"hooks", b"webhook", b"webhooks", b"webhookb2", b"incomingwebhook", b"trigger", b"triggers",
    b"integration",
];
/// Segments directly before a secret.
const DIRECT: [&[u8]; 6] = [b"key", b"session", b"share", b"link", b"ticket", b"private"];
/// Segments directly after a secret: the key of a BitTorrent tracker's user.
const FOLLOWED: [&[u8]; 2] = [b"announce", b"scrape"];
/// Lower bound on the length of a secret directly after the name of one; pages (`step2`, `oauth2`) are shorter.
const PATH_FROM: usize = 8;
/// Upper bound on the length of a file name's extension.
const MAX_EXTENSION: usize = 5;
/// Characters of tokens beside letters and digits.
const OF_TOKENS: &[u8] = b"-_.";

pub(super) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || OF_TOKENS.contains(&byte)
}

/// Whether the URL has a run of `PATH_FROM` token characters, and a digit. A fast check of every URL: such a run covers
/// one of every `PATH_FROM` bytes, so only those are looked at.
#[inline(always)]
pub(super) fn may_hold_token(url: &[u8]) -> bool {
    // without an early exit, so that it is vectorised
    let has_digit = url
        .iter()
        .fold(false, |any, byte| any | byte.wrapping_sub(b'0').lt(&10));
    let mut steps = url.iter().enumerate().skip(PATH_FROM - 1).step_by(PATH_FROM);
    has_digit && steps.any(|(position, byte)| is_of_token(*byte) && is_in_token(url, position))
}

/// Whether the byte at `position` is in a run of `PATH_FROM` token characters.
#[cold]
fn is_in_token(url: &[u8], position: usize) -> bool {
    let (before, after) = url.split_at_checked(position).unwrap_or_default();
    let token_len = |bytes: &mut dyn Iterator<Item = &u8>| {
        bytes
            .take(PATH_FROM)
            .take_while(|byte| is_of_token(**byte))
            .count()
    };
    token_len(&mut before.iter().rev()) + token_len(&mut after.iter()) >= PATH_FROM
}

/// Whether a word of the path is in `MAILED`; `email-verification` is two words.
pub(super) fn is_mailed(path: &[u8]) -> bool {
    path.split(|byte| !is_of_token(*byte))
        .any(|segment| has_word_of(segment, &MAILED))
}

fn has_word_of(segment: &[u8], list: &[&[u8]]) -> bool {
    let is = |word: &[u8]| list.iter().any(|listed| word.eq_ignore_ascii_case(listed));
    segment.len() <= names::MAX_PARAMETER_NAME
        && (is(segment) || segment.split(|byte| OF_TOKENS.contains(byte)).any(is))
}

/// A word of a URL with its neighbours and the characters between them.
#[derive(Default, Clone, Copy)]
struct Word<'a> {
    second_before: &'a [u8],
    before: &'a [u8],
    /// The character between the word before and this one.
    sign: u8,
    text: &'a [u8],
    next_sign: u8,
    next: &'a [u8],
    /// An earlier word is in `MAILED` or `POSTS`.
    is_leading: bool,
}

/// Masks tokens in the URL, and secrets in its path, which has `path_len` bytes. `None` where there are none.
#[inline(never)]
pub(super) fn without_tokens(url: &[u8], path_len: usize) -> Option<Vec<u8>> {
    let (mut out, mut hides, mut word) = (Vec::new(), false, Word::default());
    let end = |text: &[u8]| {
        text.iter()
            .position(|byte| !is_of_token(*byte))
            .unwrap_or(text.len())
    };
    let mut rest = url;
    while !rest.is_empty() {
        let (text, after) = rest.split_at(end(rest));
        let (sign, after) = after.split_at(after.len().min(1));
        word.text = text;
        word.next_sign = sign.first().copied().unwrap_or_default();
        word.next = after.get(..end(after)).unwrap_or_default();
        let has_prefix = TOKEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        let is_secret = has_prefix && names::is_random(text, SECRET_FROM)
            || url.len() - rest.len() < path_len && !text.is_empty() && word.is_secret();
        out.extend_from_slice(if is_secret { super::MASK } else { text });
        out.extend_from_slice(sign);
        hides |= is_secret;
        word = Word {
            second_before: word.before,
            before: text,
            sign: word.next_sign,
            is_leading: word.is_leading || has_word_of(text, &MAILED) || has_word_of(text, &POSTS),
            ..Word::default()
        };
        rest = after;
    }
    hides.then_some(out)
}

impl Word<'_> {
    fn is_secret(self) -> bool {
        let long = |from| names::is_random(self.text, from) && self.is_mixed() && !self.is_file();
        // /password=.../
        if self.sign == b'=' {
            return names::is_secret(self.before, self.text, Link::default());
        }
        // ASP.NET without cookies: /(X(1)S(...))/
        if self.sign == b'(' {
            return [b"S", b"F", b"A"].iter().any(|kind| self.before == *kind);
        }
        long(PATH_FROM)
            && (names::is_secret(self.before, &[], Link::default())
                || self.is_of_bot()
                // /user:password@host/ inside of a path
                || self.sign == b':' && self.next_sign == b'@' && !self.before.is_empty()
                || self.text.starts_with(b"s--") && self.text.ends_with(b"--"))
            || long(NAMED_FROM)
                && (self.is_leading
                    || has_word_of(self.before, &DIRECT) && self.before.len() <= SECRET_FROM
                    || self.is_of_workspace()
                    || FOLLOWED.contains(&self.next)
                    // a pre-authenticated request of Oracle's object storage: /p/.../n/namespace/
                    || self.before == b"p" && self.next == b"n"
                    || self.text.strip_prefix(b"private-").is_some_and(is_word))
    }

    /// Whether the word is the secret of a Telegram bot: `/bot123456:secret/`.
    fn is_of_bot(self) -> bool {
        let number = self.before.strip_prefix(b"bot").unwrap_or_default();
        !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    }

    /// Whether the word is the secret of a Slack webhook: `/T0.../B0.../secret`.
    fn is_of_workspace(self) -> bool {
        let is = |segment: &[u8], begin: u8| {
            segment.len() > 2
                && segment.starts_with(&[begin])
                && segment
                    .iter()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        };
        is(self.second_before, b'T') && is(self.before, b'B')
    }

    /// Whether digits and letters are mixed in one part of the word. In names of pages they are in different parts:
    /// `overview-2024`.
    fn is_mixed(self) -> bool {
        let mut words = self.text.split(|byte| OF_TOKENS.contains(byte));
        words.any(|word| names::is_random(word, 2))
    }

    fn is_file(self) -> bool {
        let end = self.text.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        end.len() < self.text.len() && end.len() <= MAX_EXTENSION && end.iter().all(u8::is_ascii_alphabetic)
    }
}

/// Whether a secret is letters and digits alone.
fn is_word(text: &[u8]) -> bool {
    names::is_random(text, NAMED_FROM) && text.iter().all(u8::is_ascii_alphanumeric)
}
