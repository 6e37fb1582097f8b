//! SMTP, POP3, IMAP and FTP: each case whole, byte by byte and cut in two everywhere; holes, and what only looks like
//! one of them.

mod holes;
mod random;

use super::*;

/// The same however the bytes are cut.
fn transcript(script: &[(Side, &str)]) -> (String, Option<Protocol>) {
    let run = |pieces: Vec<(Side, Stretch<'_>)>| {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, piece) in pieces {
            at.frame += 1;
            messages.feed(side, at, piece, &mut notes);
        }
        let protocol = messages.protocol();
        [C, S]
            .iter()
            .for_each(|side| messages.close(*side, at, Close::Fin, &mut notes));
        (short(&notes.list), protocol)
    };
    let uncut = run(cut(script, |text| vec![text]));
    assert_eq!(
        run(cut(script, |text| text.chunks(1).collect())),
        uncut,
        "byte by byte"
    );
    for offset in 1..script.iter().map(|(_, text)| text.len()).max().unwrap_or(0) {
        let halves = cut(script, |text| {
            let (first, last) = text.split_at(offset.min(text.len()));
            [first, last]
                .into_iter()
                .filter(|piece| !piece.is_empty())
                .collect()
        });
        assert_eq!(run(halves), uncut, "cut at {offset}");
    }
    uncut
}

/// What came with each exchange, without bytes: `1 RCPT b@lab =550/error`.
fn rows(notes: &str) -> Vec<String> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for word in notes.split(' ') {
        let Some((key, word)) = word.split_once(':') else {
            if let Some(push) = word.strip_prefix("push") {
                rows.push((
                    String::new(),
                    format!("push {}", push.trim_start_matches(|c: char| c.is_ascii_digit())),
                ));
            }
            continue;
        };
        let key = key.get(1..).unwrap_or_default();
        if word.starts_with('(') && !rows.iter().any(|(row_key, _)| row_key == key) {
            rows.push((key.to_string(), word.trim_start_matches('(').to_string()));
        } else if let Some((_, row)) = rows.iter_mut().find(|(row_key, _)| row_key == key) {
            let named = word.contains(".") && word.ends_with('@');
            let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
            if named || word.starts_with('=') || word == "givenup" {
                row.push_str(&format!(" {}", word.trim_end_matches('@')));
            }
        }
    }
    rows.into_iter().map(|(_, row)| row.trim().to_string()).collect()
}

fn expect(script: &[(Side, &str)], protocol: Protocol, wanted: &[&str]) -> String {
    let (notes, spoken) = transcript(script);
    assert_eq!(spoken, Some(protocol), "{notes}");
    assert_eq!(rows(&notes), wanted, "{notes}");
    notes
}

pub(super) fn holed(script: &[(Side, Result<&'static str, u64>)], frame: bool) -> Vec<String> {
    let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
    for (side, piece) in script {
        at.frame += 1;
        match piece {
            Ok(text) => messages.feed(*side, at, Stretch::Bytes(text.as_bytes()), &mut notes),
            Err(missing) => {
                let at = if frame { at } else { At { frame: 0, ..at } };
                messages.feed(*side, at, Stretch::Missing(*missing), &mut notes);
            }
        }
    }
    rows(&short(&notes.list))
}

#[test]
fn mail_is_sent_in_a_pipeline() {
    let notes = expect(
        &[
            (S, "220-lab ESMTP\r\n220 go\r\n"),
            (C, "EHLO me\r\n"),
            (S, "250-lab\r\n250-PIPELINING\r\n250 HELP\r\n"),
            (
                C,
                "MAIL FROM:<a@lab>\r\nRCPT TO:<b@lab>\r\nRCPT TO:<c@lab>\r\nDATA\r\n",
            ),
            (S, "250 ok\r\n"),
            (S, "250 ok\r\n550-no such\r\n550 user\r\n354 go\r\n"),
            (C, "Subject: x\r\n\r\n220 no answer\r\n..\r\nQUIT\r\n.\r\n"),
            (S, "250 queued\r\n"),
            (C, "QUIT\r\n"),
            (S, "221 bye\r\n"),
        ],
        Protocol::Smtp,
        &[
            "EHLO.me =250",
            "MAIL.a@lab =250",
            "RCPT.b@lab =250",
            "RCPT.c@lab =550/error",
            "DATA. =354",
            "content. =250",
            "QUIT. =221",
        ],
    );
    assert!(
        notes.starts_with("S( S)23 C0:( C0:EHLO.me@ C0:9) S0:( S0:35=250 S0:)"),
        "{notes}"
    );
    assert!(notes.contains("C5:( C5:content.@ C5:42)"), "{notes}");
}

#[test]
fn log_ins_go_back_and_forth_and_are_not_shown() {
    let notes = expect(
        &[
            (S, "220 lab ESMTP\r\n"),
            (C, "EHLO me\r\n"),
            (S, "250 AUTH LOGIN\r\n"),
            (C, "AUTH LOGIN c2VjcmV0\r\n"),
            (S, "334 VXNlcm5hbWU6\r\n"),
            (C, "YW5uYQ==\r\n"),
            (S, "334 UGFzc3dvcmQ6\r\n"),
            (C, "cHc=\r\n"),
            (S, "535 no\r\n"),
            (C, "BDAT 9 LAST\r\nRCPT\r\nx\r\n"),
            (S, "250 ok\r\n"),
            (S, "421 too long\r\n"),
        ],
        Protocol::Smtp,
        &[
            "EHLO.me =250",
            "AUTH.LOGIN =535/error",
            "BDAT. =250",
            "push .421.",
        ],
    );
    assert!(
        notes.contains("C1:21) S1:dialogue C1:10) S1:dialogue C1:6) S1:( S1:8=535/error S1:)"),
        "{notes}"
    );
}

#[test]
fn each_recipient_of_local_mail_is_answered() {
    expect(
        &[
            (S, "220 lab LMTP\r\n"),
            (C, "LHLO me\r\n"),
            (S, "250 lab\r\n"),
            (
                C,
                "MAIL FROM:<>\r\nRCPT TO:<a@lab>\r\nRCPT TO:<b@lab>\r\nRCPT TO:<c@lab>\r\nDATA\r\n",
            ),
            (S, "250 ok\r\n250 ok\r\n250 ok\r\n550 no\r\n354 go\r\n"),
            (C, "x\r\n.\r\n"),
            (S, "250 a\r\n"),
            (S, "452 b\r\n"),
            (C, "QUIT\r\n"),
            (S, "221 bye\r\n"),
        ],
        Protocol::Smtp,
        &[
            "LHLO.me =250",
            "MAIL. =250",
            "RCPT.a@lab =250",
            "RCPT.b@lab =250",
            "RCPT.c@lab =550/error",
            "DATA. =354",
            "content. =250 =452/error",
            "QUIT. =221",
        ],
    );
}

#[test]
fn texts_of_pop3_end_with_a_dot() {
    let notes = expect(
        &[
            (S, "+OK lab\r\n"),
            (C, "USER anna\r\n"),
            (S, "+OK\r\n"),
            (C, "PASS pw\r\n"),
            (S, "+OK in\r\n"),
            (C, "RETR 1\r\nLIST 1\r\nRETR 9\r\n"),
            (S, "+OK 5\r\nx\r\n-ERR\r\n..\r\n.\r\n+OK 1 5\r\n-ERR none\r\n"),
            (C, "AUTH PLAIN\r\n"),
            (S, "+ \r\n"),
            (C, "AGFubmE=\r\n"),
            (S, "-ERR no\r\n"),
        ],
        Protocol::Pop3,
        &[
            "USER.anna =0/+OK",
            "PASS. =0/+OK",
            "RETR.1 =0/+OK",
            "LIST.1 =0/+OK",
            "RETR.9 =-ERR/error",
            "AUTH.PLAIN =-ERR/error",
        ],
    );
    assert!(notes.contains("S2:23=0/+OK") && !notes.contains("pw"), "{notes}");
}

#[test]
fn transfers_of_ftp_end_with_their_second_answer() {
    expect(
        &[
            (S, "220 (lab)\r\n"),
            (C, "USER anonymous\r\n"),
            (S, "331 word\r\n"),
            (C, "PASS me@lab\r\n"),
            (S, "230 in\r\n"),
            (C, "FEAT\r\n"),
            (S, "211-Features:\r\n EPSV\r\n200 no code here\r\n211 End\r\n"),
            (C, "RETR a/file\r\n"),
            (S, "150 opening\r\n"),
            (S, "226 done\r\n"),
            (C, "STOR x\r\n"),
            (S, "150 ok\r\n"),
            (C, "ABOR\r\n"),
            (S, "426 aborted\r\n226 ok\r\n"),
        ],
        Protocol::Ftp,
        &[
            "USER.anonymous =331",
            "PASS. =230",
            "FEAT. =211",
            "RETR.a/file =226",
            "STOR.x =426/error",
            "ABOR. =226",
        ],
    );
}

#[test]
fn tags_of_imap_find_their_commands() {
    let notes = expect(
        &[
            (S, "* OK lab ready\r\n"),
            (C, "a1 LOGIN {4}\r\n"),
            (S, "+ OK\r\n"),
            (C, "anna {2+}\r\npw\r\n"),
            (S, "* CAPABILITY x\r\na1 OK in\r\n"),
            (C, "a2 FETCH 1 (BODY[])\r\na3 NOOP\r\n"),
            (S, "* 1 FETCH (BODY[] {11}\r\na3 NO x\r\n+ )\r\na3 OK\r\n"),
            (S, "a2 BAD x\r\n"),
            (S, "* 5 EXISTS\r\n"),
            (C, "a4 IDLE\r\n"),
            (S, "+ idling\r\n* 6 EXISTS\r\n"),
            (C, "DONE\r\n"),
            (S, "a4 OK\r\n"),
            (C, "a5 APPEND \"In/box\" {4}\r\n"),
            (S, "a5 NO full\r\n"),
            (C, "a6 AUTHENTICATE PLAIN\r\n"),
            (S, "+ \r\n"),
            (C, "AGFubmE=\r\n"),
            (S, "a6 NO x\r\n* BYE\r\n"),
        ],
        Protocol::Imap,
        &[
            "LOGIN. =0/OK",
            "FETCH.1 =BAD/error",
            "NOOP. =0/OK",
            "push .EXISTS.",
            "LongPoll IDLE. =0/OK",
            "push .EXISTS.",
            "APPEND.In/box =NO/error",
            "AUTHENTICATE.PLAIN =NO/error",
            "push .BYE.",
        ],
    );
    assert!(
        notes.contains("S1:( S2:( S2:7=0/OK S2:) S1:48=BAD/error"),
        "{notes}"
    );
    assert!(
        notes.contains("push12.EXISTS. C3:6) S3:( S3:7=0/OK S3:)"),
        "{notes}"
    );
}

#[test]
fn an_odd_answer_is_one() {
    expect(
        &[
            (S, "220 lab\r\n"),
            (C, "USER a\r\n"),
            (S, "230 in\r\n"),
            (C, "PASV\r\r\n"),
            (S, "99 no such code\r\n"),
            (C, "QUIT\r\n"),
            (S, "221 bye\r\n"),
        ],
        Protocol::Ftp,
        &["USER.a =230", "PASV. =error", "QUIT. =221"],
    );
}

#[test]
fn behind_starttls_stands_tls() {
    for (script, protocol) in [
        (
            [
                (S, "220 lab ESMTP\r\n"),
                (C, "EHLO me\r\n"),
                (S, "250 ok\r\n"),
                (C, "STARTTLS\r\n"),
                (S, "220 go\r\n"),
            ],
            "smtp",
        ),
        (
            [
                (S, "220 lab\r\n"),
                (C, "FEAT\r\n"),
                (S, "211 none\r\n"),
                (C, "AUTH TLS\r\n"),
                (S, "234 go\r\n"),
            ],
            "ftp",
        ),
        (
            [
                (S, "+OK\r\n"),
                (C, "CAPA\r\n"),
                (S, "+OK\r\n.\r\n"),
                (C, "STLS\r\n"),
                (S, "+OK\r\n"),
            ],
            "pop3",
        ),
        (
            [
                (S, "* OK\r\n"),
                (C, "a CAPABILITY\r\n"),
                (S, "a OK\r\n"),
                (C, "b STARTTLS\r\n"),
                (S, "b OK\r\n"),
            ],
            "imap",
        ),
    ] {
        let (notes, spoken) = transcript(&script);
        assert_eq!(spoken, Some(Protocol::Tls), "{protocol}: {notes}");
        assert_eq!(rows(&notes).len(), 2, "{notes}");
        // the snap length cuts the reply after its first letters
        let (mut messages, mut notes, at) = (
            Messages::new(),
            Notes::default(),
            At {
                frame: 1,
                ..At::default()
            },
        );
        let (last, before) = script.split_last().expect("a reply");
        for (side, text) in before {
            messages.feed(*side, at, Stretch::Bytes(text.as_bytes()), &mut notes);
        }
        let kept = last.1.trim_end().as_bytes();
        messages.feed(S, at, Stretch::Bytes(kept), &mut notes);
        messages.feed(S, at, Stretch::Missing(2), &mut notes);
        assert_eq!(
            messages.protocol(),
            Some(Protocol::Tls),
            "{protocol}: {}",
            short(&notes.list)
        );
    }
    let refused = [
        (S, "220 lab ESMTP\r\n"),
        (C, "EHLO me\r\n"),
        (S, "250 ok\r\n"),
        (C, "STARTTLS\r\n"),
        (S, "454 no\r\n"),
        (C, "QUIT\r\n"),
        (S, "221 bye\r\n"),
    ];
    expect(
        &refused,
        Protocol::Smtp,
        &["EHLO.me =250", "STARTTLS. =454/error", "QUIT. =221"],
    );
}

#[test]
fn what_only_looks_like_mail_is_turns() {
    for script in [
        &[(S, "220 items\r\n"), (C, "next\r\n"), (S, "221 items\r\n")][..],
        &[(S, "220 ready\r\n"), (C, "QUIT\r\n"), (S, "221 bye\r\n")],
        &[(C, "USER anna\r\n"), (S, "hello\r\n")],
        &[(C, "250 is a number\r\n"), (S, "220 too\r\n")],
        &[(S, "200 news\r\n"), (C, "MODE READER\r\n"), (S, "200 ok\r\n")],
        &[(S, "+OK\r\n"), (C, "LOOK\r\n"), (S, "+FOUND\r\n")],
        &[(S, "* a list\r\n"), (C, "a thing\r\n"), (S, "* more\r\n")],
        &[(S, "2200 items\r\n"), (C, "USER me\r\n")],
    ] {
        let (notes, spoken) = transcript(script);
        assert!(matches!(spoken, None | Some(Protocol::Turns)), "{notes}");
        assert!(!notes.contains(':'), "{notes}");
    }
    let web = [
        (C, "GET / HTTP/1.1\r\n\r\n"),
        (S, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n220 mail\n"),
    ];
    assert_eq!(transcript(&web).1, Some(Protocol::Http));
}

#[test]
fn the_first_byte_of_a_command_counts() {
    let notes = read(
        [
            bytes(S, "220 lab ESMTP\r\n"),
            bytes(C, "EH"),
            bytes(C, "LO me\r\n"),
            bytes(S, "250-lab\r\n"),
            bytes(S, "250 ok\r\n"),
        ],
        FIN,
    );
    let frames: Vec<_> = notes
        .iter()
        .filter_map(|note| match note {
            Note::Keyed {
                at,
                event:
                    event @ (ExchangeEvent::RequestBegin(_)
                    | ExchangeEvent::RequestEnd
                    | ExchangeEvent::AnswerBegin
                    | ExchangeEvent::AnswerEnd),
                ..
            } => Some((at.frame, *event)),
            _ => None,
        })
        .collect();
    let wanted = [
        (2, ExchangeEvent::RequestBegin(Kind::Request)),
        (3, ExchangeEvent::RequestEnd),
        (4, ExchangeEvent::AnswerBegin),
        (5, ExchangeEvent::AnswerEnd),
    ];
    assert_eq!(frames, wanted);
}
