//! What one direction of a stream lets us suspect. The packets of the one side that was captured in, gaps that a
//! held ACK may explain out. Nobody can tell a stall from a program's pause here: the other side's packets would.

use super::is_small;
use crate::base::At;
use crate::limits::{ONE_WAY_GAP_NS, TICK_NS, TWO_TICKS_NS};

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

/// A gap of this side that looks like its peer's timer, or like its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    pub from: At,
    /// The ACK that this side seems to have held; none where the peer's ACK was waited for.
    pub held: Option<At>,
    pub to: At,
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

    /// The gaps that a held ACK may explain.
    pub fn suspects(&self) -> impl Iterator<Item = &Suspect> {
        self.found.iter()
    }

    /// Two small segments of one message with a timer's gap between them, in which the sender heard from its peer.
    fn paused(&self, p: &Passed) -> Option<Suspect> {
        let before = self.data.filter(|_| p.len > 0)?;
        let one_message = p.start == before.start + i64::from(before.len) && p.ack == before.ack;
        let small = [&before, p].iter().all(|s| is_small(s.len, s.mss));
        let good = one_message && small && ONE_WAY_GAP_NS.contains(between(before.at, p.at));
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
            && ONE_WAY_GAP_NS.contains(between(last.at, p.at))
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
    Some(((TWO_TICKS_NS.get() / TICK_NS) as u32..1 << 31).contains(&after.wrapping_sub(before)))
}

fn between(a: At, b: At) -> i64 {
    b.time_ns.saturating_sub(a.time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn at(time_ns: i64) -> At {
        At { frame: 1, time_ns }
    }

    /// A packet of so many bytes, with the newest time stamp of the peer.
    fn packet(time_ns: i64, start: i64, len: u32, ack: i64, echo: u32) -> Passed {
        Passed {
            at: at(time_ns),
            start,
            len,
            ack,
            mss: 1000,
            stamps: Some((0, echo)),
        }
    }

    fn found(packets: &[Passed]) -> Vec<Suspect> {
        let mut side = OneWay::default();
        packets.iter().for_each(|p| side.packet(*p));
        side.found
    }

    #[test]
    fn a_timers_gap_between_two_small_parts_is_suspected() {
        let gap = |second: Passed| found(&[packet(0, 0, 100, 1, 100), second]).len();
        let good = packet(40 * MS, 100, 100, 1, 140);
        let at = |ms| Passed { at: at(ms), ..good };
        assert_eq!((gap(at(35 * MS - 1)), gap(at(35 * MS))), (0, 1));
        assert_eq!((gap(at(90 * MS)), gap(at(90 * MS + 1))), (1, 0));
        assert_eq!(gap(Passed { start: 101, ..good }), 0, "bytes are missing");
        assert_eq!(gap(Passed { ack: 2, ..good }), 0, "the peer spoke");
        assert_eq!(gap(Passed { len: 1000, ..good }), 0, "a full segment");
        assert_eq!(gap(Passed { len: 0, ..good }), 0, "no data");
        // the peer was heard meanwhile
        let heard = |echo| {
            gap(Passed {
                stamps: Some((0, echo)),
                ..good
            })
        };
        assert_eq!((heard(119), heard(120)), (0, 1));
        assert_eq!(heard(99), 0, "its clock went back");
        assert_eq!(gap(Passed { stamps: None, ..good }), 0);
        let acks_between = [packet(0, 0, 100, 1, 100), packet(10 * MS, 100, 0, 1, 110), good];
        assert_eq!(found(&acks_between).len(), 1, "its own ACKs are no data");
        let full = [packet(0, 0, 1000, 1, 100), packet(40 * MS, 1000, 100, 1, 140)];
        assert_eq!(found(&full).len(), 0);
    }

    #[test]
    fn a_late_ack_that_more_follows_is_suspected() {
        let held = |late: Passed, next: Passed| {
            let found = found(&[packet(0, 1, 0, 100, 100), late, next]);
            found.iter().filter(|s| s.held.is_some()).count()
        };
        let (late, next) = (packet(40 * MS, 1, 0, 300, 100), packet(41 * MS, 1, 0, 500, 140));
        assert_eq!(held(late, next), 1);
        let at = |time_ns| Passed {
            at: at(time_ns),
            ..late
        };
        assert_eq!((held(at(35 * MS - 1), next), held(at(35 * MS), next)), (0, 1));
        let acks = |ack| Passed { ack, ..late };
        assert_eq!(held(acks(100), next), 0, "of nothing new");
        let further = Passed { ack: 1500, ..next };
        assert_eq!(
            (held(acks(1099), further), held(acks(1100), further)),
            (1, 0),
            "a full one"
        );
        assert_eq!(held(Passed { len: 5, ..late }, next), 0, "not alone");
        // what waited comes no more than a round trip later, and has heard of it
        let after = |ms: i64| Passed {
            at: super::tests::at(ms),
            ..next
        };
        assert_eq!(
            (held(late, after(80 * MS)), held(late, after(80 * MS + 1))),
            (1, 0)
        );
        assert_eq!(held(late, Passed { ack: 300, ..next }), 0, "nothing more");
        let echo = |echo| Passed {
            stamps: Some((0, echo)),
            ..next
        };
        assert_eq!((held(late, echo(119)), held(late, echo(120))), (0, 1));
        assert_eq!(held(late, Passed { stamps: None, ..next }), 1, "no clock");
    }
}
