//! Does a value hold the setting of a secret: JSON, XML, header fields, options of a command, or a comparison?

use super::names::{self, Link};
use super::path::is_of_token;

/// Words between the name of a secret and its value.
const BETWEEN: [&[u8]; 6] = [b"eq", b"is", b"ne", b"like", b"value", b"val"];
/// A word that a program made stands behind one of these (RFC 9110, 11.1).
const SCHEMES: [&[u8]; 5] = [b"basic", b"bearer", b"digest", b"negotiate", b"ntlm"];
/// It is so long at least.
const LEAST: usize = 8;
/// So much of a value is looked at: each word of a text may have one.
const MOST: usize = 128;

fn is_word(byte: u8) -> bool {
    is_of_token(byte) || byte >= 0x80
}

/// Nothing, but that it encloses what stands behind it.
fn is_space(byte: u8) -> bool {
    b" +\t'\"\\".contains(&byte)
}

pub(super) fn holds_setting(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let begin = rest.iter().position(|byte| is_word(*byte)).unwrap_or(rest.len());
        let (_, found) = rest.split_at(begin);
        let (word, behind) = found.split_at(length(found));
        if !word.is_empty() && sets(word, behind) {
            return true;
        }
        rest = behind;
    }
    false
}

fn length(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_word(*byte)).unwrap_or(text.len())
}

/// Without spaces and quotes before it.
fn trimmed(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    text.get(spaces..).unwrap_or_default()
}

/// Is a word the name of what stands behind it, and that a secret?
fn sets(name: &[u8], behind: &[u8]) -> bool {
    if name.len() > names::MAX_PARAMETER_NAME {
        return false;
    }
    let next = trimmed(behind);
    let spaced = next.len() < behind.len();
    let first = next.get(..length(next)).unwrap_or_default();
    if spaced && SCHEMES.iter().any(|scheme| name.eq_ignore_ascii_case(scheme)) {
        return names::is_random(first, LEAST);
    }
    let is = |value: &[u8]| !value.is_empty() && names::is_secret(name, value, Link::default());
    match next.first() {
        Some(b':' | b'=' | b'>') => {
            let signs = next
                .iter()
                .take_while(|byte| b":=>([{".contains(byte) || is_space(**byte));
            let value = next.get(signs.count()..).unwrap_or_default();
            let value = value.get(..MOST).unwrap_or(value);
            let end = value.iter().position(|byte| b"&,;}])<'\" +".contains(byte));
            is(value.get(..end.unwrap_or(value.len())).unwrap_or_default())
        }
        // --password ...
        Some(_) if name.starts_with(b"--") => spaced && is(first),
        // password eq '...', {"name": "password", "value": "..."}
        _ => {
            let gap = next.iter().take_while(|byte| **byte == b',' || is_space(**byte));
            let next = next.get(gap.count()..).unwrap_or_default();
            let (word, behind) = next.split_at(length(next));
            let value = behind
                .iter()
                .take_while(|byte| b":=>".contains(byte) || is_space(**byte));
            let value = behind.get(value.count()..).unwrap_or_default();
            BETWEEN.iter().any(|one| word.eq_ignore_ascii_case(one))
                && is(value.get(..length(value)).unwrap_or_default())
        }
    }
}
