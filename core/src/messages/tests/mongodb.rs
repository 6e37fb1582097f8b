//! MongoDB: commands, errors, exhaust cursors, awaited answers, holes, and what only looks like it.

use super::dns::transcript;
use super::*;

fn message(id: u32, to: u32, code: u32, body: &[u8]) -> Vec<u8> {
    let words = [body.len() as u32 + 16, id, to, code];
    [
        &words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect::<Vec<_>>(),
        body,
    ]
    .concat()
}

fn document(elements: &[&[u8]]) -> Vec<u8> {
    let body = elements.concat();
    [&(body.len() as u32 + 5).to_le_bytes()[..], &body, &[0]].concat()
}

fn string(name: &str, value: &str) -> Vec<u8> {
    let len = (value.len() as u32 + 1).to_le_bytes();
    [&[2], name.as_bytes(), &[0], &len, value.as_bytes(), &[0]].concat()
}

fn number(name: &str, value: u32) -> Vec<u8> {
    [&[16], name.as_bytes(), &[0], &value.to_le_bytes()[..]].concat()
}

fn msg(id: u32, to: u32, flags: u32, elements: &[&[u8]]) -> Vec<u8> {
    message(
        id,
        to,
        2013,
        &[&flags.to_le_bytes()[..], &[0], &document(elements)].concat(),
    )
}

#[test]
fn conversations() {
    let find = [string("find", "orders"), string("filter", "secret")].concat();
    let ok = number("ok", 1);
    let failed = [number("ok", 0), string("errmsg", "secret"), number("code", 59)].concat();
    let wrote = document(&[&number("index", 0), &number("code", 11000)]);
    let errors = document(&[&[&[3, b'0', 0][..], &wrote].concat()]);
    let unwritten = [&number("ok", 1)[..], b"\x04writeErrors\0", &errors].concat();
    let waits = [number("hello", 1), number("maxAwaitTimeMS", 10_000)].concat();
    let (notes, protocol) = transcript(&[
        (
            C,
            [
                msg(7, 0, 0, &[&find]),
                msg(8, 0, 0, &[&string("frobnicate", "x")]),
            ]
            .concat(),
        ),
        (S, [msg(2, 8, 0, &[&failed]), msg(1, 7, 0, &[&ok])].concat()),
        (
            C,
            [
                msg(9, 0, 2, &[&string("insert", "orders")]),
                msg(10, 0, 0, &[&string("insert", "orders")]),
            ]
            .concat(),
        ),
        (S, msg(3, 10, 0, &[&unwritten])),
        (C, msg(11, 0, 0x10000, &[&waits])),
        (
            S,
            [msg(4, 11, 2, &[&ok]), msg(5, 4, 2, &[&ok]), msg(6, 5, 0, &[&ok])].concat(),
        ),
        (C, message(12, 0, 2012, &[0xdd, 7, 0, 0, 9, 0, 0, 0, 2, 1, 2])),
        (S, message(13, 12, 2012, &[0xdd, 7, 0, 0, 9, 0, 0, 0, 2, 1, 2])),
        (
            C,
            message(
                14,
                0,
                2004,
                &[
                    &[0; 4][..],
                    b"admin.$cmd\0",
                    &[0; 8],
                    &document(&[&number("isMaster", 1)]),
                ]
                .concat(),
            ),
        ),
        (S, message(15, 14, 1, &[&[0; 20][..], &document(&[&ok])].concat())),
    ]);
    assert_eq!(protocol, Some(Protocol::MongoDb));
    assert_eq!(
        notes,
        "C7:( C7:find.orders@ C7:62) C8:( C8:frobnicate.x@ C8:44) \
         S8:( S8:63=59/CommandNotFound/error S8:) S7:( S7:34=ok S7:) C10:( C10:insert.orders@ C10:45) S10:( S10:81=11000/DuplicateKey/error S10:) \
         C11:(LongPoll C11:hello.@ C11:57) S11:( S11:34=ok S11:) push34.hello. push34.hello. \
         C12:( C12:.@ C12:27) S12:( S12:27=ok S12:) C14:(Setup C14:isMaster.@ C14:58) S14:( S14:49=ok S14:)"
    );
}

#[test]
fn what_only_looks_like_it() {
    for asked in [
        message(7, 1, 2013, &[0; 20]),
        message(7, 0, 2013, &[0xff; 20]),
        message(7, 0, 99, &[0; 20]),
        b"\x10\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0".to_vec(),
        b"any text that is long enough".to_vec(),
    ] {
        let (notes, protocol) = transcript(&[(C, asked), (S, b"no".to_vec())]);
        assert_ne!(protocol, Some(Protocol::MongoDb), "{notes}");
    }
}

#[test]
fn joined_in_the_middle_and_after_holes() {
    let piece = |side, bytes: Vec<u8>| (side, Stretch::Bytes(bytes.leak()));
    let (find, long) = (string("find", "orders"), string("cursor", &"x".repeat(600)));
    let answer = msg(1, 7, 0, &[&long]);
    let (rest, all) = (answer.len() as u64 - 300, answer.len());
    let notes = read(
        [
            piece(S, b"the rest of an answer".to_vec()),
            piece(C, msg(7, 0, 0, &[&find])),
            piece(S, answer[..300].to_vec()),
            (S, Stretch::Missing(rest)),
            piece(C, msg(8, 0, 0, &[&find])),
            (S, Stretch::Missing(30)),
            piece(C, msg(9, 0, 0, &[&find])),
            piece(S, msg(2, 9, 0, &[&find])),
        ],
        FIN,
    );
    assert_eq!(
        short(&notes),
        format!(
            "S( S)21 C7:( C7:find.orders@ C7:43) S7:( S7:{all}=ok S7:) C8:( C8:find.orders@ C8:43) \
             S?a_message's_beginning_is_not_in_the_capture S( S)30 C9:( C9:find.orders@ C9:43) S9:( S9:43=ok S9:)"
        )
    );
    assert_eq!(likely_sender(&msg(7, 0, 0, &[&find])), Some(C));
    assert_eq!(likely_sender(&msg(7, 1, 0, &[&find])), Some(S));
}
