//! What the capture lacks, and streams that begin in the middle.

use super::*;

#[test]
fn who_joins_in_the_middle_needs_both_sides() {
    expect(
        &[
            (S, "550 no such user\r\n"),
            (C, "RCPT TO:<b@lab>\r\n"),
            (S, "250 ok\r\n"),
        ],
        Protocol::Smtp,
        &["RCPT.b@lab =250"],
    );
    expect(
        &[(C, "PASV\r\n"), (S, "227 ok\r\n")],
        Protocol::Ftp,
        &["PASV. =227"],
    );
    expect(
        &[(C, "DELE 1\r\n"), (S, "-ERR no\r\n")],
        Protocol::Pop3,
        &["DELE.1 =-ERR/error"],
    );
    expect(
        &[(C, "x9 NOOP\r\n"), (S, "* 5 EXISTS\r\nx9 OK\r\n")],
        Protocol::Imap,
        &["NOOP. =0/OK"],
    );
    // a mail's text first: read on from the next envelope
    let notes = read(
        [
            bytes(C, "the end\r\n.\r\n"),
            bytes(S, "250 ok\r\n"),
            bytes(C, "MAIL FROM:<a@lab>\r\n"),
            bytes(S, "250 ok\r\n"),
        ],
        FIN,
    );
    assert_eq!(rows(&short(&notes)), ["MAIL.a@lab =250"]);
}

#[test]
fn what_is_not_in_the_capture_shifts_no_answer() {
    const HELLO: [(Side, Result<&str, u64>); 3] = [
        (S, Ok("220 lab ESMTP\r\n")),
        (C, Ok("EHLO me\r\n")),
        (S, Ok("250 ok\r\n")),
    ];
    let read = |more: &[(Side, Result<&'static str, u64>)], frame| {
        holed(&[&HELLO[..], more].concat(), frame).split_off(1)
    };
    // a command, an answer
    let command = [
        (C, Err(6)),
        (S, Ok("250 ok\r\n")),
        (C, Ok("VRFY x\r\n")),
        (S, Ok("550 no\r\n")),
    ];
    assert_eq!(read(&command, false), ["VRFY.x =550/error"]);
    let answer = [
        (C, Ok("RSET\r\n")),
        (S, Err(8)),
        (C, Ok("VRFY x\r\n")),
        (S, Ok("550 no\r\n")),
    ];
    assert_eq!(read(&answer, false), ["RSET. givenup", "VRFY.x =550/error"]);
    // one of a series
    let series = [
        (C, Ok("MAIL FROM:<a@lab>\r\n")),
        (C, Err(9)),
        (C, Ok("DATA\r\n")),
        (S, Ok("250 ok\r\n")),
        (S, Ok("250 ok\r\n")),
        (S, Ok("354 go\r\n")),
        (C, Ok("x\r\n.\r\n")),
        (S, Ok("250 ok\r\n")),
    ];
    assert_eq!(read(&series, false), ["MAIL.a@lab givenup", "content. =250"]);
    // the end of a text
    let text = [
        (C, Ok("DATA\r\n")),
        (S, Ok("354 go\r\n")),
        (C, Ok("x\r\n")),
        (C, Err(99)),
        (S, Ok("250 ok\r\n")),
        (C, Ok("QUIT\r\n")),
        (S, Ok("221 bye\r\n")),
    ];
    assert_eq!(read(&text, false), ["DATA. =354", "content. =250", "QUIT. =221"]);
    // ends of lines that the snap length cut off
    let cut = [
        (C, Ok("VRFY a-long-na")),
        (C, Err(9)),
        (S, Ok("252-cannot")),
        (S, Err(50)),
        (C, Ok("QUIT\r\n")),
        (S, Ok("221")),
        (S, Err(9)),
    ];
    assert_eq!(read(&cut, true), ["VRFY.a-long-na =252", "QUIT. =221"]);
}

#[test]
fn texts_with_holes_end_where_the_client_goes_on() {
    let pop3 = [
        (S, Ok("+OK lab\r\n")),
        (C, Ok("RETR 1\r\n")),
        (S, Ok("+OK\r\nx")),
        (S, Err(99)),
        (C, Ok("RETR 2\r\n")),
        (S, Ok("+OK\r\nx\r\n.\r\n")),
    ];
    assert_eq!(holed(&pop3, false), ["RETR.1 givenup", "RETR.2 =0/+OK"]);
    let imap = [
        (S, Ok("* OK lab\r\n")),
        (C, Ok("a FETCH 1 (BODY[])\r\n")),
        (S, Ok("* 1 FETCH (BODY[] {300}\r\nx")),
        (S, Err(299)),
        (S, Ok(")\r\na OK\r\n")),
        (C, Ok("b NOOP\r\n")),
        (S, Err(40)),
        (C, Ok("c NOOP\r\n")),
        (S, Ok("c OK\r\n")),
    ];
    assert_eq!(
        holed(&imap, false),
        ["FETCH.1 =0/OK", "NOOP. givenup", "NOOP. =0/OK"]
    );
}
