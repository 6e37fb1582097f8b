//! DNP3: answers in several frames, what is said unasked, confirmations, holes, and what only looks like it.

use super::frames::*;
use super::*;

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut crc = 0u16;
    for byte in bytes {
        crc ^= u16::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xA6BC } else { crc >> 1 };
        }
    }
    (!crc).to_le_bytes()
}

/// A frame between stations 1 and 10: what the transport carries in blocks, each with its checksum.
fn frame(side: Side, input: &[u8]) -> Vec<u8> {
    let (control, ends) = if side == C {
        (0xC4, [10, 0, 1, 0])
    } else {
        (0x44, [1, 0, 10, 0])
    };
    let head = [&[5, 0x64, input.len() as u8 + 5, control][..], &ends].concat();
    let mut bytes = [&head[..], &checksum(&head)].concat();
    for block in input.chunks(16) {
        bytes.extend([block, &checksum(block)].concat());
    }
    bytes
}

fn read(number: u8) -> Vec<u8> {
    frame(C, &[0xC0, 0xC0 | number, 1, 60, 2, 6])
}

fn heard(script: &[(Side, Vec<u8>)]) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [Protocol::Dnp3], "{notes}");
    notes
}

#[test]
fn what_comes_unasked_is_a_push_and_a_confirmation_asks_nothing() {
    let script = [
        (C, read(3)),
        (S, frame(S, &[0xC0, 0xD1, 0x82, 0, 0])),
        (C, frame(C, &[0xC0, 0xD1, 0])),
        (S, frame(S, &[0xC1, 0xC3, 0x81, 0, 0, 1])),
        (C, frame(C, &[0xC0, 0xC4, 6, 1])),
        (C, frame(C, &[])),
        (S, frame(S, &[])),
        (C, frame(C, &[0xC0, 0xC5, 2, 1])),
        (S, frame(S, &[0xC1, 0xC5, 0x81, 0, 2])),
    ];
    assert_eq!(
        heard(&script),
        "C179:( C179:Read.10@ C179:18) push17.UnsolicitedResponse. S179:( S179:=ok S179:18) \
         C181:( C181:Write.10@ C181:16) S181:( S181:=refused 2/error S181:17)"
    );
}

#[test]
fn an_answer_has_many_frames_and_a_hole_inside_one_does_no_harm() {
    let long = [&[0x40, 0xC1, 0x81, 0, 0][..], &[7; 240]].concat();
    let script = [
        (C, read(1)),
        (S, frame(S, &long)),
        (S, frame(S, &[1, 7, 7])),
        (S, frame(S, &[0x82, 7])),
    ];
    let notes = heard(&script);
    assert!(
        notes.starts_with("C177:( C177:Read.10@ C177:18) S177:( S177:=ok "),
        "{notes}"
    );
    assert!(notes.ends_with("S177:316)"), "{notes}");
    let (asked, first, last) = (read(1), frame(S, &long), frame(S, &[0x82, 7]));
    let pieces = [
        (C, Stretch::Bytes(&asked)),
        (S, Stretch::Bytes(&first[..40])),
        (S, Stretch::Missing(first.len() as u64 - 40)),
        (S, Stretch::Bytes(&last)),
        (S, Stretch::Missing(30)),
        (C, Stretch::Bytes(&asked)),
    ];
    let notes = short(&stretches(&pieces));
    assert!(notes.contains("S177:301) C177:( C177:Read"), "{notes}");
}

#[test]
fn a_wrong_checksum_is_none() {
    let mut wrong = read(1);
    wrong[8] ^= 1;
    for other in [
        wrong,
        b"\x05\x65hello".to_vec(),
        b"\x05\x64\x04\0\0\0\0\0\0\0".to_vec(),
    ] {
        let (notes, protocols) = transcript(&[(C, other), (S, b"no".to_vec())]);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}
