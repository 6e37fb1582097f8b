//! What a command of memcached is called, and what answers it (protocol.txt of memcached). Reads one line of either
//! side; keys are kept, values never.

use smol_str::{SmolStr, format_smolstr};

use super::super::lines::number;
use super::super::text;

/// The longest verb that is known has 14 letters.
const MAX_VERB: usize = 20;

/// A command's line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) method: SmolStr,
    pub(super) target: SmolStr,
    pub(super) wants: Wants,
    /// Bytes of a value that follow the line, without its line end.
    pub(super) value: Option<u64>,
    /// It ends with `noreply` where that is meant, or is `quit`: nothing answers it.
    pub(super) silent: bool,
    /// A meta command whose usual answer is not sent.
    pub(super) quiet: bool,
    /// What an answer of a meta command repeats.
    pub(super) opaque: SmolStr,
}

/// What answers a command.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// One line of any text.
    #[default]
    Line,
    Values,
    /// Lines up to END, OK and the like.
    Lines,
    Stored,
    Deleted,
    Touched,
    Number,
    Version,
    /// One line, and from then on what happens in the server.
    Watch,
    Meta(Meta),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meta {
    Get,
    /// Without the value.
    Look,
    Set,
    Delete,
    Arithmetic,
    Noop,
    Debug,
}

/// What a line of the server does to the command that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// More lines follow.
    More,
    /// So many bytes follow and then more lines.
    Value(u64),
    /// So many bytes follow, and end it.
    LastValue(u64),
    Last,
    /// It answers another command.
    Other,
}

impl Command {
    pub(super) fn of(line: &[u8], noreply: bool) -> Command {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let verb = words.next().unwrap_or_default();
        let words: Vec<&[u8]> = words.take(64).collect();
        let word = |place: usize| words.get(place).copied().unwrap_or_default();
        let Some((wants, key)) = wants(verb) else {
            return Command {
                method: other(verb),
                ..Command::default()
            };
        };
        let mut command = Command {
            method: text::name(verb),
            target: key.map_or_else(SmolStr::default, |place| text::name(word(place))),
            wants,
            ..Command::default()
        };
        match wants {
            Wants::Stored => {
                command.value = number(word(3));
                command.silent = noreply;
            }
            Wants::Deleted | Wants::Touched | Wants::Number => command.silent = noreply,
            Wants::Line if matches!(verb, b"flush_all" | b"verbosity") => command.silent = noreply,
            Wants::Line => command.silent = verb == b"quit",
            Wants::Lines if verb == b"lru_crawler" => {
                command.method = format_smolstr!("lru_crawler {}", other(word(0)));
                command.target = text::name(word(1));
                if !word(0).ends_with(b"dump") {
                    command.wants = Wants::Line;
                }
            }
            Wants::Meta(meta) => {
                command.value = number(word(1)).filter(|_| meta == Meta::Set);
                let flags = || words.iter().skip(if meta == Meta::Set { 2 } else { 1 });
                command.quiet = flags().any(|flag| *flag == b"q");
                if meta == Meta::Get && !flags().any(|flag| *flag == b"v") {
                    command.wants = Wants::Meta(Meta::Look);
                }
                let opaque = flags().find_map(|flag| flag.strip_prefix(b"O"));
                command.opaque = text::name_up_to(opaque.unwrap_or_default(), 32, false);
            }
            _ => {}
        }
        command
    }

    /// Whether the line is one that this protocol has and hardly another one: a known verb with what has to follow it.
    pub(super) fn is_sure(line: &[u8]) -> bool {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let Some((wants, _)) = wants(words.next().unwrap_or_default()) else {
            return false;
        };
        let words: Vec<&[u8]> = words.take(7).collect();
        let numbers = |from: usize, most: usize| {
            let behind = words.get(from..).unwrap_or_default();
            let plain = behind.iter().take(most).all(|word| number(word).is_some());
            behind.len() >= most && plain
        };
        match wants {
            Wants::Stored => numbers(1, 3),
            Wants::Number => numbers(1, 1),
            Wants::Meta(Meta::Set) => numbers(1, 1),
            _ => false,
        }
    }

    /// Whether it asks for what is stored.
    pub(super) fn looks(&self) -> bool {
        matches!(self.wants, Wants::Meta(Meta::Get | Meta::Look))
    }

    /// Whether a value has to follow it.
    pub(super) fn stores(&self) -> bool {
        matches!(self.wants, Wants::Stored | Wants::Meta(Meta::Set))
    }

    /// Whether the line begins with a verb of this protocol.
    pub(super) fn is_known(line: &[u8]) -> bool {
        let verb = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        wants(verb).is_some()
    }
}

/// What this verb's answer is, and which word behind it is the key.
fn wants(verb: &[u8]) -> Option<(Wants, Option<usize>)> {
    Some(match verb {
        b"get" | b"gets" => (Wants::Values, Some(0)),
        b"gat" | b"gats" => (Wants::Values, Some(1)),
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => (Wants::Stored, Some(0)),
        b"delete" => (Wants::Deleted, Some(0)),
        b"touch" => (Wants::Touched, Some(0)),
        b"incr" | b"decr" => (Wants::Number, Some(0)),
        b"stats" | b"config" => (Wants::Lines, Some(0)),
        b"lru_crawler" => (Wants::Lines, None),
        b"version" => (Wants::Version, None),
        b"watch" => (Wants::Watch, Some(0)),
        b"mg" => (Wants::Meta(Meta::Get), Some(0)),
        b"ms" => (Wants::Meta(Meta::Set), Some(0)),
        b"md" => (Wants::Meta(Meta::Delete), Some(0)),
        b"ma" => (Wants::Meta(Meta::Arithmetic), Some(0)),
        b"me" => (Wants::Meta(Meta::Debug), Some(0)),
        b"mn" => (Wants::Meta(Meta::Noop), None),
        b"flush_all" | b"verbosity" | b"quit" | b"shutdown" | b"cache_memlimit" | b"refresh_certs" => {
            (Wants::Line, None)
        }
        b"slabs" | b"lru" => (Wants::Line, Some(0)),
        _ => return None,
    })
}

/// A word that is no verb: what follows a command that the server refused may be a value.
fn other(word: &[u8]) -> SmolStr {
    if word.len() <= MAX_VERB && word.iter().all(u8::is_ascii_alphabetic) {
        text::name(word)
    } else {
        unknown()
    }
}

/// What a command is called whose name is nobody's business.
pub(super) fn unknown() -> SmolStr {
    SmolStr::new_static("?")
}

impl Wants {
    /// What this line of the server is to a command that waits; `silent` where a quiet one has been answered by none.
    pub(super) fn answer(self, line: &[u8], quiet: bool) -> Answer {
        let mut words = line.split(|byte| *byte == b' ');
        let first = words.next().unwrap_or_default();
        let mut size = |place: usize| words.nth(place).and_then(number);
        if is_error(first) {
            return Answer::Last;
        }
        match (self, first) {
            (Wants::Values, b"VALUE") => size(2).map_or(Answer::Other, Answer::Value),
            (Wants::Lines, b"CONFIG") => size(2).map_or(Answer::Other, Answer::Value),
            (Wants::Values, b"END") | (Wants::Line | Wants::Watch, _) => Answer::Last,
            (Wants::Lines, b"END" | b"OK" | b"RESET" | b"EN" | b"BUSY") => Answer::Last,
            (Wants::Lines, _) => Answer::More,
            (Wants::Stored, b"STORED" | b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND")
            | (Wants::Deleted, b"DELETED" | b"NOT_FOUND")
            | (Wants::Touched, b"TOUCHED" | b"NOT_FOUND")
            | (Wants::Number, b"NOT_FOUND")
            | (Wants::Version, b"VERSION") => Answer::Last,
            (Wants::Number, digits) if digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit) => {
                Answer::Last
            }
            (Wants::Meta(meta), code) => meta.answer(code, size(0), quiet),
            _ => Answer::Other,
        }
    }
}

impl Meta {
    fn answer(self, code: &[u8], size: Option<u64>, quiet: bool) -> Answer {
        let fits = match self {
            Meta::Get if code == b"VA" => return size.map_or(Answer::Other, Answer::LastValue),
            Meta::Arithmetic if code == b"VA" && !quiet => {
                return size.map_or(Answer::Other, Answer::LastValue);
            }
            Meta::Look if code == b"HD" => true,
            Meta::Get | Meta::Look => code == b"EN" && !quiet,
            Meta::Set => matches!(code, b"NS" | b"EX" | b"NF") || code == b"HD" && !quiet,
            Meta::Delete => code == b"EX" || matches!(code, b"HD" | b"NF") && !quiet,
            Meta::Arithmetic => matches!(code, b"NS" | b"EX") || matches!(code, b"HD" | b"NF") && !quiet,
            Meta::Noop => code == b"MN",
            Meta::Debug => matches!(code, b"ME" | b"EN"),
        };
        if fits { Answer::Last } else { Answer::Other }
    }
}

pub(super) fn is_error(word: &[u8]) -> bool {
    matches!(word, b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR")
}

/// Whether a meta command's answer repeats another command's opaque word, or its key.
pub(super) fn is_apart(line: &[u8], opaque: &str, key: &str) -> bool {
    let repeats = |letter: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ').skip(1);
        words.find_map(|word| word.strip_prefix(letter))
    };
    let other = |input: Option<&[u8]>, mine: &str| input.is_some_and(|input| input != mine.as_bytes());
    other(repeats(b"O"), opaque) || other(repeats(b"k"), key)
}

/// What a server's lines begin with.
const ANSWERS: [&[u8]; 24] = [
    b"VALUE",
    b"END",
    b"STORED",
    b"NOT_STORED",
    b"EXISTS",
    b"NOT_FOUND",
    b"DELETED",
    b"TOUCHED",
    b"OK",
    b"VERSION",
    b"STAT",
    b"ITEM",
    b"ERROR",
    b"CLIENT_ERROR",
    b"SERVER_ERROR",
    b"HD",
    b"VA",
    b"EN",
    b"NS",
    b"EX",
    b"NF",
    b"MN",
    b"ME",
    b"RESET",
];

/// Whether a line of a server may begin so.
pub(super) fn may_answer(input: &[u8]) -> bool {
    let first = input
        .split(|byte| *byte == b' ' || *byte == b'\r')
        .next()
        .unwrap_or_default();
    let known = |answer: &&[u8]| {
        if first.len() == input.len() {
            answer.starts_with(first)
        } else {
            **answer == *first
        }
    };
    ANSWERS.iter().any(known) || first.iter().all(u8::is_ascii_digit)
}

/// Whether a server of this protocol may say this line.
pub(super) fn is_answer(line: &[u8]) -> bool {
    let first = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let all = [
        Wants::Values,
        Wants::Stored,
        Wants::Deleted,
        Wants::Touched,
        Wants::Version,
        Wants::Meta(Meta::Get),
        Wants::Meta(Meta::Set),
        Wants::Meta(Meta::Noop),
    ];
    matches!(first, b"STAT" | b"ITEM" | b"OK")
        || all.iter().any(|wants| wants.answer(line, false) != Answer::Other)
}
