//! The HTTP parse cases, and what the sniffing has to tell apart.
//!
//! Notes in short: `C(` the client's message begins, `C)19` ends with 19 bytes, `C!Rst19` is cut,
//! `GET./a` and `200` name it (`100i`: interim), `C?reason` is lost.

use crate::messages::Close;
use crate::messages::Side::{self, Client as C, Server as S};

/// Name, who says what in which order, how the stream ends, and the notes in short.
pub(super) type Case = (
    &'static str,
    &'static [(Side, &'static str)],
    Option<Close>,
    &'static str,
);

pub(super) const FIN: Option<Close> = Some(Close::Fin);

pub(super) const CASES: &[Case] = &[
    (
        "keep-alive",
        &[
            (C, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"),
            (S, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
            (C, "GET /b HTTP/1.1\r\n\r\n"),
            (S, "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n"),
        ],
        FIN,
        "C( GET./a @h C)28 S( 200 S)43 C( GET./b C)19 S( 404 S)36",
    ),
    (
        "pipelining with a HEAD inside",
        &[
            (
                C,
                "GET /a HTTP/1.1\r\n\r\nHEAD /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n",
            ),
            (
                S,
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
            ),
            (S, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        ],
        FIN,
        "C( GET./a C)19 C( HEAD./b C)20 C( GET./c C)19 S( 200 S)40 S( 200 S)38 S( 200 S)39",
    ),
    (
        "an answer of events is a stream, but not where its length is known before",
        &[
            (
                C,
                "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n",
            ),
            (
                S,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\ndata: 1\n\n",
            ),
            (
                S,
                "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream;charset=utf-8\r\nTransfer-Encoding: chunked,\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n",
            ),
            (
                S,
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
            ),
        ],
        FIN,
        "C( GET./a C)19 C( GET./b C)19 C( GET./c C)19 S( 200 S)80 S( 200 streams S)114 S( 200 streams S)61",
    ),
    (
        "chunks with extensions and trailers, between keep-alive messages",
        &[
            (C, "POST /p HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n"),
            (
                C,
                "5;name=\"v\"\r\nhello\r\nA \r\n0123456789\r\n0\r\nT: 1\r\nU: 2\r\n\r\nGET /n HTTP/1.1\r\n\r\n",
            ),
            (
                S,
                "HTTP/1.1 200 OK\r\ntransfer-encoding:chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            ),
            (S, "HTTP/1.1 204 No\r\n\r\n"),
        ],
        FIN,
        "C( POST./p C)106 C( GET./n C)19 S( 200 S)70 S( 204 S)19",
    ),
    (
        "100-continue, 103, then the answer",
        &[
            (
                C,
                "PUT /u HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
            ),
            (S, "HTTP/1.1 100 Continue\r\n\r\n"),
            (C, "abc"),
            (
                S,
                "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            ),
        ],
        FIN,
        "C( PUT./u S( 100i S)25 C)63 S( 103i S)37 S( 201 S)43",
    ),
    (
        "304 and 204 have no body whatever their length says",
        &[
            (C, "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"),
            (
                S,
                "HTTP/1.1 304 Not\r\nContent-Length: 77\r\n\r\nHTTP/1.1 204 No\r\nContent-Length: 8\r\n\r\n",
            ),
        ],
        FIN,
        "C( GET./a C)19 C( GET./b C)19 S( 304 S)40 S( 204 S)38",
    ),
    (
        "body to the FIN",
        &[
            (C, "GET / HTTP/1.0\r\n\r\n"),
            (S, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nto the end"),
        ],
        FIN,
        "C( GET./ C)18 S( 200 S)48",
    ),
    (
        "body to the RST",
        &[
            (C, "GET / HTTP/1.0\r\n\r\n"),
            (S, "HTTP/1.0 200 OK\r\n\r\nto the e"),
        ],
        Some(Close::Rst),
        "C( GET./ C)18 S( 200 S!Rst27",
    ),
    (
        "the capture ends in a body and in a head",
        &[
            (C, "GET / HTTP/1.1\r\n\r\n"),
            (S, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"),
            (C, "GET /half HTTP/1.1\r\nHos"),
        ],
        Some(Close::CaptureEnd),
        "C( GET./ C)18 S( 200 C( GET./half C!CaptureEnd23 S!CaptureEnd40",
    ),
    (
        "bare line feeds, empty lines before a request, folded and broken headers",
        &[
            (
                C,
                "\r\n\nGET /lf HTTP/1.1\nHost: h\n\n\r\nGET /f HTTP/1.1\r\nA: b\r\n c\r\nno colon\r\n\r\n",
            ),
            (
                S,
                "HTTP/1.1 200\nContent-Length : 2\n\nokHTTP/1.1 200 OK\r\nA: b\r\n\tc\r\nContent-length: 0\r\n\r\n",
            ),
        ],
        FIN,
        "C( GET./lf @h C)26 C( GET./f C)39 S( 200 S)35 S( 200 S)48",
    ),
    (
        "upgrade to a WebSocket, first frame in the same segment",
        &[
            (C, "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
            (S, "HTTP/1.1 101 Switching\r\n\r\n\u{1}\u{2}"),
            (C, "xyz"),
            (S, "z"),
        ],
        FIN,
        "C( GET./ws C)40 S( 101 S)26 S( S)2 C( C)3 S( S)1",
    ),
    (
        "connect: what the client says early belongs to the tunnel",
        &[
            (C, "CONNECT h:443 HTTP/1.1\r\n\r\nhello"),
            (S, "HTTP/1.1 200 OK\r\n\r\n"),
            (S, "back"),
        ],
        FIN,
        "C( CONNECT.h:443 C)26 C( S( 200 S)19 C?data_before_the_tunnel_was_granted C)5 S( S)4",
    ),
    (
        "connect refused, then asked again with a password",
        &[
            (C, "CONNECT h:443 HTTP/1.1\r\n\r\n"),
            (S, "HTTP/1.1 407 Auth\r\nContent-Length: 2\r\n\r\nno"),
            (C, "CONNECT h:443 HTTP/1.1\r\nA: b\r\n\r\n"),
            (S, "HTTP/1.1 200 OK\r\n\r\n"),
        ],
        FIN,
        "C( CONNECT.h:443 C)26 S( 407 S)42 C( CONNECT.h:443 C)32 S( 200 S)19",
    ),
    (
        "response before the request is complete",
        &[
            (C, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab"),
            (S, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n"),
            (C, "cd"),
        ],
        FIN,
        "C( POST./ S( 413 S)41 C)42",
    ),
    (
        "408 from an idle server",
        &[(S, "HTTP/1.1 408 Time\r\nConnection: close\r\n\r\n")],
        FIN,
        "S( 408 S)40",
    ),
    (
        "chunk that is not one",
        &[
            (C, "GET / HTTP/1.1\r\n\r\n"),
            (
                S,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nmore",
            ),
        ],
        FIN,
        "C( GET./ C)18 S( 200 S?chunk_size_is_not_a_number S)55",
    ),
    (
        "not HTTP after all",
        &[
            (C, "OPTIONS item:/h/x ITEM/1.0\r\nCSeq: 1\r\n\r\n"),
            (S, "ITEM/1.0 200 OK\r\n\r\n"),
            (C, "x"),
        ],
        FIN,
        "C( C?not_an_HTTP/1_start_line C)39 S( S)19 C( C)1",
    ),
    (
        "server speaks first",
        &[(S, "220 mail\r\n"), (C, "hello\r\n"), (S, "250 ok\r\n")],
        FIN,
        "S( S)10 C( C)7 S( S)8",
    ),
    (
        "almost a method",
        &[(C, "GETX"), (S, "HTTQ"), (C, "y")],
        Some(Close::Rst),
        "C( C)4 S( S)4 C( C!Rst1",
    ),
    (
        "undecided at the close",
        &[(C, "GE")],
        Some(Close::CaptureEnd),
        "C( C!CaptureEnd2",
    ),
    (
        "half the greetings",
        &[(C, "PO"), (S, "HT"), (C, "ST / HTTP/1.1\r\n\r\n")],
        FIN,
        "C( S( POST./ C)19 S!Fin2",
    ),
];
