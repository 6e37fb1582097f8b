//! MySQL: commands, result sets with and without EOF packets, prepared statements, files, log-ins, holes, and what only
//! looks like it.

use super::dns::transcript;
use super::*;

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let [low, middle, high, _] = (body.len() as u32).to_le_bytes();
    [&[low, middle, high, number], body].concat()
}

fn packets(bodies: &[&[u8]]) -> Vec<u8> {
    let numbered = bodies.iter().enumerate();
    numbered
        .flat_map(|(number, body)| packet(number as u8 + 1, body))
        .collect()
}

fn command(code: u8, rest: &[u8]) -> Vec<u8> {
    packet(0, &[&[code], rest].concat())
}

fn query(sql: &str) -> Vec<u8> {
    command(3, sql.as_bytes())
}

fn greeting() -> Vec<u8> {
    packet(
        0,
        b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0saltsalt\0\xff\xff\x08\x02\0\xff\xff\x15",
    )
}

/// A log-in with these capabilities and many others.
fn log_in(able: u32) -> Vec<u8> {
    packet(
        1,
        &[&(able | 0x0200).to_le_bytes()[..], &[0; 28], b"me\0\0"].concat(),
    )
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
const DEPRECATE_EOF: u32 = 1 << 24;

fn after_log_in(able: u32, script: &[(Side, Vec<u8>)]) -> String {
    let mut whole = vec![(S, greeting()), (C, log_in(able)), (S, packet(2, OK))];
    whole.extend_from_slice(script);
    let (notes, protocol) = transcript(&whole);
    assert_eq!(protocol, Some(Protocol::MySql));
    let log_in = "C0:(Setup C0:CONNECT.@ C0:40) S0:( S0:11=ok S0:) ";
    notes
        .strip_prefix(log_in)
        .unwrap_or_else(|| panic!("{notes}"))
        .to_string()
}

#[test]
fn queries_with_and_without_eof() {
    let error = packet(1, b"\xff\x28\x04#42000You have an error");
    let rows: [&[u8]; 4] = [&[1], b"\x03def column", b"\x01a", b"\xfbnull"];
    let with = packets(&[rows[0], rows[1], EOF, rows[2], rows[3], EOF]);
    let without = packets(&[rows[0], rows[1], rows[2], rows[3], &[0xfe, 0, 0, 2, 0, 0, 0]]);
    for (able, answer, bytes) in [(0, with, 53), (DEPRECATE_EOF, without, 46)] {
        let notes = after_log_in(
            able,
            &[
                (C, query("SELECT \"secret\" FROM t")),
                (S, answer),
                (C, query("SELEC 1")),
                (S, error.clone()),
                (C, command(14, b"")),
                (S, packet(1, OK)),
                (C, command(1, b"")),
            ],
        );
        assert_eq!(
            notes,
            format!(
                "C1:( C1:SELECT.SELECT ? FROM t@ C1:27) S1:( S1:{bytes}=ok S1:) C2:( C2:SELEC.SELEC ?@ C2:12) \
                 S2:( S2:30=1064/42000/error S2:) C3:( C3:PING.@ C3:5) S3:( S3:11=ok S3:)"
            )
        );
    }
}

#[test]
fn several_results_are_one_answer() {
    let more: &[u8] = &[0xfe, 0, 0, 0x0a, 0];
    let results = packets(&[
        &[1],
        b"\x03def",
        EOF,
        b"\x01a",
        more,
        &[0, 1, 0, 0x0a, 0, 0, 0],
        OK,
    ]);
    let progress = packets(&[b"\xff\xff\xff\x01", OK]);
    let notes = after_log_in(
        0,
        &[
            (C, query("SELECT 1; DELETE FROM t; DO 0")),
            (S, results),
            (C, query("ALTER TABLE t")),
            (S, progress),
        ],
    );
    assert_eq!(
        notes,
        "C1:( C1:SELECT.SELECT ?; DELETE FROM t; DO ?@ C1:34) S1:( S1:59=ok S1:) \
         C2:( C2:ALTER.ALTER TABLE t@ C2:18) S2:( S2:19=ok S2:)"
    );
}

#[test]
fn prepared_statements() {
    let prepared = packets(&[
        &[0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0],
        b"\x03def",
        EOF,
        b"\x03def",
        EOF,
    ]);
    let rows = packets(&[&[1], b"\x03def", EOF, b"\0\0row", EOF]);
    let run = command(0x17, &[7, 0, 0, 0, 0, 1, 0, 0, 0]);
    let notes = after_log_in(
        0,
        &[
            (C, command(0x16, b"SELECT ?, 'secret' FROM t")),
            (S, prepared),
            (C, [command(0x18, b"\x07\0\0\0\0\0data"), run.clone()].concat()),
            (S, rows.clone()),
            (C, [command(0x19, &[7, 0, 0, 0]), run].concat()),
            (S, rows),
        ],
    );
    assert_eq!(
        notes,
        "C1:( C1:PREPARE.SELECT ? FROM t@ C1:30) S1:( S1:50=ok S1:) C2:( C2:SELECT.SELECT ? FROM t@ C2:14) \
         S2:( S2:40=ok S2:) C3:( C3:EXECUTE.@ C3:14) S3:( S3:40=ok S3:)"
    );
}

/// Nagle's algorithm holds back what follows a message that nothing answers.
#[test]
fn a_command_begins_with_what_was_written_just_before_it() {
    let begins = |later_ms: i64| {
        let (mut messages, mut notes) = (Messages::new(), Notes::default());
        let script = [
            (C, query("DO 0"), 0),
            (S, packet(1, OK), 1),
            (C, command(0x19, &[7, 0, 0, 0]), 2),
            (C, query("DO 1"), 2 + later_ms),
        ];
        for (frame, (side, bytes, ms)) in script.into_iter().enumerate() {
            let at = At {
                frame: frame as u64 + 1,
                time_ns: ms * 1_000_000,
            };
            messages.feed(side, at, Stretch::Bytes(&bytes), &mut notes);
        }
        let asks = notes.list.iter().filter_map(|note| match note {
            Note::Keyed {
                at,
                event: ExchangeEvent::RequestBegin(_),
                ..
            } => Some(at.frame),
            _ => None,
        });
        asks.max()
    };
    assert_eq!((begins(250), begins(251)), (Some(3), Some(4)));
}

#[test]
fn files_are_part_of_the_request() {
    let notes = after_log_in(
        0,
        &[
            (C, query("LOAD DATA LOCAL INFILE 'a.csv' INTO TABLE t")),
            (S, packet(1, b"\xfba.csv")),
            (C, [packet(2, b"1,secret"), packet(3, b"")].concat()),
            (S, packet(4, OK)),
            (C, command(2, b"shop")),
            (S, packet(1, OK)),
            (C, command(9, b"")),
            (S, packet(1, b"\xff is text here")),
            (C, command(0x12, b"\0\0\0\0")),
            (S, packets(&[b"\0event", b"\0event"])),
        ],
    );
    assert_eq!(
        notes,
        "C1:( C1:LOAD.LOAD DATA LOCAL INFILE ? INTO TABLE t@ S1:48( S1:10interim C1:16) S1:( S1:11=ok S1:) \
         C2:( C2:INIT_DB.shop@ C2:9) S2:( S2:11=ok S2:) C3:( C3:STATISTICS.@ C3:5) S3:( S3:18=ok S3:) \
         C4:( C4:BINLOG_DUMP.@ C4:9) S4:( S4:10=ok S4:) push10.BINLOG."
    );
}

#[test]
fn log_ins() {
    let run = |script: &[(Side, Vec<u8>)]| {
        let (mut messages, mut notes) = (Messages::new(), Notes::default());
        for (side, bytes) in script {
            messages.feed(*side, At::default(), Stretch::Bytes(bytes), &mut notes);
        }
        (
            short(&notes.list),
            messages.protocol(),
            messages.software().map(String::from),
        )
    };
    let (notes, _, software) = run(&[
        (S, greeting()),
        (C, log_in(0)),
        (S, packet(2, b"\xfemysql_native_password\0salt")),
        (C, packet(3, b"secret")),
        (S, packet(4, b"\xff\x15\x04#28000Access denied")),
    ]);
    assert_eq!(
        notes,
        "C0:(Setup C0:CONNECT.@ C0:40) S0:( S0:57=1045/28000/error S0:)"
    );
    assert_eq!(software.as_deref(), Some("10.11.6-MariaDB"));
    let sealed = packet(1, &[&0x0a00_u32.to_le_bytes()[..], &[0; 28]].concat());
    assert_eq!(
        run(&[(S, greeting()), (C, sealed), (C, b"\x16\x03\x01".to_vec())]).1,
        Some(Protocol::Tls)
    );
    let inside = packet(2, &[&0x0a00_u32.to_le_bytes()[..], &[0; 28], b"me\0\0"].concat());
    let (notes, ..) = run(&[(C, inside), (S, packet(3, OK))]);
    assert_eq!(notes, "C0:(Setup C0:CONNECT.@ C0:40) S0:( S0:11=ok S0:)");
    let (notes, ..) = run(&[
        (S, greeting()),
        (C, log_in(0x20)),
        (S, packet(2, OK)),
        (C, b"\x05\0\0\0\0\0\0sealed".to_vec()),
    ]);
    assert!(notes.contains("S?compressed_from_here_on"), "{notes}");
}

#[test]
fn a_proxy_s_head_behind_the_greeting_is_skipped() {
    let version2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\x07\x0a\0\0\x01\xd6\x14\x1b\x5b";
    let version1 = b"PROXY TCP4 10.0.0.7 10.0.0.1 54804 7003\r\n";
    for head in [version2.as_slice(), version1.as_slice()] {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, bytes) in [
            (S, greeting()),
            (C, head.to_vec()),
            (C, log_in(0)),
            (S, packet(2, OK)),
            (C, query("SELECT 1")),
        ] {
            at.frame += 1;
            messages.feed(side, at, Stretch::Bytes(&bytes), &mut notes);
        }
        assert_eq!(messages.protocol(), Some(Protocol::MySql));
        let text = short(&notes.list);
        assert!(text.contains("C1:SELECT"), "{text}");
        assert!(
            format!("{:?}", notes.list).contains("10.0.0.7"),
            "{:?}",
            notes.list
        );
    }
}

#[test]
fn what_only_looks_like_it() {
    for (said_first, answer) in [
        (packet(0, b"\x0aten things to say"), query("SELECT 1")),
        (packet(1, b"\x0a8.0.36\0\x07\0\0\0"), query("SELECT 1")),
        (packet(0, b"\xff\xff\xffwhatever this is"), query("SELECT 1")),
        (b"220 mail\r\n".to_vec(), b"EHLO me\r\n".to_vec()),
    ] {
        assert_ne!(
            transcript(&[(S, said_first), (C, answer.split_at(3).0.to_vec())]).1,
            Some(Protocol::MySql)
        );
    }
    for asked in [
        packet(0, b"\x03\x01\x02\x03"),
        packet(1, b"\x03SELECT 1"),
        b"\x09\0\0\0\x03SELECT".to_vec(),
        b"\x05\0\0\0hello".to_vec(),
        packet(1, &[7; 40]),
    ] {
        assert_ne!(
            transcript(&[(C, asked), (S, packet(1, OK))]).1,
            Some(Protocol::MySql)
        );
    }
}

#[test]
fn joined_in_the_middle_and_after_holes() {
    let piece = |side, bytes: Vec<u8>| (side, Stretch::Bytes(bytes.leak()));
    let rows = packets(&[&[1], b"\x03def", EOF, &[b'x'; 90], EOF]);
    let notes = read(
        [
            piece(S, b"the rest of a row".to_vec()),
            piece(C, query("SELECT 1")),
            piece(S, rows[..50].to_vec()),
            (S, Stretch::Missing(60)),
            piece(S, rows[110..].to_vec()),
            piece(C, query("SELECT 2")),
            (S, Stretch::Missing(7)),
            piece(S, rows.clone()),
            piece(C, query("SELECT 3")),
            piece(S, rows),
        ],
        FIN,
    );
    assert_eq!(
        short(&notes),
        "S( S)17 C0:( C0:SELECT.SELECT ?@ C0:13) S0:( S0:125=ok S0:) C1:( C1:SELECT.SELECT ?@ C1:13) \
         S?a_packet's_beginning_is_not_in_the_capture S( S)132 C2:( C2:SELECT.SELECT ?@ C2:13) S2:( S2:125=ok S2:)"
    );
    assert_eq!(likely_sender(&query("SELECT 1")), Some(C));
}
