//! What of a path is a secret: by the segments before it, or by its own look. Knows no parameter.

use super::names::{self, Link, NAMED_FROM, SECRET_FROM};

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
/// A path with one of these words was mailed to somebody.
const MAILED: [&[u8]; 17] = [
    b"reset",
    b"recover",
    b"recovery",
    b"verify",
    b"verification",
    b"confirm",
    b"confirmation",
    b"invite",
    b"invitation",
    b"activate",
    b"activation",
    b"unsubscribe",
    b"magic",
    b"magiclink",
    b"passwordless",
    b"optout",
    b"otl",
];
/// A path behind one of these is a secret by itself: it is all that is needed to post there.
const POSTS: [&[u8]; 9] = [
    b"hook",
    b"hooks",
    b"webhook",
    b"webhooks",
    b"webhookb2",
    b"incomingwebhook",
    b"trigger",
    b"triggers",
    b"integration",
];
/// What stands directly behind one of these proves something.
const DIRECT: [&[u8]; 6] = [b"key", b"session", b"share", b"link", b"ticket", b"private"];
/// Or directly before one of these: the key of a BitTorrent tracker's user.
const FOLLOWED: [&[u8]; 2] = [b"announce", b"scrape"];
/// A secret directly behind the name of one is so long at least; pages (`step2`, `oauth2`) are shorter.
const PATH_FROM: usize = 8;
/// Names of files end with so few letters.
const FILE_END: usize = 5;
const OF_TOKENS: &[u8] = b"-_.";

pub(super) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || OF_TOKENS.contains(&byte)
}

/// Whether `PATH_FROM` letters, digits and signs of tokens stand together, and a digit somewhere: then each so many-th
/// byte of the URL has one of them.
#[inline(always)]
pub(super) fn may_hold_token(url: &[u8]) -> bool {
    // without an early end, which takes a step for many bytes
    let digit = url
        .iter()
        .fold(false, |found, byte| found | byte.wrapping_sub(b'0').lt(&10));
    let mut steps = url.iter().enumerate().skip(PATH_FROM - 1).step_by(PATH_FROM);
    digit && steps.any(|(place, byte)| is_of_token(*byte) && is_in_token(url, place))
}

#[cold]
fn is_in_token(url: &[u8], place: usize) -> bool {
    let (before, behind) = url.split_at_checked(place).unwrap_or_default();
    let long = |bytes: &mut dyn Iterator<Item = &u8>| {
        let held = bytes.take(PATH_FROM).take_while(|byte| is_of_token(**byte));
        held.count()
    };
    long(&mut before.iter().rev()) + long(&mut behind.iter()) >= PATH_FROM
}

/// Is one of the path's words in the list? `email-verification` has two.
pub(super) fn is_mailed(path: &[u8]) -> bool {
    path.split(|byte| !is_of_token(*byte))
        .any(|segment| has(segment, &MAILED))
}

fn has(segment: &[u8], list: &[&[u8]]) -> bool {
    let is = |word: &[u8]| list.iter().any(|one| word.eq_ignore_ascii_case(one));
    segment.len() <= names::MAX_PARAMETER_NAME
        && (is(segment) || segment.split(|byte| OF_TOKENS.contains(byte)).any(is))
}

/// A word of a URL, what stands between it and the words beside it, and what those are.
#[derive(Default, Clone, Copy)]
struct Word<'a> {
    second_before: &'a [u8],
    before: &'a [u8],
    /// Between the word before it and this one.
    sign: u8,
    text: &'a [u8],
    next_sign: u8,
    next: &'a [u8],
    /// A segment before it leads to secrets.
    leads: bool,
}

/// Without what is a secret by its own look or by the segment of the path before it (`/reset-password/...`); None where
/// there is none. The path has `place` bytes.
#[inline(never)]
pub(super) fn without_tokens(url: &[u8], place: usize) -> Option<Vec<u8>> {
    let (mut out, mut hides, mut word) = (Vec::new(), false, Word::default());
    let end = |text: &[u8]| {
        text.iter()
            .position(|byte| !is_of_token(*byte))
            .unwrap_or(text.len())
    };
    let mut rest = url;
    while !rest.is_empty() {
        let (text, behind) = rest.split_at(end(rest));
        let (sign, behind) = behind.split_at(behind.len().min(1));
        word.text = text;
        word.next_sign = sign.first().copied().unwrap_or_default();
        word.next = behind.get(..end(behind)).unwrap_or_default();
        let begins = BEGINS.iter().any(|begin| text.starts_with(begin));
        let secret = begins && names::is_random(text, SECRET_FROM)
            || url.len() - rest.len() < place && !text.is_empty() && word.is_secret();
        out.extend_from_slice(if secret { super::MASK } else { text });
        out.extend_from_slice(sign);
        hides |= secret;
        word = Word {
            second_before: word.before,
            before: text,
            sign: word.next_sign,
            leads: word.leads || has(text, &MAILED) || has(text, &POSTS),
            ..Word::default()
        };
        rest = behind;
    }
    hides.then_some(out)
}

impl Word<'_> {
    fn is_secret(self) -> bool {
        let long = |from| names::is_random(self.text, from) && self.is_mixed() && !self.is_file();
        // /password=.../; a number may be that of a kind: /pin=1/
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
                && (self.leads
                    || has(self.before, &DIRECT) && self.before.len() <= SECRET_FROM
                    || self.is_of_workspace()
                    || FOLLOWED.contains(&self.next)
                    // a request that was authorised before: /p/.../n/namespace/
                    || self.before == b"p" && self.next == b"n"
                    || self.text.strip_prefix(b"private-").is_some_and(is_word))
    }

    /// The path of a bot: /bot123456:secret/
    fn is_of_bot(self) -> bool {
        let number = self.before.strip_prefix(b"bot").unwrap_or_default();
        !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    }

    /// The path of a workspace and a bot in it: /T0.../B0.../secret
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

    /// Names of pages have digits and letters in words of their own: `overview-2024`.
    fn is_mixed(self) -> bool {
        let mut words = self.text.split(|byte| OF_TOKENS.contains(byte));
        words.any(|word| names::is_random(word, 2))
    }

    fn is_file(self) -> bool {
        let end = self.text.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
        end.len() < self.text.len() && end.len() <= FILE_END && end.iter().all(u8::is_ascii_alphabetic)
    }
}

/// Of letters and digits alone.
fn is_word(text: &[u8]) -> bool {
    names::is_random(text, NAMED_FROM) && text.iter().all(u8::is_ascii_alphanumeric)
}
