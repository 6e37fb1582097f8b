//! What several protocols do after bytes that the capture lacks: the next answers are whose they are, and what follows
//! is not a command that nobody gave.

use super::commands::holed;
use super::*;

type Script<'a> = &'a [(Side, Result<&'static str, u64>)];

const MAILBOX: [(Side, Result<&str, u64>); 3] = [
    (S, Ok("+OK ready\r\n")),
    (C, Ok("STAT\r\n")),
    (S, Ok("+OK 2 99\r\n")),
];

fn mailbox(more: Script<'_>) -> Vec<String> {
    holed(&[&MAILBOX[..], more].concat(), false).split_off(1)
}

#[test]
fn the_end_of_a_mail_in_a_hole_gives_the_next_answer_to_nobody() {
    // the hole is seen when the next answer comes, and the client has requested it
    let exchanges = mailbox(&[
        (C, Ok("RETR 1\r\n")),
        (S, Ok("+OK 99 octets\r\nSubject: a\r\n")),
        (C, Ok("RETR 2\r\n")),
        (S, Err(80)),
        (S, Ok("+OK 9 octets\r\nb\r\n.\r\n")),
        (C, Ok("NOOP\r\n")),
        (S, Ok("+OK\r\n")),
        (C, Ok("DELE 9\r\n")),
        (S, Ok("-ERR none\r\n")),
    ]);
    let wanted = [
        "RETR.1 givenup",
        "RETR.2 givenup",
        "NOOP. =0/+OK",
        "DELE.9 =-ERR/error",
    ];
    assert_eq!(exchanges, wanted);
    // in the middle of the mail it does no harm
    let exchanges = mailbox(&[
        (C, Ok("RETR 1\r\n")),
        (S, Ok("+OK 99 octets\r\nSubject: a\r\n")),
        (S, Err(80)),
        (S, Ok("b\r\n.\r\n")),
        (C, Ok("NOOP\r\n")),
        (S, Ok("+OK\r\n")),
    ]);
    assert_eq!(exchanges, ["RETR.1 =0/+OK", "NOOP. =0/+OK"]);
}

#[test]
fn the_answer_to_a_command_in_a_hole_may_have_a_text() {
    let exchanges = mailbox(&[
        (
            S,
            Ok("+OK\r\nUser-Agent: me\r\nTo: you\r\n\r\na\r\nb\r\nc\r\nd\r\n.\r\n"),
        ),
        (C, Err(8)),
        (C, Ok("NOOP\r\n")),
        (S, Ok("+OK\r\n")),
    ]);
    assert_eq!(exchanges, ["NOOP. =0/+OK"]);
}

#[test]
fn a_mail_behind_a_hole_is_no_row_of_commands() {
    const HELLO: [(Side, Result<&str, u64>); 3] = [
        (S, Ok("220 lab ESMTP\r\n")),
        (C, Ok("EHLO me\r\n")),
        (S, Ok("250 ok\r\n")),
    ];
    const MAIL: &str = "Subject: a\r\n\r\nline one\r\nline two\r\n\r\nhelp me\r\nline four\r\n.\r\n";
    let exchanges = holed(
        &[
            &HELLO[..],
            &[
                (C, Err(6)),
                (C, Ok(MAIL)),
                (S, Ok("250 queued\r\n")),
                (C, Ok("RSET\r\n")),
                (S, Ok("250 ok\r\n")),
                (C, Ok("QUIT\r\n")),
                (S, Ok("221 bye\r\n")),
            ],
        ]
        .concat(),
        false,
    );
    assert_eq!(exchanges, ["EHLO.me =250", "RSET. =250", "QUIT. =221"]);
    // no hole: a command that nobody knows is still one
    let odd = [(C, Ok("FOO bar\r\n")), (S, Ok("502 what\r\n"))];
    let exchanges = holed(&[&HELLO[..], &odd].concat(), false);
    assert_eq!(exchanges, ["EHLO.me =250", "FOO. =502/error"]);
}

#[test]
fn whoever_spoke_a_protocol_is_heard_again_by_less() {
    let script: [(Side, Result<&str, u64>); 8] = [
        (C, Ok("set k 0 0 1\r\na\r\n")),
        (S, Ok("STORED\r\n")),
        (C, Err(9)),
        (S, Ok("VALUE k 0 1\r\na\r\nEND\r\n")),
        (C, Ok("get k\r\n")),
        (S, Ok("VALUE k 0 1\r\na\r\nEND\r\n")),
        (C, Ok("delete k\r\n")),
        (S, Ok("DELETED\r\n")),
    ];
    let exchanges = holed(&script, false);
    assert_eq!(
        exchanges,
        ["set.k =0/STORED", "get.k =0/END", "delete.k =0/DELETED"]
    );
    // at a stream's beginning in the middle of a connection that is too little
    let exchanges = holed(&[(C, Err(9)), (C, Ok("get k\r\n")), (S, Ok("what\r\n"))], false);
    assert_eq!(exchanges, [""; 0]);
}

/// What a stream's readers told: the requests that they named, and the turns that nobody named.
fn told_behind(script: &[(Side, Stretch<'_>)]) -> String {
    let notes = heard(script.iter().copied(), FIN);
    let words = notes.list.iter().filter_map(|note| match note {
        Note::Keyed {
            event: ExchangeEvent::RequestName(named),
            ..
        } => Some(format!("{}.{}", named.method, named.target)),
        Note::Begin { side, .. } => Some(format!("{side:?}")),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_request_behind_a_whole_one_that_is_missing_has_its_name() {
    let get = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
    let ok = bytes(S, "$1\r\nx\r\n");
    let lost = (C, Stretch::Missing(22));
    let script = [bytes(C, get), ok, ok, lost, bytes(C, get), ok];
    assert_eq!(told_behind(&script), "GET.a GET.a");
    // what goes on inside a request is none, whatever it looks like further on
    let script = [
        bytes(C, get),
        ok,
        ok,
        lost,
        bytes(C, "x\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n"),
        ok,
    ];
    assert_eq!(told_behind(&script), "GET.a Client Server");
    // nothing follows: what is missing was a turn
    assert_eq!(told_behind(&[bytes(C, get), ok, ok, lost]), "GET.a Client");
    assert_eq!(told_behind(&[bytes(C, get), ok, lost, ok]), "GET.a Client Server");
}

#[test]
fn requests_without_a_response_are_dropped_with_one_issue() {
    const MAX_PENDING: usize = 4096;
    let of_requests = |count: usize| {
        let text = "GET / HTTP/1.1\r\n\r\n".repeat(count);
        let lost = short(&read([bytes(C, &text)], None));
        lost.matches("C?too_many_requests_without_a_response").count()
    };
    assert_eq!(
        [MAX_PENDING, MAX_PENDING + 1, MAX_PENDING + 3].map(of_requests),
        [0, 1, 1]
    );
}
