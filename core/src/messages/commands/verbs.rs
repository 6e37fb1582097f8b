//! Command lines of the four protocols: method, target, and the command's effect on the lines after it. Passwords are
//! never a target.

use smol_str::{SmolStr, ToSmolStr};

use super::super::lines::number;
use crate::messages::text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Smtp,
    Pop3,
    Imap,
    Ftp,
}

/// How a command changes the reading of what follows it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    #[default]
    Plain,
    /// This many octets follow the line (BDAT).
    Octets(u64),
    /// A positive reply has a text up to a lone dot.
    Text,
    /// Both sides may send further lines before the reply.
    Dialogue,
    /// TLS follows a positive reply.
    Tls,
    /// Compressed data follow a positive reply.
    Compression,
    /// The command waits for events until the client sends another line.
    Idle,
    /// From now on the server replies to a mail's text once for each recipient (LMTP).
    PerRecipient,
    /// A positive reply accepts a recipient.
    Recipient,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) tag: SmolStr,
    pub(super) method: SmolStr,
    pub(super) target: SmolStr,
    pub(super) effect: Effect,
}

/// Upper bound on the bytes of a verb.
const MAX_VERB: usize = 16;
/// Upper bound on the bytes of an IMAP tag; no known client's is longer.
const MAX_TAG: usize = 16;

impl Dialect {
    /// Reads the command of a line. None if the line cannot be one.
    pub(super) fn command(self, line: &[u8]) -> Option<Command> {
        // Telnet's control bytes before ABOR (RFC 959 4.1.3)
        let telnet = line.iter().take_while(|byte| **byte >= 0xF0).count();
        let line = line.get(telnet..).unwrap_or_default();
        if self == Dialect::Imap {
            return imap(line);
        }
        let (word, rest) = split_word(line);
        let verb = verb(word)?;
        let (target, effect) = match self {
            Dialect::Smtp => smtp(&verb, rest),
            Dialect::Pop3 => pop3(&verb, rest),
            _ => ftp(&verb, rest),
        };
        Some(Command {
            method: verb,
            target: text::name(target),
            effect,
            ..Command::default()
        })
    }
}

impl Command {
    /// Whether the line may as well be part of a mail's text, if it follows lost bytes or other commands.
    pub(super) fn is_odd(&self, dialect: Dialect) -> bool {
        dialect == Dialect::Smtp && !is_smtp(&self.method)
    }
}

/// Splits off the first word.
fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b' ', line).unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (word, rest.trim_ascii())
}

/// Returns a verb in capitals; None if the word cannot be one.
fn verb(word: &[u8]) -> Option<SmolStr> {
    let is_alphabetic = word.iter().all(u8::is_ascii_alphabetic);
    // `QUIT`, `quit`, `Quit`, but not `qUiT`: that is base64 of a log-in whose challenge is not in the capture
    let (first, rest) = word.split_first()?;
    let has_one_case = rest.iter().all(u8::is_ascii_lowercase)
        || first.is_ascii_uppercase() && rest.iter().all(u8::is_ascii_uppercase);
    let fits = is_alphabetic && has_one_case && word.len() <= MAX_VERB;
    let text = std::str::from_utf8(word).ok().filter(|_| fits)?;
    Some(text.to_ascii_uppercase().to_smolstr())
}

/// Target and effect of a command of SMTP (RFC 5321, 3030, 3207, 4954) or LMTP (RFC 2033).
fn smtp<'a>(verb: &str, rest: &'a [u8]) -> (&'a [u8], Effect) {
    match verb {
        "MAIL" => (address(rest), Effect::Plain),
        "RCPT" => (address(rest), Effect::Recipient),
        "AUTH" => (mechanism(rest), Effect::Dialogue),
        "STARTTLS" => (b"", Effect::Tls),
        "BDAT" => (b"", Effect::Octets(number(split_word(rest).0).unwrap_or(0))),
        "LHLO" => (rest, Effect::PerRecipient),
        "HELO" | "EHLO" | "VRFY" | "EXPN" | "HELP" | "ETRN" => (rest, Effect::Plain),
        _ => (b"", Effect::Plain),
    }
}

/// Returns the mechanism that an AUTH names, if it is a known one (IANA's list for SASL; RFC 2228, 4217 for FTP). Other
/// words may be a password, sent by mistake.
fn mechanism(rest: &[u8]) -> &[u8] {
    #[rustfmt::skip]
    const NAMES: [&str; 34] = [
        "9798-M-DSA-SHA1", "9798-M-ECDSA-SHA1", "9798-M-RSA-SHA1-ENC", "9798-U-DSA-SHA1",
        "9798-U-ECDSA-SHA1", "9798-U-RSA-SHA1-ENC", "ANONYMOUS", "CRAM-MD5", "DIGEST-MD5",
        "ECDH-X25519-CHALLENGE", "ECDSA-NIST256P-CHALLENGE", "EXTERNAL", "GS2-KRB5", "GS2-KRB5-PLUS",
        "GSS-SPNEGO", "GSSAPI", "KERBEROS_V4", "KERBEROS_V5", "LOGIN", "NMAS-SAMBA-AUTH", "NMAS_AUTHEN",
        "NMAS_LOGIN", "NTLM", "OAUTHBEARER", "OPENID20", "OTP", "PLAIN", "SAML20", "SCRAM-SHA-1",
        "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", "SECURID", "XOAUTH2",
    ];
    let first = split_word(rest).0;
    let is_mechanism = NAMES
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name.as_bytes()));
    if is_mechanism { first } else { b"" }
}

/// Whether mail servers have a command with this verb; experimental ones begin with X.
fn is_smtp(verb: &str) -> bool {
    const VERBS: [&str; 18] = [
        "MAIL", "RCPT", "AUTH", "STARTTLS", "BDAT", "LHLO", "HELO", "EHLO", "VRFY", "EXPN", "HELP", "ETRN",
        "ATRN", "BURL", "DATA", "RSET", "NOOP", "QUIT",
    ];
    VERBS.contains(&verb) || verb.starts_with('X')
}

/// Returns the address in `FROM:<a@b> SIZE=1`.
fn address(rest: &[u8]) -> &[u8] {
    let begin = memchr::memchr(b':', rest).map_or(0, |at| at + 1);
    let path = rest.get(begin..).unwrap_or_default().trim_ascii();
    let Some(path) = path.strip_prefix(b"<") else {
        return split_word(path).0;
    };
    let end = memchr::memchr(b'>', path).unwrap_or(path.len());
    path.get(..end).unwrap_or_default()
}

/// Target and effect of a command of POP3 (RFC 1939, 2449, 2595, 5034).
fn pop3<'a>(verb: &str, rest: &'a [u8]) -> (&'a [u8], Effect) {
    let is_bare = rest.is_empty();
    match verb {
        "RETR" | "TOP" | "CAPA" => (split_word(rest).0, Effect::Text),
        "LIST" | "UIDL" if is_bare => (b"", Effect::Text),
        "AUTH" if is_bare => (b"", Effect::Text),
        "AUTH" => (mechanism(rest), Effect::Dialogue),
        "STLS" => (b"", Effect::Tls),
        "USER" | "APOP" | "LIST" | "UIDL" | "DELE" => (split_word(rest).0, Effect::Plain),
        _ => (b"", Effect::Plain),
    }
}

/// FTP's verbs whose argument is shown. The argument of others may be a secret (PASS, ACCT, ADAT, MIC).
const FTP_NAMES: [&str; 38] = [
    "ALLO", "APPE", "CLNT", "CWD", "DELE", "EPRT", "EPSV", "HASH", "HELP", "HOST", "LANG", "LIST", "MDTM",
    "MFMT", "MKD", "MLSD", "MLST", "MODE", "NLST", "PBSZ", "PORT", "PROT", "REST", "RETR", "RMD", "RNFR",
    "RNTO", "SIZE", "SMNT", "STAT", "STOR", "STOU", "STRU", "TYPE", "USER", "XCWD", "XMKD", "XRMD",
];

/// Target and effect of a command of FTP (RFC 959, 2228, 2389, 3659, 4217).
fn ftp<'a>(verb: &str, rest: &'a [u8]) -> (&'a [u8], Effect) {
    let tls = [&b"TLS"[..], b"TLS-C", b"SSL"]
        .iter()
        .any(|word| rest.eq_ignore_ascii_case(word));
    match verb {
        "AUTH" if tls => (rest, Effect::Tls),
        "AUTH" => (mechanism(rest), Effect::Plain),
        "SITE" | "OPTS" => (split_word(rest).0, Effect::Plain),
        _ if FTP_NAMES.contains(&verb) => (rest, Effect::Plain),
        _ => (b"", Effect::Plain),
    }
}

/// Reads a command of IMAP (RFC 9051, 2177, 4978). `UID FETCH` is one method.
fn imap(line: &[u8]) -> Option<Command> {
    let (tag, rest) = split_word(line);
    let (first, mut rest) = split_word(rest);
    let mut method = verb(first)?;
    if !is_tag(tag) {
        return None;
    }
    if method == "UID"
        && let (Some(second), after) = (verb(split_word(rest).0), split_word(rest).1)
    {
        (method, rest) = (format!("UID {second}").into(), after);
    }
    let effect = match method.as_str() {
        "AUTHENTICATE" => Effect::Dialogue,
        "STARTTLS" => Effect::Tls,
        "COMPRESS" => Effect::Compression,
        "IDLE" => Effect::Idle,
        _ => Effect::Plain,
    };
    Some(Command {
        tag: text::name(tag),
        method,
        target: match effect {
            Effect::Dialogue => text::name(mechanism(rest)),
            _ => argument(rest),
        },
        effect,
    })
}

/// Whether this may be a tag (RFC 9051 9).
pub(super) fn is_tag(tag: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"(){%*\"\\+".contains(byte);
    (1..=MAX_TAG).contains(&tag.len()) && tag.iter().all(plain)
}

/// Returns the first argument, if it is an atom or a quoted string. The second one of LOGIN is a password.
fn argument(rest: &[u8]) -> SmolStr {
    if let Some(quoted) = rest.strip_prefix(b"\"") {
        let (mut plain, mut escaped) = (Vec::new(), false);
        for byte in quoted {
            match byte {
                b'\\' if !escaped => escaped = true,
                b'"' if !escaped => break,
                byte => {
                    plain.push(*byte);
                    escaped = false;
                }
            }
        }
        return text::name(&plain);
    }
    let (atom, _) = split_word(rest);
    match atom.first() {
        Some(b'(' | b'{') | None => SmolStr::default(),
        Some(_) => text::name(atom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_and_secrets_are_not() {
        use Dialect::{Ftp, Imap, Pop3, Smtp};
        for (dialect, line, method, target, effect) in [
            (Smtp, "ehlo me", "EHLO", "me", Effect::Plain),
            (Smtp, "MAIL FROM:<a@lab> SIZE=9", "MAIL", "a@lab", Effect::Plain),
            (Smtp, "RCPT TO: <b@lab>", "RCPT", "b@lab", Effect::Recipient),
            (Smtp, "AUTH PLAIN AGFubmEAcHc=", "AUTH", "PLAIN", Effect::Dialogue),
            (Smtp, "AUTH hunter2", "AUTH", "", Effect::Dialogue),
            (Pop3, "AUTH hunter2", "AUTH", "", Effect::Dialogue),
            (Pop3, "AUTH xoauth2", "AUTH", "xoauth2", Effect::Dialogue),
            (Ftp, "AUTH hunter2", "AUTH", "", Effect::Plain),
            (
                Imap,
                "a1 AUTHENTICATE hunter2",
                "AUTHENTICATE",
                "",
                Effect::Dialogue,
            ),
            (Smtp, "BDAT 86 LAST", "BDAT", "", Effect::Octets(86)),
            (Smtp, "FOO secret", "FOO", "", Effect::Plain),
            (Pop3, "PASS pw", "PASS", "", Effect::Plain),
            (Pop3, "APOP anna c4c9334b", "APOP", "anna", Effect::Plain),
            (Pop3, "TOP 1 0", "TOP", "1", Effect::Text),
            (Pop3, "LIST", "LIST", "", Effect::Text),
            (Pop3, "LIST 3", "LIST", "3", Effect::Plain),
            (Ftp, "PASS pw", "PASS", "", Effect::Plain),
            (Ftp, "SITE PSWD pw", "SITE", "PSWD", Effect::Plain),
            (Ftp, "XPWD pw", "XPWD", "", Effect::Plain),
            (Ftp, "Stor b", "STOR", "b", Effect::Plain),
            (Ftp, "RETR a file", "RETR", "a file", Effect::Plain),
            (Ftp, "AUTH tls", "AUTH", "tls", Effect::Tls),
            (Imap, "a1 LOGIN anna \"pw\"", "LOGIN", "anna", Effect::Plain),
            (Imap, "a1 LOGIN {4}", "LOGIN", "", Effect::Plain),
            (
                Imap,
                "a1 SELECT \"In \\\"box\"",
                "SELECT",
                "In \"box",
                Effect::Plain,
            ),
            (
                Imap,
                "a1 uid fetch 1:* (FLAGS)",
                "UID FETCH",
                "1:*",
                Effect::Plain,
            ),
            (
                Imap,
                "a1 AUTHENTICATE PLAIN AGFu",
                "AUTHENTICATE",
                "PLAIN",
                Effect::Dialogue,
            ),
            (Imap, "a1 ID (\"name\" \"x\")", "ID", "", Effect::Plain),
        ] {
            let command = dialect.command(line.as_bytes()).unwrap();
            assert_eq!(
                (&*command.method, &*command.target, command.effect),
                (method, target, effect),
                "{line}"
            );
        }
        for (dialect, line) in [
            (Smtp, ""),
            (Smtp, "Subject: x"),
            (Smtp, "aHVudGVy"), // base64
            (Imap, "IDLE"),
            (Imap, "+ IDLE"),
            (Pop3, "12 x"),
        ] {
            assert_eq!(dialect.command(line.as_bytes()), None, "{line}");
        }
    }
}
