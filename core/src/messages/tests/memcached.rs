//! memcached: pipelines, quiet and silent commands, values, holes, the binary protocol, and what only looks like it.

use super::frames::{stretches, transcript};
use super::*;

fn told(script: &[(Side, &str)]) -> (String, Vec<Protocol>) {
    let script: Vec<_> = script
        .iter()
        .map(|(side, text)| (*side, text.as_bytes().to_vec()))
        .collect();
    transcript(&script)
}

#[test]
fn conversations() {
    for (name, script, notes) in [
        (
            "a pipeline, whose answers come in order",
            vec![
                (
                    C,
                    "get a0 b0\r\ngets a1\r\nbogus\r\nstats items\r\nset a2 0 60 6\r\nsecret\r\n",
                ),
                (
                    S,
                    "VALUE a0 0 3\r\nEND\r\nVALUE b0 0 5\r\n\r\nEND\r\nEND\r\nEND\r\nERROR\r\nSTAT items:1 2\r\nEND\r\nSTORED\r\n",
                ),
            ],
            "C0:( C0:get.a0@ C0:11) C1:( C1:gets.a1@ C1:9) C2:( C2:bogus.@ C2:7) C3:( C3:stats.items@ C3:13) \
             C4:( C4:set.a2@ C4:23) S0:( S0:45=0/END S0:) S1:( S1:5=0/END S1:) S2:( S2:7=ERROR/error S2:) \
             S3:( S3:21=0/END S3:) S4:( S4:8=0/STORED S4:)",
        ),
        (
            "what wants no answer waits for none",
            vec![
                (
                    C,
                    "set n 0 0 2 noreply\r\nhi\r\ndelete n noreply\r\nget noreply\r\nquit\r\n",
                ),
                (S, "END\r\n"),
            ],
            "C0:( C0:get.noreply@ C0:13) S0:( S0:5=0/END S0:)",
        ),
        (
            "each verb has its answers",
            vec![
                (
                    C,
                    "add k 1 0 1\r\nx\r\ncas k 1 0 1 9\r\ny\r\nincr n 5\r\ndecr n 1\r\ntouch k 9\r\ngat 9 k\r\nversion\r\nflush_all 10\r\nslabs automove 1\r\n",
                ),
                (
                    S,
                    "NOT_STORED\r\nEXISTS\r\n15\r\nNOT_FOUND\r\nTOUCHED\r\nEND\r\nVERSION 1.6.18\r\nOK\r\nCLIENT_ERROR no\r\n",
                ),
            ],
            "C0:( C0:add.k@ C0:16) C1:( C1:cas.k@ C1:18) C2:( C2:incr.n@ C2:10) C3:( C3:decr.n@ C3:10) \
             C4:( C4:touch.k@ C4:11) C5:( C5:gat.k@ C5:9) C6:( C6:version.@ C6:9) C7:( C7:flush_all.@ C7:14) \
             C8:( C8:slabs.automove@ C8:18) S0:( S0:12=0/NOT_STORED S0:) S1:( S1:8=0/EXISTS S1:) S2:( S2:4=0/ok S2:) \
             S3:( S3:11=0/NOT_FOUND S3:) S4:( S4:9=0/TOUCHED S4:) S5:( S5:5=0/END S5:) S6:( S6:16=0/ok S6:) S7:( S7:4=0/OK S7:) \
             S8:( S8:17=CLIENT_ERROR/error S8:)",
        ),
        (
            "quiet meta commands are answered by what follows, others not told",
            vec![
                (
                    C,
                    "ms a 1 q\r\nx\r\nmg a v q\r\nmg b t q\r\nmg c v q\r\nms d 2\r\nhi\r\nmn\r\n",
                ),
                (S, "VA 1\r\nx\r\nHD\r\nHD\r\nMN\r\n"),
            ],
            "C1:( C1:mg.a@ C1:10) C2:( C2:mg.b@ C2:10) C3:( C3:mg.c@ C3:10) C4:( C4:ms.d@ C4:12) C5:( C5:mn.@ C5:4) \
             S1:( S1:6=0/VA S1:3) S2:( S2:4=0/HD S2:) S3:( S3:=0/EN S3:) S4:( S4:4=0/HD S4:) S5:( S5:4=0/MN S5:)",
        ),
        (
            "what an answer repeats tells whose it is",
            vec![
                (
                    C,
                    "mg a v q O1\r\nmg b v q O2\r\nmd c q O3\r\nma n v O4\r\nmn\r\n",
                ),
                (S, "VA 1 O2\r\nx\r\nEX O3\r\nVA 1 O4\r\n5\r\nMN\r\n"),
            ],
            "C0:( C0:mg.a@ C0:13) C1:( C1:mg.b@ C1:13) C3:( C3:ma.n@ C3:11) C4:( C4:mn.@ C4:4) S0:( S0:=0/EN S0:) \
             S1:( S1:9=0/VA S1:3) S3:( S3:9=0/VA S3:3) S4:( S4:4=0/MN S4:)",
        ),
        (
            "what happens in the server is pushes",
            vec![
                (C, "watch fetchers\r\n"),
                (S, "OK\r\nts=1.2 gid=1 type=item_get key=a\r\n"),
            ],
            "C0:(Setup C0:watch.fetchers@ C0:16) S0:( S0:4=0/OK S0:) push34.watch.",
        ),
        (
            "lists of what is stored",
            vec![
                (C, "get k\r\nlru_crawler metadump all\r\nlru_crawler enable\r\n"),
                (S, "END\r\nkey=a exp=-1\r\nkey=b exp=-1\r\nEND\r\nOK\r\n"),
            ],
            "C0:( C0:get.k@ C0:7) C1:( C1:lru_crawler metadump.all@ C1:26) C2:( C2:lru_crawler enable.@ C2:20) \
             S0:( S0:5=0/END S0:) S1:( S1:33=0/END S1:) S2:( S2:4=0/OK S2:)",
        ),
    ] {
        let (heard, protocols) = told(&script);
        assert_eq!(heard, notes, "{name}");
        assert_eq!(protocols, [Protocol::Memcached], "{name}");
    }
}

#[test]
fn a_refused_value_is_named_by_nobody() {
    let (heard, _) = told(&[
        (C, "set k 0 0 x\r\nsecret\r\nset k 0 0 2\r\na secret\r\nget k\r\n"),
        (
            S,
            "CLIENT_ERROR bad\r\nERROR\r\nCLIENT_ERROR bad\r\nERROR\r\nEND\r\n",
        ),
    ]);
    assert!(!heard.contains("secret"), "{heard}");
    assert!(heard.ends_with("S4:( S4:5=0/END S4:)"), "{heard}");
}

#[test]
fn what_only_looks_like_it() {
    for script in [
        [(C, "get out of here\r\n"), (S, "no\r\n")],
        [(C, "set k 0 0\r\n"), (S, "+OK\r\n")],
        [(C, "stats\r\n"), (S, "all is well\r\n")],
        [(C, "version\r\n"), (S, "1.0\r\n")],
        [(C, "quit\r\n"), (S, "221 bye\r\n")],
        [(C, "GET k\r\n"), (S, "END\r\n")],
        [(C, "mg\tk\r\n"), (S, "HD\r\n")],
        [(S, "END\r\n"), (C, "of the line\r\n")],
        [(S, "5\r\n"), (C, "6\r\n")],
    ] {
        assert!(!told(&script).1.contains(&Protocol::Memcached), "{script:?}");
    }
}

#[test]
fn joined_in_the_middle() {
    for (script, notes) in [
        (
            vec![
                (S, "VALUE k 0 2\r\nhi\r\nEND\r\n"),
                (C, "get j\r\n"),
                (S, "END\r\n"),
            ],
            "C0:( C0:get.j@ C0:7) S0:( S0:5=0/END S0:)",
        ),
        (
            vec![(S, "STORED\r\n"), (C, "delete j\r\n"), (S, "DELETED\r\n")],
            "C0:( C0:delete.j@ C0:10) S0:( S0:9=0/DELETED S0:)",
        ),
    ] {
        let (heard, protocols) = told(&script);
        assert_eq!(
            (heard.as_str(), &protocols[..]),
            (notes, &[Protocol::Memcached][..])
        );
    }
}

#[test]
fn holes_inside_values_do_no_harm_and_others_end_it() {
    let notes = stretches(&[
        bytes(C, "set k 0 0 9000\r\nabc"),
        (C, Stretch::Missing(8999)),
        bytes(S, "STORED\r\n"),
        bytes(C, "get k\r\n"),
        bytes(S, "VALUE k 0 9000\r\nabc"),
        (S, Stretch::Missing(8995)),
        bytes(S, "ab\r\nEND\r\n"),
        bytes(C, "get k\r\n"),
        (S, Stretch::Missing(9)),
        bytes(C, "set k 0 0 1\r\na\r\n"),
        bytes(S, "STORED\r\n"),
    ]);
    assert_eq!(
        short(&notes),
        "C0:( C0:set.k@ C0:9018) S0:( S0:8=0/STORED S0:) C1:( C1:get.k@ C1:7) S1:( S1:9023=0/END S1:) C2:( C2:get.k@ C2:7) \
         S?a_line's_beginning_is_not_in_the_capture S( S)9 C3:( C3:set.k@ C3:16) S3:( S3:8=0/STORED S3:)"
    );
}

#[test]
fn an_answer_that_no_command_has_ends_it() {
    let heard = short(&stretches(&[
        bytes(C, "set k 0 0 1\r\nx\r\nget k\r\n"),
        bytes(S, "STORED\r\nTOUCHED\r\n"),
    ]));
    assert!(heard.contains("S?an_answer_to_another_command"), "{heard}");
}

#[test]
fn the_server_is_named_by_its_answers() {
    for (asked, answered) in [
        ("version\r\n", "VERSION 1.6.18\r\n"),
        ("stats\r\n", "STAT pid 1\r\nSTAT version 1.6.18\r\nEND\r\n"),
    ] {
        let (mut messages, mut notes) = (Messages::new(), Notes::default());
        for (side, text) in [(C, asked), (S, answered)] {
            messages.feed(side, At::default(), Stretch::Bytes(text.as_bytes()), &mut notes);
        }
        assert_eq!(messages.software(), Some("memcached 1.6.18"));
    }
}

/// A message of the binary protocol.
fn binary(side: Side, opcode: u8, code: u16, opaque: u32, parts: [&str; 3]) -> Vec<u8> {
    let [extras, key, value] = parts;
    let magic = if side == C { 0x80 } else { 0x81 };
    let body = (extras.len() + key.len() + value.len()) as u32;
    [
        &[magic, opcode][..],
        &(key.len() as u16).to_be_bytes(),
        &[extras.len() as u8, 0],
        &code.to_be_bytes(),
        &body.to_be_bytes(),
        &opaque.to_be_bytes(),
        &[0; 8],
        extras.as_bytes(),
        key.as_bytes(),
        value.as_bytes(),
    ]
    .concat()
}

#[test]
fn the_binary_protocol() {
    let asks = [
        binary(C, 0x01, 0, 1, ["\0\0\0\0\0\0\0\0", "k", "secret"]),
        binary(C, 0x11, 0, 2, ["\0\0\0\0\0\0\0\0", "q", "secret"]),
        binary(C, 0x09, 0, 3, ["", "miss", ""]),
        binary(C, 0x0d, 0, 4, ["", "k", ""]),
        binary(C, 0x0a, 0, 5, ["", "", ""]),
        binary(C, 0x10, 0, 6, ["", "", ""]),
        binary(C, 0x04, 0, 7, ["", "k", ""]),
        binary(C, 0x0b, 0, 8, ["", "", ""]),
    ]
    .concat();
    let answers = [
        binary(S, 0x01, 0, 1, ["", "", ""]),
        binary(S, 0x0d, 0, 4, ["\0\0\0\0", "k", "secret"]),
        binary(S, 0x0a, 0, 5, ["", "", ""]),
        binary(S, 0x10, 0, 6, ["", "pid", "1"]),
        binary(S, 0x10, 0, 6, ["", "", ""]),
        binary(S, 0x04, 1, 7, ["", "", "Not found"]),
        binary(S, 0x0b, 0, 8, ["", "", "1.6.18"]),
    ]
    .concat();
    let (heard, protocols) = transcript(&[(C, asks), (S, answers)]);
    assert_eq!(
        heard,
        "C0:( C0:set.k@ C0:39) C1:( C1:get.miss@ C1:28) C2:( C2:get.k@ C2:25) C3:( C3:noop.@ C3:24) C4:( C4:stats.@ C4:24) \
         C5:( C5:delete.k@ C5:25) C6:( C6:version.@ C6:24) S0:( S0:=0/ok S0:24) S1:( S1:=1/NOT_FOUND S1:) S2:( S2:=0/ok S2:35) \
         S3:( S3:=0/ok S3:24) S4:( S4:28( S4:=0/ok S4:24) S5:( S5:=1/NOT_FOUND S5:33) S6:( S6:=0/ok S6:30)"
    );
    assert_eq!(protocols, [Protocol::MemcachedBinary]);
}
