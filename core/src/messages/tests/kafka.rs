//! Kafka: pairs by the client's numbers, what waits, what is not answered, holes, the middle, and what is none of it.

use super::frames::*;
use super::*;

fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

fn ask(api: u16, version: u16, id: u32, body: &[u8]) -> Vec<u8> {
    let head = [
        &api.to_be_bytes()[..],
        &version.to_be_bytes(),
        &id.to_be_bytes(),
        b"\0\x03app",
    ]
    .concat();
    message(&[&head[..], body].concat())
}

fn answer(id: u32, len: usize) -> Vec<u8> {
    message(&[&id.to_be_bytes()[..], &vec![0; len]].concat())
}

/// Version 7, with the plain texts of old versions.
fn produce(id: u32, acks: u16, topic: &str) -> Vec<u8> {
    let body = [
        &b"\xff\xff"[..],
        &acks.to_be_bytes(),
        &[0, 0, 7, 0],
        &[0, 0, 0, 1],
        &[0, topic.len() as u8],
        topic.as_bytes(),
        &[0; 900],
    ];
    ask(0, 7, id, &body.concat())
}

/// Version 12, with compact texts and tags.
fn fetch(id: u32, waits: u8, topic: &str) -> Vec<u8> {
    let ints = [
        &[0][..],
        &[0xff; 4],
        &[0, 0, 0, waits],
        &[0, 0, 0, 1],
        &[0; 4],
        &[0],
        &[0; 8],
    ]
    .concat();
    ask(
        1,
        12,
        id,
        &[&ints[..], &[2, topic.len() as u8 + 1], topic.as_bytes(), &[0; 20]].concat(),
    )
}

fn heard(script: &[(Side, Vec<u8>)]) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [Protocol::Kafka], "{notes}");
    notes
}

#[test]
fn answers_find_their_requests_and_fetches_wait() {
    let script = [
        (C, ask(18, 3, 1, &[0; 20])),
        (S, answer(1, 90)),
        (
            C,
            [
                produce(2, 0xffff, "orders"),
                produce(3, 0, "logs"),
                fetch(4, 100, "orders"),
                fetch(5, 0, "orders"),
            ]
            .concat(),
        ),
        (S, [answer(2, 30), answer(4, 3000)].concat()),
        (S, answer(5, 8)),
    ];
    assert_eq!(
        heard(&script),
        "C1:( C1:ApiVersion.@ C1:37) S1:( S1:98) C2:( C2:Produce.orders@ C2:937) C4:(LongPoll C4:Fetch.orders@ C4:71) \
         C5:( C5:Fetch.orders@ C5:71) S2:( S2:38) S4:( S4:=0 S4:3008) S5:( S5:=0 S5:16)"
    );
}

#[test]
fn a_log_in_says_its_error() {
    let failed = message(&[0, 0, 0, 2, 0, 58, 0, 0]);
    let script = [
        (C, ask(17, 1, 1, b"\0\x05PLAIN")),
        (S, answer(1, 8)),
        (C, ask(36, 0, 2, &[0; 9])),
        (S, failed),
    ];
    assert_eq!(
        heard(&script),
        "C1:( C1:SaslHandshake.@ C1:24) S1:( S1:=0 S1:16) C2:( C2:SaslAuthenticate.@ C2:26) S2:( S2:=58/SASL_AUTHENTICATION_FAILED/error S2:12)"
    );
}

#[test]
fn who_joins_in_the_middle_waits_for_an_answer_to_a_request() {
    let script = [
        (S, answer(41, 50)),
        (C, ask(3, 1, 42, &[0; 4])),
        (S, answer(42, 60)),
    ];
    assert_eq!(
        heard(&script),
        "S41:( S41:58) C42:( C42:Metadata.@ C42:21) S42:( S42:68)"
    );
    assert_eq!(likely_sender(&ask(3, 1, 42, &[0; 4])), Some(C));
    assert_eq!(likely_sender(b""), None);
    // an answer whose number is low reads like a Produce of nobody's
    assert_eq!(likely_sender(&answer(6, 50)), None);
}

#[test]
fn holes_are_counted_in_a_message_and_searched_over_elsewhere() {
    let (first, next, last) = (produce(1, 1, "a"), produce(2, 1, "b"), produce(3, 1, "c"));
    let (one, two, three) = (answer(1, 8), answer(2, 8), answer(3, 8));
    let (before, zero) = (ask(3, 1, 0, &[0; 4]), answer(0, 8));
    let script = [
        (C, Stretch::Bytes(&before)),
        (S, Stretch::Bytes(&zero)),
        (C, Stretch::Bytes(&first[..600])),
        (C, Stretch::Missing(first.len() as u64 - 600)),
        (S, Stretch::Bytes(&one)),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Missing(two.len() as u64)),
        (C, Stretch::Missing(5)),
        (C, Stretch::Bytes(&last)),
        (S, Stretch::Bytes(&three)),
    ];
    assert_eq!(
        short(&stretches(&script)),
        "C0:( C0:Metadata.@ C0:21) S0:( S0:16) C1:( C1:Produce.a@ C1:932) S1:( S1:16) C2:( C2:Produce.b@ C2:932) C3:( C3:Produce.c@ C3:932) S3:( S3:16)"
    );
}

#[test]
fn what_only_looks_like_it_is_turns() {
    for (asked, answered) in [
        (ask(99, 3, 1, &[0; 20]), answer(1, 9)), // no such API
        (ask(3, 60, 1, &[0; 20]), answer(1, 9)), // no such version
        (ask(3, 1, 1 << 31, &[0; 20]), answer(1 << 31, 9)),
        (message(b"\0\x03\0\x01\0\0\0\x07\0\x03a\x01b...."), answer(7, 9)), // no name of a client
        (ask(3, 1, 1, &[0; 20]), answer(2, 9)),                             // another's answer
        (ask(3, 1, 1, &[0; 20]), b"HTTP is something else".to_vec()),
        (message(&[0; 120]), message(&[0; 300])), // zeros
    ] {
        let script: Vec<_> = [(C, &asked), (S, &answered)]
            .map(|(side, bytes)| (side, Stretch::Bytes(bytes)))
            .to_vec();
        let notes = short(&stretches(&script));
        assert_eq!(notes, format!("C( C){} S( S){}", asked.len(), answered.len()));
    }
}
