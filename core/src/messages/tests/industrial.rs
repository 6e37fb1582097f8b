//! Controllers and switches: OpenFlow, ISO transport with S7 and MMS, synchrophasors. Either side may ask; holes, units
//! that go on, and what only looks like it.

use super::frames::*;
use super::*;

fn heard(protocol: Protocol, script: &[(Side, Vec<u8>)]) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [protocol], "{notes}");
    notes
}

fn of(version: u8, kind: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let len = (8 + body.len() as u16).to_be_bytes();
    [&[version, kind, len[0], len[1]], &id.to_be_bytes()[..], body].concat()
}

#[test]
fn a_controller_asks_over_the_connection_of_its_switch() {
    let script = [
        (C, of(4, 0, 1, &[0, 1, 0, 8, 0, 0, 0, 16])),
        (S, of(4, 0, 2, &[])),
        (
            S,
            [of(4, 5, 3, &[]), of(4, 18, 4, &[0, 1, 0, 0, 0, 0, 0, 0])].concat(),
        ),
        (C, of(4, 6, 3, &[0; 24])),
        (C, of(4, 2, 9, &[])), // an echo is not a request
        (S, of(4, 3, 9, &[])),
        (C, of(4, 19, 4, &[0, 1, 0, 1, 0, 0, 0, 0])),
        (C, of(4, 10, 0, &[0; 40])), // a packet of its own
        (C, of(4, 19, 4, &[0, 1, 0, 0, 0, 0, 0, 0, 7])),
        (S, of(4, 20, 5, &[])),
        (C, of(4, 1, 5, &[0, 1, 0, 4])),
    ];
    assert_eq!(
        heard(Protocol::OpenFlow, &script),
        "S4294967299:( S4294967299:FEATURES_REQUEST.@ S4294967299:8) S4294967300:( \
         S4294967300:MULTIPART_REQUEST.FLOW@ S4294967300:16) C4294967299:( C4294967299:=ok C4294967299:32) \
         C4294967300:( C4294967300:16( C4294967300:=ok C4294967300:17) S4294967301:( \
         S4294967301:BARRIER_REQUEST.@ S4294967301:8) C4294967301:( C4294967301:=BAD_REQUEST/BAD_EXPERIMENTER_TYPE/error C4294967301:12)"
    );
}

#[test]
fn what_looks_like_openflow_is_not() {
    for (asks, answers) in [
        (of(7, 0, 1, &[]), of(4, 0, 1, &[])),
        (of(4, 36, 1, &[]), of(4, 0, 1, &[])),
        (of(4, 0, 1, &[]), b"hello".to_vec()),
        (of(4, 0, 1, &[0, 2, 0, 8]), of(4, 0, 1, &[])),
    ] {
        let (notes, protocols) = transcript(&[(C, asks), (S, answers)]);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}

/// A unit of data, which ends what is said.
fn unit(ends: bool, data: &[u8]) -> Vec<u8> {
    let len = (7 + data.len() as u16).to_be_bytes();
    [
        &[3, 0, len[0], len[1], 2, 0xF0, if ends { 0x80 } else { 0 }],
        data,
    ]
    .concat()
}

fn connects(kind: u8) -> Vec<u8> {
    let body = [
        0x11, kind, 0, 0, 0, 1, 0, 0xC0, 1, 10, 0xC1, 2, 1, 0, 0xC2, 2, 1, 2,
    ];
    [&[3, 0, 0, 22][..], &body].concat()
}

fn s7(kind: u8, id: u16, more: &[u8]) -> Vec<u8> {
    let id = id.to_be_bytes();
    unit(
        true,
        &[&[0x32, kind, 0, 0, id[0], id[1], 0, 2, 0, 0][..], more].concat(),
    )
}

#[test]
fn a_controller_of_s7_is_asked_and_asks() {
    let script = [
        (C, connects(0xE0)),
        (S, connects(0xD0)),
        (C, s7(1, 1, &[0xF0, 0])),
        (S, s7(3, 1, &[0, 0, 0xF0, 0])),
        (C, [unit(false, &[]), s7(1, 2, &[4, 1])].concat()),
        (S, s7(1, 2, &[0x1B, 0])), // a block is requested meanwhile
        (S, s7(3, 2, &[0x85, 0, 4, 1])),
        (C, s7(3, 2, &[0, 0, 0x1B, 0])),
        (S, s7(7, 0, &[0, 1, 0x12, 8, 0x12, 4, 3, 0, 0])),
    ];
    let notes = heard(Protocol::S7, &script);
    assert_eq!(
        notes,
        "C1099511627776:(Setup C1099511627776:CONNECT.@ C1099511627776:22) S1099511627776:( S1099511627776:=ok \
         S1099511627776:22) C1:( C1:SetupCommunication.@ C1:19) S1:( S1:=ok S1:21) C2:( C2:ReadVar.@ C2:19) \
         S4294967298:( S4294967298:DownloadBlock.@ S4294967298:19) S2:( S2:=error on supplies (8500)/error S2:21) \
         C4294967298:( C4294967298:=ok C4294967298:21) push26.UserData."
    );
}

/// A unit of MMS, fully encoded after its session.
fn mms(kind: u8, body: &[u8]) -> Vec<u8> {
    let tag = |tag: u8, inside: &[u8]| [&[tag, inside.len() as u8], inside].concat();
    let entry = [vec![2, 1, 3], tag(0xA0, &tag(kind, body))].concat();
    [vec![1, 0, 1, 0], tag(0x61, &tag(0x30, &entry))].concat()
}

#[test]
fn reports_of_mms_are_pushes_and_units_go_on() {
    let asks = mms(0xA0, &[2, 2, 1, 7, 0xA4, 1, 0]);
    let (head, tail) = asks.split_at(12);
    let script = [
        (C, connects(0xE0)),
        (S, connects(0xD0)),
        (C, unit(true, &[0x0D, 2, 0, 0])),
        (S, unit(true, &[0x0E, 2, 0, 0])),
        (S, unit(true, &mms(0xA3, &[0xA0, 0]))),
        (C, [unit(true, &asks), unit(false, &[1, 0])].concat()),
        (C, unit(true, tail)),
        (
            S,
            [
                unit(false, &mms(0xA1, &[2, 2, 1, 7, 0xA4, 0])),
                unit(true, b"more"),
            ]
            .concat(),
        ),
        (S, unit(true, &mms(0xA0, &[2, 1, 9, 0x82, 0]))),
        (
            C,
            unit(true, &mms(0xA2, &[0x80, 1, 9, 0xA2, 5, 0xA0, 3, 0x87, 1, 2])),
        ),
    ];
    let notes = heard(Protocol::Mms, &script);
    assert!(!head.is_empty());
    assert_eq!(
        notes,
        "C1099511627776:(Setup C1099511627776:CONNECT.@ C1099511627776:22) S1099511627776:( S1099511627776:=ok \
         S1099511627776:22) C1099511627776:(Setup C1099511627776:CONNECT.@ C1099511627776:11) S1099511627776:( \
         S1099511627776:=ok S1099511627776:11) push24.InformationReport. C263:( C263:Read.@ C263:29) S263:( S263:=ok \
         S263:39) S4294967305:( S4294967305:Identify.@ S4294967305:27) C4294967305:( C4294967305:=object-non-existent/error \
         C4294967305:32)"
    );
}

/// How the answer to a request ends.
fn ended(protocol: Protocol, script: &[(Side, Vec<u8>)]) -> String {
    let notes = heard(protocol, script);
    let last = notes.rsplit('=').next().unwrap_or_default();
    last.rsplit_once(' ')
        .map_or(last, |(status, _)| status)
        .to_string()
}

#[test]
fn errors_have_their_words_also_those_of_single_values() {
    let s7_ends = |answer: &[u8]| {
        let function = answer[2];
        let script = [
            (C, connects(0xE0)),
            (S, connects(0xD0)),
            (C, s7(1, 2, &[function, 1])),
            (S, s7(3, 2, answer)),
        ];
        ended(Protocol::S7, &script)
    };
    for (answer, want) in [
        (&[0x81, 4, 0x28, 0][..], "function not available (8104)/error"),
        (&[0x84, 7, 0x28, 0], "error on service processing (8407)/error"),
        (&[0x70, 1, 0x28, 0], "error 7001/error"),
        // two bytes, and one that is filled up; a bit; a value that is not there
        (
            &[0, 0, 4, 3, 0xFF, 4, 0, 8, 1, 0, 0xFF, 3, 0, 1, 1, 0, 10, 0, 0, 0],
            "object does not exist/error",
        ),
        (&[0, 0, 4, 1, 0xFF, 4, 0, 16, 5, 5], "ok"),
        (&[0, 0, 5, 2, 0xFF, 5], "invalid address/error"),
        (&[0, 0, 5, 1, 77], "value error 4d/error"),
    ] {
        assert_eq!(s7_ends(answer), want, "{answer:?}");
    }
    let mms_ends = |kind: u8, answer: &[u8]| {
        let script = [
            (C, connects(0xE0)),
            (S, connects(0xD0)),
            (C, unit(true, &[0x0D, 2, 0, 0])),
            (S, unit(true, &[0x0E, 2, 0, 0])),
            (C, unit(true, &mms(0xA0, &[2, 1, 7, 0xA4, 1, 0]))),
            (S, unit(true, &mms(kind, answer))),
        ];
        ended(Protocol::Mms, &script)
    };
    for (kind, answer, want) in [
        (
            0xA1,
            &[2, 1, 7, 0xA4, 8, 0xA1, 6, 0x83, 1, 1, 0x80, 1, 3][..],
            "object-access-denied/error",
        ),
        (
            0xA1,
            &[2, 1, 7, 0xA4, 7, 0xA0, 0, 0xA1, 3, 0x80, 1, 10],
            "object-non-existent/error",
        ),
        (0xA1, &[2, 1, 7, 0xA4, 5, 0xA1, 3, 0x83, 1, 1], "ok"),
        (
            0xA1,
            &[2, 1, 7, 0xA5, 5, 0x81, 0, 0x80, 1, 7],
            "type-inconsistent/error",
        ),
        (0xA1, &[2, 1, 7, 0xA5, 3, 0x80, 1, 77], "access error 77/error"),
        (0xA1, &[2, 1, 7, 0x82, 3, 0x80, 1, 7], "ok"),
        (
            0xA2,
            &[0x80, 1, 7, 0xA2, 5, 0xA0, 3, 0x8B, 1, 7],
            "file-non-existent/error",
        ),
        (
            0xA2,
            &[0x80, 1, 7, 0xA2, 5, 0xA0, 3, 0x8C, 1, 99],
            "error 12/99/error",
        ),
    ] {
        assert_eq!(mms_ends(kind, answer), want, "{answer:?}");
    }
}

#[test]
fn a_hole_inside_a_unit_does_no_harm() {
    let long = s7(3, 2, &[&[0, 0, 4, 1][..], &[0xFF; 200]].concat());
    let (up, yes, asks) = (connects(0xE0), connects(0xD0), s7(1, 2, &[4, 1]));
    let pieces = [
        (C, Stretch::Bytes(&up[..])),
        (S, Stretch::Bytes(&yes)),
        (C, Stretch::Bytes(&asks)),
        (S, Stretch::Bytes(&long[..60])),
        (S, Stretch::Missing(long.len() as u64 - 60)),
        (S, Stretch::Missing(30)),
        (C, Stretch::Bytes(&asks)),
    ];
    let notes = short(&stretches(&pieces));
    assert!(notes.contains(&format!("S2:=ok S2:{})", long.len())), "{notes}");
    assert!(notes.ends_with("C2:( C2:ReadVar.@ C2:19)"), "{notes}");
}

#[test]
fn other_protocols_over_iso_transport_are_not_told_of() {
    let (notes, protocols) = transcript(&[
        (C, connects(0xE0)),
        (S, connects(0xD0)),
        (C, unit(true, b"hello")),
        (S, unit(true, b"you")),
    ]);
    assert_eq!(protocols, [Protocol::Turns], "{notes}");
}

fn phasor(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = (16 + body.len() as u16).to_be_bytes();
    let frame = [
        &[0xAA, kind << 4 | 1, len[0], len[1], 0, 7, 0, 0, 0, 1, 0, 0, 0, 2],
        body,
    ]
    .concat();
    let crc = frame.iter().fold(0xFFFFu16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    });
    [frame, crc.to_be_bytes().to_vec()].concat()
}

#[test]
fn phasors_are_pushes_and_a_configuration_is_an_answer() {
    let script = [
        (C, phasor(4, &[0, 5])),
        (S, phasor(3, &[1; 60])),
        (C, phasor(4, &[0, 2])),
        (S, phasor(0, &[2; 10])),
        (S, phasor(0, &[3; 10])),
    ];
    assert_eq!(
        heard(Protocol::Synchrophasor, &script),
        "C3:( C3:SendConfiguration2.7@ C3:18) S3:( S3:=ok S3:76) push26.Data.7 push26.Data.7"
    );
    let mut wrong = phasor(4, &[0, 5]);
    wrong[17] ^= 1;
    let (notes, protocols) = transcript(&[(C, wrong), (S, b"no".to_vec())]);
    assert_eq!(protocols, [Protocol::Turns], "{notes}");
}
