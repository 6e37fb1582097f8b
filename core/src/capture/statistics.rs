//! The interface statistics block of pcapng: how many packets the capture missed while it was taken (isb_ifdrop,
//! isb_osdrop). Passes over every other option.

use super::{Position, Sink};
use crate::cursor::{Cursor, Header};
use crate::issue::{Code, Issue, Kind};

/// Reports how many packets an interface dropped, from its statistics block.
#[cold]
pub(super) fn report<const BIG: bool>(body: &[u8], place: &Position, sink: &mut impl Sink) {
    let dropped = dropped::<BIG>(body);
    if dropped > 0 {
        let issue = Issue::new(
            Kind::Distrusted,
            "pcapng",
            "packets were dropped while the capture was taken",
        );
        sink.issue(
            issue
                .coded(Code::Dropped)
                .at(place.offset)
                .grouped(u32::try_from(dropped).unwrap_or(u32::MAX)),
        );
    }
}

/// Drops by the interface and by the system, from a block without its trailing length.
fn dropped<const BIG: bool>(body: &[u8]) -> u64 {
    let Some((_, options)) = Header::<20>::split(body) else {
        return 0;
    };
    let mut cursor = Cursor::new(options);
    let mut dropped = 0u64;
    while let Some((code, value)) = option::<BIG>(&mut cursor) {
        if let (5 | 7, Some(number)) = (code, Header::<8>::of(value)) {
            dropped = dropped.saturating_add(number.u64::<BIG, 0>());
        }
    }
    dropped
}

/// The next option; none at their end, or where one does not fit the block.
fn option<'a, const BIG: bool>(cursor: &mut Cursor<'a>) -> Option<(u16, &'a [u8])> {
    let head = Header::<4>::of(cursor.take(4)?)?;
    let (code, len) = (head.u16::<BIG, 0>(), usize::from(head.u16::<BIG, 2>()));
    let value = cursor.take(len)?;
    cursor.take(len.next_multiple_of(4) - len);
    (code != 0).then_some((code, value))
}
