//! AMQP: methods and their answers, confirmations by tags, pushes, errors, holes, the middle, and what is none of it.

use super::frames::*;
use super::*;

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let size = (payload.len() as u32).to_be_bytes();
    [&[kind], &channel.to_be_bytes()[..], &size, payload, &[0xCE]].concat()
}

fn method(channel: u16, class: u16, number: u16, arguments: &[u8]) -> Vec<u8> {
    frame(
        1,
        channel,
        &[&class.to_be_bytes(), &number.to_be_bytes(), arguments].concat(),
    )
}

fn name(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

fn content(channel: u16, size: usize) -> Vec<u8> {
    let head = [&[0, 60, 0, 0][..], &(size as u64).to_be_bytes(), &[0, 0]].concat();
    let body = if size > 0 {
        frame(3, channel, &vec![b'x'; size])
    } else {
        vec![]
    };
    [frame(2, channel, &head), body].concat()
}

fn publish(channel: u16, exchange: &str, key: &str) -> Vec<u8> {
    let arguments = [&[0, 0][..], &name(exchange), &name(key), &[0]].concat();
    [method(channel, 60, 40, &arguments), content(channel, 5)].concat()
}

fn deliver(channel: u16, exchange: &str, key: &str, size: usize) -> Vec<u8> {
    let arguments = [&name("tag")[..], &[0; 9], &name(exchange), &name(key)].concat();
    [method(channel, 60, 60, &arguments), content(channel, size)].concat()
}

fn ack(channel: u16, tag: u64, multiple: bool) -> Vec<u8> {
    method(
        channel,
        60,
        80,
        &[&tag.to_be_bytes()[..], &[u8::from(multiple)]].concat(),
    )
}

fn declare(queue: &str, bits: u8) -> Vec<u8> {
    method(
        1,
        50,
        10,
        &[&[0, 0][..], &name(queue), &[bits, 0, 0, 0, 0]].concat(),
    )
}

fn select() -> Script {
    vec![(C, method(1, 85, 10, &[0])), (S, method(1, 85, 11, &[]))]
}

const LOGIN: &str = "C( connection.open. Setup dialogue C)8 S( =0/ok S)";
const OPENED: &str = "C7:( C7:channel.open.@ C7:13) S7:( S7:=0/ok S7:16)";

fn opened(more: Script) -> Script {
    let product = [
        &b"\0\x09\0\0\0\x28"[..],
        b"\x07productS\0\0\0\x08RabbitMQ",
        b"\x07versionS\0\0\0\x03\x33.9",
    ]
    .concat();
    let start = vec![
        (C, b"AMQP\0\0\x09\x01".to_vec()),
        (S, method(0, 10, 10, &product)),
        (C, method(0, 10, 11, &[0; 9])),
        (S, method(0, 10, 30, &[0; 8])),
        (
            C,
            [method(0, 10, 31, &[0; 8]), method(0, 10, 40, b"\x01/\0\0")].concat(),
        ),
        (S, method(0, 10, 41, &[0])),
        (C, method(1, 20, 10, &[0])),
        (S, method(1, 20, 11, &[0; 4])),
    ];
    [start, more].concat()
}

fn behind(more: Script) -> String {
    let (notes, protocols) = transcript(&opened(more));
    assert_eq!(protocols, [Protocol::Amqp]);
    let rest = notes.strip_prefix(LOGIN).unwrap_or_else(|| panic!("{notes}"));
    let (_, rest) = rest.split_once(OPENED).unwrap_or_else(|| panic!("{notes}"));
    rest.trim_start().to_string()
}

#[test]
fn methods_wait_for_their_answers_and_some_for_none() {
    let script = vec![
        (
            C,
            [declare("work", 0), declare("quiet", 0x10), frame(8, 0, &[])].concat(),
        ),
        (
            S,
            [frame(8, 0, &[]), method(1, 50, 11, &[4, b'w', b'o', b'r', b'k'])].concat(),
        ),
        (C, [publish(1, "ex", "k"), ack(1, 1, false)].concat()),
        (C, method(1, 60, 70, &[&[0, 0][..], &name("work"), &[0]].concat())),
        (S, [method(1, 60, 71, &[0; 15]), content(1, 900)].concat()),
        (C, method(1, 60, 70, &[&[0, 0][..], &name("work"), &[0]].concat())),
        (S, method(1, 60, 72, &[0])),
    ];
    let notes = behind(script);
    let words: Vec<&str> = notes.split(' ').collect();
    let names: Vec<_> = words.iter().filter(|word| word.contains('@')).collect();
    assert_eq!(names.len(), 3, "{notes}");
    assert!(
        notes.starts_with("C9:( C9:queue.declare.work@ C9:24) S9:( S9:=0/ok S9:17)"),
        "{notes}"
    );
    assert!(notes.contains(":basic.get.work@"), "{notes}");
    assert!(
        notes.contains("=0/ok") && notes.contains(":957)"),
        "with its content: {notes}"
    );
}

#[test]
fn publishes_are_confirmed_by_their_tags() {
    let script = [
        select(),
        vec![
            (
                C,
                [publish(1, "ex", "a"), publish(1, "", "b"), publish(1, "ex", "c")].concat(),
            ),
            (S, ack(1, 2, true)),
            (S, method(1, 60, 120, &[0, 0, 0, 0, 0, 0, 0, 3, 0])),
        ],
    ]
    .concat();
    let notes = behind(script);
    let published = notes
        .split(" S9:=0/ok S9:12) ")
        .nth(1)
        .unwrap_or_else(|| panic!("{notes}"));
    assert_eq!(
        published,
        "C11:( C11:basic.publish.ex@ C11:55) C14:( C14:basic.publish.b@ C14:53) C17:( C17:basic.publish.ex@ C17:55) \
         S11:( S11:=0/ok S11:) S14:( S14:=0/ok S14:) S17:( S17:=nack/error S17:)"
    );
}

#[test]
fn what_is_delivered_belongs_to_its_consumer() {
    let consume = |tag: &str, bits| {
        method(
            1,
            60,
            20,
            &[&[0, 0][..], &name("q"), &name(tag), &[bits, 0, 0, 0, 0]].concat(),
        )
    };
    let notes = behind(vec![
        (C, consume("", 0)),
        (
            S,
            [method(1, 60, 21, &name("tag")), deliver(1, "ex", "k", 5)].concat(),
        ),
        (C, consume("other", 8)), // no-wait
        (S, deliver(1, "ex", "k", 5)),
    ]);
    assert!(notes.contains("basic.consume.q@ C9:subscribes9"), "{notes}");
    assert_eq!(notes.matches("push65.basic.deliver.ex<9").count(), 2, "{notes}");
    assert!(
        notes.contains("C14:subscribes14 C14:27) C14:unanswered"),
        "{notes}"
    );
}

#[test]
fn what_is_delivered_is_a_push() {
    let script = vec![
        (S, [deliver(1, "ex", "k", 5), deliver(1, "", "q", 2000)].concat()),
        (C, ack(1, 1, false)),
        (S, method(0, 10, 60, &name("memory"))),
    ];
    assert_eq!(
        behind(script),
        "push65.basic.deliver.ex push2058.basic.deliver.q push19.connection.blocked."
    );
}

#[test]
fn a_channel_that_is_closed_is_the_answer() {
    let closes = method(
        1,
        20,
        40,
        &[&[1, 0x94][..], &name("NOT_FOUND"), &[0, 50, 0, 30]].concat(),
    );
    let script = vec![
        (C, declare("a", 0)),
        (S, closes.clone()),
        (C, method(1, 20, 41, &[])),
        (S, closes),
    ];
    assert_eq!(
        behind(script),
        "C9:( C9:queue.declare.a@ C9:21) S9:( S9:=404/not-found/error S9:28) push28.channel.close."
    );
}

#[test]
fn a_log_in_that_is_refused_says_why() {
    let script = vec![
        (C, b"AMQP\0\0\x09\x01".to_vec()),
        (S, method(0, 10, 10, b"\0\x09")),
        (C, method(0, 10, 11, &[0; 9])),
        (
            S,
            method(0, 10, 50, &[&[1, 0x93][..], &name("no"), &[0; 4]].concat()),
        ),
    ];
    assert_eq!(
        notes(&script),
        "C( connection.open. Setup dialogue C)8 S( =403/access-refused/error S)35"
    );
}

#[test]
fn tags_are_counted_anew_behind_a_hole() {
    let up = opened(select());
    let (first, next) = (publish(1, "ex", "a"), publish(1, "ex", "b"));
    let (ack_2, ack_3) = (ack(1, 2, false), ack(1, 3, false));
    let mut script: Vec<_> = up
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    script.extend([(C, Stretch::Bytes(&first)), (C, Stretch::Missing(55))]);
    script.extend([
        (S, Stretch::Bytes(&ack_2)),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Bytes(&ack_3)),
    ]);
    let (mut messages, mut heard, mut at) = (Messages::new(), Notes::default(), At::default());
    for (side, piece) in script {
        (at.frame, at.time_ns) = (at.frame + 1, at.time_ns + 1000);
        messages.feed(side, at, piece, &mut heard);
    }
    let notes = short(&heard.list);
    assert!(
        notes.ends_with("basic.publish.ex@ C15:55) S15:( S15:=0/ok S15:)"),
        "{notes}"
    );
    assert!(
        !notes.contains("S11:("),
        "the first was not confirmed alone: {notes}"
    );
}

#[test]
fn both_sides_tell_who_is_joined_in_the_middle() {
    let script = vec![
        (S, deliver(3, "ex", "k", 5)),
        (C, ack(3, 7, false)),
        (C, declare("q", 0)),
        (S, method(1, 50, 11, b"\x01q")),
    ];
    let (notes, protocols) = transcript(&script);
    assert_eq!(protocols, [Protocol::Amqp]);
    assert!(
        notes.starts_with("push65.basic.deliver.ex C4:( C4:queue.declare.q@"),
        "{notes}"
    );
    assert_eq!(likely_sender(&deliver(3, "ex", "k", 5)), Some(S));
    assert_eq!(likely_sender(&publish(3, "ex", "k")), Some(C));
    assert_eq!(likely_sender(&ack(3, 7, false)), None);
}

#[test]
fn what_only_looks_like_it_is_turns() {
    let mut unended = declare("q", 0);
    unended.pop();
    unended.push(0);
    for (asked, answered) in [
        (b"AMQP\0\x01\0\0".to_vec(), b"AMQP\0\x01\0\0".to_vec()), // version 1.0
        (unended, b"HELLO".to_vec()),
        (declare("q", 0), b"HELLO".to_vec()),
        (method(1, 77, 10, &[0; 8]), b"HELLO".to_vec()), // no such class
        (
            b"\x01\0\x01\0\0\0\x08no frame of it".to_vec(),
            b"\x01\0\x01\0\0\0\x08no frame of it".to_vec(),
        ),
    ] {
        let (notes, protocols) = transcript(&[(C, asked), (S, answered)]);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}
