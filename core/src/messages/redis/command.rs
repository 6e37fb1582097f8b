//! Commands of Redis: their names, and how the server replies. Keys and names are kept; values and passwords are not.

use smol_str::{SmolStr, StrExt, format_smolstr};

use super::super::sql::{self, Dialect};
use super::super::{Kind, text};
use super::resp::Resp;

/// Upper bound on the bytes of a verb.
const MAX_VERB: usize = 32;

/// A command as the tables show it.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) method: SmolStr,
    pub(super) target: SmolStr,
    pub(super) kind: Kind,
    pub(super) answers: Answers,
    /// First word of the pushes that the command subscribes to; None if it is not a subscription.
    pub(super) pushes: Option<&'static [u8]>,
}

/// Stands for the first word of MONITOR's lines, which have none.
pub(super) const MONITORED: &[u8] = b"+";

/// What the server sends in reply to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    One,
    /// A confirmation for each of this many channels.
    Confirmed(u64),
    /// A confirmation for each channel that the client has subscribed to.
    AllConfirmed,
    /// One, then a line for each command of any client.
    Monitor,
    /// One, with the server's version in it.
    Hello,
    Info,
    /// One, then the server's data and all changes to it.
    Replica,
    /// One to `CLIENT REPLY ON`; none to `OFF`; none to `SKIP` and the command after it.
    ReplyOn,
    ReplyOff,
    ReplySkip,
    /// None: a replica acknowledges its replication offset.
    Never,
}

/// Where among a command's words its key stands.
enum Key {
    Nowhere,
    At(usize),
    /// After this word.
    After(&'static [u8]),
    /// At 3 if the count of keys at 2 is not 0; else the script, or its name, is the target.
    Counted,
}

impl Command {
    /// Reads the command of these words. `is_early`: no command but those that set up the connection came before.
    pub(super) fn of(words: &Resp, is_early: bool) -> Command {
        let verb = upper(words.word(0));
        let second = upper(words.word(1));
        let (method, key) = match verb.as_str() {
            "PING" | "ECHO" | "AUTH" | "HELLO" | "QUIT" | "RESET" | "MULTI" | "EXEC" | "DISCARD"
            | "MONITOR" | "TIME" | "REPLCONF" | "PSYNC" | "SYNC" | "REPLICAOF" | "SLAVEOF" | "LOLWUT" => {
                (verb, Key::Nowhere)
            }
            "OBJECT" | "MEMORY" | "XGROUP" | "XINFO" if words.word_count() > 2 => {
                (format_smolstr!("{verb} {second}"), Key::At(2))
            }
            "BITOP" => (verb, Key::At(2)),
            "EVAL" | "EVAL_RO" | "EVALSHA" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => (verb, Key::Counted),
            "XREAD" | "XREADGROUP" => (verb, Key::After(b"STREAMS")),
            "BLMPOP" | "BZMPOP" => (verb, Key::At(3)),
            "LMPOP" | "ZMPOP" | "SINTERCARD" | "ZINTERCARD" | "ZUNION" | "ZINTER" | "ZDIFF" => {
                (verb, Key::At(2))
            }
            "CLIENT" | "CONFIG" | "CLUSTER" | "ACL" | "SCRIPT" | "DEBUG" | "FUNCTION" | "PUBSUB"
            | "LATENCY" | "SLOWLOG" | "MODULE" | "OBJECT" | "MEMORY" | "XGROUP" | "XINFO" => {
                return Command::with(verb, second, words, is_early);
            }
            _ => (verb, Key::At(1)),
        };
        let target = match key {
            Key::Nowhere => SmolStr::default(),
            Key::At(index) => text::name(words.word(index)),
            Key::After(word) => {
                let index =
                    (1..words.word_count()).find(|index| words.word(*index).eq_ignore_ascii_case(word));
                index.map_or_else(SmolStr::default, |index| text::name(words.word(index + 1)))
            }
            Key::Counted if words.word_count() > 3 && words.word(2) != b"0" => text::name(words.word(3)),
            // a script is shown as SQL is: without its literals
            Key::Counted => sql::mask(words.word(1), Dialect::Backslash, words.is_cut(1)),
        };
        Command::with(method, target, words, is_early)
    }

    fn with(method: SmolStr, target: SmolStr, words: &Resp, is_early: bool) -> Command {
        Command {
            kind: kind(&method, &target, words, is_early),
            answers: answers(&method, &target, words),
            pushes: match method.as_str() {
                "SUBSCRIBE" => Some(b"message"),
                "PSUBSCRIBE" => Some(b"pmessage"),
                "SSUBSCRIBE" => Some(b"smessage"),
                "MONITOR" => Some(MONITORED),
                _ => None,
            },
            method,
            target,
        }
    }

    /// Whether the verb and the key name the command completely, so that it need not be whole.
    pub(super) fn is_plain(verb: &[u8]) -> bool {
        [
            &b"SET"[..],
            b"APPEND",
            b"HSET",
            b"LPUSH",
            b"RPUSH",
            b"SADD",
            b"MSET",
            b"RESTORE",
            b"PUBLISH",
            b"ZADD",
        ]
        .iter()
        .any(|plain| verb.eq_ignore_ascii_case(plain))
    }
}

fn upper(word: &[u8]) -> SmolStr {
    text::name_up_to(word, MAX_VERB, false).to_uppercase_smolstr()
}

fn kind(method: &str, target: &str, words: &Resp, is_early: bool) -> Kind {
    let blocks = || (1..words.word_count()).any(|index| words.word(index).eq_ignore_ascii_case(b"BLOCK"));
    match method {
        "AUTH" | "HELLO" => Kind::Setup,
        "SELECT" | "READONLY" | "REPLCONF" if is_early => Kind::Setup,
        "CLIENT" if is_early && target.starts_with("SET") || target == "MAINT_NOTIFICATIONS" => Kind::Setup,
        "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BLMPOP" | "BZPOPMIN" | "BZPOPMAX" | "BZMPOP"
        | "WAIT" | "WAITAOF" => Kind::LongPoll,
        "XREAD" | "XREADGROUP" if blocks() => Kind::LongPoll,
        _ => Kind::Request,
    }
}

fn answers(method: &str, target: &str, words: &Resp) -> Answers {
    match method {
        "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" => Answers::Confirmed(words.count.saturating_sub(1)),
        "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" => match words.count.saturating_sub(1) {
            0 => Answers::AllConfirmed,
            channels => Answers::Confirmed(channels),
        },
        "MONITOR" => Answers::Monitor,
        "HELLO" => Answers::Hello,
        "INFO" => Answers::Info,
        "PSYNC" | "SYNC" => Answers::Replica,
        "REPLCONF" if words.word(1).eq_ignore_ascii_case(b"ACK") => Answers::Never,
        "CLIENT" if target == "REPLY" => match upper(words.word(2)).as_str() {
            "OFF" => Answers::ReplyOff,
            "SKIP" => Answers::ReplySkip,
            _ => Answers::ReplyOn,
        },
        _ => Answers::One,
    }
}

/// Verbs by which an inline command (a line of words, as a person types it) is recognised.
const INLINE: [&[u8]; 16] = [
    b"PING", b"GET", b"SET", b"DEL", b"INFO", b"AUTH", b"ECHO", b"EXISTS", b"INCR", b"MGET", b"KEYS", b"TTL",
    b"DBSIZE", b"SELECT", b"TIME", b"MONITOR",
];

/// Whether a line begins with a verb of `INLINE`.
pub(super) fn is_inline(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace);
    let verb = words.next().unwrap_or_default();
    INLINE.iter().any(|known| verb.eq_ignore_ascii_case(known))
}
