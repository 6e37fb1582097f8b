//! Evidence about one sender's Nagle and its peer's delayed ACKs, pooled over all their streams.
//!
//! A lone gap near 40 ms proves nothing: a program may pause for just that long. What a program cannot
//! do over many exchanges is to follow the peer's ACK wherever it falls. So every candidate of the same
//! server address and port, direction and client address is collected here and judged together.

mod idle;

use std::net::IpAddr;

use ahash::AHashMap;

use crate::leg::Pairs;
use crate::messages::Side;
use crate::wait::Candidate;
use idle::Idle;

/// Candidates remembered per pool, and in all pools together; later ones are only counted.
const KEPT: usize = 16_384;
const KEPT_IN_ALL: usize = 524_288;
/// Candidates that enter the pairwise slopes, evenly picked (their number is squared).
const SLOPED: usize = 96;
/// A pool that has been judged is judged again when its evidence has grown by this share.
const GROWN: f64 = 0.25;
/// An ACK that came this much later than the path needs was held. RFC 1122 4.2.3.2 allows 500 ms.
pub const HELD_NS: std::ops::RangeInclusive<i64> = 25_000_000..=520_000_000;
/// A proven sender's segment may follow the ACK this much later than the path explains (a loaded host).
pub const LOOSE_NS: i64 = 25_000_000;
const TIGHT_NS: i64 = 2_000_000;
/// Nearer than this the capture sits at the endpoint itself, and releases are seen to the microsecond.
const AT_ENDPOINT_NS: i64 = 100_000;
const TIGHT_AT_ENDPOINT_NS: i64 = 200_000;
/// What a kernel needs at most to send what an ACK has freed, seen at its own side.
const INSTANT_NS: i64 = 60_000;
/// Slopes between ACK times that differ less than this are noise.
const SLOPE_APART_NS: i64 = 300_000;
/// So many held candidates make a verdict; fewer are at most probable.
const ENOUGH: usize = 8;
const MAX_POOLS: usize = 65_536;
/// Holds whose ends may show the receiver's tick.
const TICKS: usize = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub server: IpAddr,
    pub server_port: u16,
    pub client: IpAddr,
    pub sender: Side,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Small segment to ACK, ACK to freed segment, first byte covered to ACK.
    wait: i64,
    release: i64,
    covered: i64,
    acked_at: i64,
    arrived: Option<bool>,
    timer: bool,
}

/// What the pool says of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Nagle acts: the freed segments follow the ACKs.
    Proven,
    /// Small segments left over unacknowledged small ones: Nagle is off.
    Refuted,
    /// The program's own pause ends near the ACK: the gaps do not move with it.
    AppPause,
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
    pub refuted: u64,
    pub slope: Option<f64>,
    pub sender_leg: i64,
    pub receiver_leg: i64,
    pub tight_limit: i64,
    /// How much the path to the sender wavers.
    pub sender_jitter: i64,
    pub hold_min: Option<i64>,
    pub hold_median: Option<i64>,
    pub hold_max: Option<i64>,
    pub release_median: Option<i64>,
    pub release_p95: Option<i64>,
    pub release_max: Option<i64>,
    /// The receiver's clock tick on whose grid its holds end, and the chance that this is luck.
    pub tick_ns: Option<i64>,
    pub tick_p: Option<f64>,
    /// Its messages leave with the kernel's probe timer: a cork that is never taken off.
    pub corked: bool,
}

/// How one candidate is to be named.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ruling {
    /// Nagle's wait with a held ACK of so many nanoseconds inside.
    Held { hold: i64, confidence: f64 },
    /// Nagle's wait for an ACK that came at once.
    Waited { rule: &'static str, confidence: f64 },
    /// The program paused.
    Pause { confidence: f64 },
}

#[derive(Debug)]
pub struct Pool {
    pub key: Key,
    pub pair: u32,
    pub refutations: u64,
    more: u64,
    samples: Vec<Sample>,
    idle: Idle,
    /// The last judgement, and how much evidence it had.
    judged: Option<(Judged, u64)>,
}

#[derive(Debug, Default)]
pub struct Pools {
    index: AHashMap<Key, u32>,
    pools: Vec<Pool>,
    kept: usize,
}

impl Pools {
    /// The pool's number, or `u32::MAX` where there are too many (such candidates stay unjudged).
    pub fn id(&mut self, key: Key, pair: u32) -> u32 {
        if let Some(&id) = self.index.get(&key) {
            return id;
        }
        if self.pools.len() >= MAX_POOLS {
            return u32::MAX;
        }
        let id = self.pools.len() as u32;
        self.index.insert(key, id);
        self.pools.push(Pool {
            key,
            pair,
            refutations: 0,
            more: 0,
            samples: Vec::new(),
            idle: Idle::default(),
            judged: None,
        });
        id
    }

    /// So many small segments were sent over unacknowledged small ones.
    pub fn refute(&mut self, id: u32, times: u64) {
        if let Some(pool) = self.pools.get_mut(id as usize) {
            pool.refutations += times;
        }
    }

    /// A small message began; `late` where it may have waited for a cork's timer: how long, and until when.
    pub fn began(&mut self, id: u32, late: Option<(i64, i64)>) {
        if let Some(pool) = self.pools.get_mut(id as usize) {
            match late {
                Some((waited, end)) => pool.idle.add_late(waited, end),
                None => pool.idle.add_prompt(),
            }
        }
    }

    /// Remembers a candidate; false where it can only be counted, because there are too many of them or of pools.
    pub fn add(&mut self, c: &Candidate) -> bool {
        let Some(pool) = self.pools.get_mut(c.pool as usize) else {
            return false;
        };
        if pool.samples.len() >= KEPT || self.kept >= KEPT_IN_ALL {
            pool.more += 1;
            return false;
        }
        self.kept += 1;
        pool.samples.push(Sample {
            wait: c.ack.time_ns - c.small.time_ns,
            release: c.freed.time_ns - c.ack.time_ns,
            covered: c.ack.time_ns - c.held_from.time_ns,
            acked_at: c.ack.time_ns,
            arrived: c.arrived,
            timer: c.ack_pure && !c.ack_fin,
        });
        true
    }

    /// All pools judged with the legs known by now, in the order of their numbers. Before the `last` time a
    /// judgement stands until there is notably more evidence: slopes over many pools are dear.
    pub fn judge(&mut self, pairs: &Pairs, last: bool) -> Vec<Judged> {
        let judged = self.pools.iter_mut().map(|pool| {
            let evidence = pool.evidence() + pool.idle.evidence();
            match &pool.judged {
                Some((judged, had)) if *had == evidence && pool.same_legs(judged, pairs) => judged.clone(),
                Some((judged, had)) if !last && (evidence as f64) < *had as f64 * (1.0 + GROWN) => {
                    judged.clone()
                }
                _ => {
                    let judged = pool.judge(pairs);
                    pool.judged = Some((judged.clone(), evidence));
                    judged
                }
            }
        });
        judged.collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.pools.iter()
    }
}

impl Pool {
    fn same_legs(&self, judged: &Judged, pairs: &Pairs) -> bool {
        let leg = |side: Side| pairs.min(self.pair, side.index()).unwrap_or(0);
        (judged.sender_leg, judged.receiver_leg) == (leg(self.key.sender), leg(self.key.sender.other()))
    }

    fn evidence(&self) -> u64 {
        self.refutations + self.more + self.samples.len() as u64
    }

    fn judge(&self, pairs: &Pairs) -> Judged {
        let (sender, receiver) = (self.key.sender.index(), self.key.sender.other().index());
        let leg = |side: usize| pairs.min(self.pair, side).unwrap_or(0);
        let mut j = Judged {
            opportunities: self.evidence(),
            refuted: self.refutations,
            sender_leg: leg(sender),
            receiver_leg: leg(receiver),
            ..Judged::default()
        };
        j.sender_jitter = pairs
            .get(self.pair)
            .and_then(|p| p.legs.get(sender))
            .map_or(0, |l| l.jitter());
        j.tight_limit = if j.sender_leg < AT_ENDPOINT_NS {
            TIGHT_AT_ENDPOINT_NS.max(j.sender_jitter)
        } else {
            TIGHT_NS.max(j.sender_jitter)
        };
        let mut held: Vec<&Sample> = Vec::new();
        for s in &self.samples {
            if j.before_ack(s.release, s.arrived) {
                j.refuted += 1;
            } else if s.timer && HELD_NS.contains(&(s.covered - j.receiver_leg)) {
                held.push(s);
            }
        }
        j.held = held.len();
        j.tight = held
            .iter()
            .filter(|s| (s.release - j.sender_leg).abs() <= j.tight_limit)
            .count();
        let mut holds: Vec<i64> = held.iter().map(|s| s.covered - j.receiver_leg).collect();
        let mut releases: Vec<i64> = held.iter().map(|s| (s.release - j.sender_leg).max(0)).collect();
        holds.sort_unstable();
        releases.sort_unstable();
        (j.hold_min, j.hold_median, j.hold_max) = (
            holds.first().copied(),
            at_share(&holds, 0.5),
            holds.last().copied(),
        );
        (j.release_median, j.release_p95) = (at_share(&releases, 0.5), at_share(&releases, 0.95));
        j.release_max = releases.last().copied();
        j.slope = slope(&held);
        (j.tick_ns, j.tick_p) = lattice(held.iter().map(|s| s.acked_at), TICKS);
        j.corked = self.idle.corked(j.sender_leg);
        j.verdict = verdict(&j);
        j
    }
}

impl Judged {
    /// The segment left before the ACK could have reached its sender: read off the timestamps, else by the best
    /// round trip, less what the path wavers.
    fn before_ack(&self, release: i64, arrived: Option<bool>) -> bool {
        match arrived {
            Some(arrived) => !arrived,
            None => {
                let most = AT_ENDPOINT_NS.max(self.sender_leg / 10);
                release < self.sender_leg - self.sender_jitter.clamp(AT_ENDPOINT_NS, most)
            }
        }
    }

    /// What one candidate of this pool is.
    pub fn rule(&self, c: &Candidate) -> Ruling {
        let release = c.freed.time_ns - c.ack.time_ns;
        let late = release - self.sender_leg;
        let hold = c.ack.time_ns - c.held_from.time_ns - self.receiver_leg;
        let wait = c.ack.time_ns - c.small.time_ns;
        let pause = |confidence| Ruling::Pause { confidence };
        if self.before_ack(release, c.arrived) {
            return pause(0.95);
        }
        match self.verdict {
            Verdict::Refuted | Verdict::AppPause => return pause(0.9),
            Verdict::Proven if late > LOOSE_NS => return pause(0.6),
            Verdict::Open if late > self.tight_limit => return pause(0.6),
            _ => {}
        }
        let confidence = match (self.verdict, self.held) {
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
                rule: "nagle_fin_release",
                confidence,
            },
            (false, false, true) => Ruling::Waited {
                rule: "nagle_piggyback",
                confidence,
            },
            (false, true, true) => Ruling::Waited {
                rule: "nagle_wait",
                confidence,
            },
            _ => pause(0.6),
        }
    }
}

fn verdict(j: &Judged) -> Verdict {
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
    if share <= 0.02 && follows {
        Verdict::Proven
    } else {
        Verdict::Open
    }
}

/// Median slope of (small -> freed) over (small -> ACK): near 1 where the sender follows the ACK, near 0
/// where a program pauses for a time of its own. None where the ACKs vary too little to tell.
fn slope(held: &[&Sample]) -> Option<f64> {
    let used: Vec<&Sample> = held.iter().step_by(held.len() / SLOPED + 1).copied().collect();
    if used.len() < 5 {
        return None;
    }
    let total = |s: &Sample| s.wait + s.release;
    let spread = |of: &dyn Fn(&Sample) -> i64| deviation(used.iter().map(|s| of(s)).collect());
    let informative = spread(&|s| total(s)).min(spread(&|s| s.release)) < spread(&|s| s.wait);
    if !informative {
        return None;
    }
    let mut slopes = Vec::new();
    for (i, a) in used.iter().enumerate() {
        for b in used.iter().skip(i + 1) {
            let apart = b.wait - a.wait;
            if apart.abs() > SLOPE_APART_NS {
                slopes.push((total(b) - total(a)) as f64 / apart as f64);
            }
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

/// Median absolute deviation.
fn deviation(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    let middle = at_share(&values, 0.5).unwrap_or(0);
    let mut away: Vec<i64> = values.iter().map(|v| (v - middle).abs()).collect();
    away.sort_unstable();
    at_share(&away, 0.5).unwrap_or(0)
}

fn at_share(sorted: &[i64], share: f64) -> Option<i64> {
    let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

/// Kernel timers end on the host's scheduler tick: folds the ends of the waits and tests whether they
/// fall together (Rayleigh). The longest tick that fits is the tick.
fn lattice(ends: impl Iterator<Item = i64> + Clone, least: usize) -> (Option<i64>, Option<f64>) {
    let count = ends.clone().count();
    if count < least {
        return (None, None);
    }
    let n = count as f64;
    for period in [10_000_000i64, 4_000_000, 3_333_333, 1_000_000] {
        let (mut x, mut y) = (0.0, 0.0);
        for end in ends.clone() {
            let turn = end.rem_euclid(period) as f64 / period as f64 * std::f64::consts::TAU;
            x += turn.cos();
            y += turn.sin();
        }
        let together = (x * x + y * y).sqrt() / n;
        if together > 0.7 {
            return (Some(period), Some((-n * together * together).exp()));
        }
    }
    (None, None)
}
