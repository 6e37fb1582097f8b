//! The interface description block of pcapng: link type, snap length and the clock of its time stamps
//! (if_tsresol, if_tsoffset). Gives nanoseconds for ticks; passes over every other option.

use super::SOUND_NS;
use crate::cursor::{Cursor, Header};

/// One interface of the section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface {
    pub link: u32,
    pub snaplen: u32,
    /// Nanoseconds of one tick; 0 where that is not a whole number, or there is an offset.
    tick_ns: u64,
    /// Ticks of a second; none where they do not fit, so that any time stamp is less than 1 ns.
    ticks: Option<u128>,
    offset_ns: i128,
}

impl Interface {
    /// From a block without its trailing length; `false` where its options are malformed.
    pub(super) fn read<const BIG: bool>(body: &[u8]) -> Option<(Interface, bool)> {
        let (head, options) = Header::<16>::split(body)?;
        let mut interface = Interface {
            link: head.u16::<BIG, 8>().into(),
            snaplen: head.u32::<BIG, 12>(),
            tick_ns: 0,
            ticks: Some(1_000_000),
            offset_ns: 0,
        };
        let sound = read_options::<BIG>(options, &mut interface).is_some();
        let whole = interface
            .ticks
            .filter(|ticks| interface.offset_ns == 0 && 1_000_000_000 % ticks == 0);
        interface.tick_ns = whole.map_or(0, |ticks| (1_000_000_000 / ticks) as u64);
        Some((interface, sound))
    }

    /// Decimals of a second in a tick, rounded down to those that Wireshark shows.
    pub(super) fn digits(&self) -> u8 {
        match self.ticks.and_then(u128::checked_ilog10).unwrap_or(9) {
            few @ 0..=2 => few as u8,
            3..=5 => 3,
            6..=8 => 6,
            _ => 9,
        }
    }

    /// Fast path; `None` means that `time_ns` has to do it.
    #[inline(always)]
    pub(super) fn quick_ns(&self, ticks: u64) -> Option<i64> {
        if self.tick_ns == 0 {
            return None;
        }
        let ns = i64::try_from(ticks.checked_mul(self.tick_ns)?).ok()?;
        SOUND_NS.contains(&ns).then_some(ns)
    }

    /// Any resolution and offset, rounded down to a nanosecond; none where the time is not trusted.
    pub(super) fn time_ns(&self, ticks: u64) -> Option<i64> {
        // At most 2^64 * 10^9 < 2^94.
        let scaled = u128::from(ticks) * 1_000_000_000;
        let ns = self
            .ticks
            .and_then(|second| scaled.checked_div(second))
            .unwrap_or(0);
        i64::try_from(i128::try_from(ns).ok()?.checked_add(self.offset_ns)?)
            .ok()
            .filter(|ns| SOUND_NS.contains(ns))
    }
}

/// if_tsresol and if_tsoffset; `None` where the options do not fit their block.
fn read_options<const BIG: bool>(options: &[u8], interface: &mut Interface) -> Option<()> {
    let mut cursor = Cursor::new(options);
    while !cursor.is_empty() {
        let head = Header::<4>::of(cursor.take(4)?)?;
        let (code, len) = (head.u16::<BIG, 0>(), usize::from(head.u16::<BIG, 2>()));
        if code == 0 {
            break;
        }
        let value = cursor.take(len)?;
        cursor.take(len.next_multiple_of(4) - len)?;
        match (code, value) {
            (9, &[resolution]) => {
                let power = u32::from(resolution & 0x7f);
                let base = if resolution & 0x80 == 0 { 10u128 } else { 2 };
                interface.ticks = base.checked_pow(power);
            }
            (14, seconds) => {
                let seconds = Header::<8>::of(seconds)?.u64::<BIG, 0>() as i64;
                interface.offset_ns = i128::from(seconds) * 1_000_000_000;
            }
            (9, _) => return None,
            _ => {}
        }
    }
    Some(())
}
