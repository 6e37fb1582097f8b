//! ONC RPC: calls in any order, fragments, NFS' statuses, callbacks, holes, and what only looks like it.

use super::frames::*;
use super::*;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn record(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 | 1 << 31).to_be_bytes()[..], body].concat()
}

fn call_of(xid: u32, program: u32, version: u32, procedure: u32, more: &[u8]) -> Vec<u8> {
    [
        words(&[xid, 0, 2, program, version, procedure, 0, 0, 0, 0]),
        more.to_vec(),
    ]
    .concat()
}

fn call(xid: u32, program: u32, version: u32, procedure: u32) -> Vec<u8> {
    record(&call_of(xid, program, version, procedure, &[0; 16]))
}

fn reply(xid: u32, accepted: u32, more: &[u32], len: usize) -> Vec<u8> {
    record(&[words(&[xid, 1, 0, 0, 0, accepted]), words(more), vec![7; len]].concat())
}

fn heard(script: &[(Side, Vec<u8>)]) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [Protocol::Rpc], "{notes}");
    notes
}

#[test]
fn calls_in_any_order_say_how_they_end() {
    let denied = record(&words(&[4, 1, 1, 1, 5]));
    let script = [
        (
            C,
            [
                call(1, 100_000, 2, 3),
                call(2, 100_000, 4, 77),
                call(2, 100_000, 4, 77),
            ]
            .concat(),
        ),
        (S, [reply(2, 3, &[], 0), reply(1, 0, &[111], 0)].concat()),
        (C, [call(3, 100_003, 3, 3), call(4, 100_003, 3, 6)].concat()),
        (S, [reply(3, 0, &[2], 90), denied].concat()),
    ];
    assert_eq!(
        heard(&script),
        "C1:( C1:GETPORT.100000 v2@ C1:60) C2:( C2:77.100000 v4@ C2:60) S2:( S2:=3/PROC_UNAVAIL/error S2:28) \
         S1:( S1:=0 S1:32) C3:( C3:LOOKUP.100003 v3@ C3:60) C4:( C4:READ.100003 v3@ C4:60) \
         S3:( S3:=2/NOENT/error S3:122) S4:( S4:=1/AUTH_ERROR/error S4:24)"
    );
}

#[test]
fn records_come_in_fragments_and_compounds_say_what_they_do() {
    let compound = [
        words(&[0, 1, 3, 53]),
        vec![9; 32],
        words(&[22, 5]),
        vec![1; 8],
        words(&[25]),
    ]
    .concat();
    let long = reply(9, 0, &[0], 3000);
    let (first, last) = long[4..].split_at(2000);
    let fragments = [&2000u32.to_be_bytes()[..], first, &record(last)].concat();
    let script = [
        (C, call(8, 100_003, 4, 0)),
        (S, reply(8, 0, &[], 0)),
        (C, record(&call_of(9, 100_003, 4, 1, &compound))),
        (S, fragments),
        (S, call(9, 0x4000_0000, 1, 1)), // a callback: the client answers it
        (C, reply(9, 0, &[0], 0)),
    ];
    assert_eq!(
        heard(&script),
        "C8:( C8:NULL.100003 v4@ C8:60) S8:( S8:=0 S8:28) C9:( C9:COMPOUND READ.100003 v4@ C9:112) S9:( S9:=0 S9:3036) push60.callback.1073741824 v1"
    );
}

#[test]
fn both_directions_tell_who_joins_in_the_middle() {
    let (ask, answer) = (call(1, 100_003, 3, 1), reply(1, 0, &[0], 80));
    assert_eq!((likely_sender(&ask), likely_sender(&answer)), (Some(C), Some(S)));
    assert_eq!(likely_sender(&call(1, 0x4000_0000, 1, 1)), None);
    let (next, last) = (call(2, 100_003, 3, 6), reply(2, 0, &[0], 3000));
    let script = [
        (S, Stretch::Bytes(&answer[..])),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Bytes(&last[..1448])),
        (S, Stretch::Missing(100)),
        (S, Stretch::Bytes(&last[1548..])),
        (C, Stretch::Missing(9)),
        (C, Stretch::Bytes(&ask)),
        (S, Stretch::Bytes(&answer)),
    ];
    let notes = short(&stretches(&script));
    assert!(
        notes.contains("C2:READ.100003 v3@ C2:60) S2:( S2:=0 S2:3032)"),
        "{notes}"
    );
    assert!(
        notes.ends_with("C1:GETATTR.100003 v3@ C1:60) S1:( S1:=0 S1:112)"),
        "{notes}"
    );
}

#[test]
fn what_only_looks_like_it_is_turns() {
    for (asked, answered) in [
        (
            record(&words(&[1, 0, 3, 100_000, 2, 3, 0, 0, 0, 0])),
            b"rpc version 3".to_vec(),
        ),
        (
            record(&words(&[1, 7, 2, 100_000, 2, 3, 0, 0, 0, 0])),
            reply(1, 0, &[], 0),
        ),
        (call(1, 100_000, 2, 3), b"nothing of it, and long enough".to_vec()),
        (call(1, 100_000, 2, 3), reply(2, 0, &[], 0)), // another's answer
    ] {
        let script: Vec<_> = [(C, &asked), (S, &answered)]
            .map(|(side, bytes)| (side, Stretch::Bytes(bytes)))
            .to_vec();
        let notes = short(&stretches(&script));
        assert!(!notes.contains("GETPORT"), "{notes}");
    }
}
