//! HTTP/1 after bytes that the capture lacks.

use super::*;

/// Captures with a snap length, and captures with holes: (name, pieces, notes).
#[test]
fn missing_bytes() {
    type Row = (&'static str, &'static [(Side, Stretch<'static>)], &'static str);
    const TABLE: &[Row] = &[
        (
            "bodies cut by the snap length",
            &[
                bytes(C, "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nab"),
                (C, Stretch::Missing(98)),
                bytes(S, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nab"),
                (S, Stretch::Missing(14 + 2)),
                bytes(S, "4\r\n"),
                (S, Stretch::Missing(4 + 7)),
                bytes(C, "GET / HTTP/1.1\r\n\r\n"),
            ],
            "C( POST./ C)140 S( 200 S)83 C( GET./ C)18",
        ),
        (
            "heads cut by the snap length: turns that keep their names",
            &[
                bytes(C, "HEAD /long/tar"),
                (C, Stretch::Missing(400)),
                bytes(S, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
                bytes(C, "GET /b HTTP/1.1\r\nHo"),
                (C, Stretch::Missing(9)),
                bytes(S, "HTTP/1.1 404 Not Fo"),
                (S, Stretch::Missing(900)),
                bytes(S, "more"),
            ],
            "C( HEAD./long/tar… C?a_head_is_not_whole_in_the_capture C)414 S( 200 S)38 \
             C( GET./b C?a_head_is_not_whole_in_the_capture C)28 \
             S( 404 S?a_head_is_not_whole_in_the_capture S)923",
        ),
        (
            "a request and a response that the capture dropped",
            &[
                bytes(C, "GET /a HTTP/1.1\r\n\r\n"),
                bytes(S, "HTTP/1.1 204 No\r\n\r\n"),
                (C, Stretch::Missing(30)),
                bytes(S, "HTTP/1.1 204 No\r\n\r\n"),
                bytes(C, "GET /c HTTP/1.1\r\n\r\n"),
                (S, Stretch::Missing(70)),
                bytes(C, "GET /d HTTP/1.1\r\n\r\n"),
                bytes(S, "HTTP/1.1 204 No\r\n\r\n"),
            ],
            "C( GET./a C)19 S( 204 S)19 C?a_head_is_not_in_the_capture C( C)30 S( 204 S)19 \
             C( GET./c C)19 S?a_head_is_not_in_the_capture S( S)70 C( GET./d C)19 S( 204 S)19",
        ),
        (
            "a hole over the end of a body",
            &[
                bytes(S, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
                (S, Stretch::Missing(4)),
                bytes(S, "x"),
            ],
            "S( 200 S)43 S?a_head_is_not_in_the_capture S( S)2",
        ),
        (
            "a hole over chunks",
            &[
                bytes(S, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab"),
                (S, Stretch::Missing(30)),
                bytes(S, "x"),
            ],
            "S( 200 S?a_chunk's_beginning_is_not_in_the_capture S)83",
        ),
        (
            "a hole over chunks, and the next pipelined answers",
            &[
                bytes(
                    C,
                    "GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n",
                ),
                bytes(S, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab"),
                (S, Stretch::Missing(30)),
                bytes(S, "HTTP/1.1 and so on, no head\r\n\r\n"),
                bytes(S, "HTTP/1.1 200 OK\r\nnor this one"),
                bytes(S, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
                bytes(S, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
            ],
            "C( GET./a C)19 C( HEAD./b C)20 C( GET./c C)19 S( 200 S?a_chunk's_beginning_is_not_in_the_capture S)142 \
             S( 200 S)38 S( 404 S)38",
        ),
        (
            "a hole over chunks of a request, and the next pipelined request",
            &[
                bytes(C, "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab"),
                (C, Stretch::Missing(30)),
                bytes(C, "HEAD /b HTTP/1.1\r\nHost: h"),
                bytes(C, "\r\n\r\n"),
                bytes(S, "HTTP/1.1 204 No\r\n\r\n"),
                bytes(S, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
            ],
            "C( POST./a C?a_chunk's_beginning_is_not_in_the_capture C)83 C( HEAD./b @h C)29 S( 204 S)19 S( 200 S)38",
        ),
        (
            "a hole over the head of one of two answers",
            &[
                bytes(C, "HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"),
                (S, Stretch::Missing(30)),
                bytes(S, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
                bytes(S, "HTTP/1.1 408 Time\r\n\r\n"),
            ],
            "C( HEAD./a C)20 C( GET./b C)19 S?a_head_is_not_in_the_capture S( S)30 S( 200 S)40 S( 408 S)21",
        ),
        (
            "first of all a hole",
            &[(S, Stretch::Missing(3)), bytes(S, "HTTP/1.1 200")],
            "S( S)15",
        ),
    ];
    for (name, pieces, notes) in TABLE {
        assert_eq!(short(&read(pieces.iter().copied(), FIN)), *notes, "{name}");
    }
}

#[test]
fn http_is_followed_again_from_a_turn_that_begins_with_a_start_line() {
    let notes = read(
        [
            bytes(S, "the rest of a body, seen mid-stream"),
            bytes(C, "GET /a HTTP/1.1\r\n\r\n"),
            bytes(S, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
            bytes(C, "GET /b HTTP/1.1\r\n\r\n"),
        ],
        FIN,
    );
    let expected = "S( S)35 C( GET./a C)19 S( 200 S?content-length_is_not_a_number S)38 C( GET./b C)19";
    assert_eq!(short(&notes), expected);
}
