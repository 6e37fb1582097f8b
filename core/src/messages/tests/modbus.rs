//! Modbus/TCP: numbers that repeat, exceptions, answers that never come, holes, and what only looks like it.

use super::frames::*;
use super::*;

fn message(id: u16, unit: u8, body: &[u8]) -> Vec<u8> {
    [
        &id.to_be_bytes()[..],
        &[0, 0],
        &(body.len() as u16 + 1).to_be_bytes(),
        &[unit],
        body,
    ]
    .concat()
}

fn read(id: u16) -> Vec<u8> {
    message(id, 1, &[3, 0, 16, 0, 2])
}

fn values(id: u16) -> Vec<u8> {
    message(id, 1, &[3, 4, 0, 1, 0, 2])
}

fn heard(script: &[(Side, Vec<u8>)]) -> String {
    let (notes, protocols) = transcript(script);
    assert_eq!(protocols, [Protocol::Modbus], "{notes}");
    notes
}

const READ: &str = "ReadHoldingRegisters.1@";

#[test]
fn answers_in_any_order_and_exceptions() {
    let script = [
        (
            C,
            [read(7), read(8), message(9, 2, &[15, 0, 0, 0, 4, 1, 5])].concat(),
        ),
        (S, [values(8), message(9, 2, &[0x8f, 2])].concat()),
        (S, values(7)),
        (C, message(10, 1, &[43, 14, 1, 0])),
        (S, message(10, 1, &[43, 14, 1, 1, 0, 0, 0])),
    ];
    assert_eq!(
        heard(&script),
        format!(
            "C0:( C0:{READ} C0:12) C1:( C1:{READ} C1:12) C2:( C2:WriteMultipleCoils.2@ C2:14) S1:( S1:=0/ok S1:13) \
             S2:( S2:=2/exception 2/error S2:9) S0:( S0:=0/ok S0:13) \
             C3:( C3:EncapsulatedInterfaceTransport.1@ C3:11) S3:( S3:=0/ok S3:14)"
        )
    );
}

#[test]
fn a_number_that_repeats_is_answered_in_order_and_some_never_are() {
    let script = [
        (C, [read(0), read(0), read(5)].concat()),
        (S, values(0)),
        (S, values(0)),
        (S, values(0)), // answers nothing
    ];
    assert_eq!(
        heard(&script),
        format!(
            "C0:( C0:{READ} C0:12) C1:( C1:{READ} C1:12) C2:( C2:{READ} C2:12) S0:( S0:=0/ok S0:13) S1:( S1:=0/ok S1:13)"
        )
    );
}

#[test]
fn behind_a_hole_the_next_request_begins() {
    let (first, next, answer) = (read(1), read(2), values(1));
    let last = values(2);
    let script = [
        (C, Stretch::Bytes(&first)),
        (S, Stretch::Bytes(&answer)),
        (C, Stretch::Missing(9)),
        (C, Stretch::Bytes(&next)),
        (S, Stretch::Bytes(&last)),
    ];
    let notes = short(&stretches(&script));
    assert!(
        notes.ends_with(&format!("C1:( C1:{READ} C1:12) S1:( S1:=0/ok S1:13)")),
        "{notes}"
    );
}

#[test]
fn what_only_looks_like_it_is_turns() {
    for (asked, answered) in [
        (message(1, 1, &[99, 0, 0]), message(1, 1, &[99, 0, 0])), // no such function
        (message(1, 1, &[3, 0, 16, 0, 2, 9]), values(1)),         // a read of another length
        (read(1), values(2)),
        (read(1), message(1, 1, &[3, 9, 0, 1])), // counts what is not there
        (read(1), b"\0\x01\0\x01hello".to_vec()),
        (b"\0\x01\0\0\0\x01hello".to_vec(), values(1)),
    ] {
        let (notes, protocols) = transcript(&[(C, asked), (S, answered)]);
        assert_eq!(protocols, [Protocol::Turns], "{notes}");
    }
}
