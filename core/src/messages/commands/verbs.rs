//! What a command's line means, in each of the four protocols. Reads lines, gives names and what follows them; secrets
//! are no names.

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

/// What a command makes of the lines behind it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    #[default]
    Plain,
    /// So many octets belong to it (BDAT).
    Octets(u64),
    /// Its good answer is a text up to a lone dot.
    Text,
    /// Both sides may take turns before its answer.
    Rounds,
    /// Behind its good answer stands TLS.
    Tls,
    /// Behind its good answer stands what nobody can read.
    Opaque,
    /// It waits for events until the client sends another line.
    Idle,
    /// Each recipient's mail is answered for itself from here on (LMTP).
    Apart,
    /// One recipient more, if the answer is good.
    Recipient,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) tag: SmolStr,
    pub(super) method: SmolStr,
    pub(super) target: SmolStr,
    pub(super) does: Does,
}

/// Longer words are no commands.
const MAX_VERB: usize = 16;
/// Longer ones are no tags of any client.
const MAX_TAG: usize = 16;

impl Dialect {
    /// The command of this line; none where it cannot be one.
    pub(super) fn command(self, line: &[u8]) -> Option<Command> {
        // Telnet's signs before ABOR (RFC 959 4.1.3)
        let signs = line.iter().take_while(|byte| **byte >= 0xF0).count();
        let line = line.get(signs..).unwrap_or_default();
        if self == Dialect::Imap {
            return imap(line);
        }
        let (word, rest) = word(line);
        let verb = verb(word)?;
        let (target, does) = match self {
            Dialect::Smtp => smtp(&verb, rest),
            Dialect::Pop3 => pop3(&verb, rest),
            _ => ftp(&verb, rest),
        };
        Some(Command {
            method: verb,
            target: text::name(target),
            does,
            ..Command::default()
        })
    }
}

impl Command {
    /// Whether it may as well be a line of a mail's text, where it stands behind lost bytes or other commands.
    pub(super) fn is_odd(&self, dialect: Dialect) -> bool {
        dialect == Dialect::Smtp && !is_smtp(&self.method)
    }
}

/// The first word, and what stands behind it.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b' ', line).unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (word, rest.trim_ascii())
}

fn verb(word: &[u8]) -> Option<SmolStr> {
    let letters = word.iter().all(u8::is_ascii_alphabetic);
    // in capitals, or none but the first: base64 of a log-in whose challenge is not in the capture has both
    let (first, rest) = word.split_first()?;
    let plain = rest.iter().all(u8::is_ascii_lowercase)
        || first.is_ascii_uppercase() && rest.iter().all(u8::is_ascii_uppercase);
    let fits = letters && plain && word.len() <= MAX_VERB;
    let text = std::str::from_utf8(word).ok().filter(|_| fits)?;
    Some(text.to_ascii_uppercase().to_smolstr())
}

/// RFC 5321, 3030, 3207, 4954, 2033.
fn smtp<'a>(verb: &str, rest: &'a [u8]) -> (&'a [u8], Does) {
    match verb {
        "MAIL" => (address(rest), Does::Plain),
        "RCPT" => (address(rest), Does::Recipient),
        "AUTH" => (mechanism(rest), Does::Rounds),
        "STARTTLS" => (b"", Does::Tls),
        "BDAT" => (b"", Does::Octets(number(word(rest).0).unwrap_or(0))),
        "LHLO" => (rest, Does::Apart),
        "HELO" | "EHLO" | "VRFY" | "EXPN" | "HELP" | "ETRN" => (rest, Does::Plain),
        _ => (b"", Does::Plain),
    }
}

/// The mechanism that an AUTH names, where it is one (IANA's list for SASL; RFC 2228, 4217 for FTP). Of other protocols,
/// and by mistake, a password stands there.
fn mechanism(rest: &[u8]) -> &[u8] {
    const NAMES: [&str; 34] = [
        "9798-M-DSA-SHA1",
        "9798-M-ECDSA-SHA1",
        "9798-M-RSA-SHA1-ENC",
        "9798-U-DSA-SHA1",
        "9798-U-ECDSA-SHA1",
        "9798-U-RSA-SHA1-ENC",
        "ANONYMOUS",
        "CRAM-MD5",
        "DIGEST-MD5",
        "ECDH-X25519-CHALLENGE",
        "ECDSA-NIST256P-CHALLENGE",
        "EXTERNAL",
        "GS2-KRB5",
        "GS2-KRB5-PLUS",
        "GSS-SPNEGO",
        "GSSAPI",
        "KERBEROS_V4",
        "KERBEROS_V5",
        "LOGIN",
        "NMAS-SAMBA-AUTH",
        "NMAS_AUTHEN",
        "NMAS_LOGIN",
        "NTLM",
        "OAUTHBEARER",
        "OPENID20",
        "OTP",
        "PLAIN",
        "SAML20",
        "SCRAM-SHA-1",
        "SCRAM-SHA-1-PLUS",
        "SCRAM-SHA-256",
        "SCRAM-SHA-256-PLUS",
        "SECURID",
        "XOAUTH2",
    ];
    let first = word(rest).0;
    let known = NAMES
        .iter()
        .any(|name| first.eq_ignore_ascii_case(name.as_bytes()));
    if known { first } else { b"" }
}

/// Whether servers of mail have a command with this verb; experimental ones begin with X.
fn is_smtp(verb: &str) -> bool {
    const VERBS: [&str; 18] = [
        "MAIL", "RCPT", "AUTH", "STARTTLS", "BDAT", "LHLO", "HELO", "EHLO", "VRFY", "EXPN", "HELP", "ETRN",
        "ATRN", "BURL", "DATA", "RSET", "NOOP", "QUIT",
    ];
    VERBS.contains(&verb) || verb.starts_with('X')
}

/// The address in `FROM:<a@b> SIZE=1`.
fn address(rest: &[u8]) -> &[u8] {
    let begin = memchr::memchr(b':', rest).map_or(0, |at| at + 1);
    let path = rest.get(begin..).unwrap_or_default().trim_ascii();
    let Some(path) = path.strip_prefix(b"<") else {
        return word(path).0;
    };
    let end = memchr::memchr(b'>', path).unwrap_or(path.len());
    path.get(..end).unwrap_or_default()
}

/// RFC 1939, 2449, 2595, 5034.
fn pop3<'a>(verb: &str, rest: &'a [u8]) -> (&'a [u8], Does) {
    let alone = rest.is_empty();
    match verb {
        "RETR" | "TOP" | "CAPA" => (word(rest).0, Does::Text),
        "LIST" | "UIDL" if alone => (b"", Does::Text),
        "AUTH" if alone => (b"", Does::Text),
        "AUTH" => (mechanism(rest), Does::Rounds),
        "STLS" => (b"", Does::Tls),
        "USER" | "APOP" | "LIST" | "UIDL" | "DELE" => (word(rest).0, Does::Plain),
        _ => (b"", Does::Plain),
    }
}

/// What stands behind these names something. Behind others of FTP may stand a secret (PASS, ACCT, ADAT, MIC), or what
/// nobody knows.
const FTP_NAMES: [&str; 38] = [
    "ALLO", "APPE", "CLNT", "CWD", "DELE", "EPRT", "EPSV", "HASH", "HELP", "HOST", "LANG", "LIST", "MDTM",
    "MFMT", "MKD", "MLSD", "MLST", "MODE", "NLST", "PBSZ", "PORT", "PROT", "REST", "RETR", "RMD", "RNFR",
    "RNTO", "SIZE", "SMNT", "STAT", "STOR", "STOU", "STRU", "TYPE", "USER", "XCWD", "XMKD", "XRMD",
];

/// RFC 959, 2228, 2389, 3659, 4217.
fn ftp<'a>(verb: &str, rest: &'a [u8]) -> (&'a [u8], Does) {
    let tls = [&b"TLS"[..], b"TLS-C", b"SSL"]
        .iter()
        .any(|word| rest.eq_ignore_ascii_case(word));
    match verb {
        "AUTH" if tls => (rest, Does::Tls),
        "AUTH" => (mechanism(rest), Does::Plain),
        "SITE" | "OPTS" => (word(rest).0, Does::Plain),
        _ if FTP_NAMES.contains(&verb) => (rest, Does::Plain),
        _ => (b"", Does::Plain),
    }
}

/// RFC 9051, 2177, 4978. A command of two words (`UID FETCH`) is one.
fn imap(line: &[u8]) -> Option<Command> {
    let (tag, rest) = word(line);
    let (first, mut rest) = word(rest);
    let mut method = verb(first)?;
    if !is_tag(tag) {
        return None;
    }
    if method == "UID"
        && let (Some(second), behind) = (verb(word(rest).0), word(rest).1)
    {
        (method, rest) = (format!("UID {second}").into(), behind);
    }
    let does = match method.as_str() {
        "AUTHENTICATE" => Does::Rounds,
        "STARTTLS" => Does::Tls,
        "COMPRESS" => Does::Opaque,
        "IDLE" => Does::Idle,
        _ => Does::Plain,
    };
    Some(Command {
        tag: text::name(tag),
        method,
        target: match does {
            Does::Rounds => text::name(mechanism(rest)),
            _ => argument(rest),
        },
        does,
    })
}

/// RFC 9051 9: what a tag may be.
pub(super) fn is_tag(tag: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"(){%*\"\\+".contains(byte);
    (1..=MAX_TAG).contains(&tag.len()) && tag.iter().all(plain)
}

/// The first argument: an atom or a quoted string. The second of LOGIN is a secret, lists and literals are no names.
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
    let (atom, _) = word(rest);
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
        for (dialect, line, method, target, does) in [
            (Smtp, "ehlo me", "EHLO", "me", Does::Plain),
            (Smtp, "MAIL FROM:<a@lab> SIZE=9", "MAIL", "a@lab", Does::Plain),
            (Smtp, "RCPT TO: <b@lab>", "RCPT", "b@lab", Does::Recipient),
            (Smtp, "AUTH PLAIN AGFubmEAcHc=", "AUTH", "PLAIN", Does::Rounds),
            (Smtp, "AUTH hunter2", "AUTH", "", Does::Rounds),
            (Pop3, "AUTH hunter2", "AUTH", "", Does::Rounds),
            (Pop3, "AUTH xoauth2", "AUTH", "xoauth2", Does::Rounds),
            (Ftp, "AUTH hunter2", "AUTH", "", Does::Plain),
            (Imap, "a1 AUTHENTICATE hunter2", "AUTHENTICATE", "", Does::Rounds),
            (Smtp, "BDAT 86 LAST", "BDAT", "", Does::Octets(86)),
            (Smtp, "FOO secret", "FOO", "", Does::Plain),
            (Pop3, "PASS pw", "PASS", "", Does::Plain),
            (Pop3, "APOP anna c4c9334b", "APOP", "anna", Does::Plain),
            (Pop3, "TOP 1 0", "TOP", "1", Does::Text),
            (Pop3, "LIST", "LIST", "", Does::Text),
            (Pop3, "LIST 3", "LIST", "3", Does::Plain),
            (Ftp, "PASS pw", "PASS", "", Does::Plain),
            (Ftp, "SITE PSWD pw", "SITE", "PSWD", Does::Plain),
            (Ftp, "XPWD pw", "XPWD", "", Does::Plain),
            (Ftp, "Stor b", "STOR", "b", Does::Plain),
            (Ftp, "RETR a file", "RETR", "a file", Does::Plain),
            (Ftp, "AUTH tls", "AUTH", "tls", Does::Tls),
            (Imap, "a1 LOGIN anna \"pw\"", "LOGIN", "anna", Does::Plain),
            (Imap, "a1 LOGIN {4}", "LOGIN", "", Does::Plain),
            (
                Imap,
                "a1 SELECT \"In \\\"box\"",
                "SELECT",
                "In \"box",
                Does::Plain,
            ),
            (Imap, "a1 uid fetch 1:* (FLAGS)", "UID FETCH", "1:*", Does::Plain),
            (
                Imap,
                "a1 AUTHENTICATE PLAIN AGFu",
                "AUTHENTICATE",
                "PLAIN",
                Does::Rounds,
            ),
            (Imap, "a1 ID (\"name\" \"x\")", "ID", "", Does::Plain),
        ] {
            let command = dialect.command(line.as_bytes()).unwrap();
            assert_eq!(
                (&*command.method, &*command.target, command.does),
                (method, target, does),
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
