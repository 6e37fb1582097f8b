//! TLS by its records: what is a message and what is not, however the bytes are cut.

use super::*;

/// A record of `len` bytes that says nothing.
fn record(kind: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![kind, 3, 3, (len >> 8) as u8, len as u8];
    bytes.resize(5 + len, 0xAA);
    bytes
}

/// A hello that asks for `host`.
fn client_hello(host: &str) -> Vec<u8> {
    let vector = |width: usize, body: &[u8]| {
        let len = (body.len() as u32).to_be_bytes();
        [&len[4 - width..], body].concat()
    };
    let name = vector(2, &[&[0], vector(2, host.as_bytes()).as_slice()].concat());
    let extensions = [vec![0, 10, 0, 2, 0, 23], vec![0, 0], vector(2, &name)].concat();
    let body = [
        vec![3, 3],
        vec![7; 32],
        vector(1, &[1; 32]),
        vector(2, &[0x13, 1]),
        vector(1, &[0]),
        vector(2, &extensions),
    ]
    .concat();
    let message = [vec![1], vector(3, &body)].concat();
    [vec![22, 3, 1], vector(2, &message)].concat()
}

fn server_hello() -> Vec<u8> {
    let mut bytes = record(22, 90);
    bytes[5] = 2;
    bytes
}

fn both_ways(script: &[(Side, Vec<u8>)], close: Option<Close>) -> (String, &'static str) {
    let run = |chunk: usize| {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, bytes) in script {
            for piece in bytes.chunks(chunk) {
                at.frame += 1;
                messages.feed(*side, at, Stretch::Bytes(piece), &mut notes);
            }
        }
        for side in [C, S] {
            close
                .iter()
                .for_each(|how| messages.close(side, at, *how, &mut notes));
        }
        (short(&notes.list), messages.protocol().map_or("", Protocol::word))
    };
    let uncut = run(usize::MAX);
    for chunk in [1, 2, 3, 7, 100] {
        assert_eq!(run(chunk), uncut, "{chunk} bytes at once");
    }
    uncut
}

/// TLS 1.3: hello, answer, the client's Finished; two tickets; a request and its answer; close-notify.
#[test]
fn one_three_with_tickets_and_an_alert() {
    let hello = client_hello("www.example.org");
    let sent = hello.len();
    let (notes, protocol) = both_ways(
        &[
            (C, hello),
            (S, [server_hello(), record(20, 1), record(23, 1200)].concat()),
            (C, [record(20, 1), record(23, 53)].concat()),
            (C, record(23, 100)),
            (S, [record(23, 234), record(23, 234)].concat()),
            (S, record(23, 400)),
            (C, record(23, 60)),
            (S, [record(23, 500), record(23, 700)].concat()),
            (C, record(23, 19)),
        ],
        Some(Close::Fin),
    );
    let answer = 95 + 6 + 1205;
    let want = format!(
        "C( handshake.www.example.org dialogue C){sent} S( S){answer} C( C)105 S( S)405 C( C)65 S( S)1210"
    );
    assert_eq!((notes.as_str(), protocol), (want.as_str(), "tls"));
}

fn packet_by_packet(script: &[(Side, Vec<u8>)]) -> (String, &'static str) {
    let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
    for (side, bytes) in script {
        at.frame += 1;
        messages.feed(*side, at, Stretch::Bytes(bytes), &mut notes);
    }
    for side in [C, S] {
        messages.close(side, at, Close::Fin, &mut notes);
    }
    (short(&notes.list), messages.protocol().map_or("", Protocol::word))
}

/// MySQL: a greeting, the request for TLS, and in the same turn the hello.
#[test]
fn a_hello_behind_the_request_for_it() {
    let hello = client_hello("db");
    let sent = hello.len();
    let rest = [
        (S, [server_hello(), record(20, 1), record(23, 1200)].concat()),
        (C, [record(20, 1), record(23, 53)].concat()),
        (C, record(23, 100)),
        (S, [record(23, 234), record(23, 234)].concat()),
        (S, record(23, 400)),
    ];
    let asked = [(S, vec![10; 90]), (C, vec![32; 36])];
    let script = [&asked[..], &[(C, hello.clone())], &rest].concat();
    let set_up = 95 + 6 + 1205;
    let before = "S( S)90 C(";
    let want = format!(
        "{before} handshake.db dialogue C){} S( S){set_up} C( C)105 S( S)405",
        36 + sent
    );
    assert_eq!(packet_by_packet(&script), (want, "tls"));

    // where one packet holds both, nobody sees the hello: the server's does not answer a dialogue
    let script = [&asked[..1], &[(C, [vec![32; 36], hello.clone()].concat())], &rest].concat();
    let want = format!("{before} C){} S( S){set_up} C( C)105 S( S)405", 36 + sent);
    assert_eq!(packet_by_packet(&script), (want, "tls"));

    // what only looks like one, and what a server says
    for (side, at, byte) in [(C, 3, 0x40), (C, 5, 2), (C, 6, 9), (C, 9, 4), (S, 0, 22)] {
        let mut other = hello.clone();
        other[at] = byte;
        let script = [(side, vec![32; 36]), (side, other)];
        assert_eq!(packet_by_packet(&script).1, "turns", "{side:?} {at}");
    }
}

/// Without tickets the first record is the answer, and it begins with its own packet.
#[test]
fn a_single_record_is_no_ticket() {
    let hello = client_hello("h");
    let (mut messages, mut notes) = (Messages::new(), Notes::default());
    let script = [
        (C, hello),
        (S, [server_hello(), record(23, 800)].concat()),
        (C, record(23, 53)),
        (C, record(23, 90)),
        (S, record(23, 300)),
        (C, record(23, 91)),
    ];
    for (frame, (side, bytes)) in (1..).zip(&script) {
        let at = At {
            frame,
            time_ns: frame as i64,
        };
        messages.feed(*side, at, Stretch::Bytes(bytes), &mut notes);
    }
    let begins: Vec<(Side, u64)> = notes
        .list
        .iter()
        .filter_map(|note| match note {
            Note::Begin { side, at, .. } => Some((*side, at.frame)),
            _ => None,
        })
        .collect();
    assert_eq!(begins, [(C, 1), (S, 2), (C, 4), (S, 5), (C, 6)]);
    let established = notes.list.iter().find_map(|note| match note {
        Note::End { side: S, at, .. } => Some(at.frame),
        _ => None,
    });
    assert_eq!(established, Some(3), "the client's Finished ends the handshake");
}

/// TLS 1.2: the server's Finished ends it; a session ticket on the way belongs to it, an alert to nobody.
#[test]
fn one_two_ends_with_the_servers_finished() {
    let hello = client_hello("a.b");
    let sent = hello.len();
    let (notes, protocol) = both_ways(
        &[
            (C, hello),
            (S, [server_hello(), record(22, 2000)].concat()),
            (C, [record(22, 70), record(20, 1), record(22, 40)].concat()),
            (S, [record(22, 180), record(20, 1), record(22, 40)].concat()),
            (C, record(23, 120)),
            (S, record(23, 600)),
            (S, record(21, 26)),
        ],
        Some(Close::Fin),
    );
    let answer = 95 + 2005 + 185 + 6 + 45;
    let want = format!("C( handshake.a.b dialogue C){sent} S( S){answer} C( C)125 S( S)605");
    assert_eq!((notes.as_str(), protocol), (want.as_str(), "tls"));
}

#[test]
fn joined_in_the_middle_records_are_turns() {
    let script = [(C, record(23, 120)), (S, record(23, 600)), (C, record(23, 121))];
    let (notes, protocol) = both_ways(&script, Some(Close::CaptureEnd));
    assert_eq!(
        (notes.as_str(), protocol),
        ("C( C)125 S( S)605 C( C!CaptureEnd126", "tls")
    );
}

#[test]
fn a_hole_inside_a_record_is_counted_and_one_beyond_it_is_not_followed() {
    let mut messages = Messages::new();
    let mut notes = Notes::default();
    let at = At::default();
    messages.feed(C, at, Stretch::Bytes(&record(23, 100)[..50]), &mut notes);
    messages.feed(C, at, Stretch::Missing(55), &mut notes);
    messages.feed(S, at, Stretch::Bytes(&record(23, 10)), &mut notes);
    messages.feed(S, at, Stretch::Missing(1), &mut notes);
    messages.close(S, at, Close::Fin, &mut notes);
    assert_eq!(
        short(&notes.list),
        "C( C)105 S( S?a_record's_beginning_is_not_in_the_capture S)16"
    );
}

#[test]
fn what_is_no_record_is_no_tls() {
    for first in [
        vec![22, 3, 1, 0, 4, 9],
        vec![23, 2, 3, 0, 9],
        vec![23, 3, 3, 0xFF, 0xFF],
        vec![21, 3, 3, 0, 2],
    ] {
        let (_, protocol) = both_ways(&[(C, first)], Some(Close::Fin));
        assert_eq!(protocol, "turns");
    }
}

#[test]
fn who_closes_with_an_alert_was_not_cut_by_the_reset_behind_it() {
    let transcript = |alert: bool| {
        let mut script = vec![(C, record(23, 60)), (S, record(23, 700))];
        if alert {
            script.push((S, record(21, 26)));
        }
        both_ways(&script, Some(Close::Rst)).0
    };
    assert_eq!(transcript(true), "C( C)65 S( S)705");
    assert_eq!(transcript(false), "C( C)65 S( S!Rst705");
}

#[test]
fn a_ticket_that_nagle_held_back_is_none_of_the_answer() {
    let script = [
        (C, client_hello("a")),
        (S, [server_hello(), record(20, 1), record(23, 900)].concat()),
        (C, [record(20, 1), record(23, 69)].concat()),
        (S, record(23, 250)),
        (C, record(23, 61)),
        (S, record(23, 250)),
        (S, record(23, 357)),
        (C, record(23, 61)),
        (S, record(23, 250)),
    ];
    let input = both_ways(&script, FIN).0;
    assert!(
        input.ends_with("S( S)255 C( C)66 S( S)362 C( C)66 S( S)255"),
        "{input}"
    );
}

/// A handshake message in a record of its own.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let message = [&[kind, 0, 0, body.len() as u8], body].concat();
    [&[22, 3, 3, 0, message.len() as u8], message.as_slice()].concat()
}

/// A ServerHello of this random's first byte, with these extensions.
fn hello_back(random: &[u8; 32], extensions: &[u8]) -> Vec<u8> {
    let len = (extensions.len() as u16).to_be_bytes();
    message(
        2,
        &[&[3, 3], random.as_slice(), &[0, 0x13, 1, 0], &len, extensions].concat(),
    )
}

const ASKS_AGAIN: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
const MODERN: [u8; 6] = [0, 43, 0, 2, 3, 4];
const BY_KEY: [u8; 6] = [0, 41, 0, 2, 0, 0];
const CHOOSES_H2: [u8; 9] = [0, 16, 0, 5, 0, 3, 2, b'h', b'2'];

/// What the handshake of these records told, however they are cut: version, round trips, resumed, name and protocol.
fn told(script: &[(Side, Vec<u8>)]) -> Option<String> {
    let run = |chunk: usize| {
        let (mut messages, mut notes, mut at) = (Messages::new(), Notes::default(), At::default());
        for (side, bytes) in script {
            for piece in bytes.chunks(chunk) {
                at.frame += 1;
                messages.feed(*side, at, Stretch::Bytes(piece), &mut notes);
            }
        }
        for side in [C, S] {
            messages.close(side, at, Close::CaptureEnd, &mut notes);
        }
        notes.secured
    };
    let uncut = run(usize::MAX);
    for chunk in [1, 2, 3, 7, 100] {
        assert_eq!(run(chunk), uncut, "{chunk} bytes at once");
    }
    let how = uncut?;
    Some(format!(
        "{:x?} {:?} {:?} {:?} {:?}",
        how.version, how.round_trips, how.resumed, how.server_name, how.alpn
    ))
}

#[test]
fn a_handshake_tells_how_tls_was_set_up() {
    let (hello, keys) = (|| (C, client_hello("a.test")), |side| (side, record(20, 1)));
    let data = |side| (side, record(23, 200));
    let done = |side| (side, record(22, 40));
    let plain = [9; 32];
    let says = |script: &[(Side, Vec<u8>)]| told(script).unwrap_or_default();
    // TLS 1.3, in full, with a key of before, and where the server wants another hello
    let modern = |more: &[u8]| (S, hello_back(&plain, &[&MODERN, more].concat()));
    let full = [
        hello(),
        modern(&[]),
        keys(S),
        data(S),
        keys(C),
        data(C),
        data(C),
        data(S),
    ];
    assert_eq!(says(&full), "Some(304) Some(1) Some(false) Some(\"a.test\") None");
    let by_key = [hello(), modern(&BY_KEY), data(S), data(C)];
    assert_eq!(
        says(&by_key),
        "Some(304) Some(1) Some(true) Some(\"a.test\") None"
    );
    let again = (S, hello_back(&ASKS_AGAIN, &MODERN));
    let twice = [
        hello(),
        again,
        keys(S),
        keys(C),
        hello(),
        modern(&[]),
        data(S),
        data(C),
        data(C),
        data(S),
    ];
    assert_eq!(
        says(&twice),
        "Some(304) Some(2) Some(false) Some(\"a.test\") None"
    );
    assert_eq!(
        both_ways(&twice, None).0.matches("End").count(),
        both_ways(&full, None).0.matches("End").count()
    );
    // TLS 1.2, in full, with data before the server's last word, and where a session goes on
    let classic = || (S, hello_back(&plain, &CHOOSES_H2));
    let mut before = vec![
        hello(),
        classic(),
        (S, message(11, &[0; 90])),
        (S, message(14, &[])),
        done(C),
        keys(C),
        done(C),
    ];
    let late = [before.clone(), vec![keys(S), done(S), data(C), data(S)]].concat();
    assert_eq!(
        says(&late),
        "Some(303) Some(2) Some(false) Some(\"a.test\") Some(\"h2\")"
    );
    before.extend([data(C), keys(S), done(S), data(S)]);
    assert_eq!(
        says(&before),
        "Some(303) Some(1) Some(false) Some(\"a.test\") Some(\"h2\")"
    );
    let goes_on = [
        hello(),
        classic(),
        keys(S),
        done(S),
        keys(C),
        done(C),
        data(C),
        data(S),
    ];
    assert_eq!(
        says(&goes_on),
        "Some(303) Some(1) Some(true) Some(\"a.test\") Some(\"h2\")"
    );
    // refused: nothing was set up, and whom the client wanted is known all the same
    let refused = [hello(), (S, record(21, 2))];
    assert_eq!(says(&refused), "None None None Some(\"a.test\") None");
    assert_eq!(told(&[data(C), data(S), data(C)]), None);
}
