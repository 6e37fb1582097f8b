//! Network Monitor's files: every version's records and times, media, the table, what is cut.

use super::*;

const HEADER: usize = 128;
const VERSIONS: [(u8, u8); 5] = [(1, 1), (2, 0), (2, 1), (2, 2), (2, 3)];
/// 2023-11-14 22:13:20.005
const START: [u16; 8] = [2023, 11, 2, 14, 22, 13, 20, 5];
const START_NS: i64 = 1_700_000_000_005_000_000;

struct File {
    version: (u8, u8),
    bytes: Vec<u8>,
    table: Vec<u32>,
}

impl File {
    fn new(version: (u8, u8)) -> File {
        let bytes = vec![0; HEADER];
        let table = Vec::new();
        File {
            version,
            bytes,
            table,
        }
    }

    fn frame(mut self, ms: u32, data: &[u8], original: u32, media: u16) -> File {
        self.table.push(self.bytes.len() as u32);
        if self.version.0 == 1 {
            let lengths = [LITTLE.u16(original as u16), LITTLE.u16(data.len() as u16)].concat();
            self.bytes.extend([&LITTLE.u32(ms)[..], &lengths].concat());
        } else {
            let us = u64::from(ms) * 1000;
            self.bytes.extend(us.to_le_bytes());
            self.bytes.extend(LITTLE.u32s(&[original, data.len() as u32]));
        }
        self.bytes.extend(data);
        let ticks = 116_444_736_000_000_000 + (START_NS + i64::from(ms) * 1_000_000) as u64 / 100 + 7;
        let zone = [&ticks.to_le_bytes()[..], &[0]].concat();
        let trailer = [&LITTLE.u16(media)[..], &[0xff; 4], &zone].concat();
        let size = match self.version {
            (1, _) | (2, 0) => 0,
            (_, 1) => 2,
            (_, 2) => 6,
            _ => 15,
        };
        self.bytes.extend(&trailer[..size]);
        self
    }

    fn finish(mut self, media: u16) -> Vec<u8> {
        let at = self.bytes.len() as u32;
        let table = LITTLE.u32s(&self.table);
        let magic = if self.version.0 == 1 { b"RTSS" } else { b"GMBU" };
        let start: Vec<u8> = START.iter().flat_map(|number| LITTLE.u16(*number)).collect();
        let place = LITTLE.u32s(&[at, table.len() as u32]);
        let version = [self.version.1, self.version.0];
        let head = [&magic[..], &version, &LITTLE.u16(media), &start, &place].concat();
        self.bytes[..head.len()].copy_from_slice(&head);
        [self.bytes, table, vec![0xcc; 9]].concat()
    }
}

fn file(version: (u8, u8)) -> Vec<u8> {
    File::new(version)
        .frame(1, &[1; 60], 100, 1)
        .frame(2, &[], 9, 1)
        .frame(70_000, &[2; 5], 5, 1)
        .finish(1)
}

pub(super) fn files() -> Vec<Vec<u8>> {
    VERSIONS.into_iter().map(file).collect()
}

#[test]
fn records() {
    for version in VERSIONS {
        let found = whole(&file(version));
        assert_eq!((found.format, found.frames, found.digits), ("netmon", 3, 9));
        assert_eq!(found.issues, [], "{version:?}");
        let later = if version == (2, 3) { 700 } else { 0 };
        let first = (1, START_NS + 1_000_000 + later, 1, 0, 128, vec![1; 60], 100);
        assert_eq!(found.records[0], first, "{version:?}");
        let last = &found.records[2];
        assert_eq!(
            (last.1, &last.5),
            (START_NS + 70_000_000_000 + later, &vec![2; 5])
        );
    }
}

#[test]
fn media() {
    let radio = [&[2, 32, 0][..], &[0; 29], b"frame"].concat();
    let other = [&[1, 32, 0][..], &[0; 29], b"frame"].concat();
    for (media, data, link, inner) in [
        (0, &radio, 1, &radio[..]),
        (2, &radio, 6, &radio),
        (3, &radio, 10, &radio),
        (4, &radio, 100, &radio),
        (6, &radio, 105, b"frame"),
        (9, &radio, 101, &radio),
        (0xe000 + 113, &radio, 113, &radio),
        (0xe080, &radio, 105, &radio),
        (0xffff, &radio, NO_LINK, &radio),
        (5, &radio, NO_LINK, &radio),
        (6, &other, NO_LINK, b"frame"),
        (0xe081, &radio, NO_LINK, &radio),
    ] {
        let found = whole(&File::new((2, 1)).frame(0, data, 60, media).finish(1));
        assert_eq!(
            (found.records[0].2, &found.records[0].5[..]),
            (link, inner),
            "{media}"
        );
        let unread = found
            .issues
            .iter()
            .any(|issue| issue.reason == "media type is not read");
        assert_eq!(unread, matches!(media, 5 | 0xe081) || data == &other, "{media}");
    }
    // before 2.1 the file says it, and ATM has a header of its own
    let found = whole(&File::new((2, 0)).frame(0, &radio, 60, 1).finish(4));
    assert_eq!(
        (found.records[0].2, found.records[0].5.len(), found.records[0].6),
        (100, 21, 44)
    );
    // notes that are not frames
    let notes = File::new((2, 3))
        .frame(0, b"", 0, 0xfffc)
        .frame(0, b"", 0, 0xfffd);
    let found = whole(&notes.frame(0, b"", 0, 0xfffe).frame(0, b"x", 1, 1).finish(1));
    assert_eq!((found.frames, found.issues.len()), (1, 0));
}

#[test]
fn times() {
    // ten times the microseconds may be a negative number
    let mut early = file((2, 0));
    early[HEADER..HEADER + 8].copy_from_slice(&(u64::MAX / 10 - 4999).to_le_bytes());
    assert!((START_NS - whole(&early).records[0].1 - 5_000_000).abs() < 1000);
    // a time that cannot be told is that of the frame before
    let mut late = file((2, 3));
    let at = late.len() - 9 - 12 - 9;
    late[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(whole(&late).records[2].1, whole(&late).records[1].1);
    for (start, seconds) in [
        ([1970, 1, 0, 1, 0, 0, 0, 0], 0),
        ([2000, 2, 0, 29, 0, 0, 1, 0], 951_782_401),
        ([2000, 3, 0, 1, 0, 0, 0, 0], 951_868_800),
        ([1999, 12, 0, 31, 23, 59, 59, 0], 946_684_799),
    ] {
        let mut bytes = File::new((2, 0)).frame(0, b"x", 1, 1).finish(1);
        let start: Vec<u8> = start.iter().flat_map(|number| LITTLE.u16(*number)).collect();
        bytes[8..24].copy_from_slice(&start);
        assert_eq!(whole(&bytes).records[0].1, seconds * 1_000_000_000);
        bytes[8..24].copy_from_slice(&[0xff; 16]);
        assert_eq!(whole(&bytes).frames, 1);
    }
}

#[test]
fn damage() {
    let good = file((2, 0));
    let table = good.len() - 9 - 12;
    let named = |order: [usize; 3]| {
        let mut bytes = good.clone();
        for (n, from) in order.into_iter().enumerate() {
            bytes[table + 4 * n..][..4].copy_from_slice(&good[table + 4 * from..][..4]);
        }
        bytes
    };
    let reason = "frames stand in another order than in their table";
    is(
        only(&whole(&named([2, 0, 1]))),
        Kind::Distrusted,
        table as u64,
        None,
        reason,
    );
    let reason = "frame table names other places than those of the frames";
    is(
        only(&whole(&named([0, 1, 1]))),
        Kind::Distrusted,
        table as u64,
        None,
        reason,
    );
    for length in [0u32, 8, 16] {
        let mut bytes = named([0, 1, 2]);
        bytes[28..32].copy_from_slice(&length.to_le_bytes());
        let found = whole(&bytes);
        assert_eq!((only(&found).reason, found.frames), (reason, 3));
    }
    let cut = |size: usize, at: usize, frame, reason| {
        is(
            only(&whole(&good[..size])),
            Kind::Damaged,
            at as u64,
            Some(frame),
            reason,
        );
    };
    cut(table + 6, table + 4, 4, "frame table is cut");
    cut(table, table, 4, "frame table is cut");
    cut(table - 1, table - 21, 3, "record data is cut");
    cut(table - 6, table - 21, 3, "record header is cut");
    cut(table - 21, table - 21, 3, "frame table is missing");
    cut(HEADER, HEADER, 1, "frame table is missing");
    is(
        only(&whole(&good[..100])),
        Kind::Refused,
        0,
        None,
        "file header is cut",
    );
    for (at, byte) in [(HEADER + 14, 9), (HEADER + 13, 1), (24, 200)] {
        let mut lying = good.clone();
        lying[at] = byte;
        let found = whole(&lying);
        assert_eq!(
            only(&found).reason,
            "record length does not fit its place",
            "{at}"
        );
    }
    let mut unfinished = good[..table].to_vec();
    unfinished[24..28].copy_from_slice(&[0; 4]);
    let found = whole(&unfinished);
    assert_eq!((only(&found).reason, found.frames), ("frame table is missing", 3));
    let mut later = good.clone();
    later[5] = 3;
    is(
        only(&whole(&later)),
        Kind::Refused,
        0,
        None,
        "netmon version is not known",
    );
}
