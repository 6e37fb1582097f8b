//! snoop files: records, what cannot be true, what is cut.

use super::*;

fn record(data: &[u8], original: u32, padding: usize) -> Vec<u8> {
    let total = (24 + data.len() + padding) as u32;
    let head = BIG.u32s(&[original, data.len() as u32, total, 0, 1_700_000_000, 123_456]);
    [&head, data, &vec![0x55; padding]].concat()
}

pub(super) fn file() -> Vec<u8> {
    let head = [&b"snoop\0\0\0"[..], &BIG.u32s(&[2, 4])].concat();
    [
        head,
        record(&[1; 60], 100, 4),
        record(&[], 9, 0),
        record(&[2; 5], 5, 3),
    ]
    .concat()
}

#[test]
fn records() {
    let found = whole(&file());
    assert_eq!((found.format, found.frames, found.issues.len()), ("snoop", 3, 0));
    let time = 1_700_000_000_123_456_000;
    assert_eq!(found.records[0], (1, time, 1, 0, 16, vec![1; 60], 100));
    assert_eq!(found.records[2], (3, time, 1, 0, 16 + 88 + 24, vec![2; 5], 5));
}

#[test]
fn damage() {
    let good = file();
    let end = good.len() as u64;
    for (total, captured) in [(23u32, 0u32), (24, 1), (300_000, 9), (0, 0), (40, u32::MAX)] {
        let lying = BIG.u32s(&[60, captured, total, 0, 0, 0]);
        let found = whole(&[&good[..], &lying, &[0; 99]].concat());
        let reason = "record length does not fit its packet";
        is(only(&found), Kind::Damaged, end, Some(4), reason);
    }
    let found = whole(&[&good[..], &[0; 23]].concat());
    is(only(&found), Kind::Damaged, end, Some(4), "record header is cut");
    let found = whole(&[&good[..], &record(&[7; 9], 9, 0)[..30]].concat());
    is(only(&found), Kind::Damaged, end, Some(4), "record data is cut");
    for (version, link, reason) in [
        (3, 4, "snoop version is not known"),
        (2, 5, "snoop link type is not known"),
    ] {
        let found = whole(&[&b"snoop\0\0\0"[..], &BIG.u32s(&[version, link])].concat());
        is(only(&found), Kind::Refused, 0, None, reason);
    }
}
