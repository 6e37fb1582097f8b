//! The whole engine, from the bytes of a capture file to the tables.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod common;

use std::net::Ipv4Addr;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use common::tables::{Tables, sample};
use common::{CLIENT, Capture, ETHERNET, Lcg, MS, SERVER, frame};
use latpcap_core::engine::Engine;
use latpcap_core::segment::{ACK, FIN, PSH, RST, SYN};

/// A connection of two exchanges whose answers come in two parts; the head of the second one is sent twice.
fn talk(capture: &mut Capture, port: u16, start: i64) {
    let ask = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let (head, body) = (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello");
    let (asked, headed) = (ask.len() as u32, head.len() as u32);
    let mut now = start;
    let mut say = |late: i64, client: bool, flags: u16, seq: u32, ack: u32, payload: &[u8]| {
        now += late;
        capture.tcp(now, client, port, (flags, seq, ack), payload);
    };
    say(0, true, SYN, u32::MAX, 0, b"");
    say(MS, false, SYN | ACK, 99, 0, b"");
    say(MS, true, ACK, 0, 100, b"");
    let (mut c, mut s) = (0, 100);
    for turn in 0..2 {
        say(5 * MS, true, PSH | ACK, c, s, ask);
        c += asked;
        say(7 * MS, false, PSH | ACK, s, c, head);
        if turn == 1 {
            say(230 * MS, false, PSH | ACK, s, c, head);
        }
        s += headed;
        say(42 * MS, true, ACK, c, s, b"");
        say(20_000, false, PSH | ACK, s, c, body);
        s += body.len() as u32;
        say(MS, true, ACK, c, s, b"");
    }
    say(MS, true, FIN | ACK, c, s, b"");
    say(MS, false, FIN | ACK, s, c + 1, b"");
}

fn two_connections() -> Vec<u8> {
    let mut capture = Capture::new(ETHERNET);
    talk(&mut capture, 40_000, 1_700_000_000_123_456_789);
    talk(&mut capture, 40_001, 1_700_000_001_000_000_001);
    capture.bytes
}

#[test]
fn a_connection_gives_its_exchanges() {
    let tables = Tables::of(&two_connections());
    assert_eq!((tables.rows("events"), tables.rows("streams")), (32, 2));
    assert_eq!((tables.rows("exchanges"), tables.complete()), (4, 4));
    let latency = tables.ms("exchanges", "latency_ms");
    assert_eq!(latency, [49.02, 279.02, 49.02, 279.02]);
    assert_eq!(tables.issues(), []);
    tables.assert_partitions();
}

#[test]
fn blocks_may_be_cut_anywhere() {
    let (probes, clip) = (sample("probes.pcap"), sample("clips/split-nagle.pcap"));
    let mut random = Lcg(1);
    for bytes in [two_connections(), probes, clip] {
        let whole = Tables::of(&bytes);
        assert!(Tables::in_blocks(bytes.chunks(1)) == whole, "byte by byte");
        for at in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
            assert!(
                Tables::in_blocks([&bytes[..at], &bytes[at..]]) == whole,
                "cut at {at}"
            );
        }
        for limit in [2, 30, 100, 3000] {
            let (mut blocks, mut rest) = (Vec::new(), &bytes[..]);
            while !rest.is_empty() {
                let (block, after) = rest.split_at((random.below(limit) as usize).min(rest.len()));
                blocks.push(block);
                rest = after;
            }
            assert!(Tables::in_blocks(blocks) == whole, "blocks below {limit}");
        }
    }
}

#[test]
fn every_truncation_gives_what_is_there() {
    let bytes = two_connections();
    let mut rows = 0;
    for len in 0..=bytes.len() {
        let tables = Tables::of(&bytes[..len]);
        tables.assert_partitions();
        assert!(
            tables.rows("events") >= rows,
            "{len}: a longer file has no fewer rows"
        );
        let ended = tables.rows("events") > rows || len == 24 || len == bytes.len();
        rows = tables.rows("events");
        // a file that ends inside a record or its header says so
        assert_eq!(tables.issues().is_empty(), ended, "{len}: {:?}", tables.issues());
    }
    assert_eq!(rows, 32);
}

#[test]
fn a_syn_flood_costs_little_per_stream() {
    let mut capture = Capture::new(ETHERNET);
    let flood = 200_000u32;
    for i in 0..flood {
        let from = (Ipv4Addr::from(0x0b00_0000 + i * 7), 1024 + (i % 60_000) as u16);
        let frame = frame(from, (SERVER, 80), 1, (SYN, i, 0), b"");
        capture.record(i64::from(i) * 1000, &frame);
    }
    let mut engine = Engine::new();
    engine.push(&capture.bytes);
    engine.finish();
    assert_eq!(
        (engine.stream_count(), engine.frames()),
        (flood as usize, u64::from(flood))
    );
    assert_eq!(engine.pipeline().tables.take("exchanges").unwrap().1.len(), 0);
}

/// A capture that lacks a packet of each of many streams, and all ACKs, fills no memory.
#[test]
fn what_is_held_out_of_order_is_bounded_in_all() {
    let mut capture = Capture::new(ETHERNET);
    let part = [b'x'; 1400];
    for port in 1000..1400 {
        for n in 0..45 {
            let hole = u32::from(n > 0);
            let seq = 1 + (n + hole) * 1400;
            capture.tcp(
                i64::from(port) * 1000 + i64::from(n),
                true,
                port,
                (ACK, seq, 1),
                &part,
            );
        }
    }
    let tables = Tables::of(&capture.bytes);
    let said = tables.issues();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].1.contains("in all streams"), "{said:?}");
    assert!(tables.ids("issues", "count")[0] < 400, "those that fit are held");
}

/// Many long messages at once are judged in coarser steps; a few are not.
#[test]
fn what_is_remembered_of_long_messages_is_bounded_in_all() {
    for (streams, coarser) in [(20, false), (300, true)] {
        let mut capture = Capture::new(ETHERNET);
        for n in 0..600 {
            for port in 1000..1000 + streams {
                let now = i64::from(n) * 1000 * MS + i64::from(port);
                capture.tcp(now, true, port, (ACK, 1 + n, 1), b"x");
            }
        }
        let said = Tables::of(&capture.bytes).issues();
        let found = said.iter().any(|(_, reason)| reason.contains("coarser steps"));
        assert_eq!(found, coarser, "{said:?}");
    }
}

/// Many streams of one direction are not remembered to the last segment; a few are, as Wireshark does.
#[test]
fn what_nobody_acknowledged_is_bounded_in_all() {
    for (streams, bounded) in [(20, false), (300, true)] {
        let mut capture = Capture::new(ETHERNET);
        for n in 0..900 {
            for port in 1000..1000 + streams {
                let now = i64::from(n) * 1000 * MS + i64::from(port);
                capture.tcp(now, false, port, (ACK, 1 + n, 1), b"x");
            }
        }
        let said = Tables::of(&capture.bytes).issues();
        let found = said
            .iter()
            .any(|(_, reason)| reason.contains("unacknowledged segments in all"));
        assert_eq!(found, bounded, "{said:?}");
    }
}

#[test]
fn what_is_passed_over_is_said() {
    let mut fragment = frame((CLIENT, 1), (SERVER, 80), 1, (ACK, 1, 1), b"part");
    fragment[20] = 0x20; // more fragments
    let mut capture = Capture::new(ETHERNET);
    capture.record(0, &fragment);
    capture.record(1, &fragment);
    let tables = Tables::of(&capture.bytes);
    assert_eq!(tables.rows("events"), 0);
    assert_eq!(
        tables.issues(),
        [(
            "skipped".to_string(),
            "fragments of a packet are missing".to_string()
        )]
    );
    assert_eq!(tables.ids("issues", "count"), [1]);
    assert_eq!(tables.ids("issues", "last_frame"), [1]);

    let mut capture = Capture::new(147);
    capture.record(0, &[0; 60]);
    let tables = Tables::of(&capture.bytes);
    let [(kind, reason)] = &tables.issues()[..] else {
        panic!("{:?}", tables.issues())
    };
    assert!(
        kind == "skipped" && reason.contains("link") && reason.contains("147"),
        "{kind}: {reason}"
    );
    assert_eq!((tables.rows("events"), tables.rows("streams")), (0, 0));
}

#[test]
fn a_clock_that_goes_back_makes_no_interval_negative() {
    let mut random = Lcg(5);
    for _ in 0..100 {
        let mut bytes = two_connections();
        let mut at = 24;
        while at < bytes.len() {
            let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
            if random.below(3) == 0 {
                bytes[at..at + 4].copy_from_slice(&(1_699_999_990 + random.below(20) as u32).to_le_bytes());
            }
            at += 16 + len as usize;
        }
        let tables = Tables::of(&bytes);
        tables.assert_partitions();
        assert_eq!(
            tables.issues(),
            [("distrusted".to_string(), "time stamps go back".to_string())]
        );
        let never_negative = [
            "latency_ms",
            "client_latency_ms",
            "ttfb_ms",
            "request_spread_ms",
            "service_ms",
            "response_spread_ms",
        ];
        for column in never_negative {
            assert!(
                tables.ms("exchanges", column).iter().all(|ms| *ms >= 0.0),
                "{column}"
            );
        }
        for column in ["ack_hold_ms", "waited_ms"] {
            assert!(
                tables.ms("events", column).iter().all(|ms| *ms >= 0.0),
                "{column}"
            );
        }
    }
}

/// Two processors that hand over their frames swap some; that is no clock that was set.
#[test]
fn a_swap_of_two_frames_is_told_from_a_clock_that_was_set() {
    for (back_us, reason) in [
        (
            999,
            "frames stand in another order than their time stamps, by less than 1 ms",
        ),
        (1000, "time stamps go back"),
    ] {
        let mut capture = Capture::new(ETHERNET);
        for us in [5000, 5000 - back_us, 6000] {
            capture.tcp(us * 1000, true, 40_000, (ACK, 1, 1), b"");
        }
        let tables = Tables::of(&capture.bytes);
        assert_eq!(tables.issues(), [("distrusted".to_string(), reason.to_string())]);
        assert_eq!(tables.ids("issues", "count"), [1]);
    }
}

/// Stream numbers of header-only segments, and whether the ports are said to be reused.
fn numbers(segments: &[(bool, u16, u32, u32)]) -> Vec<(u32, bool)> {
    let mut capture = Capture::new(ETHERNET);
    for (hour, &(client, flags, seq, ack)) in segments.iter().enumerate() {
        capture.tcp(
            hour as i64 * 3_600_000 * MS,
            client,
            40_000,
            (flags, seq, ack),
            b"",
        );
    }
    let tables = Tables::of(&capture.bytes);
    let streams = tables.column("events", "stream", |array| {
        array.as_primitive::<UInt32Type>().values().to_vec()
    });
    let reused = tables.column("events", "reused_ports", |array| {
        array.as_boolean().iter().map(Option::unwrap).collect()
    });
    streams.into_iter().zip(reused).collect()
}

/// A stream number is never given twice.
#[test]
fn streams_are_numbered_as_by_wireshark() {
    let open = [
        (true, SYN, 10, 0),
        (false, SYN | ACK, 70, 11),
        (true, ACK, 11, 71),
    ];
    let then = |more: &[(bool, u16, u32, u32)]| numbers(&[&open[..], more].concat())[3..].to_vec();
    assert_eq!(numbers(&open), [(0, false); 3]);
    assert_eq!(
        then(&[(true, SYN, 10, 0)]),
        [(0, false)],
        "the same SYN once more"
    );
    assert_eq!(
        then(&[(true, SYN, 9, 0), (true, ACK, 10, 0)]),
        [(1, true), (1, false)],
        "another SYN"
    );
    assert_eq!(then(&[(false, SYN, 9, 0)]), [(1, true)], "the other side opens");
    assert_eq!(
        then(&[(false, SYN | ACK, 9, 11), (true, ACK, 11, 10)]),
        [(0, true), (0, false)]
    );
    assert_eq!(
        then(&[(true, FIN | ACK, 11, 71), (true, RST, 12, 0), (true, ACK, 99, 0)]),
        [(0, false); 3]
    );
    // anything opens a stream, and an acknowledgement sets the other side's base
    assert_eq!(
        numbers(&[(true, RST, 5, 0), (false, ACK, 1, 6)]),
        [(0, false), (0, false)]
    );
    assert_eq!(
        numbers(&[(false, ACK, 1, 6), (true, SYN, 5, 0)]),
        [(0, false), (0, false)]
    );
    assert_eq!(
        numbers(&[(false, ACK, 1, 6), (true, SYN, 6, 0)]),
        [(0, false), (1, true)]
    );
}

#[test]
fn rotated_files_are_one_capture() {
    const FILE_HEADER: usize = 24;
    const RECORD_HEADER: usize = 16;
    let whole = two_connections();
    let mut ends = vec![FILE_HEADER];
    while let Some(head) = whole
        .get(ends[ends.len() - 1]..)
        .filter(|h| h.len() >= RECORD_HEADER)
    {
        let captured = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        ends.push(ends[ends.len() - 1] + RECORD_HEADER + captured);
    }
    let expected = Tables::of(&whole);
    for end in &ends {
        let second = [&whole[..FILE_HEADER], &whole[*end..]].concat();
        let joined = Tables::in_files([[&whole[..*end]], [&second]]);
        assert_eq!(joined, expected, "rotated at byte {end}");
    }
    // a file that ends inside a record costs that record, and says so; the next one is read all the same
    let (end, next) = (ends[3], ends[4]);
    let second = [&whole[..FILE_HEADER], &whole[next..]].concat();
    let joined = Tables::in_files([[&whole[..next - 1]], [&second]]);
    assert_eq!(joined.rows("events"), expected.rows("events") - 1);
    let mut engine = Engine::new();
    engine.push(&whole[..next - 1]);
    engine.next_file("second");
    engine.push(b"no capture at all");
    engine.finish();
    assert_eq!(engine.refused(), None, "the first file was read");
    let (_, issues) = engine.pipeline().tables.take("issues").unwrap();
    let offsets = issues[0].column_by_name("offset").unwrap();
    let offsets = offsets.as_primitive::<arrow_array::types::UInt64Type>();
    assert_eq!(offsets.values(), &[end as u64, 0], "counted in each file");
}

/// A TLS record: its kind, and content of which only a handshake's kind is read.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut record = vec![kind, 3, 3, 0, content.len() as u8];
    record.extend_from_slice(content);
    record
}

#[test]
fn what_asks_for_tls_is_said_before_it() {
    let mut hello = vec![1, 0, 0, 76, 3, 3];
    hello.extend([7; 32]); // random
    hello.push(32);
    hello.extend([9; 32]); // session
    hello.extend([0, 2, 0x13, 1, 1, 0, 0, 0, 0]);
    let hello_back = [&[2, 0, 0, 76][..], &[3; 76]].concat();
    let script = [
        (false, b"220 mx\r\n".to_vec()),
        (true, b"EHLO a\r\n".to_vec()),
        (false, b"250 STARTTLS\r\n".to_vec()),
        (true, b"STARTTLS\r\n".to_vec()),
        (false, b"220 go on\r\n".to_vec()),
        (true, record(22, &hello)),
        (
            false,
            [record(22, &hello_back), record(20, &[1]), record(23, &[5; 90])].concat(),
        ),
        (true, [record(20, &[1]), record(23, &[5; 53])].concat()),
        (true, record(23, &[5; 80])),
        (false, record(23, &[5; 120])),
    ];
    let mut capture = Capture::new(ETHERNET);
    let (mut now, mut sent) = (MS, [0, 0]);
    for (client, bytes) in &script {
        now += MS;
        let (own, other) = (usize::from(!client), usize::from(*client));
        capture.tcp(now, *client, 40_000, (PSH | ACK, sent[own], sent[other]), bytes);
        sent[own] += bytes.len() as u32;
    }
    let tables = Tables::of(&capture.bytes);
    let protocols = tables.words("exchanges", "protocol");
    assert_eq!(protocols, ["smtp", "smtp", "tls", "tls"]);
}
