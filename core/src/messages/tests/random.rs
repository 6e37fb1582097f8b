//! Random bytes, cuts and holes: no panic, the grammar of the notes holds, and no byte is lost.

use proptest::prelude::*;

use super::cases::FIN;
use super::{C, Close, ExchangeEvent, Messages, Note, Protocol, S, Side, Stretch, heard_by, read, short};

/// What streams are made of: enough of each protocol to get into every state, and junk.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        b"GET / HTTP/1.1\r\n" as &[u8],
        b"HEAD /h HTTP/1.1\r\n",
        b"CONNECT h HTTP/1.1\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 101 S\r\n",
        b"HTTP/1.1 100 C\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b" folded\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"x: y\r\n",
        b"x",
        b" ",
        b"HTTP/1.",
        b"\0",
        "é".as_bytes(),
        b"\0\x17\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\x03lab\0\0\x01\0\x01",
        b"AMQP\0\0\x09\x01",
        b"\x01\0\x01\0\0\0\x05\0\x55\0\x0a\0\xce",
        b"\x01\0\x01\0\0\0\x0b\0\x3c\0\x28\0\0\x01e\x01k\0\xce",
        b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\x02\0\0\xce",
        b"\x03\0\x01\0\0\0\x02hi\xce",
        b"\x01\0\x01\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\0\x01\x01\xce",
        b"\x01\0\x01\0\0\0\x06\0\x14\0\x28\x01\x94\xce",
        b"\0\0\0\x0b\0\x03\0\x01\0\0\0\x07\0\x01a",
        b"\0\0\0\x08\0\0\0\x07\0\0\0\0",
        b"\x30\x0c\x02\x01\x07\x63\x07\x04\x04dc=a\0",
        b"\x30\x0c\x02\x01\x07\x65\x07\x0a\x01\0\x04\0\x04\0",
        b"\0\x07\0\0\0\x06\x01\x03\0\x10\0\x01",
        b"\x05\x64\x08\xc4\x0a\0\x01\0\xfc\x42\xc0\xc0\x01\0\0",
        b"\x05\x64\x0a\x44\x01\0\x0a\0\x6e\x25\xc0\xc0\x81\0\0\0\0",
        b"\0\x07\0\0\0\x05\x01\x03\x02\0\x01",
        b"\x80\0\0\x28\0\0\0\x07\0\0\0\0\0\0\0\x02\0\x01\x86\xa3\0\0\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\x80\0\0\x18\0\0\0\x07\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\0\0\0\x44\xfeSMB\x40\0\0\0\0\0\0\0\x0d\0\x01\0\0\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0",
        b"\0\0\0\x44\xfeSMB\x40\0\0\0\x03\x01\0\0\x0d\0\x01\0\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0",
        b"BYE sip:a@b SIP/2.0\r\nCall-ID: x\r\nCSeq: 1 BYE\r\n\r\n",
        b"SIP/2.0 200 OK\r\nCall-ID: x\r\nCSeq: 1 BYE\r\nl: 2\r\n\r\nhi",
        b"PLAY rtsp://h/x RTSP/1.0\r\nCSeq: 2\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nCSeq: 2\r\n\r\n",
        b"$\0\0\x04\x80abc",
        b"\x10\x0e\0\x04MQTT\x05\x02\0\x3c\0\0\x01x",
        b"\x32\x08\0\x01a\0\x07\0hi",
        b"\x34\x06\0\x01a\0\x08\0",
        b"\x82\x07\0\x07\0\0\x01#\x01",
        b"\x20\x03\0\0\0",
        b"\x90\x04\0\x07\0\x01",
        b"\x40\x02\0\x07",
        b"\x50\x02\0\x08",
        b"\xc0\0",
        b"\x1a\0\0\0\x07\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x05\0\0\0\0",
        b"\x1a\0\0\0\x08\0\0\0\x07\0\0\0\xdd\x07\0\0\x02\0\0\0\0\x05\0\0\0\0",
        b"\x10\0\0\0\x0a8.0.36\0\x07\0\0\0salt",
        b"\x07\0\0\0\x03SELECT",
        b"\x05\0\0\0\x17\x07\0\0\0",
        b"\x01\0\0\x01\x01",
        b"\x05\0\0\x02\xfe\0\0\x0a\0",
        b"\x07\0\0\x01\0\0\0\x02\0\0\0",
        b"\x09\0\0\x01\xff\x28\x04#42000",
        b"\0\0\0\x10\0\x03\0\0user\0a\0\0",
        b"Q\0\0\0\x08SEL\0",
        b"P\0\0\0\x0b\0SEL\0\0\0",
        b"B\0\0\0\x06\0\0",
        b"E\0\0\0\x09\0\0\0\0\0",
        b"S\0\0\0\x04",
        b"C\0\0\0\x08SEL\0",
        b"E\0\0\0\x09C123\0",
        b"Z\0\0\0\x05I",
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"*1\r\n$9\r\nSUBSCRIBE\r\n",
        b"$3\r\nabc\r\n",
        b">3\r\n$7\r\nmessage\r\n+a\r\n+b\r\n",
        b"+OK\r\n",
        b"get k\r\n",
        b"set k 0 0 3\r\n",
        b"mg k v q\r\n",
        b"mn\r\n",
        b"VALUE k 0 3\r\n",
        b"END\r\n",
        b"STORED\r\n",
        b"VA 3\r\n",
        b"MN\r\n",
        b"\x80\x09\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x07\0\0\0\0\0\0\0\0k",
        b"\x81\x09\0\0\0\0\0\0\0\0\0\x02\0\0\0\x07\0\0\0\0\0\0\0\0hi",
        b"*-1\r\n",
        b"\x04\0\0\x08\0\0\0\x01",
        b"\x04\x14\0\x08\0\0\0\x05",
        b"\x04\x15\0\x08\0\0\0\x05",
        b"\x04\x13\0\x10\0\0\0\x05\0\x01\0\x01\0\0\0\0",
        b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02",
        b"\x03\0\0\x16\x11\xd0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02",
        b"\x03\0\0\x13\x02\xf0\x80\x32\x01\0\0\0\x02\0\x02\0\0\x04\x01",
        b"\x03\0\0\x15\x02\xf0\x80\x32\x03\0\0\0\x02\0\x02\0\0\0\0\x04\x01",
        b"\x03\0\0\x18\x02\xf0\0\x01\0\x01\0\x61\x0b\x30\x09\x02\x01\x03\xa0\x04\xa3\x02\xa0\0",
        b"\xaa\x41\0\x12\0\x07\0\0\0\x01\0\0\0\x02\0\x05\x92\x0b",
        b"\xaa\x31\0\x12\0\x07\0\0\0\x01\0\0\0\x02\0\x05\0\0",
        b"\x82\x82\0\0\0\0\x10\x0c",
        b"\0\0\0\x0c\0\x11\0\x01\0\0\0\x01\0\0\0\0",
        b"\0\0\0\x0a\x80\x11\0\x01\0\0\0\x01\0\x01",
        b"\0\0\0\x06\0\x08\0\x01hi",
        b"HELF\x20\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"MSGF\x1c\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x77\x02",
        b"MSGC\x1c\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x7a\x02",
        b"\x65\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0",
        b"\x6f\0\x12\0\x07\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\0\0\xb2\0\x02\0\x4c\x02",
        b"\x43\x87\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\x23\x87\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        b"\0REQ\0\0\0\x07\0\0\0\x05f\0\0hi",
        b"\0RES\0\0\0\x08\0\0\0\x03H:1",
        b"\0RES\0\0\0\x0d\0\0\0\x05H:1\0x",
        b"INFO {\"server_id\":\"X\"}\r\n",
        b"PUB a b 2\r\nhi\r\n",
        b"MSG b 1 2\r\nhi\r\n",
        b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 80\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x0a\0\0\x01\x12\x67\0\x50",
        b"\x05\x01\0",
        b"\x05\0",
        b"\x05\x01\0\x03\x04host\0\x50",
        b"\x05\0\0\x01\0\0\0\0\0\0",
        b"use mail\r\n",
        b"USING mail\r\n",
        b"put 1 0 9 2\r\nhi\r\n",
        b"INSERTED 7\r\n",
        b"\x82\x8c\0\0\0\0\0\x04MQTT\x04\x02\0\x3c\0\0",
        b"\0\x17\0\x07\x81\x83\0\x01\0\0\0\0\0\0\x01a\x03lab\0\0\x01\0\x01",
    ]);
    let word = prop_oneof![9 => word.prop_map(<[u8]>::to_vec), 1 => prop::collection::vec(any::<u8>(), 0..4)];
    prop::collection::vec(word, 0..8).prop_map(|words| words.concat())
}

fn script() -> impl Strategy<Value = Vec<(Side, Result<Vec<u8>, u64>)>> {
    let missing = prop_oneof![0..20u64, Just(u64::MAX)];
    let piece = prop_oneof![9 => words().prop_map(Ok), 1 => missing.prop_map(Err)];
    prop::collection::vec((prop_oneof![Just(C), Just(S)], piece), 0..12)
}

fn pieces(script: &[(Side, Result<Vec<u8>, u64>)]) -> impl Iterator<Item = (Side, Stretch<'_>)> {
    script.iter().map(|(side, piece)| match piece {
        Ok(bytes) => (*side, Stretch::Bytes(bytes)),
        Err(missing) => (*side, Stretch::Missing(*missing)),
    })
}

/// Checks the grammar of the module's first comment; gives the bytes of each side's messages.
pub(super) fn check(notes: &[Note]) -> [u64; 2] {
    let (mut open, mut named, mut total) = ([false; 2], [false; 2], [0u64; 2]);
    for note in notes {
        match note {
            Note::Begin { side, .. } => {
                assert!(!std::mem::replace(&mut open[side.index()], true), "{notes:?}");
                named[side.index()] = false;
            }
            Note::End { side, bytes, .. } | Note::Cut { side, bytes, .. } => {
                assert!(std::mem::replace(&mut open[side.index()], false), "{notes:?}");
                total[side.index()] = total[side.index()].saturating_add(*bytes);
            }
            Note::Request { .. } => assert!(open[0] && !std::mem::replace(&mut named[0], true), "{notes:?}"),
            Note::Response { .. } => assert!(open[1] && !std::mem::replace(&mut named[1], true), "{notes:?}"),
            Note::Dialogue => assert!(open[0], "{notes:?}"),
            Note::Host(_) | Note::Kind(_) => assert!(open[0], "{notes:?}"),
            Note::Tags { side, .. } => assert!(open[side.index()], "{notes:?}"),
            Note::Status(_) | Note::Piece { .. } => assert!(open[1], "{notes:?}"),
            // what is said of a key that is not open is dropped where it is heard
            Note::Keyed {
                side,
                event: ExchangeEvent::Bytes(bytes),
                ..
            } => total[side.index()] = total[side.index()].saturating_add(*bytes),
            Note::Keyed { .. }
            | Note::IsEventStream
            | Note::ConnectionTags(_)
            | Note::Push(_)
            | Note::Lost { .. }
            | Note::Sealed { .. }
            | Note::TlsSetup { .. }
            | Note::Dns { .. }
            | Note::DataPort { .. }
            | Note::Transfer { .. }
            | Note::Flow(_)
            | Note::Protocol(_) => {}
        }
    }
    assert_eq!(open, [false; 2], "after the close");
    total
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_bytes_keep_the_grammar(script in script(), how in 0..3usize, joined in any::<bool>()) {
        let how = [Close::Fin, Close::Rst, Close::CaptureEnd][how];
        let mut messages = Messages::new();
        if joined {
            messages.set_mid_stream();
        }
        let heard = heard_by(messages, pieces(&script), Some(how));
        let total = check(&heard.list);
        // who answers by keys counts what is asked and answered only
        let by_keys = heard.protocols.iter().any(|protocol| !matches!(protocol, Protocol::Turns | Protocol::Http));
        for side in [C, S] {
            let side_pieces = || pieces(&script).filter(|(whose, _)| *whose == side).map(|(_, piece)| piece);
            let side_bytes = side_pieces().fold(0u64, |sum, piece| sum.saturating_add(piece.len()));
            // only line ends between messages are of no message
            let blank = |piece| if let Stretch::Bytes(bytes) = piece { bytes.iter().filter(|byte| b"\r\n".contains(byte)).count() } else { 0 };
            let blanks = side_pieces().map(blank).sum::<usize>() as u64;
            prop_assert!(total[side.index()] <= side_bytes, "{:?} {} {}: {:?}", side, total[side.index()], side_bytes, heard.list);
            prop_assert!(by_keys || side_bytes <= total[side.index()].saturating_add(blanks));
        }
    }

    #[test]
    fn any_bytes_read_the_same_however_they_are_cut(
        before in prop::sample::select(vec![(C, "GET "), (C, "GET / HTTP/1.1\r\n"), (S, "HTTP/1.1 200 OK\r\n"), (S, "HTTP/1.")]),
        text in words(),
        size in 1..9usize,
    ) {
        let (side, first) = before;
        let text = [first.as_bytes(), &text].concat();
        let uncut = read([(side, Stretch::Bytes(&text))], FIN);
        let cut = read(text.chunks(size).map(|piece| (side, Stretch::Bytes(piece))), FIN);
        check(&uncut);
        prop_assert_eq!(short(&uncut), short(&cut));
    }
}
