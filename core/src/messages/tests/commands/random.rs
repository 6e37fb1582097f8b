//! Random lines of both sides.

use proptest::prelude::*;

use super::*;

/// Words of all four, and junk.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        &b"EHLO me\r\n"[..],
        b"MAIL FROM:<a>\r\n",
        b"DATA\r\n",
        b".\r\n",
        b"AUTH PLAIN\r\n",
        b"BDAT 3\r\n",
        b"STARTTLS\r\n",
        b"LHLO x\r\n",
        b"USER a\r\n",
        b"RETR 1\r\n",
        b"CAPA\r\n",
        b"a1 IDLE\r\n",
        b"DONE\r\n",
        b"a2 APPEND x {3}\r\n",
        b"a3 NOOP\r\n",
        b"220 lab ESMTP\r\n",
        b"250-x\r\n",
        b"250 x\r\n",
        b"354 go\r\n",
        b"334 x\r\n",
        b"150 x\r\n",
        b"+OK\r\n",
        b"-ERR\r\n",
        b"+ \r\n",
        b"* OK\r\n",
        b"* 1 FETCH {3}\r\n",
        b"a1 OK\r\n",
        b"a2 NO\r\n",
        b"421 x\r\n",
        b"abc",
        b"\r\n",
        b"\n",
        b"\0",
        b"\xff",
    ]);
    prop_oneof![9 => word.prop_map(<[u8]>::to_vec), 1 => prop::collection::vec(any::<u8>(), 0..5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_lines_are_read_the_same_however_they_are_cut(
        hello in prop::sample::select(vec![
            [(S, "220 lab ESMTP\r\n"), (C, "EHLO me\r\n"), (S, "250 ok\r\n")],
            [(S, "220 lab LMTP\r\n"), (C, "LHLO me\r\n"), (S, "250 ok\r\n")],
            [(S, "220 lab\r\n"), (C, "FEAT\r\n"), (S, "211 ok\r\n")],
            [(S, "+OK lab\r\n"), (C, "CAPA\r\n"), (S, "-ERR\r\n")],
            [(S, "* OK lab\r\n"), (C, "a0 NOOP\r\n"), (S, "a0 OK\r\n")],
        ]),
        lines in prop::collection::vec((any::<bool>(), line()), 0..14),
        size in 1..12usize,
        holes in prop::collection::vec((0..14usize, 1..40u64), 0..3),
    ) {
        let side = |client: bool| if client { C } else { S };
        let before = hello.iter().map(|(side, text)| (*side, Stretch::Bytes(text.as_bytes())));
        let uncut: Vec<_> = before.clone().chain(lines.iter().map(|(client, line)| (side(*client), Stretch::Bytes(&line[..])))).collect();
        let cut: Vec<_> = before
            .chain(lines.iter().flat_map(|(client, line)| line.chunks(size).map(|piece| (side(*client), Stretch::Bytes(piece)))))
            .collect();
        let once = read(uncut.iter().copied(), FIN);
        if !once.iter().any(|note| matches!(note, Note::Lost { .. })) {
            prop_assert_eq!(short(&once), short(&read(cut.iter().copied(), FIN)));
        }
        let mut holed = cut;
        for (index, missing) in holes {
            holed.insert((3 + index).min(holed.len()), (side(missing % 2 == 0), Stretch::Missing(missing)));
        }
        read(holed, FIN);
    }
}
