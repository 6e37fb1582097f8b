//! WebSocket: what answers what, parts and control frames, compression, holes, the middle.

use proptest::prelude::*;

use super::frames::*;
use super::*;

fn opened(more: Script) -> Script {
    let ask = b"GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let switch = b"HTTP/1.1 101 Switching\r\nUpgrade: WebSocket\r\n\r\n";
    [vec![(C, ask.to_vec()), (S, switch.to_vec())], more].concat()
}

/// The notes after those of the upgrade.
fn behind(notes: String) -> String {
    let upgrade = "C( GET./chat @h C)72 S( 101 S)46";
    notes
        .strip_prefix(upgrade)
        .unwrap_or_else(|| panic!("{notes}"))
        .trim_start()
        .to_string()
}

/// What the client asked by key, and what the server sent.
fn heard(more: Script) -> String {
    behind(notes(&opened(more)))
}

#[test]
fn without_ids_answers_come_in_order() {
    let script = vec![
        (C, [text(C, "one"), ws(C, 0x82, b"two")].concat()),
        (S, text(S, "first")),
        (S, [ws(S, 0x89, b"ping"), text(S, "second")].concat()),
        (C, ws(C, 0x8a, b"ping")),
        (C, ws(C, 0x88, b"")),
        (S, ws(S, 0x88, b"")),
    ];
    let asked = "C0:( C0:message.@ C0:9) C1:( C1:message.@ C1:9)";
    assert_eq!(heard(script.clone()), format!("{asked} S0:( S0:7) S1:( S1:8)"));
    assert_eq!(
        transcript(&opened(script)).1,
        [Protocol::Http, Protocol::WebSocket]
    );
}

#[test]
fn ids_pair_in_any_order_and_tell_pushes() {
    let script = vec![
        (
            C,
            [
                text(C, r#"{"id": 1, "method": "a"}"#),
                text(C, r#"{"method": "b", "id": 2}"#),
            ]
            .concat(),
        ),
        (S, text(S, r#"{"re": 2}"#)),
        (
            S,
            [text(S, r#"{"tick": 7}"#), text(S, r#"{"id": 1, "result": 0}"#)].concat(),
        ),
        (C, text(C, r#"{"id": 3}"#)),
        (S, text(S, r#"{"tick": 8}"#)),
        (S, text(S, r#"{"id": 3}"#)),
        (S, text(S, r#"{"id": 3, "more": 1}"#)),
    ];
    let asked = "C0:( C0:message.@ C0:30) C1:( C1:message.@ C1:30) S1:( S1:11) push13.message. S0:( S0:24)";
    let next = "C2:( C2:message.@ C2:15) push13.message. S2:( S2:11) push22.message.";
    assert_eq!(heard(script), format!("{asked} {next}"));
}

/// The pushes, each with its subscription; and whether a request subscribes.
fn subscriptions(more: Script) -> Vec<String> {
    let script = opened(more);
    let packets: Vec<_> = script
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(&bytes[..])))
        .collect();
    stretches(&packets)
        .iter()
        .filter_map(|note| match note {
            Note::Push(push) => Some(format!("push of {:?}", push.subscription)),
            Note::Keyed {
                event: ExchangeEvent::Subscribes(number),
                ..
            } => Some(format!("{number} subscribes")),
            Note::Keyed {
                event: ExchangeEvent::AnswerEnd,
                key,
                ..
            } => Some(format!("answer to {key}")),
            _ => None,
        })
        .collect()
}

#[test]
fn messages_of_a_subscription_are_its_own() {
    let calls = subscriptions(vec![
        (
            C,
            text(
                C,
                r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#,
            ),
        ),
        (S, text(S, r#"{"jsonrpc":"2.0","id":1,"result":"0x9c"}"#)),
        (
            S,
            text(
                S,
                r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"result":{},"subscription":"0x9c"}}"#,
            ),
        ),
        (
            C,
            text(C, r#"{"jsonrpc":"2.0","id":2,"method":"eth_call","params":[]}"#),
        ),
        (S, text(S, r#"{"jsonrpc":"2.0","id":2,"result":"0x9d"}"#)),
        (
            S,
            text(
                S,
                r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x9d"}}"#,
            ),
        ),
        (
            C,
            text(
                C,
                r#"{"jsonrpc":"2.0","id":3,"method":"eth_unsubscribe","params":["0x9c"]}"#,
            ),
        ),
        (S, text(S, r#"{"jsonrpc":"2.0","id":3,"result":true}"#)),
    ]);
    let want = [
        "0 subscribes",
        "answer to 0",
        "push of Some(0)",
        "answer to 1",
        "push of None",
        "answer to 2",
    ];
    assert_eq!(calls, want);
    let graph = subscriptions(vec![
        (
            C,
            text(
                C,
                r#"{"id":"a","type":"subscribe","payload":{"query":"subscription { tick }"}}"#,
            ),
        ),
        (
            C,
            text(
                C,
                r#"{"id":"b","type":"subscribe","payload":{"query":"query { now }"}}"#,
            ),
        ),
        (S, text(S, r#"{"id":"a","type":"next","payload":{"data":1}}"#)),
        (S, text(S, r#"{"id":"b","type":"next","payload":{"data":1}}"#)),
        (S, text(S, r#"{"id":"a","type":"next","payload":{"data":2}}"#)),
    ]);
    assert_eq!(
        graph,
        [
            "0 subscribes",
            "push of Some(0)",
            "answer to 1",
            "push of Some(0)"
        ]
    );
}

#[test]
fn a_server_that_speaks_unasked_answers_only_what_waits_alone() {
    let script = vec![
        (S, text(S, "tick: 123 of 9")),
        (C, text(C, "a")),
        (S, text(S, "tick: 124 of 9")),
        (S, text(S, "answer")),
        (C, [text(C, "b"), text(C, "c")].concat()),
        (S, text(S, "answer, but to which?")),
    ];
    let alone = "push16.message. C0:( C0:message.@ C0:7)";
    // the second push begins as the first but for its ninth byte
    let told = "push16.message. S0:( S0:8)";
    let both = "C1:( C1:message.@ C1:7) C2:( C2:message.@ C2:7) push23.message.";
    assert_eq!(heard(script), format!("{alone} {told} {both}"));
}

#[test]
fn messages_come_in_parts_with_control_frames_between_them() {
    let parts = [
        ws(C, 0x01, b"{\"id\":"),
        ws(C, 0x89, b"?"),
        ws(C, 0x00, b" 1"),
        ws(C, 0x80, b"}"),
    ]
    .concat();
    let script = vec![
        (C, parts),
        (S, [ws(S, 0x8a, b"?"), ws(S, 0xc1, &[0xf2, 0x48, 0xcd])].concat()),
    ];
    // compressed answers have no id that can be read: they come in order
    assert_eq!(heard(script), "C0:( C0:message.@ C0:27) S0:( S0:5)");
}

#[test]
fn what_is_no_frame_is_lost() {
    for wrong in [
        ws(S, 0x81, b"masked by nobody"),
        b"\xff\xff\xff".to_vec(),
        ws(C, 0x80, b"no beginning"),
    ] {
        let script = opened(vec![(C, wrong)]);
        let packets: Vec<_> = script
            .iter()
            .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
            .collect();
        let notes = behind(short(&stretches(&packets)));
        assert!(notes.starts_with("C?not_a_frame_of_WebSocket C("), "{notes}");
    }
}

#[test]
fn holes_are_counted_in_a_payload_and_searched_over_elsewhere() {
    let up = opened(vec![]);
    let long = text(C, &"x".repeat(300));
    let (ask, answer, late) = (text(C, "ask"), text(S, "answer"), text(S, "late"));
    let up: Vec<_> = up
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    let hear = |more: &[(Side, Stretch<'_>)]| behind(short(&stretches(&[&up[..], more].concat())));
    let within = hear(&[
        (C, Stretch::Bytes(&long[..100])),
        (C, Stretch::Missing(100)),
        (C, Stretch::Bytes(&long[200..])),
        (S, Stretch::Bytes(&answer)),
    ]);
    assert_eq!(within, "C0:( C0:message.@ C0:308) S0:( S0:8)");
    // a request that nobody saw: its answer is neither an answer nor a push
    let unseen = hear(&[
        (C, Stretch::Missing(9)),
        (S, Stretch::Bytes(&late)),
        (C, Stretch::Bytes(&ask)),
        (S, Stretch::Bytes(&answer)),
        (S, Stretch::Bytes(&late)),
    ]);
    assert_eq!(unseen, "C0:( C0:message.@ C0:9) S0:( S0:8) push6.message.");
    // an answer that nobody saw: the next is not taken for it
    let lost = hear(&[
        (C, Stretch::Bytes(&ask)),
        (S, Stretch::Missing(8)),
        (C, Stretch::Bytes(&ask)),
        (S, Stretch::Bytes(&answer)),
    ]);
    assert_eq!(lost, "C0:( C0:message.@ C0:9) C1:( C1:message.@ C1:9) S1:( S1:8)");
}

#[test]
fn both_sides_tell_a_connection_that_is_joined_in_the_middle() {
    let (ask, answer) = (text(C, "ask"), text(S, "answer"));
    let script = [
        (C, Stretch::Bytes(&ask[..])),
        (S, Stretch::Bytes(&answer)),
        (C, Stretch::Bytes(&ask)),
    ];
    assert_eq!(
        short(&stretches(&script)),
        "C0:( C0:message.@ C0:9) S0:( S0:8) C1:( C1:message.@ C1:9)"
    );
    let long = text(S, &"x".repeat(2000));
    let parts = [
        (C, Stretch::Bytes(&ask[..])),
        (S, Stretch::Bytes(&long[..1448])),
        (S, Stretch::Bytes(&long[1448..])),
    ];
    assert_eq!(short(&stretches(&parts)), "C0:( C0:message.@ C0:9) S0:( S0:2004)");
    let other = [(C, Stretch::Bytes(&ask[..])), (S, Stretch::Bytes(b"no frame"))];
    assert_eq!(short(&stretches(&other)), "C( C)9 S( S)8");
    let cut = [
        (C, Stretch::Bytes(b"the end of one")),
        (C, Stretch::Bytes(&ask[..])),
        (S, Stretch::Bytes(&answer)),
    ];
    assert_eq!(
        short(&stretches(&cut)),
        "C( C)23 S( S)8",
        "nothing has shown what it is"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_frames_are_read_the_same_however_they_are_cut(
        frames in prop::collection::vec(
            (any::<bool>(), prop::sample::select(vec![0x81u8, 0x01, 0x00, 0x80, 0x89, 0xc1, 0x82, 0x93]), prop::sample::select(vec!["", "a", r#"{"id": 1}"#, r#"{"id": 2}"#])),
            0..12,
        ),
        size in 1..30usize,
        holes in prop::collection::vec((0..12usize, 1..40u64), 0..3),
    ) {
        let side = |client: bool| if client { C } else { S };
        let script = opened(frames.iter().map(|(client, first, payload)| (side(*client), ws(side(*client), *first, payload.as_bytes()))).collect());
        let uncut: Vec<_> = script.iter().map(|(side, bytes)| (*side, Stretch::Bytes(bytes))).collect();
        let cut: Vec<_> = script.iter()
            .flat_map(|(side, bytes)| bytes.chunks(size).map(|piece| (*side, Stretch::Bytes(piece))))
            .collect();
        let once = stretches(&uncut);
        if !once.iter().any(|note| matches!(note, Note::Lost { .. })) {
            prop_assert_eq!(short(&once), short(&stretches(&cut)));
        }
        let mut holed = cut;
        for (index, missing) in holes {
            holed.insert(index.min(holed.len()), (side(missing % 2 == 0), Stretch::Missing(missing)));
        }
        stretches(&holed);
    }
}
