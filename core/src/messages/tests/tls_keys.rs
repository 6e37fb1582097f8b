//! TLS with keys: what is read inside is what a plain connection would have said, however the bytes are cut.

use super::*;
use crate::decrypt::tests::modern::{Keyed, keyed};
use crate::decrypt::tests::talk::{LABELS, RANDOM, client_hello, log12, record};
use crate::decrypt::tests::{Part, classic};
use crate::decrypt::{KeyLog, Sealed};

const ASK: &[u8] = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
const ANSWER: &[u8] = b"HTTP/1.1 201 \r\nServer: inner\r\nContent-Length: 600\r\n\r\n";

fn answer() -> Vec<u8> {
    [ANSWER, &[b'x'; 600]].concat()
}

fn with_keys(text: &str) -> Notes {
    let mut notes = Notes::default();
    let keys: &mut KeyLog = notes.memory.keys();
    keys.read(text.as_bytes(), |issue| panic!("{issue:?}"));
    notes
}

fn hear(parts: &[Part], mut notes: Notes, chunk: usize) -> (Notes, Messages) {
    let (mut messages, mut at) = (Messages::new(), At::default());
    for part in parts {
        match part {
            Part::Bytes(side, bytes) => {
                for piece in bytes.chunks(chunk) {
                    at.frame += 1;
                    messages.feed(*side, at, Stretch::Bytes(piece), &mut notes);
                }
            }
            // no packet brought what the capture lacks
            Part::Missing(side, len) => {
                messages.feed(*side, At { frame: 0, ..at }, Stretch::Missing(*len), &mut notes)
            }
        }
    }
    for side in [C, S] {
        messages.close(side, at, Close::Fin, &mut notes);
    }
    (notes, messages)
}

/// The notes in short, the same however the bytes are cut, and what the stream spoke.
fn heard_with(parts: &[Part], text: Option<&str>) -> (String, &'static str) {
    let run = |chunk| {
        let notes = text.map_or_else(Notes::default, with_keys);
        let (notes, messages) = hear(parts, notes, chunk);
        // when it is known that all stays sealed depends on the packets
        let is_why = |note: &Note| matches!(note, Note::Sealed { .. });
        let (why, input): (Vec<Note>, Vec<Note>) = notes.list.iter().copied().partition(is_why);
        let words = [short(&why), short(&input)].join(" ");
        (
            words.trim().to_string(),
            messages.protocol().map_or("", Protocol::word),
        )
    };
    let uncut = run(usize::MAX);
    for chunk in [1, 7, 1000] {
        assert_eq!(run(chunk), uncut, "{chunk} bytes at once");
    }
    uncut
}

/// Two requests and their answers inside, in records that cut them anywhere, with a ticket between.
fn talk(keyed: &mut Keyed) -> Vec<Part> {
    let mut parts = keyed.handshake();
    let (head, body) = ASK.split_at(20);
    parts.push(Part::Bytes(S, keyed.server.seal(22, &[4, 0, 0, 1, 0])));
    parts.push(Part::Bytes(C, keyed.client.seal(23, head)));
    parts.push(Part::Bytes(C, keyed.client.seal(23, body)));
    for input in answer().chunks(250) {
        parts.push(Part::Bytes(S, keyed.server.seal(23, input)));
    }
    parts.push(Part::Bytes(C, keyed.client.seal(23, b"GET /b HTTP/1.1\r\n\r\n")));
    parts.push(Part::Bytes(S, keyed.server.seal(23, &answer())));
    parts.push(Part::Bytes(S, keyed.server.seal(21, &[1, 0])));
    parts
}

const INSIDE: &str = "C( POST./a @h C)52 S( 201 S)653 C( GET./b C)19 S( 201 S)653";

#[test]
fn inside_is_read_as_a_plain_connection_is() {
    let plain = [
        Part::Bytes(C, ASK.to_vec()),
        Part::Bytes(S, answer()),
        Part::Bytes(C, b"GET /b HTTP/1.1\r\n\r\n".to_vec()),
        Part::Bytes(S, answer()),
    ];
    assert_eq!(heard_with(&plain, None), (INSIDE.into(), "http"));
    let mut keyed = keyed(1);
    let parts = talk(&mut keyed);
    let log = keyed.log(&[]);
    let (notes, protocol) = heard_with(&parts, Some(&log));
    let (handshake, inside) = notes.split_at(notes.find(" C( POST").unwrap());
    assert_eq!((inside.trim_start(), protocol), (INSIDE, "http"));
    assert!(handshake.starts_with("C( handshake. dialogue C)"), "{handshake}");
    let (_, messages) = hear(&parts, with_keys(&log), usize::MAX);
    assert_eq!(messages.software(), Some("inner"));
}

#[test]
fn a_message_begins_with_its_records_first_packet_and_ends_with_the_last() {
    let mut keyed = keyed(0);
    let parts = talk(&mut keyed);
    let handshake: usize = parts[..3].iter().map(|part| packets(part, 100)).sum();
    let (notes, _) = hear(&parts, with_keys(&keyed.log(&[])), 100);
    let begins =
        |note: &&Note| matches!(note, Note::Begin { side: S, at, .. } if at.frame > handshake as u64);
    let Some(Note::Begin { at: begun, .. }) = notes.list.iter().find(begins) else {
        panic!("{:?}", notes.list);
    };
    let asked: usize = parts[3..6].iter().map(|part| packets(part, 100)).sum();
    assert_eq!(begun.frame, (handshake + asked + 1) as u64);
    let ends = |note: &&Note| {
        matches!(
            note,
            Note::End {
                side: S,
                bytes: 653,
                ..
            }
        )
    };
    let Some(Note::End { at: ended, .. }) = notes.list.iter().find(ends) else {
        panic!("{:?}", notes.list);
    };
    let answered: usize = parts[6..9].iter().map(|part| packets(part, 100)).sum();
    assert_eq!(ended.frame, (handshake + asked + answered) as u64);
}

fn packets(part: &Part, size: usize) -> usize {
    match part {
        Part::Bytes(_, bytes) => bytes.len().div_ceil(size),
        Part::Missing(..) => 0,
    }
}

#[test]
fn what_stays_sealed_is_read_as_records_and_says_why() {
    let mut keyed = keyed(1);
    let parts = talk(&mut keyed);
    let (records, _) = heard_with(&parts, None);
    let log = keyed.log(&[]);
    let wrong = keyed.wrong_log();
    for (text, why) in [
        ("", Sealed::NoSecret),
        (&keyed.log(&[LABELS[4]]), Sealed::NoSecret),
        (&wrong, Sealed::Wrong),
    ] {
        let (notes, protocol) = heard_with(&parts, Some(text));
        assert_eq!((notes, protocol), (format!("{why:?} {records}"), "tls"));
    }
    let (records, _) = heard_with(&parts[4..], None);
    let (notes, _) = heard_with(&parts[4..], Some(&log));
    assert_eq!(notes, format!("Middle {records}"));
}

#[test]
fn a_hole_in_a_record_is_a_hole_inside() {
    let mut keyed = keyed(1);
    let mut parts = talk(&mut keyed);
    let Part::Bytes(_, answered) = parts[7].clone() else {
        unreachable!()
    };
    let (first, rest) = answered.split_at(100);
    let (gone, last) = rest.split_at(50);
    let cut = [
        Part::Bytes(S, first.to_vec()),
        Part::Missing(S, gone.len() as u64),
        Part::Bytes(S, last.to_vec()),
    ];
    parts.splice(7..8, cut);
    let (notes, _) = heard_with(&parts, Some(&keyed.log(&[])));
    assert!(notes.ends_with(INSIDE), "{notes}");
    // the same where the hole is over the record's beginning
    parts.splice(7..10, [Part::Missing(S, answered.len() as u64)]);
    let (notes, _) = heard_with(&parts, Some(&keyed.log(&[])));
    assert!(notes.ends_with(INSIDE), "{notes}");
}

#[test]
fn a_request_in_a_hole_has_no_packet() {
    let mut keyed = keyed(1);
    let mut parts = keyed.handshake();
    for (target, is_lost) in [("/a", false), ("/b", true), ("/c", false)] {
        let record = keyed
            .client
            .seal(23, format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes());
        // its answer is read before what was lost is measured, by the client's next record
        let answered = Part::Bytes(S, keyed.server.seal(23, &answer()));
        let asked = if is_lost {
            Part::Missing(C, record.len() as u64)
        } else {
            Part::Bytes(C, record)
        };
        parts.extend([asked, answered]);
    }
    for chunk in [1, 7, usize::MAX] {
        let (notes, _) = hear(&parts, with_keys(&keyed.log(&[])), chunk);
        let begins = notes.list.iter().filter_map(|note| match note {
            Note::Begin { side: C, at, .. } => Some(at.frame == 0),
            _ => None,
        });
        // the handshake, /a, what is not there, /c
        assert_eq!(begins.collect::<Vec<_>>(), [false, false, true, false]);
        let text = short(&notes.list);
        assert!(text.contains("GET./a") && text.contains("GET./c"), "{text}");
    }
}

#[test]
fn records_that_no_longer_open_are_lost_and_said() {
    let mut keyed = keyed(1);
    let mut parts = talk(&mut keyed);
    parts.truncate(parts.len() - 3);
    keyed.server.seq += 100;
    parts.push(Part::Bytes(C, keyed.client.seal(23, b"GET /c HTTP/1.1\r\n\r\n")));
    for _ in 0..70 {
        parts.push(Part::Bytes(S, keyed.server.seal(23, &answer())));
    }
    let (notes, _) = hear(&parts, with_keys(&keyed.log(&[])), usize::MAX);
    let lost = notes
        .list
        .iter()
        .filter(|note| matches!(note, Note::Lost { reason, .. } if *reason == Sealed::Lost.reason()));
    assert_eq!(lost.count(), 1);
    let text = short(&notes.list);
    let before = "C( POST./a @h C)52 S( 201 S)653";
    assert!(text.contains(before), "{text}");
}

#[test]
fn behind_another_protocol_and_in_tls_1_2() {
    let (mut keyed, mut parts) = classic::talk(0xc02f, false, false);
    parts.splice(
        0..0,
        [
            Part::Bytes(S, b"220 mail\r\n".to_vec()),
            Part::Bytes(C, b"STARTTLS\r\n".to_vec()),
        ],
    );
    parts.insert(2, Part::Bytes(S, b"220 go\r\n".to_vec()));
    parts.push(Part::Bytes(C, keyed.client.seal(23, b"GET /b HTTP/1.1\r\n\r\n")));
    parts.push(Part::Bytes(S, keyed.server.seal(23, &answer())));
    let (notes, messages) = hear(&parts, with_keys(&log12(&RANDOM, &[0x42; 48])), usize::MAX);
    let notes = short(&notes.list);
    assert!(notes.ends_with("C( GET./b C)19 S( 201 S)653"), "{notes}");
    assert_eq!(messages.protocol(), Some(Protocol::Http));
}

#[test]
fn a_connection_inside_another_one_stays_sealed() {
    let mut keyed = keyed(1);
    let mut parts = keyed.handshake();
    let hello = record(22, &client_hello(&RANDOM, &[]));
    parts.push(Part::Bytes(C, keyed.client.seal(23, &hello)));
    parts.push(Part::Bytes(S, keyed.server.seal(23, &record(21, &[2, 40]))));
    let (notes, protocol) = heard_with(&parts, Some(&keyed.log(&[])));
    assert_eq!(notes.matches("handshake.").count(), 2, "{notes}");
    assert!(!notes.contains("Secret") && protocol == "tls", "{notes}");
}

#[test]
fn what_is_said_before_the_handshake_is_over_waits_for_its_end() {
    let mut keyed = keyed(1);
    let mut parts = vec![keyed.hello(), keyed.server_flight(false)];
    // a server that greets before it has the client's Finished
    parts.push(Part::Bytes(S, keyed.server.seal(23, b"220 mail\r\n")));
    parts.push(keyed.client_finished());
    parts.push(Part::Bytes(C, keyed.client.seal(23, b"QUIT\r\n")));
    let (notes, _) = heard_with(&parts, Some(&keyed.log(&[])));
    let words: Vec<_> = notes.split(' ').collect();
    let ends = words.iter().filter(|word| **word == "S(").count();
    assert_eq!(ends, 2, "{notes}");
    assert!(words.ends_with(&["S(", "S)10", "C(", "C)6"]), "{notes}");
}
