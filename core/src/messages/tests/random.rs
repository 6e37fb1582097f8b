//! Random bytes, cuts and holes: no panic, the grammar of the notes holds, and no byte is lost.

use proptest::prelude::*;

use super::cases::FIN;
use super::{C, Close, Note, Piece, S, Side, read, short};

/// What streams are made of: enough of HTTP to get into every state, and junk.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "GET / HTTP/1.1\r\n",
        "HEAD /h HTTP/1.1\r\n",
        "CONNECT h HTTP/1.1\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 101 S\r\n",
        "HTTP/1.1 100 C\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        " folded\r\n",
        "\r\n",
        "\n",
        "\r",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "x: y\r\n",
        "x",
        " ",
        "HTTP/1.",
        "\0",
        "é",
    ]);
    let word = prop_oneof![9 => word.prop_map(|word| word.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..4)];
    prop::collection::vec(word, 0..8).prop_map(|words| words.concat())
}

fn script() -> impl Strategy<Value = Vec<(Side, Result<Vec<u8>, u64>)>> {
    let missing = prop_oneof![0..20u64, Just(u64::MAX)];
    let piece = prop_oneof![9 => words().prop_map(Ok), 1 => missing.prop_map(Err)];
    prop::collection::vec((prop_oneof![Just(C), Just(S)], piece), 0..12)
}

fn pieces(script: &[(Side, Result<Vec<u8>, u64>)]) -> impl Iterator<Item = (Side, Piece<'_>)> {
    script.iter().map(|(side, piece)| match piece {
        Ok(bytes) => (*side, Piece::Bytes(bytes)),
        Err(missing) => (*side, Piece::Missing(*missing)),
    })
}

/// Checks the grammar of the module's first comment; gives the bytes of each side's messages.
fn check(notes: &[Note]) -> [u64; 2] {
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
            Note::Lost { .. } | Note::Protocol(_) => {}
        }
    }
    assert_eq!(open, [false; 2], "after the close");
    total
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_bytes_keep_the_grammar(script in script(), how in 0..3usize) {
        let how = [Close::Fin, Close::Rst, Close::CaptureEnd][how];
        let total = check(&read(pieces(&script), Some(how)));
        for side in [C, S] {
            let mine = || pieces(&script).filter(|(whose, _)| *whose == side).map(|(_, piece)| piece);
            let all = mine().fold(0u64, |sum, piece| sum.saturating_add(piece.len()));
            // Only line ends between messages are of no message.
            let blank = |piece| if let Piece::Bytes(b) = piece { b.iter().filter(|b| b"\r\n".contains(b)).count() } else { 0 };
            let blanks = mine().map(blank).sum::<usize>() as u64;
            prop_assert!(total[side.index()] <= all && all <= total[side.index()].saturating_add(blanks));
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
        let whole = read([(side, Piece::Bytes(&text))], FIN);
        let cut = read(text.chunks(size).map(|piece| (side, Piece::Bytes(piece))), FIN);
        check(&whole);
        prop_assert_eq!(short(&whole), short(&cut));
    }
}
