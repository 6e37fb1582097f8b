//! The interface blocks of pcapng. The description block has link type, snap length and the clock of the time stamps
//! (if_tsresol, if_tsoffset); the statistics block has the number of dropped packets (isb_ifdrop, isb_osdrop).

use super::{Position, RecordSink, TRUSTED_NS};
use crate::cursor::{Cursor, Header};
use crate::issue::{Code, Issue, Kind};

/// Codes of options (draft-ietf-opsawg-pcapng 3.5, 4.2, 4.6).
const OPT_ENDOFOPT: u16 = 0;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
/// Bit of if_tsresol: the exponent in its other bits is of 2, not of 10.
const BINARY_RESOLUTION: u8 = 0x80;

/// One interface of the section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface {
    pub link: u32,
    pub snaplen: u32,
    /// Nanoseconds per tick; 0 if not a whole number, or if the clock has an offset.
    tick_ns: u64,
    /// Ticks per second. `None` if they overflow; then any time stamp is below 1 ns.
    ticks_per_second: Option<u128>,
    offset_ns: i128,
}

impl Interface {
    /// Reads a block without its trailing length. Also returns whether its options are well-formed.
    pub(super) fn read<const BIG: bool>(body: &[u8]) -> Option<(Interface, bool)> {
        let (head, options) = Header::<16>::split(body)?;
        let mut interface = Interface {
            link: head.u16::<BIG, 8>().into(),
            snaplen: head.u32::<BIG, 12>(),
            tick_ns: 0,
            ticks_per_second: Some(1_000_000),
            offset_ns: 0,
        };
        let is_well_formed = read_options::<BIG>(options, &mut interface).is_some();
        let whole_ns_ticks = interface
            .ticks_per_second
            .filter(|ticks| interface.offset_ns == 0 && 1_000_000_000 % ticks == 0);
        interface.tick_ns = whole_ns_ticks.map_or(0, |ticks| (1_000_000_000 / ticks) as u64);
        Some((interface, is_well_formed))
    }

    /// Decimal places of the seconds in a time stamp, rounded down to a number that Wireshark shows.
    pub(super) fn digits(&self) -> u8 {
        match self.ticks_per_second.and_then(u128::checked_ilog10).unwrap_or(9) {
            few @ 0..=2 => few as u8,
            3..=5 => 3,
            6..=8 => 6,
            _ => 9,
        }
    }

    /// Converts ticks of a common clock to ns. `None` if `time_ns` must do it.
    #[inline(always)]
    pub(super) fn quick_ns(&self, ticks: u64) -> Option<i64> {
        if self.tick_ns == 0 {
            return None;
        }
        let ns = i64::try_from(ticks.checked_mul(self.tick_ns)?).ok()?;
        TRUSTED_NS.contains(&ns).then_some(ns)
    }

    /// Converts ticks of any clock to ns, rounded down. `None` if the time is not in `TRUSTED_NS`.
    pub(super) fn time_ns(&self, ticks: u64) -> Option<i64> {
        // at most 2^64 * 10^9 < 2^94
        let scaled = u128::from(ticks) * 1_000_000_000;
        let ns = self
            .ticks_per_second
            .and_then(|second| scaled.checked_div(second))
            .unwrap_or(0);
        i64::try_from(i128::try_from(ns).ok()?.checked_add(self.offset_ns)?)
            .ok()
            .filter(|ns| TRUSTED_NS.contains(ns))
    }
}

/// Reads if_tsresol and if_tsoffset. Returns `None` if the options do not fit their block.
fn read_options<const BIG: bool>(options: &[u8], interface: &mut Interface) -> Option<()> {
    let mut cursor = Cursor::new(options);
    while !cursor.is_empty() {
        let (code, value) = option::<BIG>(&mut cursor)?;
        if code == OPT_ENDOFOPT {
            break;
        }
        match (code, value) {
            (IF_TSRESOL, &[resolution]) => {
                let power = u32::from(resolution & !BINARY_RESOLUTION);
                let base = if resolution & BINARY_RESOLUTION == 0 {
                    10u128
                } else {
                    2
                };
                interface.ticks_per_second = base.checked_pow(power);
            }
            (IF_TSOFFSET, seconds) => {
                let seconds = Header::<8>::of(seconds)?.u64::<BIG, 0>() as i64;
                interface.offset_ns = i128::from(seconds) * 1_000_000_000;
            }
            (IF_TSRESOL, _) => return None,
            _ => {}
        }
    }
    Some(())
}

/// Reports the packets that were dropped while the capture was taken; `body` is a statistics block without its trailing
/// length.
#[cold]
pub(super) fn report_drops<const BIG: bool>(body: &[u8], position: &Position, sink: &mut impl RecordSink) {
    let Some((_, options)) = Header::<20>::split(body) else {
        return;
    };
    let mut cursor = Cursor::new(options);
    let mut dropped = 0u64;
    while let Some((code @ 1.., value)) = option::<BIG>(&mut cursor) {
        if let (ISB_IFDROP | ISB_OSDROP, Some(number)) = (code, Header::<8>::of(value)) {
            dropped = dropped.saturating_add(number.u64::<BIG, 0>());
        }
    }
    if dropped > 0 {
        let reason = "packets were dropped while the capture was taken";
        let issue = Issue::new(Kind::Distrusted, "pcapng", reason).coded(Code::Dropped);
        let dropped = u32::try_from(dropped).unwrap_or(u32::MAX);
        sink.issue(issue.at(position.offset).grouped(dropped));
    }
}

/// Reads the next option: its code, 0 at the end of the list, and its value. `None` if it does not fit the block.
fn option<'a, const BIG: bool>(cursor: &mut Cursor<'a>) -> Option<(u16, &'a [u8])> {
    let head = Header::<4>::of(cursor.take(4)?)?;
    let (code, len) = (head.u16::<BIG, 0>(), usize::from(head.u16::<BIG, 2>()));
    if code == OPT_ENDOFOPT {
        return Some((OPT_ENDOFOPT, &[]));
    }
    let value = cursor.take(len)?;
    cursor.take(len.next_multiple_of(4) - len)?;
    Some((code, value))
}
