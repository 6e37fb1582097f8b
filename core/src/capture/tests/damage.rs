//! Files that are cut, damaged, or none: rows up to there, and one sentence why.

use super::*;

#[test]
fn damage_in_pcap() {
    let good = pcap_file(LITTLE, 0xa1b2_c3d4, 16);
    let end = good.len() as u64;
    let found = whole(
        &[
            &good[..],
            &LITTLE.u32s(&[1, 2, pcap::MAX_RECORD_BYTES + 1, 4]),
            &[0; 99],
        ]
        .concat(),
    );
    assert_eq!(found.frames, 4);
    is(
        only(&found),
        Kind::Damaged,
        end,
        Some(5),
        "captured length is beyond the longest record",
    );
    assert_eq!(
        found.issues[0].sentence().split(": ").last(),
        Some("needed 262145 bytes, had 262144")
    );
    let found = whole(&[&good[..], &[0; 15]].concat());
    is(only(&found), Kind::Damaged, end, Some(5), "record header is cut");
    assert_eq!(
        (found.issues[0].needed, found.issues[0].had),
        (Some(16), Some(15))
    );
    let found = whole(&[&good[..], &LITTLE.u32s(&[1, 2, 9, 9]), b"abc"].concat());
    is(only(&found), Kind::Damaged, end, Some(5), "record data is cut");
    assert_eq!((found.issues[0].needed, found.issues[0].had), (Some(9), Some(3)));
}

#[test]
fn damage_in_pcapng() {
    let start = [
        LITTLE.section(),
        LITTLE.interface(1, 0, &[]),
        LITTLE.packet(0, 1, b"abcd", 4),
    ]
    .concat();
    let end = start.len() as u64;
    let lying = |at: usize, value: u32| {
        let mut block = LITTLE.packet(0, 2, b"efgh", 4);
        block[at..at + 4].copy_from_slice(&LITTLE.u32(value));
        block
    };
    let too_long = LITTLE.u32s(&[6, pcapng::MAX_BLOCK_BYTES + 4]);
    for (block, frame, reason) in [
        (lying(4, 0), Some(2), "block is too short for its kind"),
        (lying(4, 28), Some(2), "block is too short for its kind"),
        (
            lying(32, 40),
            Some(2),
            "lengths at the two ends of a block differ",
        ),
        (
            lying(8, 1),
            Some(2),
            "packet names an interface that does not exist",
        ),
        (lying(20, 5), Some(2), "captured length is beyond its block"),
        (
            lying(20, u32::MAX),
            Some(2),
            "captured length is beyond its block",
        ),
        (lying(4, 64), Some(2), "block is cut"),
        (too_long, Some(2), "block is beyond the longest block"),
        (vec![6, 0, 0], None, "block header is cut"),
        (LITTLE.u32s(&[5, 11, 11]), None, "block is too short for its kind"),
        (
            LITTLE.u32s(&[5, 16, 0, 20]),
            None,
            "lengths at the two ends of a block differ",
        ),
        (LITTLE.u32s(&[5, u32::MAX, 0]), None, "block is cut"),
        (LITTLE.u32s(&[0xbad, 16, 0]), Some(2), "block is cut"),
        (
            LITTLE.u32s(&[0x0a0d_0d0a, 28, 1, 1, 0]),
            None,
            "byte-order magic of a section is not known",
        ),
        (
            LITTLE.u32s(&[0x0a0d_0d0a, 24, 0x1a2b_3c4d, 1]),
            None,
            "block is too short for its kind",
        ),
        (
            LITTLE.u32s(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 2]),
            None,
            "pcapng version is not known",
        ),
        (LITTLE.u32s(&[0x0a0d_0d0a, 28]), None, "block is cut"),
    ] {
        let file = [&start[..], &block].concat();
        let found = whole(&file);
        assert_eq!(found.frames, 1, "{reason}");
        is(only(&found), Kind::Damaged, end, frame, reason);
        assert_eq!(found, read(file.chunks(1)), "{reason}");
    }
    // a total length that is not a multiple of four: Wireshark rounds it up
    let mut odd = lying(4, 35);
    odd[32..].copy_from_slice(&LITTLE.u32(35));
    assert_eq!(whole(&[&start[..], &odd].concat()).frames, 2);
}

#[test]
fn too_many_interfaces() {
    let mut file = LITTLE.section();
    (0..65_537).for_each(|_| file.extend(LITTLE.interface(1, 0, &[])));
    is(
        only(&whole(&file)),
        Kind::Damaged,
        28 + 65_536 * 20,
        None,
        "too many interfaces",
    );
}

#[test]
fn refusals() {
    for (file, sentence) in [
        (&b""[..], "file is empty"),
        (b"\xd4\xc3", "file header is cut: needed 24 bytes, had 2"),
        (
            b"\xa1\xb2\x3c\x4d1234567",
            "file header is cut: needed 24 bytes, had 11",
        ),
        (
            b"\x0a\x0d\x0d\x0a\0\0",
            "file header is cut: needed 16 bytes, had 6",
        ),
        (
            b"hello",
            "not a pcap or pcapng file (it looks like text: \"hello\")",
        ),
        (b"\n", "file header is cut: needed 16 bytes, had 1"),
        (
            b"GET / HTTP/1.1\r\n\r\n",
            "not a pcap or pcapng file (it looks like text: \"GET / HTTP/1.1\\r\\n\")",
        ),
        (
            b"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "not a pcap or pcapng file (it looks like gzip)",
        ),
        (b"\xfd7zXZ\0", "not a pcap or pcapng file (it looks like xz)"),
        (
            b"\0\x01\x02\xff\xff",
            "not a pcap or pcapng file (its first bytes are 00 01 02 ff ff)",
        ),
        (
            b"\x0a\x0d\x0d\x0a\0\0\0\x1c\0\0\0\0\0\0\0\0\0\0\0\0",
            "not a pcap or pcapng file (its first bytes are 0a 0d 0d 0a 00 00 00 1c 00 00 00 00 00 00 00 00)",
        ),
    ] {
        let found = whole(file);
        is(only(&found), Kind::Refused, 0, None, found.issues[0].reason);
        assert_eq!(
            (found.issues[0].sentence().as_str(), found.format),
            (sentence, "")
        );
        assert_eq!(found, read(file.chunks(1)));
    }
}
