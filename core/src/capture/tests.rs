//! Every case whole, byte by byte and cut at every length; any cut into blocks; any bytes at all.

mod damage;
mod netmon;
mod secrets;
mod solaris;

use proptest::prelude::*;

use super::{CaptureReader, NO_LINK, Record, RecordSink, pcap, pcapng};
use crate::issue::{Issue, Kind};

/// A record's fields in their order.
type Kept = (u64, i64, u32, u32, u64, Vec<u8>, u32);

/// What a reader found, with the records' bytes kept.
#[derive(Debug, Default, PartialEq)]
struct Found {
    records: Vec<Kept>,
    issues: Vec<Issue>,
    secrets: Vec<Vec<u8>>,
    frames: u64,
    format: &'static str,
    digits: u8,
}

impl RecordSink for Found {
    fn record(&mut self, record: Record<'_>) {
        let Record {
            frame,
            time_ns,
            link,
            interface,
            offset,
            data,
            original_len,
        } = record;
        self.records.push((
            frame,
            time_ns,
            link,
            interface,
            offset,
            data.to_vec(),
            original_len,
        ));
    }

    fn issue(&mut self, issue: Issue) {
        self.issues.push(issue);
    }

    fn secrets(&mut self, text: &[u8]) {
        self.secrets.push(text.to_vec());
    }
}

fn read<'a>(blocks: impl IntoIterator<Item = &'a [u8]>) -> Found {
    let (mut reader, mut found) = (CaptureReader::new(), Found::default());
    blocks
        .into_iter()
        .for_each(|block| reader.push(block, &mut found));
    reader.finish(&mut found);
    reader.push(b"later bytes are ignored", &mut found);
    reader.finish(&mut found);
    (found.frames, found.format, found.digits) = (reader.frames(), reader.format(), reader.digits());
    found
}

fn whole(file: &[u8]) -> Found {
    read([file])
}

/// Writes numbers in either byte order.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn u16(self, number: u16) -> [u8; 2] {
        if self.0 {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        if self.0 {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    }

    fn u32s(self, numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| self.u32(*number)).collect()
    }

    fn pcap(self, magic: u32, version: (u16, u16), link: u32) -> Vec<u8> {
        let versions = [self.u16(version.0), self.u16(version.1)].concat();
        [self.u32s(&[magic]), versions, self.u32s(&[0, 0, 65535, link])].concat()
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let total = body.len().next_multiple_of(4) as u32 + 12;
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        [&self.u32s(&[kind, total]), body, &padding, &self.u32(total)[..]].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(
            0x0a0d_0d0a,
            &[self.u32(0x1a2b_3c4d).to_vec(), version, vec![0xff; 8]].concat(),
        )
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
        [&self.u16(code), &self.u16(value.len() as u16), value, &padding].concat()
    }

    fn interface(self, link: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
        self.block(
            1,
            &[&self.u16(link), &[0, 0], &self.u32(snaplen)[..], options].concat(),
        )
    }

    fn packet(self, interface: u32, ticks: u64, data: &[u8], original: u32) -> Vec<u8> {
        let (high, low) = ((ticks >> 32) as u32, ticks as u32);
        let head = self.u32s(&[interface, high, low, data.len() as u32, original]);
        self.block(6, &[&head, data].concat())
    }
}

const LITTLE: Order = Order(false);
const BIG: Order = Order(true);

fn pcap_file(order: Order, magic: u32, head: usize) -> Vec<u8> {
    let mut file = order.pcap(magic, (2, 4), 1);
    for (index, len) in [0usize, 1, 60, 7].into_iter().enumerate() {
        file.extend(order.u32s(&[1_700_000_000, 123_456 + index as u32, len as u32, 100]));
        file.extend(vec![0xee; head - 16]);
        file.extend(vec![index as u8; len]);
    }
    file
}

fn pcapng_file(order: Order) -> Vec<u8> {
    let other = Order(!order.0);
    [
        order.section(),
        order.interface(1, 0, &[]),
        order.block(5, &[7; 33]),
        order.packet(0, 1_700_000_000_000_001, b"abcde", 9),
        order.interface(101, 4, &[order.option(9, &[9]), order.option(0, &[])].concat()),
        order.packet(1, 1_700_000_000_000_000_002, b"xy", 2),
        order.block(3, &[&order.u32(6)[..], b"simple"].concat()),
        order.block(
            2,
            &[&order.u16(1)[..], &[0; 2], &order.u32s(&[0, 77, 3, 3]), b"old"].concat(),
        ),
        order.block(0xbad, &[1; 20]),
        order.block(9, b"journal"),
        other.section(),
        other.interface(113, 0, &other.option(2, b"eth0")),
        other.packet(0, 5, b"", 60),
    ]
    .concat()
}

fn cases() -> Vec<Vec<u8>> {
    [LITTLE, BIG]
        .into_iter()
        .flat_map(|order| {
            [
                pcap_file(order, 0xa1b2_c3d4, 16),
                pcap_file(order, 0xa1b2_3c4d, 16),
                pcap_file(order, 0xa1b2_cd34, 24),
                pcapng_file(order),
            ]
        })
        .chain([solaris::file()])
        .chain(netmon::files())
        .collect()
}

/// The only issue, which must be there.
fn only(found: &Found) -> &Issue {
    assert_eq!(found.issues.len(), 1, "{found:?}");
    &found.issues[0]
}

fn is(issue: &Issue, kind: Kind, offset: u64, frame: Option<u64>, reason: &str) {
    assert_eq!(
        (issue.kind, issue.offset, issue.frame, issue.reason),
        (kind, Some(offset), frame, reason)
    );
}

#[test]
fn pcap_records() {
    for (magic, head, format, unit) in [
        (0xa1b2_c3d4, 16, "pcap", 1000),
        (0xa1b2_3c4d, 16, "pcap (ns)", 1),
        (0xa1b2_cd34, 24, "pcap (modified)", 1000),
    ] {
        for order in [LITTLE, BIG] {
            let found = whole(&pcap_file(order, magic, head));
            assert_eq!((found.format, found.frames, found.issues.len()), (format, 4, 0));
            assert_eq!(found.digits, if unit == 1 { 9 } else { 6 });
            let time = 1_700_000_000_000_000_000 + 123_458 * unit;
            let offset = 24 + 2 * head as u64 + 1;
            assert_eq!(found.records[2], (3, time, 1, 0, offset, vec![2; 60], 100));
        }
    }
}

#[test]
fn pcapng_records() {
    for order in [LITTLE, BIG] {
        let found = whole(&pcapng_file(order));
        assert_eq!(
            (found.format, found.frames, &found.issues[..]),
            ("pcapng", 7, &[][..])
        );
        assert_eq!(found.digits, 9, "of the finest interface");
        let short: Vec<_> = found
            .records
            .iter()
            .map(|(frame, time, link, interface, _, data, original)| {
                (*frame, *time, *link, *interface, &data[..], *original)
            })
            .collect();
        assert_eq!(
            short,
            [
                (1, 1_700_000_000_000_001_000, 1, 0, &b"abcde"[..], 9),
                (2, 1_700_000_000_000_000_002, 101, 1, b"xy", 2),
                (3, 1_700_000_000_000_000_002, 1, 0, b"simple", 6),
                (4, 77, 101, 1, b"old", 3),
                (5, 77, NO_LINK, 0, b"", 0),
                (6, 77, NO_LINK, 0, b"", 0),
                (7, 5000, 113, 0, b"", 60),
            ]
        );
        assert_eq!(found.records[0].4, 28 + 20 + 48);
    }
}

#[test]
fn a_simple_packet_is_as_long_as_the_snap_length() {
    let simple = LITTLE.block(3, &[&LITTLE.u32(600)[..], b"abcd"].concat());
    let found = whole(&[LITTLE.section(), LITTLE.interface(1, 4, &[]), simple].concat());
    assert_eq!((&found.records[0].5[..], found.records[0].6), (&b"abcd"[..], 600));
}

#[test]
fn clocks() {
    let time = |options: &[Vec<u8>], ticks: u64| {
        let interface = LITTLE.interface(1, 0, &options.concat());
        whole(&[LITTLE.section(), interface, LITTLE.packet(0, ticks, b"", 0)].concat())
    };
    let resolution = |byte: u8| LITTLE.option(9, &[byte]);
    let offset = |seconds: i64| LITTLE.option(14, &seconds.to_le_bytes());
    for (options, ticks, ns) in [
        (vec![], 3, 3000),
        (vec![resolution(0)], 3, 3_000_000_000),
        (vec![resolution(3)], 3, 3_000_000),
        (vec![resolution(9)], 3, 3),
        (vec![resolution(12)], 12_999, 12),
        (vec![resolution(19)], u64::MAX, 1_844_674_407),
        (vec![resolution(127)], u64::MAX, 0),
        (vec![resolution(0x80)], 3, 3_000_000_000),
        (vec![resolution(0x80 | 10)], 1025, 1_000_976_562),
        (vec![resolution(0x80 | 127)], u64::MAX, 0),
        (vec![offset(-2)], 1_500_000, -500_000_000),
        (vec![offset(2), resolution(9)], 5, 2_000_000_005),
        (vec![resolution(9), offset(2)], 5, 2_000_000_005),
        (vec![resolution(9)], (1 << 62) - 1, (1 << 62) - 1),
        (
            vec![resolution(9), offset(-4_611_686_018)],
            0,
            -4_611_686_018_000_000_000,
        ),
        (
            vec![LITTLE.option(2, b"eth"), LITTLE.option(0, b""), resolution(9)],
            3,
            3000,
        ),
    ] {
        let found = time(&options, ticks);
        assert_eq!(
            (found.records[0].1, found.issues.len()),
            (ns, 0),
            "{options:?} {ticks}"
        );
    }
    for (options, ticks) in [
        (vec![], u64::MAX),
        (vec![resolution(9)], 1 << 62),
        (vec![resolution(9), offset(-4_611_686_019)], 0),
        (vec![offset(i64::MAX)], 0),
        (vec![offset(i64::MIN)], 0),
    ] {
        let found = time(&options, ticks);
        assert_eq!(found.records[0].1, 0);
        is(
            only(&found),
            Kind::Distrusted,
            28 + found_len(&options),
            Some(1),
            "time stamp is out of range",
        );
    }
    for options in [
        vec![vec![9, 0, 9, 0, 1]],
        vec![LITTLE.option(9, b"ab")],
        vec![LITTLE.option(14, b"ab")],
    ] {
        is(
            only(&time(&options, 3)),
            Kind::Distrusted,
            28,
            None,
            "options of an interface are malformed",
        );
    }
}

/// The length of an interface block with these options.
fn found_len(options: &[Vec<u8>]) -> u64 {
    20 + options.concat().len() as u64
}

#[test]
fn link_field_and_versions() {
    let record = LITTLE.u32s(&[1, 2, 3, 4]);
    let file = |version, link| [&LITTLE.pcap(0xa1b2_c3d4, version, link), &record[..], b"abcd"].concat();
    let lengths = |file: &[u8]| {
        let found = whole(file);
        found
            .records
            .first()
            .map(|record| (record.2, record.5.len(), record.6))
    };
    assert_eq!(lengths(&file((2, 4), 0x5400_0001)[..43]), Some((1, 3, 4)));
    assert_eq!(lengths(&file((2, 4), 276)[..43]), Some((276, 3, 4)));
    assert_eq!(lengths(&file((2, 3), 1)[..43]), Some((1, 3, 4)));
    assert_eq!(lengths(&file((2, 2), 1)), Some((1, 4, 3)));
    assert_eq!(lengths(&file((543, 0), 1)), Some((1, 4, 3)));
    is(
        only(&whole(&file((1, 2), 1))),
        Kind::Refused,
        0,
        None,
        "pcap version is not known",
    );
}

#[test]
fn whole_byte_by_byte_and_cut_anywhere() {
    for file in cases() {
        let all = whole(&file);
        for len in 0..=file.len() {
            let cut = whole(&file[..len]);
            assert_eq!(cut, read(file[..len].chunks(1)));
            assert!(all.records.starts_with(&cut.records));
            // where nothing is said, the cut is between two records or blocks: reading on gives the rest
            if cut.issues.is_empty() {
                assert_eq!(all, read([&file[..len], &file[len..]]));
            }
            assert!(cut.issues.len() <= 1 && (len < file.len() || cut == all));
        }
    }
}

#[test]
fn a_block_without_a_body_is_passed_over() {
    let section =
        b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0";
    let empty = b"\x05\0\0\0\x0c\0\0\0\x0c\0\0\0";
    let file = [&section[..], empty, empty].concat();
    assert_eq!(whole(&file).issues, []);
    assert_eq!(whole(&file), read(file.chunks(1)));
    let lying = [&section[..], b"\x05\0\0\0\x0c\0\0\0\x0d\0\0\0", empty].concat();
    assert_eq!(whole(&lying).issues.len(), 1);
    assert_eq!(whole(&lying), read(lying.chunks(1)));
}

/// A file, bytes of it replaced, and lengths to cut it at.
fn mutated() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let cuts = prop::collection::vec(0usize..80, 1..20);
    (prop::sample::select(cases()), edits, cuts).prop_map(|(mut file, edits, cuts)| {
        for (at, byte) in edits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        (file, cuts)
    })
}

fn cut<'a>(file: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let (mut rest, mut blocks) = (file, Vec::new());
    for len in cuts {
        let (block, after) = rest.split_at(*len.min(&rest.len()));
        blocks.push(block);
        rest = after;
    }
    blocks.push(rest);
    blocks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cut_of_any_damage_gives_the_same((file, cuts) in mutated()) {
        prop_assert_eq!(whole(&file), read(cut(&file, &cuts)));
        prop_assert_eq!(whole(&file), read(file.chunks(1)));
    }

    #[test]
    fn no_bytes_panic(
        start in prop::sample::select(vec![0usize, 4, 12, 24, 48]),
        case in 0usize..8,
        noise in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec(0usize..80, 1..20),
    ) {
        let file = [&cases()[case][..start], &noise].concat();
        prop_assert_eq!(whole(&file), read(cut(&file, &cuts)));
    }
}
