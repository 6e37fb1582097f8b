//! Command and response lines of memcached's text protocol: a command's method and key, and which lines answer it.
//! Stateless.

use smol_str::{SmolStr, format_smolstr};

use super::super::lines::{first_word, number};
use super::super::text;

/// Upper bound on the letters of an unknown verb; the longest known one has 14.
const MAX_VERB: usize = 20;

/// A command's line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) method: SmolStr,
    pub(super) target: SmolStr,
    pub(super) expects: Expects,
    /// Length of the value after the line, without its line end; None if the command has none.
    pub(super) value: Option<u64>,
    /// The command has `noreply`, or is `quit`: the server does not answer.
    pub(super) has_no_response: bool,
    /// A meta command whose usual response is not sent (flag `q`).
    pub(super) is_quiet: bool,
    /// Opaque word of a meta command, which its response repeats.
    pub(super) opaque: SmolStr,
}

/// The response that a command expects.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expects {
    /// One line of any text.
    #[default]
    Line,
    /// Values, and END.
    Values,
    /// Lines up to END, OK and the like.
    Lines,
    Stored,
    Deleted,
    Touched,
    Number,
    Version,
    /// One line, and from then on lines about events in the server.
    Watch,
    Meta(Meta),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meta {
    Get,
    /// A get without the value.
    Look,
    Set,
    Delete,
    Arithmetic,
    Noop,
    Debug,
}

/// How a line of the server answers a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// More lines follow.
    More,
    /// A value of this length follows, then more lines.
    Value(u64),
    /// A value of this length follows, and ends the response.
    LastValue(u64),
    Last,
    /// The line answers another command.
    Other,
}

impl Command {
    /// Reads a command line; `has_noreply`: the line ends with `noreply`.
    pub(super) fn of(line: &[u8], has_noreply: bool) -> Command {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let verb = words.next().unwrap_or_default();
        let words: Vec<&[u8]> = words.take(64).collect();
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let Some((expects, key)) = expected(verb) else {
            return Command {
                method: other(verb),
                ..Command::default()
            };
        };
        let mut command = Command {
            method: text::name(verb),
            target: key.map_or_else(SmolStr::default, |index| text::name(word(index))),
            expects,
            ..Command::default()
        };
        match expects {
            Expects::Stored => {
                command.value = number(word(3));
                command.has_no_response = has_noreply;
            }
            Expects::Deleted | Expects::Touched | Expects::Number => command.has_no_response = has_noreply,
            Expects::Line if matches!(verb, b"flush_all" | b"verbosity") => {
                command.has_no_response = has_noreply
            }
            Expects::Line => command.has_no_response = verb == b"quit",
            Expects::Lines if verb == b"lru_crawler" => {
                command.method = format_smolstr!("lru_crawler {}", other(word(0)));
                command.target = text::name(word(1));
                if !word(0).ends_with(b"dump") {
                    command.expects = Expects::Line;
                }
            }
            Expects::Meta(meta) => {
                command.value = number(word(1)).filter(|_| meta == Meta::Set);
                let flags = || words.iter().skip(if meta == Meta::Set { 2 } else { 1 });
                command.is_quiet = flags().any(|flag| *flag == b"q");
                if meta == Meta::Get && !flags().any(|flag| *flag == b"v") {
                    command.expects = Expects::Meta(Meta::Look);
                }
                let opaque = flags().find_map(|flag| flag.strip_prefix(b"O"));
                command.opaque = text::name_up_to(opaque.unwrap_or_default(), 32, false);
            }
            _ => {}
        }
        command
    }

    /// Whether the line is a command that other protocols hardly have: a known verb with the numbers that must follow.
    pub(super) fn is_sure(line: &[u8]) -> bool {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let Some((expects, _)) = expected(words.next().unwrap_or_default()) else {
            return false;
        };
        let words: Vec<&[u8]> = words.take(7).collect();
        let numbers = |from: usize, count: usize| {
            let numbers = words.get(from..from + count);
            numbers.is_some_and(|numbers| numbers.iter().all(|word| number(word).is_some()))
        };
        match expects {
            Expects::Stored => numbers(1, 3),
            Expects::Number => numbers(1, 1),
            Expects::Meta(Meta::Set) => numbers(1, 1),
            _ => false,
        }
    }

    /// Whether the command reads.
    pub(super) fn is_get(&self) -> bool {
        matches!(self.expects, Expects::Meta(Meta::Get | Meta::Look))
    }

    /// Whether a value has to follow the line.
    pub(super) fn has_value(&self) -> bool {
        matches!(self.expects, Expects::Stored | Expects::Meta(Meta::Set))
    }

    /// Whether the line begins with a verb of this protocol.
    pub(super) fn is_known(line: &[u8]) -> bool {
        let verb = first_word(line);
        expected(verb).is_some()
    }
}

/// Returns the response that a verb expects, and the index of the key among its arguments. None for unknown verbs.
fn expected(verb: &[u8]) -> Option<(Expects, Option<usize>)> {
    Some(match verb {
        b"get" | b"gets" => (Expects::Values, Some(0)),
        b"gat" | b"gats" => (Expects::Values, Some(1)),
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => (Expects::Stored, Some(0)),
        b"delete" => (Expects::Deleted, Some(0)),
        b"touch" => (Expects::Touched, Some(0)),
        b"incr" | b"decr" => (Expects::Number, Some(0)),
        b"stats" | b"config" => (Expects::Lines, Some(0)),
        b"lru_crawler" => (Expects::Lines, None),
        b"version" => (Expects::Version, None),
        b"watch" => (Expects::Watch, Some(0)),
        b"mg" => (Expects::Meta(Meta::Get), Some(0)),
        b"ms" => (Expects::Meta(Meta::Set), Some(0)),
        b"md" => (Expects::Meta(Meta::Delete), Some(0)),
        b"ma" => (Expects::Meta(Meta::Arithmetic), Some(0)),
        b"me" => (Expects::Meta(Meta::Debug), Some(0)),
        b"mn" => (Expects::Meta(Meta::Noop), None),
        b"flush_all" | b"verbosity" | b"quit" | b"shutdown" | b"cache_memlimit" | b"refresh_certs" => {
            (Expects::Line, None)
        }
        b"slabs" | b"lru" => (Expects::Line, Some(0)),
        _ => return None,
    })
}

/// Returns the name of an unknown verb; `?` if the word may be part of a value, which follows a refused command.
fn other(word: &[u8]) -> SmolStr {
    if word.len() <= MAX_VERB && word.iter().all(u8::is_ascii_alphabetic) {
        text::name(word)
    } else {
        unknown()
    }
}

/// The method of a line that may be part of a value, and is not shown.
pub(super) fn unknown() -> SmolStr {
    SmolStr::new_static("?")
}

impl Expects {
    /// Returns how a line of the server answers a command; `is_quiet`: the usual response is not sent.
    pub(super) fn answer(self, line: &[u8], is_quiet: bool) -> Answer {
        let mut words = line.split(|byte| *byte == b' ');
        let first = words.next().unwrap_or_default();
        let mut size = |index: usize| words.nth(index).and_then(number);
        if is_error(first) {
            return Answer::Last;
        }
        match (self, first) {
            (Expects::Values, b"VALUE") => size(2).map_or(Answer::Other, Answer::Value),
            (Expects::Lines, b"CONFIG") => size(2).map_or(Answer::Other, Answer::Value),
            (Expects::Values, b"END") | (Expects::Line | Expects::Watch, _) => Answer::Last,
            (Expects::Lines, b"END" | b"OK" | b"RESET" | b"EN" | b"BUSY") => Answer::Last,
            (Expects::Lines, _) => Answer::More,
            (Expects::Stored, b"STORED" | b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND")
            | (Expects::Deleted, b"DELETED" | b"NOT_FOUND")
            | (Expects::Touched, b"TOUCHED" | b"NOT_FOUND")
            | (Expects::Number, b"NOT_FOUND")
            | (Expects::Version, b"VERSION") => Answer::Last,
            (Expects::Number, digits) if digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit) => {
                Answer::Last
            }
            (Expects::Meta(meta), code) => meta.answer(code, size(0), is_quiet),
            _ => Answer::Other,
        }
    }
}

impl Meta {
    fn answer(self, code: &[u8], size: Option<u64>, is_quiet: bool) -> Answer {
        let fits = match self {
            Meta::Get if code == b"VA" => return size.map_or(Answer::Other, Answer::LastValue),
            Meta::Arithmetic if code == b"VA" && !is_quiet => {
                return size.map_or(Answer::Other, Answer::LastValue);
            }
            Meta::Look if code == b"HD" => true,
            Meta::Get | Meta::Look => code == b"EN" && !is_quiet,
            Meta::Set => matches!(code, b"NS" | b"EX" | b"NF") || code == b"HD" && !is_quiet,
            Meta::Delete => code == b"EX" || matches!(code, b"HD" | b"NF") && !is_quiet,
            Meta::Arithmetic => matches!(code, b"NS" | b"EX") || matches!(code, b"HD" | b"NF") && !is_quiet,
            Meta::Noop => code == b"MN",
            Meta::Debug => matches!(code, b"ME" | b"EN"),
        };
        if fits { Answer::Last } else { Answer::Other }
    }
}

pub(super) fn is_error(word: &[u8]) -> bool {
    matches!(word, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR")
}

/// Whether the response to a meta command repeats another opaque word or key than these.
pub(super) fn repeats_other(line: &[u8], opaque: &str, key: &str) -> bool {
    let repeats = |letter: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ').skip(1);
        words.find_map(|word| word.strip_prefix(letter))
    };
    let other =
        |repeated: Option<&[u8]>, sent: &str| repeated.is_some_and(|repeated| repeated != sent.as_bytes());
    other(repeats(b"O"), opaque) || other(repeats(b"k"), key)
}

/// First words of a server's lines.
#[rustfmt::skip]
const ANSWERS: [&[u8]; 24] = [
    b"VALUE", b"END", b"STORED", b"NOT_STORED", b"EXISTS", b"NOT_FOUND", b"DELETED", b"TOUCHED", b"OK",
    b"VERSION", b"STAT", b"ITEM", b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR", b"HD", b"VA", b"EN", b"NS",
    b"EX", b"NF", b"MN", b"ME", b"RESET",
];

/// Whether a line of a server may begin with these bytes.
pub(super) fn may_answer(input: &[u8]) -> bool {
    let first = input
        .split(|byte| *byte == b' ' || *byte == b'\r')
        .next()
        .unwrap_or_default();
    let fits = |answer: &&[u8]| {
        if first.len() == input.len() {
            answer.starts_with(first)
        } else {
            **answer == *first
        }
    };
    ANSWERS.iter().any(fits) || first.iter().all(u8::is_ascii_digit)
}

/// Whether this whole line may be a server's.
pub(super) fn is_answer(line: &[u8]) -> bool {
    let first = first_word(line);
    let all = [
        Expects::Values,
        Expects::Stored,
        Expects::Deleted,
        Expects::Touched,
        Expects::Version,
        Expects::Meta(Meta::Get),
        Expects::Meta(Meta::Set),
        Expects::Meta(Meta::Noop),
    ];
    matches!(first, b"STAT" | b"ITEM" | b"OK")
        || all
            .iter()
            .any(|expects| expects.answer(line, false) != Answer::Other)
}
