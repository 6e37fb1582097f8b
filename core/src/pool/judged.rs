//! What a pool of evidence says: counts of candidates in, a verdict on the sender out, and how each candidate is named.

use super::apart::Apart;
use super::spread::{at_share, lattice};
use super::{Sample, TIGHT_NS};
use crate::wait::Candidate;

/// An ACK that came this much later than the path needs was held. RFC 1122 4.2.3.2 allows 500 ms.
pub const HELD_NS: std::ops::RangeInclusive<i64> = 25_000_000..=520_000_000;
/// A proven sender's segment may follow the ACK this much later than the path explains (a loaded host).
const LOOSE_NS: i64 = 25_000_000;
/// Nearer than this the capture sits at the endpoint itself, and releases are seen to the microsecond.
pub(super) const AT_ENDPOINT_NS: i64 = 100_000;
/// What a kernel needs at most to send what an ACK has freed, seen at its own side.
pub(super) const INSTANT_NS: i64 = 60_000;
/// What a busy host adds at most: to the promptest tenth of its releases, seen from elsewhere, and to half of them
/// beside it.
pub(super) const SOON_NS: i64 = 750_000;
/// Of so many held ACKs one may be followed late, by a busy host.
pub(super) const STRAY_SHARE: usize = 10;
/// So many held candidates make a verdict; fewer are at most probable.
pub(super) const ENOUGH: usize = 8;

/// What the pool says of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Nagle acts: the freed segments follow the ACKs.
    Proven,
    /// Small segments left over unacknowledged small ones: Nagle is off.
    Refuted,
    /// The program's own pause ends near the ACK: the gaps do not move with it.
    AppPause,
    /// Its connections differ: Nagle acts on some of them only.
    Mixed,
    /// Too little to say.
    #[default]
    Open,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Proven => "nagle",
            Verdict::Refuted => "nodelay",
            Verdict::AppPause => "pause",
            Verdict::Mixed => "mixed",
            Verdict::Open => "open",
        }
    }
}

/// One pool judged. Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    pub verdict: Verdict,
    pub opportunities: u64,
    pub held: usize,
    pub tight: usize,
    /// Held ones between which and what they freed another server's connection brought what it had waited with.
    pub relayed: usize,
    pub refuted: u64,
    pub slope: Option<f64>,
    pub sender_leg: i64,
    /// The sender's kernel has answered by itself: nothing comes back sooner.
    pub leg_is_best: bool,
    pub receiver_leg: i64,
    pub tight_limit: i64,
    /// How much the path to the sender wavers, and how often it is later than `tight_limit`.
    pub sender_jitter: i64,
    pub sender_late: f64,
    pub hold_min: Option<i64>,
    pub hold_median: Option<i64>,
    pub hold_max: Option<i64>,
    /// The promptest tenth of the releases took no longer.
    pub release_best: Option<i64>,
    pub release_median: Option<i64>,
    pub release_p95: Option<i64>,
    pub release_max: Option<i64>,
    /// The receiver's clock tick on whose grid its holds end, and the chance that this is luck.
    pub tick_ns: Option<i64>,
    pub tick_p: Option<f64>,
    /// Its messages leave with the kernel's probe timer: a cork that is never taken off.
    pub corked: bool,
    /// Some do, as far as one can tell: a cork that is on at times.
    pub timed: bool,
    /// Connections with any evidence; those on which Nagle's algorithm acts, and those that refute it.
    pub streams: usize,
    pub nagle_streams: usize,
    pub nodelay_streams: usize,
    /// What its connections say by themselves, where they differ.
    pub apart: Option<Apart>,
    /// When each connection refuted for the first time, by their numbers.
    pub refuted_since: Vec<(u32, i64)>,
}

/// What ended a wait for an ACK that came at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// An ACK of its own.
    ByAck,
    /// An ACK that came along with data.
    ByData,
    ByFin,
}

/// How one candidate is to be named.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ruling {
    /// Nagle's wait with a held ACK of so many nanoseconds inside.
    Held { hold: i64, confidence: f64 },
    /// Nagle's wait for an ACK that came at once.
    Waited { freed: Freed, confidence: f64 },
    /// The program paused.
    Pause { confidence: f64 },
}

impl Judged {
    /// What these candidates, and so many refutations beside them, say on this path: the numbers that `verdict` needs,
    /// but for the slope, which is dear. Gives the held ones.
    pub(super) fn count<'a>(
        &mut self,
        samples: impl Iterator<Item = &'a Sample>,
        refuted: u64,
    ) -> Vec<&'a Sample> {
        self.refuted = refuted;
        let mut held: Vec<&Sample> = Vec::new();
        for s in samples {
            if self.before_ack(s.release, s.arrived) {
                self.refuted += 1;
            } else if s.timer && HELD_NS.contains(&(s.covered - self.receiver_leg)) {
                held.push(s);
            }
        }
        self.held = held.len();
        self.tight = held
            .iter()
            .filter(|s| (s.release - self.sender_leg).abs() <= self.tight_limit)
            .count();
        self.relayed = held.iter().filter(|s| s.relayed).count();
        let mut releases: Vec<i64> = held
            .iter()
            .map(|s| (s.release - self.sender_leg).max(0))
            .collect();
        releases.sort_unstable();
        self.release_best = at_share(&releases, 0.1);
        (self.release_median, self.release_p95) = (at_share(&releases, 0.5), at_share(&releases, 0.95));
        self.release_max = releases.last().copied();
        held
    }

    /// How long the receiver held these ACKs, and on which tick.
    pub(super) fn held_by_timer(&mut self, held: &[&Sample]) {
        let mut holds: Vec<i64> = held.iter().map(|s| s.covered - self.receiver_leg).collect();
        holds.sort_unstable();
        (self.hold_min, self.hold_median) = (holds.first().copied(), at_share(&holds, 0.5));
        self.hold_max = holds.last().copied();
        (self.tick_ns, self.tick_p) = lattice(held.iter().map(|s| s.acked_at)).unzip();
    }

    /// The segment left before the ACK could have reached its sender: read off the timestamps, else by the best
    /// round trip, less what the path wavers.
    pub(super) fn before_ack(&self, release: i64, arrived: Option<bool>) -> bool {
        match arrived {
            Some(arrived) => !arrived,
            None => {
                let most = AT_ENDPOINT_NS.max(self.sender_leg / 10);
                release < self.sender_leg - self.sender_jitter.clamp(AT_ENDPOINT_NS, most)
            }
        }
    }

    /// Whether a kernel sent these segments: as soon as the path allows, in half of the cases where the capture sits
    /// beside both hosts, and now and then elsewhere. A program that sleeps on the tick of the receiver's timer (one
    /// kernel, a socket's timeout) follows the ACKs as well, but it has to be woken up, or the tick lies beside them.
    fn by_kernel(&self) -> bool {
        let (release, least) = if self.sender_leg < AT_ENDPOINT_NS {
            (self.release_median, INSTANT_NS + self.sender_jitter)
        } else {
            (self.release_best, SOON_NS.max(self.sender_jitter))
        };
        release.is_some_and(|took| took <= least)
    }

    /// Whether its program may have had nothing to send before (`relay`).
    fn is_relay(&self) -> bool {
        2 * self.relayed > self.held
    }

    /// Whether the held ones follow their ACKs, whatever refutes it: where an option changes half way, some leave at once
    /// and all others wait.
    fn follows(&self) -> bool {
        self.slope.is_some_and(|slope| slope > 0.5) && self.tight >= ENOUGH && 2 * self.tight >= self.held
    }

    /// Whether releases are late more often than the path and a busy host make them: those are the program's own pauses.
    fn pauses_too(&self) -> bool {
        let strays = f64::max(1.0 / STRAY_SHARE as f64, 3.0 * self.sender_late);
        (self.held - self.tight) as f64 > strays * self.held as f64
    }

    /// The judgement that holds for a stream, and by how many held ACKs.
    fn on(&self, stream: u32) -> (Verdict, usize) {
        let own = self.apart.as_ref().map(|apart| apart.on(stream));
        own.unwrap_or((self.verdict, self.held))
    }

    /// Whether this wait for a held ACK ended before its connection refuted for the first time: a program may set
    /// TCP_NODELAY when its connection is set up and logged in (OpenSSH does), and hardly ever takes it back. So
    /// what it does later says nothing of this one.
    fn yet_unset(&self, stream: u32, c: &Candidate, hold: i64) -> bool {
        let found = self.refuted_since.binary_search_by_key(&stream, |since| since.0);
        let since = found.ok().and_then(|at| self.refuted_since.get(at));
        let held = c.ack_pure && !c.ack_fin && HELD_NS.contains(&hold);
        held && since.is_some_and(|(_, at)| c.freed.time_ns < *at)
    }

    pub fn verdict_on(&self, stream: u32) -> Verdict {
        self.on(stream).0
    }

    /// What one candidate of this pool is, on its stream.
    pub fn rule(&self, stream: u32, c: &Candidate) -> Ruling {
        let release = c.freed.time_ns - c.ack.time_ns;
        let late = release - self.sender_leg;
        let hold = c.ack.time_ns - c.held_from.time_ns - self.receiver_leg;
        let wait = c.ack.time_ns - c.small.time_ns;
        let pause = |confidence| Ruling::Pause {
            // no proof of a pause: the path's, by its own clock, or the pacing's
            confidence: if c.held_back { 0.6 } else { confidence },
        };
        if self.before_ack(release, c.arrived) {
            // as soon as a program answers at best: a kernel may be sooner
            let sure = self.leg_is_best || c.arrived.is_some();
            return pause(if sure { 0.95 } else { 0.6 });
        }
        let (verdict, held) = self.on(stream);
        if verdict == Verdict::Refuted
            && late <= self.tight_limit.min(TIGHT_NS)
            && self.yet_unset(stream, c, hold)
        {
            return pause(0.6); // or Nagle's wait: one alone does not tell
        }
        match verdict {
            Verdict::Refuted if self.follows() => return pause(0.6),
            Verdict::Refuted | Verdict::AppPause => return pause(0.9),
            Verdict::Proven if late > LOOSE_NS => return pause(0.6),
            Verdict::Open if late > self.tight_limit || self.is_relay() => return pause(0.6),
            Verdict::Proven if late > self.tight_limit && self.pauses_too() => return pause(0.6),
            _ => {}
        }
        let confidence = match (verdict, held) {
            (Verdict::Proven, n) if n >= ENOUGH => 0.99,
            (_, n) if n >= 5 => 0.88,
            (_, n) if n >= 3 => 0.8,
            (_, 2) => 0.75,
            _ => 0.7,
        };
        if c.ack_pure && !c.ack_fin && HELD_NS.contains(&hold) {
            return Ruling::Held { hold, confidence };
        }
        // a release much later than the wait is long was no release
        let prompt = late <= self.tight_limit && late <= ((wait + release) / 2).max(AT_ENDPOINT_NS);
        match (c.ack_fin, c.ack_pure, prompt) {
            (true, _, true) => Ruling::Waited {
                freed: Freed::ByFin,
                confidence,
            },
            (false, false, true) => Ruling::Waited {
                freed: Freed::ByData,
                confidence,
            },
            (false, true, true) => Ruling::Waited {
                freed: Freed::ByAck,
                confidence,
            },
            _ => pause(0.6),
        }
    }
}

pub(super) fn verdict(j: &Judged) -> Verdict {
    let (held, refuted) = (j.held as f64, j.refuted as f64);
    let share = if j.refuted == 0 {
        0.0
    } else {
        refuted / (held + refuted)
    };
    if share > 0.10 {
        // a queue of small writes leaves all but its tail (tcp_nagle_test), and then only the tail waits: where
        // every held one follows its ACK to the microsecond, luck would be (INSTANT_NS / hold)^held
        let instant = j.sender_leg < AT_ENDPOINT_NS && j.release_max.is_some_and(|max| max <= INSTANT_NS);
        return if instant && j.held >= 2 {
            Verdict::Open
        } else {
            Verdict::Refuted
        };
    }
    if j.slope.is_some_and(|slope| slope <= 0.5) {
        return Verdict::AppPause;
    }
    let follows = match j.slope {
        Some(_) => j.tight >= 2,
        None => j.tight >= 3 && 2 * j.tight >= j.held,
    };
    if share <= 0.02 && follows && j.by_kernel() && !j.is_relay() {
        Verdict::Proven
    } else {
        Verdict::Open
    }
}
