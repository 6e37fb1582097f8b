//! What all evidence on one sender says: does Nagle's algorithm hold it up, does it refute that, does its program pause?
//! A pool of evidence and the path's round trips in, one `Judged` out.

mod apart;
mod spread;

use crate::base::Side;
use crate::evidence::rtt::Pairs;
use crate::evidence::{Gap, Pool, Pools};
use crate::observe::Candidate;

use super::cork;
use super::limits::{
    AT_HOST_NS, ENOUGH, GROWN, HELD_NS, INSTANT_NS, PROMPT_AT_HOST_NS, PROMPT_NS, SOON_NS, STRAY_SHARE,
};
pub use apart::Apart;
pub(super) use spread::lattice;
use spread::{at_share, slope};

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
    pub sender_rtt: i64,
    /// The sender's kernel has answered by itself: nothing comes back sooner.
    pub rtt_is_best: bool,
    pub receiver_rtt: i64,
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

/// The judgements of all senders, and how much evidence each had.
#[derive(Debug, Default)]
pub struct Senders(Vec<Option<(Judged, u64)>>);

impl Senders {
    /// All senders judged with the round trips known by now, in the order of their pools. Before the `last` time a
    /// judgement stands until there is notably more evidence: slopes over many pools are dear.
    pub fn judge(&mut self, pools: &Pools, pairs: &Pairs, last: bool) -> Vec<Judged> {
        let known = pools.len();
        self.0.resize_with(known, || None);
        let judged = pools.iter().zip(&mut self.0).map(|(pool, before)| {
            let evidence = pool.evidence() + pool.starts.count();
            match before {
                Some((judged, had)) if *had == evidence && judged.is_of(pool, pairs) => judged.clone(),
                Some((judged, had)) if !last && (evidence as f64) < *had as f64 * (1.0 + GROWN) => {
                    judged.clone()
                }
                _ => {
                    let judged = Judged::of(pool, pairs);
                    *before = Some((judged.clone(), evidence));
                    judged
                }
            }
        });
        judged.collect()
    }
}

impl Judged {
    /// One sender judged by all that was seen of it.
    pub fn of(pool: &Pool, pairs: &Pairs) -> Judged {
        let (sender, receiver) = (pool.key.sender.index(), pool.key.sender.other().index());
        let rtt = |side: usize| pairs.min(pool.pair, side).unwrap_or(0);
        let mut j = Judged {
            opportunities: pool.evidence(),
            sender_rtt: rtt(sender),
            receiver_rtt: rtt(receiver),
            ..Judged::default()
        };
        let path = pairs.get(pool.pair).and_then(|p| p.rtts.get(sender));
        j.sender_jitter = path.map_or(0, |l| l.jitter());
        j.rtt_is_best = path.is_none_or(|l| l.is_by_kernel());
        j.tight_limit = if j.sender_rtt < AT_HOST_NS {
            // there is no path, and of what its program takes to answer little can be a busy host's
            let kernels = path.map_or(0, |rtt| rtt.kernels_jitter());
            j.sender_jitter = j.sender_jitter.min(SOON_NS.max(kernels));
            PROMPT_AT_HOST_NS.max(j.sender_jitter)
        } else {
            PROMPT_NS.max(j.sender_jitter)
        };
        j.sender_late = path.map_or(0.0, |rtt| rtt.late(j.tight_limit));
        let held = j.count(pool.gaps.iter(), pool.refutations);
        j.slope = slope(&held);
        j.held_by_timer(&held);
        (j.timed, j.corked) = cork::corked(&pool.starts, j.sender_rtt);
        j.verdict = verdict(&j);
        j.part(pool);
        if matches!(j.verdict, Verdict::Refuted | Verdict::Mixed) {
            j.refuted_since = j.refuted_since(pool);
        }
        j
    }

    /// Whether the path is still as this judgement knew it.
    fn is_of(&self, pool: &Pool, pairs: &Pairs) -> bool {
        let rtt = |side: Side| pairs.min(pool.pair, side.index()).unwrap_or(0);
        (self.sender_rtt, self.receiver_rtt) == (rtt(pool.key.sender), rtt(pool.key.sender.other()))
    }

    /// When each stream refuted for the first time, by the streams' numbers.
    fn refuted_since(&self, pool: &Pool) -> Vec<(u32, i64)> {
        if !pool.is_whole() {
            return Vec::new(); // the first may not be among them
        }
        let before_ack = pool.gaps.iter().filter(|s| self.before_ack(s.release, s.arrived));
        let mut since: Vec<(u32, i64)> = pool
            .refuters
            .iter()
            .filter(|r| r.first)
            .map(|r| (r.stream, r.at))
            .chain(before_ack.map(|s| (s.stream, s.acked_at)))
            .collect();
        since.sort_unstable();
        since.dedup_by_key(|(stream, _)| *stream);
        since
    }

    /// Do its connections differ? Then what was held tells of those alone that Nagle's algorithm holds up.
    fn part(&mut self, pool: &Pool) {
        if !pool.is_whole() {
            return; // not all of them are known
        }
        let (apart, counts) = Apart::of(&pool.gaps, &pool.refuters, self);
        [self.streams, self.nagle_streams, self.nodelay_streams] = counts;
        if let Some(apart) = apart {
            let nagle = |s: &&Gap| apart.on(s.stream).0 == Verdict::Proven;
            let refuted = self.refuted;
            let held = self.count(pool.gaps.iter().filter(nagle), 0);
            self.slope = slope(&held);
            self.held_by_timer(&held);
            (self.refuted, self.verdict, self.apart) = (refuted, apart.verdict, Some(apart));
        }
    }

    /// What these candidates, and so many refutations beside them, say on this path: the numbers that `verdict` needs,
    /// but for the slope, which is dear. Gives the held ones.
    pub(super) fn count<'a>(&mut self, gaps: impl Iterator<Item = &'a Gap>, refuted: u64) -> Vec<&'a Gap> {
        self.refuted = refuted;
        let mut held: Vec<&Gap> = Vec::new();
        for s in gaps {
            if self.before_ack(s.release, s.arrived) {
                self.refuted += 1;
            } else if s.timer && HELD_NS.contains(&(s.covered - self.receiver_rtt)) {
                held.push(s);
            }
        }
        self.held = held.len();
        self.tight = held
            .iter()
            .filter(|s| (s.release - self.sender_rtt).abs() <= self.tight_limit)
            .count();
        self.relayed = held.iter().filter(|s| s.relayed).count();
        let mut releases: Vec<i64> = held
            .iter()
            .map(|s| (s.release - self.sender_rtt).max(0))
            .collect();
        releases.sort_unstable();
        self.release_best = at_share(&releases, 0.1);
        (self.release_median, self.release_p95) = (at_share(&releases, 0.5), at_share(&releases, 0.95));
        self.release_max = releases.last().copied();
        held
    }

    /// How long the receiver held these ACKs, and on which tick.
    pub(super) fn held_by_timer(&mut self, held: &[&Gap]) {
        let mut holds: Vec<i64> = held.iter().map(|s| s.covered - self.receiver_rtt).collect();
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
                let most = AT_HOST_NS.max(self.sender_rtt / 10);
                release < self.sender_rtt - self.sender_jitter.clamp(AT_HOST_NS, most)
            }
        }
    }

    /// Whether a kernel sent these segments: as soon as the path allows, in half of the cases where the capture sits
    /// beside both hosts, and now and then elsewhere. A program that sleeps on the tick of the receiver's timer (one
    /// kernel, a socket's timeout) follows the ACKs as well, but it has to be woken up, or the tick lies beside them.
    fn by_kernel(&self) -> bool {
        let (release, least) = if self.sender_rtt < AT_HOST_NS {
            (self.release_median, INSTANT_NS + self.sender_jitter)
        } else {
            (self.release_best, SOON_NS.max(self.sender_jitter))
        };
        release.is_some_and(|took| took <= least)
    }

    /// Whether its program may have had nothing to send before (`relay`).
    pub(super) fn is_relay(&self) -> bool {
        2 * self.relayed > self.held
    }

    /// Whether the held ones follow their ACKs, whatever refutes it: where an option changes half way, some leave at once
    /// and all others wait.
    pub(super) fn follows(&self) -> bool {
        self.slope.is_some_and(|slope| slope > 0.5) && self.tight >= ENOUGH && 2 * self.tight >= self.held
    }

    /// Whether releases are late more often than the path and a busy host make them: those are the program's own pauses.
    pub(super) fn pauses_too(&self) -> bool {
        let strays = f64::max(1.0 / STRAY_SHARE as f64, 3.0 * self.sender_late);
        (self.held - self.tight) as f64 > strays * self.held as f64
    }

    /// The judgement that holds for a stream, and by how many held ACKs.
    pub(super) fn on(&self, stream: u32) -> (Verdict, usize) {
        let own = self.apart.as_ref().map(|apart| apart.on(stream));
        own.unwrap_or((self.verdict, self.held))
    }

    /// Whether this wait for a held ACK ended before its connection refuted for the first time: a program may set
    /// TCP_NODELAY when its connection is set up and logged in (OpenSSH does), and hardly ever takes it back. So
    /// what it does later says nothing of this one.
    pub(super) fn yet_unset(&self, stream: u32, c: &Candidate, hold: i64) -> bool {
        let found = self.refuted_since.binary_search_by_key(&stream, |since| since.0);
        let since = found.ok().and_then(|at| self.refuted_since.get(at));
        let held = c.ack_pure && !c.ack_fin && HELD_NS.contains(&hold);
        held && since.is_some_and(|(_, at)| c.freed.time_ns < *at)
    }

    pub(super) fn verdict_on(&self, stream: u32) -> Verdict {
        self.on(stream).0
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
        let instant = j.sender_rtt < AT_HOST_NS && j.release_max.is_some_and(|max| max <= INSTANT_NS);
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
