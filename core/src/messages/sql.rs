//! Masks the values in SQL statements: `SELECT * FROM t WHERE a = 'x' AND b IN (1, 2)` becomes
//! `SELECT * FROM t WHERE a = ? AND b IN (?)`. Literals and placeholders become `?`, a list of them one `?`; comments
//! are removed, and white space becomes one space. Knows no grammar, only where literals end.

use smol_str::SmolStr;

use super::text;

/// Upper bound on a masked statement in bytes.
const MAX_SHOWN: usize = 200;
/// Upper bound on the bytes of a statement that readers keep, so that masked values leave enough to show.
pub(super) const MAX_READ: usize = 1024;
/// Words after PASSWORD or BY that are not a password.
const NO_PASSWORD: [&str; 17] = [
    "expire", "null", "history", "reuse", "require", "default", "for", "random", "never", "interval",
    "current", "optional", "values", "password", "to", "is", "valid",
];
/// Second words of statements that manage users.
const ACCOUNTS: [&str; 4] = ["user", "role", "login", "password"];
/// Words that may come between the verb and one of `ACCOUNTS`.
const BEFORE_ACCOUNTS: [&str; 3] = ["or", "replace", "session"];

/// The syntax of literals. Where a text can be read in two ways, the masker takes the one that shows less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// PostgreSQL: `"` quotes a name, a backslash escapes only in `E''`, and comments nest.
    Standard,
    /// MySQL, and scripts: `"` quotes a value, a backslash escapes the next character, and `#` begins a comment, as
    /// does `--` before white space.
    Backslash,
}

/// Returns the statement without its values. `is_cut`: the statement's end was not kept.
pub(super) fn mask(statement: &[u8], dialect: Dialect, is_cut: bool) -> SmolStr {
    let mut masked = Masker {
        rest: statement,
        out: Vec::with_capacity(statement.len().min(MAX_SHOWN)),
        dialect,
        is_of_accounts: is_of_accounts(statement),
    };
    while !masked.rest.is_empty() && masked.out.len() <= MAX_SHOWN {
        masked.token();
    }
    let shown = masked.out.trim_ascii();
    let shown = shown.strip_suffix(b";").unwrap_or(shown).trim_ascii_end();
    let is_cut = is_cut || !masked.rest.is_empty() && shown.len() <= MAX_SHOWN;
    text::name_up_to(shown, MAX_SHOWN, is_cut)
}

/// Returns the first word of a masked statement in capitals: `SELECT`.
pub(super) fn verb(masked: &str) -> SmolStr {
    let start = masked.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let letters = start.chars().take_while(|c| c.is_ascii_alphabetic() || *c == '_');
    letters.map(|c| c.to_ascii_uppercase()).collect()
}

struct Masker<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
    dialect: Dialect,
    /// The statement manages users, so words without quotes may be passwords.
    is_of_accounts: bool,
}

impl Masker<'_> {
    /// Moves the next token from `rest` to `out`, masked if it is a literal.
    fn token(&mut self) {
        let (Some(first), after) = (self.rest.first(), self.rest.get(1..).unwrap_or_default()) else {
            return;
        };
        let next = after.first().copied().unwrap_or(b' ');
        let is_backslash = self.dialect == Dialect::Backslash;
        match first {
            b'\'' => {
                let escapes = is_backslash || self.is_escaped_string();
                let len = past_quote(self.rest, escapes).unwrap_or(self.rest.len());
                let (string, after) = crate::cursor::split(self.rest, len);
                // It is not certain where the string ends if a backslash before a quote may or may not escape it:
                // PostgreSQL with standard_conforming_strings off, or an E'' that goes on in the next line; MySQL with
                // NO_BACKSLASH_ESCAPES, unless the quotes after the string are balanced. Then all the rest is masked.
                let doubtful = if escapes {
                    is_backslash && past_quote(string, false) != Some(len) && !ends_outside(after)
                } else {
                    is_end_escaped(string)
                };
                self.literal(if doubtful { self.rest.len() } else { len });
            }
            b'"' if is_backslash => self.literal(past_quote(self.rest, true).unwrap_or(self.rest.len())),
            b'"' => self.name(),
            b'`' if is_backslash => self.name(),
            b'$' if !self.is_in_name() => self.literal(past_dollars(self.rest)),
            b'-' if next == b'-'
                && (!is_backslash || self.rest.get(2).is_none_or(|third| *third <= b' ')) =>
            {
                self.skip(past_line(self.rest, is_backslash));
            }
            b'#' if is_backslash => self.skip(past_line(self.rest, true)),
            b'/' if next == b'*' => self.skip(past_comment(self.rest, !is_backslash)),
            b'0'..=b'9' if !self.is_in_name() => {
                self.drop_sign();
                self.literal(past_number(self.rest));
            }
            b'?' => self.literal(1),
            b')' => {
                self.show(1);
                self.join_rows();
            }
            _ if first.is_ascii_whitespace() => {
                self.skip(1);
            }
            _ if self.is_of_accounts
                && !b"=(),;".contains(first)
                && !self.is_in_name()
                && self.is_bare_secret() =>
            {
                self.literal(first_word(self.rest).len());
            }
            _ => self.show(1),
        }
    }

    /// Shows a quoted name. Without a closing quote it is masked.
    fn name(&mut self) {
        match past_quote(self.rest, false) {
            Some(len) => self.show(len),
            None => self.literal(self.rest.len()),
        }
    }

    /// Whether the byte shown last is part of a name.
    fn is_in_name(&self) -> bool {
        self.out.last().is_some_and(|last| is_name(*last))
    }

    /// Whether an `E` before the quote makes the string one with escapes: `E'...'`.
    fn is_escaped_string(&self) -> bool {
        match self.out.as_slice() {
            [.., before, b'e' | b'E'] => !is_name(*before),
            [b'e' | b'E'] => true,
            _ => false,
        }
    }

    /// Whether the next word is a password without quotes, by mistake or as a script's variable: `IDENTIFIED BY x`,
    /// `PASSWORD = x`.
    fn is_bare_secret(&self) -> bool {
        let mut before = self.out.trim_ascii_end();
        while let Some(rest) = before.strip_suffix(b"=").or_else(|| before.strip_suffix(b"(")) {
            before = rest.trim_ascii_end();
        }
        let begin = before
            .iter()
            .rposition(|byte| !is_name(*byte))
            .map_or(0, |mark| mark + 1);
        let (earlier, last) = before.split_at_checked(begin).unwrap_or_default();
        let next = first_word(self.rest);
        let is_assigned = before.len() < self.out.trim_ascii_end().len();
        match last.to_ascii_lowercase().as_slice() {
            b"by" | b"as" => {
                let earlier = earlier.to_ascii_lowercase();
                memchr::memmem::find(&earlier, b"identified").is_some() && !is_one_of(next, &NO_PASSWORD)
            }
            b"password" => (is_assigned || !is_one_of(next, &NO_PASSWORD)) && !is_call(next, self.rest),
            // SET PASSWORD FOR anna@host = x
            _ => is_assigned && !is_call(next, self.rest),
        }
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, rest) = crate::cursor::split(self.rest, len);
        self.rest = rest;
        taken
    }

    fn show(&mut self, len: usize) {
        let (taken, rest) = crate::cursor::split(self.rest, len);
        self.out.extend_from_slice(taken);
        self.rest = rest;
    }

    /// Replaces white space or a comment by one space.
    fn skip(&mut self, len: usize) {
        self.take(len);
        if self.out.last().is_some_and(|last| *last != b' ') {
            self.out.push(b' ');
        }
    }

    /// Replaces a literal by `?`, and `?, literal` by one `?`.
    fn literal(&mut self, len: usize) {
        self.take(len);
        let before = self.out.trim_ascii_end();
        let list = before.strip_suffix(b",").map(<[u8]>::trim_ascii_end);
        match list.filter(|list| list.ends_with(b"?")) {
            Some(list) => self.out.truncate(list.len()),
            None => self.out.push(b'?'),
        }
    }

    /// Removes the sign of a number, unless it is an operator after a name, a value or a parenthesis.
    fn drop_sign(&mut self) {
        if let [.., before, b'-' | b'+'] = self.out.as_slice()
            && !is_name(*before)
            && !matches!(before, b'?' | b')')
        {
            self.out.pop();
        }
    }

    /// Replaces `(?), (?)` by `(?)`.
    fn join_rows(&mut self) {
        const ROW: &[u8] = b"(?)";
        let before = self.out.strip_suffix(ROW).map(<[u8]>::trim_ascii_end);
        let before = before
            .and_then(|before| before.strip_suffix(b","))
            .map(<[u8]>::trim_ascii_end);
        if let Some(before) = before.filter(|before| before.ends_with(ROW)) {
            self.out.truncate(before.len());
        }
    }
}

fn is_one_of(word: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|other| word.eq_ignore_ascii_case(other.as_bytes()))
}

fn is_of_accounts(statement: &[u8]) -> bool {
    let words = statement
        .split(|byte| !is_name(*byte))
        .filter(|word| !word.is_empty());
    let mut words = words.filter(|word| !is_one_of(word, &BEFORE_ACCOUNTS));
    let (verb, object) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    is_one_of(verb, &["grant"])
        || is_one_of(verb, &["alter", "create", "set"]) && is_one_of(object, &ACCOUNTS)
}

/// Returns the first word, up to white space or punctuation; at least one byte.
fn first_word(text: &[u8]) -> &[u8] {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b";,()='\"`".contains(byte);
    let len = text.iter().position(ends).unwrap_or(text.len()).max(1);
    text.get(..len).unwrap_or(text)
}

/// Whether a parenthesis follows the word that begins `text`: `PASSWORD('x')`.
fn is_call(word: &[u8], text: &[u8]) -> bool {
    text.get(word.len()..)
        .is_some_and(|after| after.starts_with(b"("))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}

/// Returns the length of the quoted text at the beginning; `None` without a closing quote. A doubled quote is part of
/// the text. `escapes`: a backslash escapes the next character.
fn past_quote(text: &[u8], escapes: bool) -> Option<usize> {
    let quote = *text.first()?;
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        at += 1;
        if *byte == quote {
            if text.get(at) != Some(&quote) {
                return Some(at);
            }
            at += 1;
        } else if *byte == b'\\' && escapes {
            at += 1;
        }
    }
    None
}

/// Whether the string would go on if backslashes escaped.
fn is_end_escaped(string: &[u8]) -> bool {
    past_quote(string, true) != Some(string.len())
}

/// Whether every quote of the text has a closing one.
fn ends_outside(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(mark) = memchr::memchr3(b'\'', b'"', b'`', rest) {
        let quoted = rest.get(mark..).unwrap_or_default();
        match past_quote(quoted, quoted.first() != Some(&b'`')) {
            Some(len) => rest = quoted.get(len..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

/// Returns the length of a placeholder or dollar-quoted string: `$1`, `$$text$$`, `$tag$text$tag$`.
fn past_dollars(text: &[u8]) -> usize {
    let tag = text
        .iter()
        .skip(1)
        .take_while(|byte| is_name(**byte) && **byte != b'$')
        .count();
    let open = text.get(..tag + 2).filter(|open| open.ends_with(b"$"));
    let Some(open) = open.filter(|open| !open.get(1).is_some_and(u8::is_ascii_digit)) else {
        return tag + 1;
    };
    let after_open = text.get(open.len()..).unwrap_or_default();
    match memchr::memmem::find(after_open, open) {
        Some(end) => end + 2 * open.len(),
        None => text.len(),
    }
}

/// Returns the length of a comment up to the line's end; in PostgreSQL a carriage return ends a line, too.
fn past_line(text: &[u8], only_line_feed: bool) -> usize {
    let end = text
        .iter()
        .position(|byte| *byte == b'\n' || *byte == b'\r' && !only_line_feed);
    end.map_or(text.len(), |end| end + 1)
}

/// Returns the length of a comment in `/*` and `*/`.
fn past_comment(text: &[u8], is_nested: bool) -> usize {
    let (mut at, mut depth) = (2, 1_usize);
    while let Some(pair) = text.get(at..at + 2) {
        at += match pair {
            b"*/" if depth == 1 => return at + 2,
            b"*/" => {
                depth -= 1;
                2
            }
            b"/*" if is_nested => {
                depth += 1;
                2
            }
            _ => 1,
        };
    }
    text.len()
}

/// Returns the length of a number: `1`, `1.5`, `1e-5`, `0x1f`, `1_000`.
fn past_number(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        let is_exponent = matches!(byte, b'-' | b'+')
            && matches!(text.get(at - 1), Some(b'e' | b'E'))
            && text.get(1).is_none_or(|second| *second != b'x');
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || is_exponent) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Dialect::{Backslash, Standard};
    use super::*;

    #[test]
    fn values_are_masked_and_names_stay() {
        for (dialect, statement, shown) in [
            (
                Standard,
                "SELECT * FROM t WHERE a = 'it''s' AND b=5",
                "SELECT * FROM t WHERE a = ? AND b=?",
            ),
            (
                Standard,
                "select \"Col 1\", t1.c2 from \"T\"",
                "select \"Col 1\", t1.c2 from \"T\"",
            ),
            (Standard, "SELECT 'a\\', 'secret'", "SELECT ?"),
            (Standard, "SELECT E'it\\'s', b", "SELECT E?, b"),
            (Standard, "UPDATE t SET a=$1, b = $22", "UPDATE t SET a=?, b = ?"),
            (
                Standard,
                "DO $$ begin 'x' end $$; SELECT $q$a$b$q$",
                "DO ?; SELECT ?",
            ),
            (
                Standard,
                "SELECT a ? 'b', a->>'k', a #> '{1}'",
                "SELECT a ? ?, a->>?, a #> ?",
            ),
            (
                Backslash,
                "SELECT \"it\\\"s\", 'o\\'k' FROM `my tab`",
                "SELECT ? FROM `my tab`",
            ),
            (Backslash, "SELECT 1 # why\n FROM t -- end", "SELECT ? FROM t"),
            (
                Standard,
                "SELECT /* c 'x */ -1.5e-3, +2, a-1, a - 1, 0xfFe",
                "SELECT ?, a-?, a - ?",
            ),
            (Standard, "SELECT a IN (1, 2,\n3), (4)", "SELECT a IN (?)"),
            (
                Standard,
                "INSERT INTO t (a) VALUES (1, 'x'), (2, 'y'),(3, now());",
                "INSERT INTO t (a) VALUES (?),(?, now())",
            ),
            (Standard, "SELECT /* /* ' */ ' */ 'x', b", "SELECT ?, b"),
            (Backslash, "SELECT /* /* ' */ 'x', b", "SELECT ?, b"),
            (Standard, "SELECT b -- c 'x\r, 'y\nz'", "SELECT b , ?"),
            (Backslash, "SELECT b -- c 'x\r, 'y\n, 'z'", "SELECT b , ?"),
            (Backslash, "SELECT b--'x\n y'", "SELECT b--?"),
            (Backslash, "SELECT 'c:\\', 'x'", "SELECT ?"),
            (Backslash, "SELECT 'c:\\\\', 'x', b", "SELECT ?, b"),
            (Standard, "SELECT 'x\\' y' FROM t", "SELECT ?"),
            (Standard, "SELECT E'x'\n'y\\' z'", "SELECT E? ?"),
            (Standard, "SELECT a ` 'x' ` b", "SELECT a ` ? ` b"),
            (
                Backslash,
                "ALTER USER anna IDENTIFIED BY s3cret",
                "ALTER USER anna IDENTIFIED BY ?",
            ),
            (
                Backslash,
                "CREATE USER a IDENTIFIED WITH x AS s3cret;",
                "CREATE USER a IDENTIFIED WITH x AS ?",
            ),
            (
                Backslash,
                "SET PASSWORD FOR a@h = s3cret",
                "SET PASSWORD FOR a@h = ?",
            ),
            (
                Backslash,
                "SET PASSWORD = PASSWORD(s3cret)",
                "SET PASSWORD = PASSWORD(?)",
            ),
            (Backslash, "set password = s3cret", "set password = ?"),
            (
                Standard,
                "ALTER ROLE anna PASSWORD s3cret LOGIN",
                "ALTER ROLE anna PASSWORD ? LOGIN",
            ),
            (
                Standard,
                "CREATE USER a WITH PASSWORD p$s-x! VALID UNTIL 'x'",
                "CREATE USER a WITH PASSWORD ? VALID UNTIL ?",
            ),
            (
                Backslash,
                "ALTER USER a PASSWORD EXPIRE NEVER",
                "ALTER USER a PASSWORD EXPIRE NEVER",
            ),
            (
                Backslash,
                "GRANT ALL ON t.* TO a IDENTIFIED BY s3cret",
                "GRANT ALL ON t.* TO a IDENTIFIED BY ?",
            ),
            (
                Standard,
                "SELECT password FROM users ORDER BY name",
                "SELECT password FROM users ORDER BY name",
            ),
            (
                Standard,
                "ALTER TABLE t ADD password text",
                "ALTER TABLE t ADD password text",
            ),
            (Standard, "SELECT \" 'x'", "SELECT ?"),
            (Backslash, "SELECT ` 'x'", "SELECT ?"),
            (Standard, "  \n select  1 ; ", "select ?"),
            (Standard, "SELECT 'never ends 5", "SELECT ?"),
            (Standard, "", ""),
        ] {
            assert_eq!(mask(statement.as_bytes(), dialect, false), shown, "{statement}");
        }
        assert_eq!(mask(b"SELECT 1, 'a", Standard, true), "SELECT ?…");
    }

    #[test]
    fn long_statements_are_cut() {
        let long = |names: usize| format!("SELECT {}", "ab,".repeat(names));
        let shown = mask(long(64).as_bytes(), Standard, false);
        assert_eq!(shown.len(), 199);
        let shown = mask(long(70).as_bytes(), Standard, false);
        assert_eq!((shown.len(), shown.ends_with('…')), (200 + "…".len(), true));
        let values = format!("SELECT {}1 FROM t", "1, ".repeat(200));
        assert_eq!(mask(values.as_bytes(), Standard, false), "SELECT ? FROM t");
    }

    #[test]
    fn the_verb_is_the_first_word() {
        assert_eq!(verb("select * from t"), "SELECT");
        assert_eq!(verb("(SELECT ?)"), "SELECT");
        assert_eq!(verb("?"), "");
    }

    proptest! {
        /// Whatever it looks like, and wherever it ends.
        #[test]
        fn no_digit_of_a_value_is_shown(
            parts in prop::collection::vec(prop::sample::select(vec!["'secret7'", "'it''s 7'", "$$7$$", "$a$ 7 $a$", "7", "7.7e+7", " ", "a", ",", "(", ")", "-", "/* 7 */", "\"x\""]), 0..20),
            end in 0..200usize,
        ) {
            let statement = parts.join(" ");
            let end = end.min(statement.len());
            for dialect in [Standard, Backslash] {
                let shown = mask(&statement.as_bytes()[..end], dialect, false);
                prop_assert!(!shown.contains('7') && !shown.contains("secret"), "{} of {}", shown, statement);
            }
        }

        #[test]
        fn any_bytes_are_masked(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in any::<bool>()) {
            for dialect in [Standard, Backslash] {
                prop_assert!(mask(&bytes, dialect, cut).len() <= 3 * MAX_SHOWN + 3);
            }
        }
    }
}
