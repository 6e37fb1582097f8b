//! What one direction of a stream lets us suspect. The packets of the one side that was captured in, gaps that a
//! held ACK may explain out. Nobody can tell a stall from a program's pause here: the other side's packets would.

use super::{HEARD_TICKS, is_small};
use crate::messages::At;

/// A held ACK, its way and the path's: where the path is not known.
const GAP_NS: std::ops::RangeInclusive<i64> = 35_000_000..=90_000_000;
/// Gaps of one stream that are told; more of the same says no more.
const MAX_SUSPECTS: usize = 1024;

/// One packet of the side that was captured.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub at: At,
    pub start: i64,
    pub len: u32,
    pub ack: i64,
    pub mss: u32,
    pub stamps: Option<(u32, u32)>,
}

crate::pack::packed!(struct Passed { at, start, len, ack, mss, stamps });

/// A gap of this side that looks like its peer's timer, or like its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    pub from: At,
    /// The ACK that this side seems to have held; none where the peer's ACK was waited for.
    pub held: Option<At>,
    pub to: At,
}

crate::pack::packed!(struct Suspect { from, held, to });

/// One direction's packets so far.
#[derive(Debug, Default)]
pub struct OneWay {
    last: Option<Passed>,
    data: Option<Passed>,
    /// A late pure ACK, and the packet before it.
    late: Option<(At, Passed)>,
    found: Vec<Suspect>,
}

crate::pack::packed!(struct OneWay { last, data, late, found });

impl OneWay {
    /// The next packet of this side.
    pub fn packet(&mut self, p: Passed) {
        let waited = self.paused(&p);
        let held = self.held(&p);
        for suspect in [waited, held].into_iter().flatten() {
            if self.found.len() < MAX_SUSPECTS {
                self.found.push(suspect);
            }
        }
        if p.len > 0 {
            self.data = Some(p);
        }
        self.last = Some(p);
    }

    pub fn suspects(&self) -> &[Suspect] {
        &self.found
    }

    /// Two small segments of one message with a timer's gap between them, in which the sender heard from its peer.
    fn paused(&self, p: &Passed) -> Option<Suspect> {
        let before = self.data.filter(|b| b.len > 0 && p.len > 0)?;
        let one_message = p.start == before.start + i64::from(before.len) && p.ack == before.ack;
        let small = [&before, p].iter().all(|s| is_small(s.len.into(), s.mss));
        let good = one_message && small && GAP_NS.contains(&between(before.at, p.at));
        (good && heard(&before, p) == Some(true)).then_some(Suspect {
            from: before.at,
            held: None,
            to: p.at,
        })
    }

    /// A pure ACK of something small a timer's time after this side's packet before it, and then, no more than a
    /// round trip later, more from the peer: somebody waited for that ACK.
    fn held(&mut self, p: &Passed) -> Option<Suspect> {
        let found = self.late.take().filter(|(from, late)| {
            let round = between(late.at, p.at);
            p.ack > late.ack && round <= between(*from, late.at) && heard(late, p) != Some(false)
        });
        if let Some(last) = self.last
            && p.len == 0
            && (1..i64::from(p.mss)).contains(&(p.ack - last.ack))
            && GAP_NS.contains(&between(last.at, p.at))
        {
            self.late = Some((last.at, *p));
        }
        found.map(|(from, late)| Suspect {
            from,
            held: Some(late.at),
            to: p.at,
        })
    }
}

/// Whether the peer's clock, as this side echoes it, moved by a hold between the two. None without time stamps.
fn heard(a: &Passed, b: &Passed) -> Option<bool> {
    let (before, after) = (a.stamps?.1, b.stamps?.1);
    Some((HEARD_TICKS..1 << 31).contains(&after.wrapping_sub(before)))
}

fn between(a: At, b: At) -> i64 {
    b.time_ns.saturating_sub(a.time_ns)
}
