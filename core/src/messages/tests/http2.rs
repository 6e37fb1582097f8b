//! HTTP/2 and gRPC: streams that overlap, heads in parts, resets, pushes, upgrades, tunnels, holes, the middle.

mod holes;

use proptest::prelude::*;

use super::frames::*;
use super::*;

#[test]
fn answers_find_their_requests_in_any_order() {
    let script = after_opening(vec![
        (C, [get(1, "/a"), get(3, "/b")].concat()),
        (
            S,
            [status(3, END_HEADERS, "200"), status(1, WHOLE, "404")].concat(),
        ),
        (S, data(3, 0, b"hello")),
        (C, frame(6, 0, 0, &[0; 8])),
        (S, [frame(6, 1, 0, &[0; 8]), data(3, END_STREAM, b"!")].concat()),
    ]);
    let (notes, protocols) = transcript(&script);
    assert_eq!(
        notes,
        "C1:( C1:GET./a@h C1:46) C3:( C3:GET./b@h C3:46) S3:( S3:22=200 S1:( S1:22=404/error S1:) S3:24)"
    );
    assert_eq!(protocols, [Protocol::Http2]);
}

#[test]
fn blocks_come_in_parts_with_padding_and_priority() {
    let fields = block(&[(":method", "POST"), (":path", "/p")]);
    let (first, last) = fields.split_at(9);
    let padded = [&[3, 0, 0, 0, 0, 16], first, &[0; 3]].concat();
    let script = after_opening(vec![
        (
            C,
            [
                frame(1, 0x28, 1, &padded),
                frame(9, 0, 1, b""),
                frame(9, 4, 1, last),
            ]
            .concat(),
        ),
        (C, frame(0, 9, 1, b"\x02hello\0\0")),
        (S, status(1, WHOLE, "204")),
    ]);
    assert_eq!(notes(&script), "C1:( C1:POST./p@ C1:77) S1:( S1:22=204 S1:)");
}

#[test]
fn hints_trailers_and_early_answers() {
    let post = headers(1, END_HEADERS, &[(":method", "POST"), (":path", "/p")]);
    let trailers = |stream| headers(stream, WHOLE, &[("checksum", "1")]);
    let script = after_opening(vec![
        (C, post),
        (
            S,
            [status(1, END_HEADERS, "100"), status(1, END_HEADERS, "103")].concat(),
        ),
        (C, [data(1, 0, b"body"), trailers(1)].concat()),
        (
            S,
            [status(1, END_HEADERS, "200"), data(1, 0, b"x"), trailers(1)].concat(),
        ),
        // answered in full before the request was over: what follows of it is of nothing
        (C, headers(3, END_HEADERS, &[(":method", "PUT"), (":path", "/q")])),
        (S, status(3, WHOLE, "413")),
        (C, [data(3, END_STREAM, b"late"), get(5, "/r")].concat()),
    ]);
    let first = "C1:( C1:POST./p@ S1:33( S1:22interim S1:( S1:22interim C1:34) S1:( S1:22=200 S1:31)";
    let second = "C3:( C3:PUT./q@ S3:32( S3:22=413/error S3:) C5:( C5:GET./r@h C5:46)";
    assert_eq!(notes(&script), format!("{first} {second}"));
}

#[test]
fn either_side_gives_up() {
    let cancel = |stream| frame(3, 0, stream, &[0, 0, 0, 8]);
    let script = after_opening(vec![
        (
            C,
            [get(1, "/a"), get(3, "/b"), get(5, "/c"), get(7, "/d")].concat(),
        ),
        (C, cancel(1)),
        (
            S,
            [status(3, END_HEADERS, "200"), cancel(3), status(1, WHOLE, "200")].concat(),
        ),
        (S, frame(7, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0])),
        (S, status(5, WHOLE, "200")),
    ]);
    let event = notes(&script);
    let ends = event.split("C7:46) ").last().unwrap();
    assert_eq!(
        ends,
        "C1:=reset/error C1:reset S3:( S3:22=200 S3:=reset/error S3:reset S7:=reset/error S7:reset S5:( S5:22=200 S5:)"
    );
}

#[test]
fn pushes_are_told_when_they_are_whole() {
    let promise = |stream: u8, path| {
        let fields = block(&[(":method", "GET"), (":path", path)]);
        frame(5, 4, 1, &[&[0, 0, 0, stream], &fields[..]].concat())
    };
    let script = after_opening(vec![
        (C, get(1, "/")),
        (
            S,
            [
                promise(2, "/style"),
                promise(4, "/script"),
                status(1, END_HEADERS, "200"),
            ]
            .concat(),
        ),
        (
            S,
            [
                status(2, END_HEADERS, "200"),
                status(4, WHOLE, "200"),
                data(2, 1, b"xx"),
            ]
            .concat(),
        ),
        (C, frame(3, 0, 4, &[0, 0, 0, 8])),
        (S, data(1, 1, b"done")),
    ]);
    let event = notes(&script);
    let pushed = event.split("C1:45) ").last().unwrap();
    assert_eq!(
        pushed,
        "S1:( S1:22=200 push63.GET./script push73.GET./style S1:13)"
    );
}

#[test]
fn tunnels_end_with_their_heads() {
    let connect = [(":method", "CONNECT"), (":authority", "h:443")];
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":path", "/chat"),
        (":authority", "h"),
    ];
    let script = after_opening(vec![
        (C, headers(1, END_HEADERS, &connect)),
        (S, [status(1, END_HEADERS, "200"), data(1, 0, b"inside")].concat()),
        (
            C,
            [
                data(1, 0, b"too"),
                headers(3, END_HEADERS, &extended),
                headers(5, END_HEADERS, &connect),
            ]
            .concat(),
        ),
        (
            S,
            [
                status(3, END_HEADERS, "200"),
                status(5, END_HEADERS, "403"),
                data(5, 1, b"no"),
            ]
            .concat(),
        ),
    ]);
    let first = "C1:( C1:CONNECT.h:443@h:443 C1:44) S1:( S1:22=200 S1:)";
    let others = "C3:( C3:CONNECT./chat@h C3:74) C5:( C5:CONNECT.h:443@h:443 C5:44)";
    let ends = "S3:( S3:22=200 S3:) S5:( S5:22=403/error S5:11)";
    assert_eq!(notes(&script), format!("{first} {others} {ends}"));
}

#[test]
fn calls_of_grpc_end_with_their_own_status() {
    let call = |stream, path| {
        let fields = [
            (":method", "POST"),
            (":path", path),
            ("content-type", "application/grpc+proto"),
        ];
        headers(stream, END_HEADERS, &fields)
    };
    let head = [(":status", "200"), ("content-type", "application/grpc")];
    let script = after_opening(vec![
        (C, [call(1, "/p.S/M"), data(1, 1, b"\0\0\0\0\x02hi")].concat()),
        (
            S,
            [
                headers(1, 4, &head),
                data(1, 0, b"\0\0\0\0\x02yo\0\0"),
                data(1, 0, b"\0\0\x01x"),
            ]
            .concat(),
        ),
        (S, headers(1, WHOLE, &[("grpc-status", "0")])),
        (C, [get(3, "/plain"), call(5, "/p.S/N"), data(5, 1, b"")].concat()),
        (
            S,
            [
                status(3, WHOLE, "200"),
                headers(5, WHOLE, &[head[0], head[1], ("grpc-status", "5")]),
            ]
            .concat(),
        ),
    ]);
    let (notes, protocols) = transcript(&script);
    let first = "C1:( C1:POST./p.S/M@ C1:90) S1:( S1:84streams S1:24=0/OK S1:)";
    assert!(notes.starts_with(first), "{notes}");
    assert!(
        notes.ends_with("S3:( S3:22=200 S3:) S5:( S5:68=5/NOT_FOUND/error S5:)"),
        "{notes}"
    );
    let (g, h) = (Protocol::Grpc, Protocol::Http2);
    assert_eq!(protocols, [h, g, h, g, h, g]);
    let packets: Vec<_> = script
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    let pieces = stretches(&packets)
        .iter()
        .filter(|note| {
            matches!(
                note,
                Note::Keyed {
                    event: ExchangeEvent::Piece,
                    ..
                }
            )
        })
        .count();
    assert_eq!(pieces, 2, "messages, not packets");
}

#[test]
fn calls_that_go_on_or_wait_for_events_are_streams_from_their_first_message() {
    let call = |stream, path, flags| {
        let fields = [
            (":method", "POST"),
            (":path", path),
            ("content-type", "application/grpc"),
        ];
        headers(stream, flags, &fields)
    };
    let message = &b"\0\0\0\0\x02yo"[..];
    let head = [(":status", "200"), ("content-type", "application/grpc")];
    let answer = |stream| [headers(stream, END_HEADERS, &head), data(stream, 0, message)].concat();
    let watch = headers(7, WHOLE, &[(":method", "GET"), (":path", "/api/pods?watch=1")]);
    let script = after_opening(vec![
        (
            C,
            [call(1, "/p.S/Talk", END_HEADERS), data(1, 0, message)].concat(),
        ),
        (S, answer(1)),
        (
            C,
            [call(3, "/p.S/Get", END_HEADERS), data(3, 1, message)].concat(),
        ),
        (S, answer(3)),
        (C, [call(5, "/p.S/WatchAll", WHOLE), watch].concat()),
    ]);
    let notes = notes(&script);
    assert!(
        notes.contains("S1:69streams"),
        "the client has not ended: {notes}"
    );
    assert!(
        notes.contains("S3:(") && !notes.contains("S3:69streams"),
        "{notes}"
    );
    assert!(
        notes.contains("C5:(EventStream") && notes.contains("C7:(EventStream"),
        "{notes}"
    );
}

#[test]
fn answers_of_events_and_of_several_messages_are_streams() {
    let call = |stream| {
        let fields = [
            (":method", "POST"),
            (":path", "/p"),
            ("content-type", "application/grpc"),
        ];
        headers(stream, WHOLE, &fields)
    };
    let answer = |stream, kind| headers(stream, END_HEADERS, &[(":status", "200"), ("content-type", kind)]);
    let events = |stream, kind| [answer(stream, kind), data(stream, 1, b"data: 1\n\ndata: 2\n\n")].concat();
    let message = &b"\0\0\0\0\x02yo"[..];
    let script = after_opening(vec![
        (C, [get(1, "/e"), get(3, "/f"), call(5), call(7)].concat()),
        (S, events(1, "text/event-stream")),
        (S, events(3, "application/jsonl")),
        (S, [answer(5, "application/grpc"), data(5, 1, message)].concat()),
        (
            S,
            [
                answer(7, "application/grpc"),
                data(7, 0, &[message, message].concat()),
                data(7, 1, message),
            ]
            .concat(),
        ),
    ]);
    let packets: Vec<_> = script
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    let mut streams: Vec<_> = stretches(&packets)
        .iter()
        .filter_map(|note| match note {
            Note::Keyed {
                key,
                event: ExchangeEvent::IsEventStream,
                ..
            } => Some(*key),
            _ => None,
        })
        .collect();
    streams.dedup();
    assert_eq!(streams, [1, 7], "of gRPC, from the second message on");
}

#[test]
fn the_request_that_asks_for_an_upgrade_is_stream_1() {
    let ask = b"GET /first HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let settings = frame(4, 0, 0, &[]);
    let script = vec![
        (C, ask.to_vec()),
        (
            S,
            [&switch[..], &settings, &status(1, END_HEADERS, "200")].concat(),
        ),
        (C, [PREFACE, &settings, &get(3, "/next")].concat()),
        (S, [data(1, 1, b"ok"), status(3, WHOLE, "404")].concat()),
    ];
    let (notes, protocols) = transcript(&script);
    let upgrade = "C( GET./first @h C)72 S( 101i S)71 S1:adopt S1:( S1:22=200";
    let next = "C3:( C3:GET./next@h C3:49) S1:11) S3:( S3:22=404/error S3:)";
    assert_eq!(notes, format!("{upgrade} {next}"));
    assert_eq!(protocols, [Protocol::Http, Protocol::Http2]);
}

#[test]
fn calls_of_grpc_are_known_by_their_messages_where_the_type_is_unknown() {
    let call = |stream, body| [frame(1, 4, stream, &[0x83, 0xc0]), data(stream, 1, body)].concat();
    let answer = |stream| {
        [
            frame(1, 4, stream, &[0x88]),
            data(stream, 0, b"\0\0\0\0\x01x"),
            frame(1, 5, stream, &[0xbf]),
        ]
        .concat()
    };
    let script = [
        call(21, b"\0\0\0\0\x02hi"),
        answer(21),
        call(23, b"a=b"),
        answer(23),
    ];
    let sides = [C, S, C, S]
        .into_iter()
        .zip(script.iter().map(|bytes| Stretch::Bytes(bytes)));
    let (mut messages, mut notes, at) = (Messages::new(), Notes::default(), At::default());
    sides.for_each(|(side, stretch)| messages.feed(side, at, stretch, &mut notes));
    assert_eq!(
        short(&notes.list),
        // 200 is what gRPC says whatever happened, and the rest is not in the capture
        "C21:( C21:POST.@ C21:27) S21:( S21:35) C23:( C23:POST.@ C23:23) S23:( S23:10=200 S23:25)"
    );
    assert_eq!(
        notes.protocols,
        [Protocol::Http2, Protocol::Grpc, Protocol::Http2]
    );
}

#[test]
fn no_more_than_so_many_streams_and_bytes_are_held() {
    let asks: Vec<u8> = (0..300).flat_map(|number| get(2 * number + 1, "/")).collect();
    let answers: Vec<u8> = (0..300)
        .flat_map(|number| status(2 * number + 1, WHOLE, "200"))
        .collect();
    let opened = opening();
    let mut script: Vec<_> = opened
        .iter()
        .map(|(side, bytes)| (*side, Stretch::Bytes(bytes)))
        .collect();
    script.extend([(C, Stretch::Bytes(&asks[..])), (S, Stretch::Bytes(&answers))]);
    let ends = |notes: &[Note]| {
        notes
            .iter()
            .filter(|note| {
                matches!(
                    note,
                    Note::Keyed {
                        event: ExchangeEvent::AnswerEnd,
                        ..
                    }
                )
            })
            .count()
    };
    assert_eq!(ends(&stretches(&script)), 256);
    // a block of 80 KB: its request has no name, and the next one has
    let parts: Vec<u8> = (0..8).flat_map(|_| frame(9, 0, 1, &[0; 10_000])).collect();
    let long = [frame(1, 1, 1, &[0x82]), parts, frame(9, 4, 1, &[]), get(3, "/b")].concat();
    script.truncate(opened.len());
    script.push((C, Stretch::Bytes(&long)));
    assert_eq!(
        short(&stretches(&script)),
        "C1:( C1:.@ C1:80091) C3:( C3:GET./b@h C3:46)"
    );
}

/// Frames in any order, some of them wrong.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![0u32, 1, 2, 3, 5]);
    let kind = prop_oneof![8 => 0..10u8, 1 => any::<u8>()];
    let flags = prop::sample::select(vec![0u8, 1, 4, 5, 8, 0x2d]);
    let bytes = prop::sample::select(vec![
        0x82u8, 0x84, 0x88, 0x44, 0xbe, 0x40, 0, 1, 2, 4, 5, b'/', 0xff, 0x3f,
    ]);
    let framed = (kind, flags, stream, prop::collection::vec(bytes, 0..14))
        .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload));
    prop_oneof![
        6 => framed,
        1 => Just(PREFACE.to_vec()),
        1 => (1..9u32).prop_map(|number| get(number, "/")),
        1 => (1..9u32).prop_map(|number| status(number, 5, "200")),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_frames_are_read_the_same_however_they_are_cut(
        frames in prop::collection::vec((any::<bool>(), words()), 0..12),
        size in 1..30usize,
        holes in prop::collection::vec((0..12usize, 1..40u64), 0..3),
    ) {
        let mut script = after_opening(
            frames.into_iter().map(|(client, bytes)| (if client { C } else { S }, bytes)).collect(),
        );
        script.retain(|(_, bytes)| !bytes.is_empty());
        let uncut: Vec<_> = script.iter().map(|(side, bytes)| (*side, Stretch::Bytes(bytes))).collect();
        // what is searched for must begin a packet: only what is never lost reads the same
        let once = stretches(&uncut);
        let cut: Vec<_> = script.iter()
            .flat_map(|(side, bytes)| bytes.chunks(size).map(|piece| (*side, Stretch::Bytes(piece))))
            .collect();
        let parts = stretches(&cut);
        if !once.iter().any(|note| matches!(note, Note::Lost { .. })) {
            prop_assert_eq!(short(&once), short(&parts));
        }
        // holes anywhere: nothing panics
        let mut holed = cut;
        for (index, missing) in holes {
            holed.insert(index.min(holed.len()), (if missing % 2 == 0 { C } else { S }, Stretch::Missing(missing)));
        }
        stretches(&holed);
    }
}
