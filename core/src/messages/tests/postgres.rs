//! PostgreSQL: both query protocols, pipelines, COPY, pushes, encryption, holes, and what only looks like it.

use super::dns::transcript;
use super::*;

/// A message with a type.
fn message(kind: char, body: &str) -> String {
    let len = u8::try_from(body.len() + 4).unwrap();
    assert!(len < 128);
    format!("{kind}\0\0\0{}{body}", len as char)
}

fn all(messages: &[(char, &str)]) -> String {
    messages.iter().map(|(kind, body)| message(*kind, body)).collect()
}

fn startup() -> String {
    "\0\0\0\x1f\0\x03\0\0user\0me\0database\0shop\0\0".into()
}

const READY: &str = "Z\0\0\0\x05I";

fn told(script: &[(Side, String)]) -> (String, Option<Protocol>) {
    let script: Vec<_> = script
        .iter()
        .map(|(side, text)| (*side, text.clone().into_bytes()))
        .collect();
    transcript(&script)
}

/// What is told after a log-in, without the bytes.
fn after_log_in(script: &[(Side, String)]) -> String {
    let mut whole = vec![
        (C, startup()),
        (
            S,
            all(&[('R', "\0\0\0\0"), ('S', "server_version\x0015.3\0")]) + READY,
        ),
    ];
    whole.extend_from_slice(script);
    let (notes, protocol) = told(&whole);
    assert_eq!(protocol, Some(Protocol::Postgres));
    let log_in = "C0:(Setup C0:CONNECT.shop@ C0:31) S0:( S0:40=ok S0:) ";
    notes
        .strip_prefix(log_in)
        .unwrap_or_else(|| panic!("{notes}"))
        .to_string()
}

#[test]
fn simple_queries() {
    let notes = after_log_in(&[
        (C, message('Q', "SELECT * FROM t WHERE a='secret'\0")),
        (
            S,
            all(&[
                ('T', "xx"),
                ('D', "row"),
                ('N', "SNOTICE\0C00000\0\0"),
                ('D', "row"),
                ('C', "SELECT 2\0"),
            ]) + READY,
        ),
        (
            C,
            message('Q', "SELECT 1/0; SELECT 2\0") + &message('Q', "LISTEN news\0"),
        ),
        (
            S,
            message('E', "SERROR\0C22012\0\0") + READY + &message('C', "LISTEN\0") + READY,
        ),
        (S, message('A', "\0\0\0\x07news\0secret\0")),
        (S, message('E', "SFATAL\0C57P01\0\0")),
        (C, message('X', "")),
    ]);
    assert_eq!(
        notes,
        "C1:( C1:SELECT.SELECT * FROM t WHERE a=?@ C1:38) S1:( push21.NoticeResponse.NOTICE S1:43=ok S1:) \
         C2:( C2:SELECT.SELECT ?/?; SELECT ?@ C2:26) C3:( C3:LISTEN.LISTEN news@ C3:17) \
         S2:( S2:26=22012/error S2:) S3:( S3:18=ok S3:) push21.NotificationResponse.news push20.ErrorResponse.57P01"
    );
}

#[test]
fn pipelines_of_the_extended_protocol() {
    let parse = |sql: &str| message('P', &format!("\0{sql}\0\0\0"));
    let run = all(&[('B', "\0\0\0\0\0\0\0\0"), ('D', "P\0"), ('E', "\0\0\0\0\0")]);
    let sync = message('S', "");
    let asked = [
        &parse("SELECT a"),
        &run,
        &parse("BROKEN"),
        &run,
        &parse("SELECT c"),
        &run,
        &sync,
    ]
    .map(|message| &message[..])
    .concat();
    let notes = after_log_in(&[
        (C, asked),
        (
            S,
            all(&[
                ('1', ""),
                ('2', ""),
                ('T', "x"),
                ('D', "r"),
                ('C', "SELECT 1\0"),
                ('E', "C42601\0\0"),
            ]) + READY,
        ),
        (C, parse("SELECT $1") + &run + &sync),
        (
            S,
            all(&[('1', ""), ('2', ""), ('T', "x"), ('C', "SELECT 0\0")]) + READY,
        ),
    ]);
    assert_eq!(
        notes,
        "C1:( C1:SELECT.SELECT a@ C1:47) C2:( C2:BROKEN.BROKEN@ C2:45) C3:( C3:SELECT.SELECT c@ C3:52) \
         S1:( S1:36=ok S1:) S2:( S2:13=42601/error S2:) S3:( S3:6=skipped/error S3:) \
         C4:( C4:SELECT.SELECT ?@ C4:53) S4:( S4:36=ok S4:)"
    );
}

#[test]
fn prepared_statements() {
    let prepare = all(&[('P', "s1\0INSERT INTO t VALUES ($1)\0\0\0"), ('D', "Ss1\0")]);
    let row = all(&[('B', "\0s1\0\0\0\0\0\0\0"), ('E', "\0\0\0\0\0")]);
    let other = all(&[('B', "\0gone\0\0\0\0\0\0\0"), ('E', "\0\0\0\0\0")]);
    let (sync, flush) = (message('S', ""), message('H', ""));
    let done = all(&[('2', ""), ('C', "INSERT 0 1\0")]);
    let notes = after_log_in(&[
        // no Sync: the description ends it
        (C, prepare + &flush),
        (S, all(&[('1', ""), ('t', "x"), ('n', "")])),
        // one statement with many rows is one request
        (C, [&row[..], &row, &row, &sync].concat()),
        (S, [&done[..], &done, &done, READY].concat()),
        // prepared before the capture: the tag has the verb
        (C, other + &sync),
        (S, all(&[('2', ""), ('C', "DELETE 4\0")]) + READY),
        (C, all(&[('C', "Ss1\0"), ('S', "")])),
        (S, message('3', "") + READY),
        (C, row + &sync),
        (S, done + READY),
    ]);
    assert_eq!(
        notes,
        "C1:( C1:INSERT.INSERT INTO t VALUES (?)@ C1:50PREPARE.@ C1:) S1:( S1:16=ok S1:) \
         C2:( C2:INSERT.INSERT INTO t VALUES (?)@ C2:80) S2:( S2:69=ok S2:) \
         C3:( C3:32) S3:( S3:19DELETE.@ S3:6=ok S3:) C5:( C5:30) S5:( S5:21INSERT.@ S5:6=ok S5:)"
    );
}

#[test]
fn copies() {
    let notes = after_log_in(&[
        (C, message('Q', "COPY t FROM STDIN\0")),
        (S, message('G', "\0\0\0")),
        (C, all(&[('d', "secret"), ('d', "secret"), ('c', "")])),
        (S, message('C', "COPY 2\0") + READY),
        (C, message('Q', "COPY t TO STDOUT\0")),
        (
            S,
            all(&[('H', "\0\0\0"), ('d', "secret"), ('c', ""), ('C', "COPY 1\0")]) + READY,
        ),
        (C, message('Q', "START_REPLICATION 0/0\0")),
        (S, all(&[('W', "\0\0\0"), ('d', "wlog"), ('d', "keepalive")])),
        (C, message('d', "reply")),
    ]);
    assert_eq!(
        notes,
        "C1:( C1:COPY.COPY t FROM STDIN@ S1:23( S1:8interim C1:27) S1:( S1:18=ok S1:) \
         C2:( C2:COPY.COPY t TO STDOUT@ C2:22) S2:( S2:42=ok S2:) \
         C3:( C3:START_REPLICATION.START_REPLICATION ?/?@ C3:27) S3:( S3:8=ok S3:) push9.XLogData."
    );
}

#[test]
fn each_round_of_a_log_in_is_an_exchange() {
    let (notes, _) = told(&[
        (C, startup()),
        (S, message('R', "\0\0\0\x0aSCRAM-SHA-256\0\0")),
        (C, message('p', "first")),
        (S, message('R', "\0\0\0\x0bmore")),
        (C, message('p', "last")),
        (
            S,
            all(&[('R', "\0\0\0\x0cproof"), ('R', "\0\0\0\0"), ('S', "a\0b\0")]) + READY,
        ),
    ]);
    assert_eq!(
        notes,
        "C0:(Setup C0:CONNECT.shop@ C0:31) S0:( S0:24=ok S0:) C1:(Setup C1:handshake.@ C1:10) S1:( S1:13=ok S1:) \
         C2:(Setup C2:handshake.@ C2:9) S2:( S2:38=ok S2:)"
    );
}

#[test]
fn encryption_is_asked_for_first() {
    let asked = "\0\0\0\x08\x04\u{d2}\x16/"
        .chars()
        .map(|c| c as u8)
        .collect::<Vec<_>>();
    let run = |answer: &[u8], next: &[u8]| {
        let (mut messages, mut notes) = (Messages::new(), Notes::default());
        for (side, bytes) in [(C, &asked[..]), (S, answer), (C, next)] {
            messages.feed(side, At::default(), Stretch::Bytes(bytes), &mut notes);
        }
        (short(&notes.list), messages.protocol())
    };
    let (notes, protocol) = run(b"N", startup().as_bytes());
    assert_eq!(
        (&notes[..], protocol),
        (
            "C0:(Setup C0:handshake.@ C0:8) S0:( S0:1=ok S0:) C1:(Setup C1:CONNECT.shop@ C1:31)",
            Some(Protocol::Postgres)
        )
    );
    assert_eq!(run(b"S", b"\x16\x03\x01").1, Some(Protocol::Tls));
    assert!(run(b"G", b"sealed").0.contains("S?encrypted,_but_not_with_TLS"));
    let cancel = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02";
    assert_eq!(short(&read([(C, Stretch::Bytes(cancel))], FIN)), "");
}

#[test]
fn what_only_looks_like_it() {
    for (asked, answered) in [
        (
            "\0\0\0\x21\0\x03\0\0\0\0\0\x01\0\x05kafka",
            "\0\0\0\x08\0\0\0\x01",
        ), // Kafka: Metadata, version 0
        ("\0\0\0\x05\0\x03\0\0u", "no"),
        (
            "\0\x17\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\x03lab\0\0\x01\0\x01",
            "no",
        ),
        ("Quite a text\0", "no"),
        ("Q\0\0\0\x0a\x01\x02\x03\x04\x05\0", "no"),
        ("Q\0\0\0\x06no end", "no"),
        ("\0\0\0\x02\0\x02\0\0u", "no"),
    ] {
        let (notes, protocol) = told(&[(C, asked.into()), (S, answered.into())]);
        assert_ne!(protocol, Some(Protocol::Postgres), "{notes}");
    }
}

#[test]
fn joined_in_the_middle_and_after_holes() {
    let (query, answer) = (message('Q', "SELECT 'a'\0"), message('C', "SELECT 1\0") + READY);
    let rows = message('D', &"x".repeat(90));
    let notes = read(
        [
            bytes(S, "the rest of a row"),
            bytes(S, &answer),
            bytes(C, &query),
            bytes(S, &rows[..20]),
            (S, Stretch::Missing(70)),
            bytes(S, &rows[90..]),
            bytes(S, &answer),
            bytes(C, &query),
            (S, Stretch::Missing(7)),
            bytes(S, &answer),
            bytes(C, &query),
            bytes(S, &answer),
        ],
        FIN,
    );
    let query = "SELECT.SELECT ?@";
    assert_eq!(
        short(&notes),
        format!(
            "S( S)37 C0:( C0:{query} C0:16) S0:( S0:115=ok S0:) C1:( C1:{query} C1:16) \
             S?a_message's_beginning_is_not_in_the_capture S( S)27 C2:( C2:{query} C2:16) S2:( S2:20=ok S2:)"
        )
    );
    assert_eq!(likely_sender(message('Q', "SELECT 1\0").as_bytes()), Some(C));
    assert_eq!(
        likely_sender((message('C', "SELECT 1\0") + READY).as_bytes()),
        Some(S)
    );
}

#[test]
fn the_server_says_its_version() {
    let (mut messages, mut notes) = (Messages::new(), Notes::default());
    let version = message('S', "server_version\x0015.3 (Debian)\0");
    for (side, text) in [(C, startup()), (S, version)] {
        messages.feed(side, At::default(), Stretch::Bytes(text.as_bytes()), &mut notes);
    }
    assert_eq!(messages.software(), Some("PostgreSQL 15.3 (Debian)"));
}

#[test]
fn a_pipeline_is_known_from_its_middle() {
    let parse = |types: &str| message('P', &format!("\0SELECT $1\0{types}"));
    let bind = |values: &str| message('B', &format!("\0s1\0\0\0{values}\0\0"));
    let rest = all(&[('D', "P\0"), ('E', "\0\0\0\0\0")]);
    for (first, known) in [
        // one parameter and its type, and one type too few
        (parse("\0\x01\0\0\0\x15"), true),
        (parse("\0\x02\0\0\0\x15"), false),
        // a value of two bytes, and one that is longer than its message
        (bind("\0\x01\0\0\0\x02hi"), true),
        (bind("\0\x01\0\0\0\x05hi"), false),
    ] {
        let asks = first.clone() + &rest;
        assert_eq!(likely_sender(asks.as_bytes()).is_some(), known, "{first:?}");
    }
    // NULL has no bytes
    let null = b"B\0\0\0\x12\0s1\0\0\0\0\x01\xff\xff\xff\xff\0\0E\0\0\0\x09\0\0\0\0\0";
    assert_eq!(likely_sender(null), Some(C));
}

#[test]
fn a_replica_that_is_joined_in_the_middle_asks_for_nothing() {
    let framed = |body: Vec<u8>| [&[b'd'][..], &(body.len() as u32 + 4).to_be_bytes(), &body].concat();
    let status = framed([&b"r"[..], &[0; 33]].concat());
    let log = framed([&b"w"[..], &[0; 24], b"changes"].concat());
    let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
    messages.set_mid_stream();
    for _ in 0..4 {
        for (side, bytes) in [(C, &status), (S, &log)] {
            at.frame += 1;
            messages.feed(side, at, Stretch::Bytes(bytes), &mut notes);
        }
    }
    let text = short(&notes.list);
    assert_eq!(messages.protocol(), Some(Protocol::Postgres));
    assert!(text.contains("push") && !text.contains("C("), "{text}");
}
