//! The name of the server's software, from the head of a response or from a greeting. Returned as the server writes
//! it; no list of known programs.

use memchr::memchr_iter;

/// Upper bound on a name in bytes. The program comes first; modules, which follow it, may be cut off.
const MAX_NAME: usize = 100;
const SERVER: &[u8] = b"server:";

/// Returns the value of the `Server` header (RFC 9110 10.2.4) in a whole head of HTTP/1.
pub(super) fn of_head(head: &[u8]) -> Option<Box<str>> {
    let lines = memchr_iter(b'\n', head).filter_map(|end| head.get(end + 1..));
    let value = lines.filter_map(|rest| {
        let (name, value) = rest.split_at_checked(SERVER.len())?;
        name.eq_ignore_ascii_case(SERVER).then_some(value)
    });
    software_name(value.into_iter().next()?)
}

/// Returns the software in a greeting: the version of SSH (RFC 4253 4.2), the text of a 220 that mentions SMTP or FTP,
/// the text of an OK of IMAP or POP3 (RFC 9051 7.1, RFC 1939 4), or the version in MySQL's handshake.
pub(super) fn of_greeting(first: &[u8]) -> Option<Box<str>> {
    if let Some(version) = mysql(first) {
        let version = software_name(version)?;
        let is_mariadb = version.contains("MariaDB");
        return Some(if is_mariadb {
            version
        } else {
            format!("MySQL {version}").into()
        });
    }
    let line = first.get(..memchr::memchr(b'\n', first)?)?;
    if let Some(version) = line.strip_prefix(b"SSH-") {
        return software_name(version.get(memchr::memchr(b'-', version)? + 1..)?);
    }
    if let Some(words) = line.strip_prefix(b"* OK ").or_else(|| line.strip_prefix(b"+OK ")) {
        return software_name(after_code(words));
    }
    let words = line
        .strip_prefix(b"220 ")
        .or_else(|| line.strip_prefix(b"220-"))?;
    let has_word = |word: &[u8]| {
        words
            .windows(word.len())
            .any(|product| product.eq_ignore_ascii_case(word))
    };
    (has_word(b"smtp") || has_word(b"ftp")).then(|| software_name(program(words)))?
}

/// Returns the program in the text of a 220, all of the text where no program is found.
/// `mail.lab ESMTP Exim 4.96 Sun, 22 Nov 2026 22:33:40 +0000` gives `Exim 4.96`, `(vsFTPd 3.0.3)` gives `vsFTPd 3.0.3`.
fn program(words: &[u8]) -> &[u8] {
    let words = words.trim_ascii();
    if let Some(inside) = words.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")) {
        return inside;
    }
    let mut parts = words.splitn(3, |byte| *byte == b' ');
    let (_host, protocol, rest) = (parts.next(), parts.next(), parts.next());
    let (Some(b"ESMTP" | b"SMTP" | b"LMTP"), Some(rest)) = (protocol, rest) else {
        return words;
    };
    // cut off a date (RFC 5322 3.3), which begins with a day of three letters and a comma
    let day = |four: &[u8]| four.last() == Some(&b',') && four.iter().take(3).all(u8::is_ascii_alphabetic);
    let date = rest.windows(4).position(day);
    let program = rest
        .get(..date.unwrap_or(rest.len()))
        .unwrap_or(rest)
        .trim_ascii();
    let program = program.strip_suffix(b";").unwrap_or(program);
    if program.is_empty() { words } else { program }
}

/// Returns the text after an IMAP response code: `Dovecot ready.` of `[CAPABILITY IMAP4rev1 ...] Dovecot ready.`
fn after_code(words: &[u8]) -> &[u8] {
    let end = words
        .first()
        .filter(|first| **first == b'[')
        .and_then(|_| memchr::memchr(b']', words));
    end.and_then(|end| words.get(end + 1..)).unwrap_or(words)
}

/// Returns the version in MySQL's first packet (HandshakeV10): a length of three bytes, the sequence number 0, the
/// protocol version 10, and the text up to a zero byte. MariaDB's text begins with `5.5.5-`, for old clients.
fn mysql(first: &[u8]) -> Option<&[u8]> {
    let [low, middle, high, 0, 10, text @ ..] = first else {
        return None;
    };
    let packet_len = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
    let version = text.get(..memchr::memchr(0, text.get(..MAX_NAME.min(text.len()))?)?)?;
    let is_text = version.iter().all(u8::is_ascii_graphic) && version.first()?.is_ascii_digit();
    let shown = version.strip_prefix(b"5.5.5-").unwrap_or(version);
    (is_text && packet_len > version.len()).then_some(shown)
}

/// Returns the first line as a name of at most `MAX_NAME` bytes; `None` if it is empty.
fn software_name(bytes: &[u8]) -> Option<Box<str>> {
    let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
    let line = bytes.get(..end)?.trim_ascii();
    let text = String::from_utf8_lossy(line.get(..MAX_NAME).unwrap_or(line));
    let is_cut = line.len() > MAX_NAME;
    let text = if is_cut {
        text.trim_end_matches('\u{FFFD}')
    } else {
        &text
    };
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_name_themselves() {
        let head = |head: &str| of_head(head.as_bytes()).map(String::from);
        let long = "é".repeat(80);
        for (input, name) in [
            (
                "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nServer: other\r\n\r\n",
                Some("nginx/1.22.1"),
            ),
            (
                "HTTP/1.0 200 OK\nX-Server: a\nserver:\tApache  \n\n",
                Some("Apache"),
            ),
            ("HTTP/1.1 200 OK\r\nServer: \r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nDate: Server: x\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nServer", None),
            (
                &format!("HTTP/1.1 200 OK\r\nServer: {long}\r\n\r\n"),
                Some(&"é".repeat(50)),
            ),
            (
                &format!("HTTP/1.1 200 OK\r\nServer: a{long}\r\n\r\n"),
                Some(&format!("a{}", "é".repeat(49))),
            ),
        ] {
            assert_eq!(head(input).as_deref(), name, "{input}");
        }
    }

    #[test]
    fn greetings_name_the_software() {
        for (input, name) in [
            (
                "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
                Some("OpenSSH_9.2p1 Debian-2"),
            ),
            ("SSH-2.0\r\n", None),
            ("220 mx.example.org ESMTP Postfix\r\n", Some("Postfix")),
            (
                "220 lab ESMTP Exim 4.96 Sun, 22 Nov 2026 22:33:40 +0000\r\n",
                Some("Exim 4.96"),
            ),
            (
                "220 lab ESMTP Sendmail 8.17.1/8.17.1; Sun, 22 Nov 2026 22:33:40 GMT\r\n",
                Some("Sendmail 8.17.1/8.17.1"),
            ),
            (
                "220 lab Microsoft ESMTP MAIL Service ready at Sun, 22 Nov 2026 22:33:40 +0000\r\n",
                Some("lab Microsoft ESMTP MAIL Service ready at Sun, 22 Nov 2026 22:33:40 +0000"),
            ),
            ("220 lab ESMTP\r\n", Some("lab ESMTP")),
            (
                "220 lab ESMTP Sun, 22 Nov 2026\r\n",
                Some("lab ESMTP Sun, 22 Nov 2026"),
            ),
            (
                "220-Welcome to Pure-FTPd [TLS]\r\n220 go\r\n",
                Some("Welcome to Pure-FTPd [TLS]"),
            ),
            ("220 (vsFTPd 3.0.3)\r\n", Some("vsFTPd 3.0.3")),
            ("220 ready for tls\r\n", None),
            ("220 no ESMTP line end", None),
            ("* OK Dovecot ready.\r\n", Some("Dovecot ready.")),
            (
                "* OK [CAPABILITY IMAP4rev1 SASL-IR] Dovecot (Debian) ready.\r\n",
                Some("Dovecot (Debian) ready."),
            ),
            ("* OK [CAPABILITY IMAP4rev1]\r\n", None),
            ("* OK [ALERT no end\r\n", Some("[ALERT no end")),
            ("+OK Dovecot (Debian) ready.\r\n", Some("Dovecot (Debian) ready.")),
            ("+OK\r\n", None),
            (
                "\x60\0\0\0\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x07\0\0\0",
                Some("10.11.19-MariaDB-0+deb12u1"),
            ),
            ("\x4a\0\0\0\x0a8.0.36\0\x07\0\0\0", Some("MySQL 8.0.36")),
            ("\x05\0\0\0\x0a8.0.36\0\x07", None), // shorter than its version
            ("\x4a\0\0\0\x0a8.0.36", None),
            ("\x4a\0\0\0\x0aten\0\0", None),
            ("\x4a\0\0\0\x0a\0\0", None),
        ] {
            assert_eq!(of_greeting(input.as_bytes()).as_deref(), name, "{input}");
        }
    }
}
