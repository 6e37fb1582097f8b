//! MQTT: what is asked and what is pushed, both versions, holes, the middle, and what only looks like it.

use super::frames::*;
use super::*;

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut length = vec![(body.len() % 128) as u8];
    if body.len() > 127 {
        length[0] |= 0x80;
        length.push((body.len() / 128) as u8);
    }
    [&[first], &length[..], body].concat()
}

fn text(name: &str) -> Vec<u8> {
    [&(name.len() as u16).to_be_bytes(), name.as_bytes()].concat()
}

fn publish(first: u8, topic: &str, id: Option<u16>, more: &[u8]) -> Vec<u8> {
    let id = id.map(u16::to_be_bytes).unwrap_or_default();
    let id: &[u8] = if id == [0, 0] { &[] } else { &id };
    packet(first, &[&text(topic), id, more].concat())
}

fn opened(version: u8, more: Script) -> Script {
    let properties: &[u8] = if version == 5 { &[0] } else { &[] };
    let connect = [&text("MQTT")[..], &[version, 2, 0, 60], properties, &text("me")].concat();
    let start = vec![
        (C, packet(0x10, &connect)),
        (S, packet(0x20, &[&[0, 0], properties].concat())),
    ];
    [start, more].concat()
}

fn behind(version: u8, more: Script) -> String {
    let (notes, protocols) = transcript(&opened(version, more));
    assert_eq!(protocols, [Protocol::Mqtt]);
    let (request_bytes, response_bytes) = if version == 5 { (17, 5) } else { (16, 4) };
    let connect = format!(
        "C65536:( C65536:CONNECT.me@ C65536:{request_bytes}) S65536:( S65536:=0 S65536:{response_bytes})"
    );
    notes
        .strip_prefix(&connect)
        .unwrap_or_else(|| panic!("{notes}"))
        .trim_start()
        .to_string()
}

#[test]
fn packets_of_three_qualities() {
    let script = vec![
        (C, publish(0x30, "a/0", None, b"x")),
        (
            C,
            [
                publish(0x32, "a/1", Some(1), b"x"),
                publish(0x34, "a/2", Some(2), b"x"),
            ]
            .concat(),
        ),
        (S, [packet(0x50, &[0, 2]), packet(0x40, &[0, 1])].concat()),
        (C, [packet(0x62, &[0, 2]), packet(0xc0, &[])].concat()),
        (S, [packet(0x70, &[0, 2]), packet(0xd0, &[])].concat()),
    ];
    assert_eq!(
        behind(4, script),
        "C1:( C1:PUBLISH.a/1@ C1:10) C2:( C2:PUBLISH.a/2@ C2:10) S2:( S1:( S1:=0 S1:4) S2:4( S2:=0 S2:4)"
    );
}

#[test]
fn what_the_server_publishes_is_a_push_and_what_the_client_answers_nothing() {
    let subscribe = [&[0, 9][..], &text("a/#"), &[1]].concat();
    let script = vec![
        (C, packet(0x82, &subscribe)),
        (
            S,
            [publish(0x31, "a/kept", None, b"x"), packet(0x90, &[0, 9, 1])].concat(),
        ),
        (S, publish(0x34, "a/2", Some(9), &[7; 700])),
        (C, packet(0x50, &[0, 9])),
        (S, packet(0x62, &[0, 9])),
        (C, packet(0x70, &[0, 9])),
    ];
    assert_eq!(
        behind(4, script),
        "C9:( C9:SUBSCRIBE.a/#@ C9:subscribes1 C9:10) push11.PUBLISH.a/kept<1 S9:( S9:=1 S9:5) push710.PUBLISH.a/2<1"
    );
}

#[test]
fn version_5_has_reasons_properties_and_short_topics() {
    let long = publish(0x32, "house/hall", Some(3), &[3, 0x23, 0, 7, b'x']);
    let short = publish(0x32, "", Some(4), &[3, 0x23, 0, 7, b'x']);
    let subscribe = [&[0, 5, 0][..], &text("no"), &[1]].concat();
    let script = vec![
        (C, [long, short].concat()),
        (
            S,
            [packet(0x40, &[0, 3, 0x10]), packet(0x40, &[0, 4, 0x97, 0])].concat(),
        ),
        (C, packet(0x82, &subscribe)),
        (S, packet(0x90, &[0, 5, 0, 0x87])),
        (S, packet(0xe0, &[0x8b])),
    ];
    assert_eq!(
        behind(5, script),
        "C3:( C3:PUBLISH.house/hall@ C3:21) C4:( C4:PUBLISH.house/hall@ C4:11) \
         S3:( S3:=16 S3:5) S4:( S4:=151/Quota exceeded/error S4:6) C5:( C5:SUBSCRIBE.no@ C5:subscribes1 C5:10) \
         S5:( S5:=135/Not authorized/error S5:6) push3.DISCONNECT."
    );
}

#[test]
fn a_server_that_refuses_says_so() {
    let connect = [&text("MQTT")[..], &[4, 2, 0, 60], &text("")].concat();
    let script = vec![(C, packet(0x10, &connect)), (S, packet(0x20, &[0, 5]))];
    assert_eq!(
        notes(&script),
        "C65536:( C65536:CONNECT.@ C65536:14) S65536:( S65536:=5/Not authorized/error S65536:4)"
    );
}

#[test]
fn holes_are_counted_in_a_payload_and_searched_over_elsewhere() {
    let up = opened(4, vec![]);
    let long = publish(0x32, "a", Some(1), &[7; 1000]);
    let (next, ack) = (publish(0x32, "b", Some(2), b"x"), packet(0x40, &[0, 2]));
    let mut script: Vec<_> = up
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    script.extend([
        (C, Stretch::Bytes(&long[..600])),
        (C, Stretch::Missing(long.len() as u64 - 600)),
        (S, Stretch::Missing(4)),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Bytes(&ack)),
    ]);
    let heard = short(&stretches(&script));
    assert!(
        heard.ends_with("C1:PUBLISH.a@ C1:1008) C2:( C2:PUBLISH.b@ C2:8) S2:( S2:=0 S2:4)"),
        "{heard}"
    );
}

#[test]
fn both_sides_tell_who_is_joined_in_the_middle() {
    let (ask, ack) = (publish(0x32, "a/b", Some(1), b"x"), packet(0x40, &[0, 1]));
    let asked = "C1:( C1:PUBLISH.a/b@ C1:10) S1:( S1:=0 S1:4)";
    assert_eq!(notes(&[(C, ask.clone()), (S, ack.clone())]), asked);
    // what is said of a key that is not open is dropped where it is heard
    let before = format!("S1:( S1:=0 S1:4) {asked}");
    assert_eq!(notes(&[(S, ack.clone()), (C, ask.clone()), (S, ack)]), before);
    let late = [
        (S, packet(0xd0, &[])),
        (C, publish(0x30, "t", None, b"x")),
        (S, publish(0x30, "u", None, b"y")),
    ];
    assert_eq!(notes(&late), "push6.PUBLISH.u");
}

#[test]
fn what_only_looks_like_it_is_turns() {
    for (asked, answered) in [
        (
            packet(0x10, &[&text("MQTX")[..], &[4, 2, 0, 60], &text("me")].concat()),
            packet(0x20, &[0, 0]),
        ),
        (packet(0x36, &text("topic")), packet(0x40, &[0, 1])), // no such quality
        (publish(0x32, "a\x01b", Some(1), b"x"), packet(0x40, &[0, 1])),
        (publish(0x32, "a/+", Some(1), b"x"), packet(0x40, &[0, 1])),
        (publish(0x32, "a", Some(1), b"x"), packet(0x80, &[0, 1])),
        (publish(0x32, "a", Some(1), b"x"), b"0123 hello".to_vec()),
        (
            b"2\x08\0\x01a\0\x07hello, this is longer".to_vec(),
            packet(0x40, &[0, 7]),
        ),
    ] {
        let script = [(C, asked), (S, answered)];
        let (notes, protocols) = transcript(&script);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}
