//! Settings of secrets inside a value: JSON, XML, header fields, options of a command, comparisons
//! (`{"token": "s3"}`, `Authorization: Basic s3`, `--password s3`, `password eq 's3'`).

use super::names::{self, Link};
use super::path::is_of_token;

/// Words between the name of a secret and its value.
const BETWEEN: [&[u8]; 6] = [b"eq", b"is", b"ne", b"like", b"value", b"val"];
/// Authentication schemes, which credentials follow (RFC 9110, 11.1).
const SCHEMES: [&[u8]; 5] = [b"basic", b"bearer", b"digest", b"negotiate", b"ntlm"];
/// Lower bound on the length of credentials.
const MIN_CREDENTIALS: usize = 8;
/// Upper bound on the bytes examined of each secret's value, to keep the time linear.
const MAX_VALUE: usize = 128;

fn is_word(byte: u8) -> bool {
    is_of_token(byte) || byte >= 0x80
}

/// White space, or a quote around a value.
fn is_space(byte: u8) -> bool {
    b" +\t'\"\\".contains(&byte)
}

/// Whether a word of the text is the name of a secret and a value follows it.
pub(super) fn holds_setting(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let begin = rest.iter().position(|byte| is_word(*byte)).unwrap_or(rest.len());
        let (_, text) = rest.split_at(begin);
        let (word, after) = text.split_at(word_len(text));
        if !word.is_empty() && sets_secret(word, after) {
            return true;
        }
        rest = after;
    }
    false
}

fn word_len(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_word(*byte)).unwrap_or(text.len())
}

/// Removes spaces and quotes at the beginning.
fn trimmed(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    text.get(spaces..).unwrap_or_default()
}

/// Whether `name` is the name of a secret whose value follows in `after`.
fn sets_secret(name: &[u8], after: &[u8]) -> bool {
    if name.len() > names::MAX_PARAMETER_NAME {
        return false;
    }
    let next = trimmed(after);
    let has_space = next.len() < after.len();
    let first = next.get(..word_len(next)).unwrap_or_default();
    if has_space && SCHEMES.iter().any(|scheme| name.eq_ignore_ascii_case(scheme)) {
        return names::is_random(first, MIN_CREDENTIALS);
    }
    let is = |value: &[u8]| !value.is_empty() && names::is_secret(name, value, Link::default());
    match next.first() {
        Some(b':' | b'=' | b'>') => {
            let signs = next
                .iter()
                .take_while(|byte| b":=>([{".contains(byte) || is_space(**byte));
            let value = next.get(signs.count()..).unwrap_or_default();
            let value = value.get(..MAX_VALUE).unwrap_or(value);
            let end = value.iter().position(|byte| b"&,;}])<'\" +".contains(byte));
            is(value.get(..end.unwrap_or(value.len())).unwrap_or_default())
        }
        // --password ...
        Some(_) if name.starts_with(b"--") => has_space && is(first),
        // password eq '...', {"name": "password", "value": "..."}
        _ => {
            let gap = next.iter().take_while(|byte| **byte == b',' || is_space(**byte));
            let next = next.get(gap.count()..).unwrap_or_default();
            let (word, after) = next.split_at(word_len(next));
            let value = after
                .iter()
                .take_while(|byte| b":=>".contains(byte) || is_space(**byte));
            let value = after.get(value.count()..).unwrap_or_default();
            BETWEEN.iter().any(|between| word.eq_ignore_ascii_case(between))
                && is(value.get(..word_len(value)).unwrap_or_default())
        }
    }
}
