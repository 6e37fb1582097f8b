//! Round trips from the capture to an endpoint and back: the best of two addresses, and those of one connection.
//!
//! A sample is the time from a packet that passes towards an endpoint to that endpoint's first packet
//! that acknowledges it. The smallest one is the path's; whatever an ACK took beyond it was a hold, a
//! queue or a program.

mod answers;

use std::net::{IpAddr, Ipv4Addr};

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::limits::{AT_HOST_NS, DELACK_LEAST_NS, LARGE_RATIO, OUTLIER_SHARE, RARE_ONE_IN, UNHELD_NS};

/// Samples kept for the spread; the newest replace the oldest.
const KEPT: usize = 64;
/// Room for so many is made at a time.
const GROWN: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Rtt {
    min: Option<i64>,
    count: u64,
    /// A kernel has answered by itself, sooner than its timer.
    kernel: bool,
    /// The soonest of the handshakes.
    handshake: Option<i64>,
    recent: Vec<Sample>,
    /// The newest handshakes, in nanoseconds.
    shaken: Vec<u32>,
    shakes: usize,
}

/// In 31 bits, for more than two seconds are no jitter; the last one shows that a program answered, not a kernel.
#[derive(Debug, Clone, Copy)]
struct Sample(u32);

impl Sample {
    const PROGRAM: u32 = 1 << 31;

    fn new(ns: i64, by_program: bool) -> Self {
        let brief = ns.cast_unsigned().min(u64::from(Self::PROGRAM - 1)) as u32;
        Sample(brief | if by_program { Self::PROGRAM } else { 0 })
    }

    fn ns(self) -> i64 {
        i64::from(self.0 & !Self::PROGRAM)
    }

    fn by_program(self) -> bool {
        self.0 & Self::PROGRAM != 0
    }
}

impl Rtt {
    pub fn add(&mut self, sample: i64, by_program: bool) {
        if sample < 0 {
            return; // the clock went back
        }
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.kernel |= !by_program && sample < self.min.unwrap_or(sample) + DELACK_LEAST_NS.get();
        let brief = Sample::new(sample, by_program);
        if self.recent.len() < KEPT {
            if self.recent.len() == self.recent.capacity() {
                self.recent.reserve_exact(GROWN); // most pairs of addresses have few samples
            }
            self.recent.push(brief);
        } else if let Some(slot) = self.recent.get_mut((self.count % KEPT as u64) as usize) {
            *slot = brief;
        }
        self.count += 1;
    }

    pub fn min(&self) -> Option<i64> {
        self.min
    }

    /// The way to the host itself, where something nearer on the path may acknowledge for it (a NAT of a virtual machine, an
    /// accelerator): its ACKs come much sooner than any SYN/ACK did.
    pub fn behind(&self) -> Option<i64> {
        let (nearest, handshake) = (self.min?, self.handshake?);
        let is_far = handshake.saturating_sub(nearest) >= UNHELD_NS.get()
            && handshake >= nearest.saturating_mul(LARGE_RATIO.get());
        is_far.then_some(handshake)
    }

    /// Whether a kernel has answered by itself lately, sooner than its timer: what programs alone answer may take longer than
    /// the path does.
    pub fn is_by_kernel(&self) -> bool {
        let mut recent = self.recent.iter();
        recent.any(|sample| !sample.by_program() && sample.ns() < DELACK_LEAST_NS.get())
    }

    /// Measured so often that one more sample will hardly be the best.
    fn is_firm(&self) -> bool {
        self.count >= KEPT as u64
    }

    /// How late the path is now and then, and what answers there: the ninety-fifth of a hundred samples above their minimum.
    pub fn latest(&self) -> i64 {
        let best = self.min.unwrap_or(0);
        let above = self.recent.iter().map(|s| s.ns() - best);
        now_and_then(above.filter(|d| *d < DELACK_LEAST_NS.get()).collect())
    }

    /// The longest that an answer took lately.
    pub fn longest(&self) -> i64 {
        self.recent.iter().map(|sample| sample.ns()).max().unwrap_or(0)
    }

    /// How much the path wavers, whatever a program always takes: three of four answers came no later than this after the
    /// promptest tenth of their kind.
    pub fn wavering(&self) -> i64 {
        let mut above: Vec<i64> = Vec::with_capacity(self.recent.len());
        for by_program in [false, true] {
            let of_kind = self.recent.iter().filter(|s| s.by_program() == by_program);
            let mut took: Vec<i64> = of_kind.map(|s| s.ns()).collect();
            let best = place(took.len(), OUTLIER_SHARE.get());
            let best = picked(&mut took, best).unwrap_or(0);
            let late = took.iter().map(|took| (took - best).max(0));
            above.extend(late.filter(|late| *late < DELACK_LEAST_NS.get()));
        }
        let third = (above.len() * 3).div_ceil(4).saturating_sub(1);
        picked(&mut above, third).unwrap_or(0)
    }

    /// Third quartile of the samples above their minimum: how much the path itself wavers.
    pub fn jitter(&self) -> i64 {
        self.wavers(|_| true)
    }

    /// How much the path wavers, by what kernels answered alone: beside a host there is no path, and what its program takes is no jitter.
    pub fn kernels_jitter(&self) -> i64 {
        self.wavers(|sample| !sample.by_program())
    }

    fn wavers(&self, counts: impl Fn(&Sample) -> bool) -> i64 {
        let best = self.min.unwrap_or(0);
        let counted = self.recent.iter().filter(|s| counts(s));
        let mut above: Vec<i64> = counted
            .map(|s| s.ns() - best)
            .filter(|d| *d < UNHELD_NS.get())
            .collect();
        let third = above.len() * 3 / 4;
        picked(&mut above, third).unwrap_or(0)
    }
}

/// The ninety-fifth of a hundred that came so much later than at best, in any order.
pub(crate) fn now_and_then(mut late: Vec<i64>) -> i64 {
    let most = late.len().saturating_sub(1);
    let place = (late.len() * (RARE_ONE_IN.get() - 1) / RARE_ONE_IN.get()).min(most);
    picked(&mut late, place).unwrap_or(0)
}

/// The value that this share of a rising list does not exceed.
pub(crate) fn at_share(rising: &[i64], share: f64) -> Option<i64> {
    rising.get(place(rising.len(), share)).copied()
}

/// What would stand at this place if the list, which comes in any order and is left in another, were rising.
fn picked(values: &mut [i64], place: usize) -> Option<i64> {
    (place < values.len()).then(|| *values.select_nth_unstable(place).1)
}

/// How many values of so many lie before the one that this share does not exceed.
fn place(count: usize, share: f64) -> usize {
    ((count as f64 * share).ceil() as usize).max(1) - 1
}

fn brief(ns: i64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// A round trip of one connection that a kernel has answered: what the path takes beside what a program does. 0 where there
/// is none; in 32 bits, the lowest of which shows that one ACK at least could not have been held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelRtt(u32);

impl KernelRtt {
    #[inline]
    pub(crate) fn new(ns: i64, prompt: bool) -> Self {
        KernelRtt(brief(ns) & !1 | u32::from(prompt))
    }

    /// How much worse than at best on this path, where no timer explains that.
    pub fn beyond(self, best: i64) -> i64 {
        let beyond = (i64::from(self.0) - best).max(0);
        let prompt = self.0 & 1 != 0;
        if prompt || beyond < DELACK_LEAST_NS.get() {
            beyond
        } else {
            0
        }
    }
}

/// Round trips of one path without those that a receiver's timer may have spoiled.
///
/// A receiver may wait before it acknowledges, unless two full segments are there or it is the handshake (RFC 9293
/// 3.8.6.3). So a sample from an ACK that had no licence to wait counts however long it took; any other counts if it
/// lies within what no timer can reach, 35 ms above the best round trip of the stream so far. ACKs with data or FIN
/// are no samples at all: those wait for a program.
#[derive(Debug, Clone, Default)]
pub struct RoundTrips {
    /// Of ACKs that had to come at once.
    prompt: Spread,
    /// Of ACKs that could have waited, and did not.
    free: Spread,
    prompts: u32,
    frees: u32,
    held: u32,
    best: Best,
    /// The newest sample that was not left out.
    newest: KernelRtt,
}

/// The shortest so far; none is longer than any.
#[derive(Debug, Clone, Copy)]
struct Best(i64);

impl Default for Best {
    fn default() -> Self {
        Best(i64::MAX)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    sum: f64,
    squares: f64,
    max: i64,
}

impl Spread {
    #[inline]
    fn add(&mut self, ns: i64) {
        let ms = ns as f64 / 1e6;
        self.sum += ms;
        self.squares += ms * ms;
        self.max = self.max.max(ns);
    }
}

impl RoundTrips {
    #[inline]
    pub fn add(&mut self, ns: i64, prompt: bool) {
        let best = if self.best.0 == i64::MAX { ns } else { self.best.0 };
        if ns < best - DELACK_LEAST_NS.get() {
            // the path is so much shorter that all of those were held
            self.held = self.held.saturating_add(std::mem::take(&mut self.frees));
            self.free = Spread::default();
        }
        self.best = Best(best.min(ns));
        if prompt {
            self.prompt.add(ns);
            self.prompts = self.prompts.saturating_add(1);
        } else if ns < best + DELACK_LEAST_NS.get() {
            self.free.add(ns);
            self.frees = self.frees.saturating_add(1);
        } else {
            self.held = self.held.saturating_add(1);
            return;
        }
        self.newest = KernelRtt::new(ns, self.prompts > 0);
    }

    /// What the path takes by what the host's kernel has answered: lately where time stamps tell how it wavers (`stamped`),
    /// else at its worst. Beside the host there is no path that wavers, but its own queue.
    #[inline]
    pub fn round(&self, stamped: bool) -> KernelRtt {
        if stamped { self.newest } else { self.worst() }
    }

    #[cold]
    fn worst(&self) -> KernelRtt {
        if self.best.0 < AT_HOST_NS.get() {
            return self.newest;
        }
        KernelRtt::new(self.prompt.max.max(self.free.max), self.prompts > 0)
    }

    pub fn samples(&self) -> u64 {
        u64::from(self.prompts) + u64::from(self.frees)
    }

    /// Samples left out: as late as a timer makes them.
    pub fn held(&self) -> u64 {
        u64::from(self.held)
    }

    pub fn mean_ms(&self) -> Option<f64> {
        let n = self.samples();
        (n > 0).then(|| (self.prompt.sum + self.free.sum) / n as f64)
    }

    /// Of the sample (n - 1).
    pub fn stdev_ms(&self) -> Option<f64> {
        let n = self.samples();
        let mean = self.mean_ms().filter(|_| n > 1)?;
        let above = self.prompt.squares + self.free.squares - n as f64 * mean * mean;
        Some((above.max(0.0) / (n - 1) as f64).sqrt())
    }

    pub fn max(&self) -> Option<i64> {
        (self.samples() > 0).then(|| self.prompt.max.max(self.free.max))
    }
}

/// Both round trips between one client address and one server address.
#[derive(Debug, Clone, Default)]
pub struct Pair {
    /// Indexed by `Side`: to the client and back, to the server and back.
    pub rtts: [Rtt; 2],
}

/// All address pairs seen with data; streams of a pair share them.
#[derive(Debug, Default)]
pub struct Pairs {
    /// Numbers only: a table of addresses has room for twice as many as there are.
    index: HashTable<u32>,
    hasher: RandomState,
    ends: Vec<(IpAddr, IpAddr)>,
    pairs: Vec<Pair>,
    /// The one that was looked up last: connections of the same hosts follow each other.
    newest: u32,
}

impl Pairs {
    pub fn id(&mut self, client: IpAddr, server: IpAddr) -> u32 {
        if self.ends.get(self.newest as usize) != Some(&(client, server)) {
            self.newest = self.id_of((client, server));
        }
        self.newest
    }

    fn id_of(&mut self, ends: (IpAddr, IpAddr)) -> u32 {
        let hasher = &self.hasher;
        let known = |id: &u32| self.ends.get(*id as usize) == Some(&ends);
        let hash = |id: &u32| hasher.hash_one(self.ends.get(*id as usize));
        match self.index.entry(hasher.hash_one(Some(&ends)), known, hash) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let id = self.pairs.len() as u32;
                entry.insert(id);
                self.ends.push(ends);
                self.pairs.push(Pair::default());
                id
            }
        }
    }

    /// The number of a pair that is known.
    pub fn find(&self, client: IpAddr, server: IpAddr) -> Option<u32> {
        let ends = (client, server);
        let hash = self.hasher.hash_one(Some(&ends));
        let known = |id: &u32| self.ends.get(*id as usize) == Some(&ends);
        self.index.find(hash, known).copied()
    }

    /// The addresses of a pair that is known: client, server.
    pub fn ends(&self, id: u32) -> [IpAddr; 2] {
        let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let (client, server) = self.ends.get(id as usize).copied().unwrap_or((none, none));
        [client, server]
    }

    pub fn get(&self, id: u32) -> Option<&Pair> {
        self.pairs.get(id as usize)
    }

    #[inline(always)]
    pub fn add(&mut self, id: u32, side: usize, sample: i64, by_program: bool) {
        if let Some(rtt) = self.pairs.get_mut(id as usize).and_then(|p| p.rtts.get_mut(side)) {
            rtt.add(sample, by_program);
        }
    }

    /// A round trip of the handshake.
    pub fn add_handshake_rtt(&mut self, id: u32, side: usize, sample: i64) {
        if let Some(rtt) = self.pairs.get_mut(id as usize).and_then(|p| p.rtts.get_mut(side)) {
            rtt.add_handshake_rtt(sample);
        }
    }

    /// Whether both round trips are known as well as they will be.
    pub fn is_firm(&self, id: u32) -> bool {
        self.get(id).is_some_and(|p| p.rtts.iter().all(Rtt::is_firm))
    }

    pub fn min(&self, id: u32, side: usize) -> Option<i64> {
        self.get(id).and_then(|p| p.rtts.get(side)).and_then(Rtt::min)
    }
}

#[cfg(test)]
mod tests;
