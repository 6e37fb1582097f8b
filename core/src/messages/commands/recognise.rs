//! Recognition of SMTP, POP3, IMAP and FTP: both a command from the client and a reply of the right form from the
//! server are needed. Many protocols have replies of three digits, and `QUIT`.

use super::answers::code;
use super::verbs::{Dialect, is_tag};
use super::{AnyReader, Commands};
use crate::base::Side;
use crate::messages::readers::{Protocol, Recognition};
use crate::messages::{FirstBytes, Guess};

macro_rules! recognition {
    ($protocol:ident, $dialect:expr) => {
        Recognition {
            protocol: Protocol::$protocol,
            sniff: |first| sniff($dialect, first),
            begins_message: |side, first| begins_message($dialect, side, first),
            reader: |_| AnyReader::$protocol(Box::new(Commands::new($dialect))),
            ..Recognition::NEVER
        }
    };
}

pub(in crate::messages) const SMTP: Recognition = recognition!(Smtp, Dialect::Smtp);
pub(in crate::messages) const FTP: Recognition = recognition!(Ftp, Dialect::Ftp);
pub(in crate::messages) const POP3: Recognition = recognition!(Pop3, Dialect::Pop3);
pub(in crate::messages) const IMAP: Recognition = recognition!(Imap, Dialect::Imap);

/// Commands that no other protocol of lines has, with the byte that must follow them.
#[rustfmt::skip]
const SMTP_VERBS: &[&str] = &[
    "EHLO ", "HELO ", "LHLO ", "MAIL FROM:", "RCPT TO:", "STARTTLS\r", "DATA\r", "RSET\r",
];
const FTP_VERBS: &[&str] = &[
    "USER ", "PASS ", "AUTH TLS", "AUTH SSL", "FEAT\r", "OPTS ", "SYST\r", "TYPE A", "TYPE I", "PASV\r",
    "EPSV", "PORT ", "EPRT |", "RETR ", "STOR ", "STOU", "APPE ", "NLST", "MLSD", "MLST", "CWD ", "CDUP\r",
    "PWD\r", "XPWD\r", "SIZE ", "MDTM ", "REST ", "RNFR ", "RNTO ", "DELE ", "MKD ", "RMD ", "PBSZ ",
    "PROT ", "CLNT ",
];
const POP3_VERBS: &[&str] = &[
    "USER ", "PASS ", "APOP ", "CAPA\r", "STLS\r", "AUTH", "STAT\r", "LIST", "UIDL", "RETR ", "TOP ",
    "DELE ", "QUIT\r", "NOOP\r", "RSET\r",
];
#[rustfmt::skip]
const IMAP_VERBS: &[&str] = &[
    "CAPABILITY\r", "LOGIN ", "AUTHENTICATE ", "STARTTLS\r", "ID ", "SELECT ", "EXAMINE ", "STATUS ",
    "LIST ", "LSUB ", "NAMESPACE\r", "ENABLE ", "NOOP\r", "IDLE\r", "APPEND ", "FETCH ", "STORE ", "SEARCH ",
    "COPY ", "MOVE ", "UID ", "EXPUNGE\r", "CLOSE\r", "LOGOUT\r", "CREATE ", "DELETE ", "RENAME ",
    "SUBSCRIBE ", "CHECK\r", "UNSELECT\r",
];

/// How well one side's first bytes fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    /// Too few bytes.
    More,
}

/// How well bytes fit one of the words, without regard to case.
fn begins(bytes: &[u8], words: &[&str]) -> Fit {
    let fit = |word: &str| {
        let pairs = bytes.iter().zip(word.as_bytes());
        let is_same = pairs
            .clone()
            .all(|(byte, letter)| byte.eq_ignore_ascii_case(letter));
        match (is_same, bytes.len() < word.len()) {
            (false, _) => Fit::No,
            (true, true) => Fit::More,
            (true, false) => Fit::Yes,
        }
    };
    words.iter().fold(Fit::No, |best, word| match (best, fit(word)) {
        (Fit::Yes, _) | (_, Fit::Yes) => Fit::Yes,
        (Fit::More, _) | (_, Fit::More) => Fit::More,
        _ => Fit::No,
    })
}

fn fit_client(dialect: Dialect, bytes: &[u8]) -> Fit {
    match dialect {
        Dialect::Smtp => begins(bytes, SMTP_VERBS),
        Dialect::Ftp => begins(bytes, FTP_VERBS),
        Dialect::Pop3 => begins(bytes, POP3_VERBS),
        Dialect::Imap => match memchr::memchr(b' ', bytes) {
            Some(end) => match bytes.split_at_checked(end) {
                Some((tag, [_, rest @ ..])) if is_tag(tag) => begins(rest, IMAP_VERBS),
                _ => Fit::No,
            },
            None if is_tag(bytes) => Fit::More,
            None => Fit::No,
        },
    }
}

fn fit_server(dialect: Dialect, bytes: &[u8]) -> Fit {
    match dialect {
        Dialect::Smtp | Dialect::Ftp => {
            let line = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            match (code(line), bytes) {
                (Some(_), [_, _, _, _, ..]) => Fit::Yes,
                _ if bytes.len() < 4 && bytes.iter().all(u8::is_ascii_digit) => Fit::More,
                _ => Fit::No,
            }
        }
        Dialect::Pop3 => begins(bytes, &["+OK ", "+OK\r", "-ERR ", "-ERR\r", "+ "]),
        Dialect::Imap => match memchr::memchr(b' ', bytes) {
            Some(end) => match bytes.split_at_checked(end) {
                Some((b"*" | b"+", _)) => Fit::Yes,
                Some((tag, [_, rest @ ..])) if is_tag(tag) => begins(rest, &["OK ", "NO ", "BAD "]),
                _ => Fit::No,
            },
            None if is_tag(bytes) || bytes == b"*" || bytes == b"+" => Fit::More,
            None => Fit::No,
        },
    }
}

fn fit(dialect: Dialect, side: Side, bytes: &[u8]) -> Fit {
    match side {
        Side::Client => fit_client(dialect, bytes),
        Side::Server => fit_server(dialect, bytes),
    }
}

/// Both sides have to fit.
fn sniff(dialect: Dialect, first: &FirstBytes<'_>) -> Guess {
    let (side, other) = (first.side, first.side.other());
    match (fit(dialect, side, first.input), fit(dialect, other, first.other)) {
        (Fit::No, _) => Guess::No,
        (Fit::More, _) => Guess::More,
        (Fit::Yes, Fit::Yes) => Guess::Yes,
        (Fit::Yes, Fit::More) => Guess::NeedsOtherSide,
        (Fit::Yes, Fit::No) if first.other.is_empty() => Guess::NeedsOtherSide,
        (Fit::Yes, Fit::No) => Guess::No,
    }
}

/// In the middle of a stream the client alone must be enough: a mail's envelope, or a tag and a command of IMAP only.
fn begins_message(dialect: Dialect, side: Side, first: &[u8]) -> bool {
    let is_whole = first.ends_with(b"\r\n") && side == Side::Client;
    is_whole
        && match dialect {
            Dialect::Smtp => {
                let envelope = ["EHLO ", "MAIL FROM:<", "RCPT TO:<"];
                begins(first, &envelope) == Fit::Yes
            }
            Dialect::Imap => {
                let surest = [
                    "UID FETCH ",
                    "UID STORE ",
                    "UID SEARCH ",
                    "AUTHENTICATE ",
                    "IDLE\r",
                    "CAPABILITY\r",
                ];
                fit_client(dialect, first) == Fit::Yes
                    && memchr::memchr(b' ', first)
                        .and_then(|end| first.get(end + 1..))
                        .is_some_and(|rest| begins(rest, &surest) == Fit::Yes)
            }
            Dialect::Pop3 | Dialect::Ftp => false,
        }
}
