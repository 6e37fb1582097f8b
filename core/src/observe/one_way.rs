//! What one direction of a stream lets us suspect. The packets of the one side that was captured in, gaps that a
//! held ACK may explain out. Nobody can tell a stall from a program's pause here: the other side's packets would.
//!
//! A pause of a length of its own, though, shows as one where the peer's clock says when its ACKs left: the gaps stay
//! alike while the ACKs inside them move.

use super::is_small;
use crate::base::At;
use crate::judge::limits::{APART_NS, DRIFT, ENOUGH_PAIRS, HEARD_TICKS, ONE_WAY_GAP_NS, TICK_NS};

/// Gaps of one stream that are told; more of the same says no more.
const MAX_SUSPECTS: usize = 1024;
/// Each gap is held against so many before it, and so many pairs make a judgement.
const COMPARED: usize = 48;

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

/// A gap of this side that looks like its peer's timer, or like its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    pub from: At,
    /// The ACK that this side seems to have held; none where the peer's ACK was waited for.
    pub held: Option<At>,
    pub to: At,
    /// How long the sender was silent, and when the ACK left after that began, on the clocks of both sides: only
    /// differences count. `ticks` is the peer's clock.
    silent: i64,
    acked: i64,
    ticks: Option<u32>,
}

/// One direction's packets so far.
#[derive(Debug, Default)]
pub struct OneWay {
    last: Option<Passed>,
    data: Option<Passed>,
    /// A late pure ACK, and the packet before it.
    late: Option<(At, Passed)>,
    found: Vec<Suspect>,
}

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

    /// The gaps that a held ACK may explain, without those that a program's pause explains better.
    pub fn suspects(&self) -> impl Iterator<Item = &Suspect> {
        let paused = [false, true].map(|held| self.stays(held));
        let [of_data, of_acks] = paused;
        let program = move |s: &&Suspect| if s.held.is_some() { of_acks } else { of_data };
        self.found.iter().filter(move |s| !program(s))
    }

    /// Whether the gaps keep their length while the ACKs in them move: then nobody waited for those.
    fn stays(&self, held: bool) -> bool {
        let mine = || {
            self.found
                .iter()
                .filter(|s| s.held.is_some() == held && s.ticks.is_some())
        };
        let (Some(first), Some(last)) = (mine().next(), mine().next_back()) else {
            return false;
        };
        let elapsed = between(first.to, last.to);
        let ticks = last.ticks.unwrap_or(0).wrapping_sub(first.ticks.unwrap_or(0));
        let away = i64::from(ticks).saturating_mul(TICK_NS).saturating_sub(elapsed);
        if away.saturating_abs() > elapsed / DRIFT.get() + ONE_WAY_GAP_NS.most.get() {
            return false; // this clock does not count milliseconds
        }
        let (mut goes, mut stays) = (0u32, 0u32);
        for (number, one) in mine().enumerate() {
            for other in mine().skip(number + 1).take(COMPARED) {
                let moved = other.acked.wrapping_sub(one.acked);
                let longer = other.silent.wrapping_sub(one.silent);
                if moved.saturating_abs() >= APART_NS.get() {
                    goes += u32::from(moved.wrapping_sub(longer).saturating_abs() <= TICK_NS);
                    stays += u32::from(longer.saturating_abs() <= TICK_NS);
                }
            }
        }
        stays >= ENOUGH_PAIRS.get() && stays > goes.saturating_mul(2)
    }

    /// Two small segments of one message with a timer's gap between them, in which the sender heard from its peer.
    fn paused(&self, p: &Passed) -> Option<Suspect> {
        let before = self.data.filter(|b| b.len > 0 && p.len > 0)?;
        let one_message = p.start == before.start + i64::from(before.len) && p.ack == before.ack;
        let small = [&before, p].iter().all(|s| is_small(s.len, s.mss));
        let good = one_message && small && ONE_WAY_GAP_NS.contains(between(before.at, p.at));
        (good && heard(&before, p) == Some(true)).then(|| {
            let ticks = p.stamps.map(|stamps| stamps.1);
            Suspect {
                from: before.at,
                held: None,
                to: p.at,
                silent: between(before.at, p.at),
                acked: nanos(ticks).wrapping_sub(before.at.time_ns),
                ticks,
            }
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
            && ONE_WAY_GAP_NS.contains(between(last.at, p.at))
        {
            self.late = Some((last.at, *p));
        }
        found.map(|(from, late)| {
            // both of the sender's segments, by its own clock
            let (first, freed) = (late.stamps.map(|s| s.1), p.stamps.map(|s| s.1));
            Suspect {
                from,
                held: Some(late.at),
                to: p.at,
                silent: nanos(freed).wrapping_sub(nanos(first)),
                acked: late.at.time_ns.wrapping_sub(nanos(first)),
                ticks: freed,
            }
        })
    }
}

/// Whether the peer's clock, as this side echoes it, moved by a hold between the two. None without time stamps.
fn heard(a: &Passed, b: &Passed) -> Option<bool> {
    let (before, after) = (a.stamps?.1, b.stamps?.1);
    Some((HEARD_TICKS.get()..1 << 31).contains(&after.wrapping_sub(before)))
}

/// A clock's time; wrapped, as only differences count.
fn nanos(ticks: Option<u32>) -> i64 {
    i64::from(ticks.unwrap_or(0)).wrapping_mul(TICK_NS)
}

fn between(a: At, b: At) -> i64 {
    b.time_ns.saturating_sub(a.time_ns)
}
