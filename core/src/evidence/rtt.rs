//! Round trips from the capture to an endpoint and back: of a pair of addresses, and of one connection.
//!
//! A sample is the time from a packet towards an endpoint to the endpoint's first packet that acknowledges it. The
//! smallest one is the path's; an ACK that took longer was held, queued, or waited for a program.

use std::net::{IpAddr, Ipv4Addr};

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::base::Side;
use crate::limits::{AT_HOST_NS, DELACK_LEAST_NS, LARGE_RATIO, OUTLIER_SHARE, RARE_ONE_IN, UNHELD_NS};

/// Upper bound on the newest samples kept, for the variation.
const MAX_SAMPLES: usize = 64;
/// Growth of the list of samples: most pairs of addresses have few.
const SAMPLES_GROWTH: usize = 8;
/// Number of newest handshakes kept, and the growth of their list: the smallest allocation.
const MAX_HANDSHAKES: usize = 16;
const HANDSHAKES_GROWTH: usize = 4;

/// Round trips to one endpoint. Times in ns.
#[derive(Debug, Clone, Default)]
pub struct Rtt {
    min_ns: Option<i64>,
    count: u64,
    /// A kernel has answered by itself, sooner than a delayed ACK.
    has_kernel_answer: bool,
    shortest_handshake_ns: Option<i64>,
    recent: Vec<Sample>,
    /// The newest handshakes.
    handshakes: Vec<u32>,
    /// Number of all handshakes.
    handshake_count: usize,
}

/// A sample in 31 bits, as more than two seconds are no jitter. The highest bit shows that a program answered.
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
    #[inline(always)]
    pub fn add(&mut self, sample: i64, by_program: bool) {
        if sample < 0 {
            return; // the capture's clock was set back
        }
        self.min_ns = Some(self.min_ns.map_or(sample, |min| min.min(sample)));
        self.has_kernel_answer |=
            !by_program && sample < self.min_ns.unwrap_or(sample) + DELACK_LEAST_NS.get();
        let brief = Sample::new(sample, by_program);
        let index = (self.count % MAX_SAMPLES as u64) as usize;
        push_newest(&mut self.recent, MAX_SAMPLES, SAMPLES_GROWTH, index, brief);
        self.count += 1;
    }

    pub fn min(&self) -> Option<i64> {
        self.min_ns
    }

    /// Whether a kernel has ever answered by itself, sooner than a delayed ACK after the best round trip of that time.
    /// Answers of programs alone may be later than the path.
    pub fn has_kernel_answer(&self) -> bool {
        self.has_kernel_answer
    }

    /// Whether the only sample is an answer of a program, which does not show the path.
    pub fn is_one_answer(&self) -> bool {
        self.count == 1 && !self.has_kernel_answer
    }

    fn add_handshake_rtt(&mut self, sample: i64) {
        self.add(sample, false);
        self.shortest_handshake_ns = Some(
            self.shortest_handshake_ns
                .map_or(sample, |soonest| soonest.min(sample)),
        );
        let index = self.handshake_count % MAX_HANDSHAKES;
        push_newest(
            &mut self.handshakes,
            MAX_HANDSHAKES,
            HANDSHAKES_GROWTH,
            index,
            brief(sample),
        );
        self.handshake_count += 1;
    }

    /// Returns the third quartile of the newest handshakes: the kernel's time, as no program takes part in them.
    pub fn kernel_took(&self) -> Option<i64> {
        let mut took = [0; MAX_HANDSHAKES];
        let took = took.get_mut(..self.handshakes.len())?;
        took.copy_from_slice(&self.handshakes);
        let third = third_quartile_index(took.len());
        nth_smallest(took, third).map(i64::from)
    }

    /// Returns the round trip to the host itself where a nearer one may acknowledge for it (NAT of a virtual machine,
    /// WAN accelerator): ACKs come much sooner than any SYN/ACK.
    pub fn handshake_behind_middlebox(&self) -> Option<i64> {
        let (nearest, handshake) = (self.min_ns?, self.shortest_handshake_ns?);
        let is_far = handshake.saturating_sub(nearest) >= UNHELD_NS.get()
            && handshake >= nearest.saturating_mul(LARGE_RATIO.get());
        is_far.then_some(handshake)
    }

    /// Whether a recent sample is a kernel's own answer, and shorter than any delay of an ACK.
    pub fn has_recent_kernel_answer(&self) -> bool {
        let mut recent = self.recent.iter();
        recent.any(|sample| !sample.by_program() && sample.ns() < DELACK_LEAST_NS.get())
    }

    /// Whether there are so many samples that one more will hardly be the best.
    fn is_firm(&self) -> bool {
        self.count >= MAX_SAMPLES as u64
    }

    /// Returns the 95th percentile of recent samples above the best, without those that a delayed ACK may explain.
    pub fn p95_above_best(&self) -> i64 {
        let best = self.min_ns.unwrap_or(0);
        let above = self.recent.iter().map(|sample| sample.ns() - best);
        p95(above.filter(|above| *above < DELACK_LEAST_NS.get()).collect())
    }

    /// Returns the longest recent sample.
    pub fn longest(&self) -> i64 {
        self.recent.iter().map(|sample| sample.ns()).max().unwrap_or(0)
    }

    /// Returns the variation of the path without the time that a program always takes: the third quartile of recent
    /// samples above the first decile of their kind (kernel or program). Samples that a delayed ACK may explain are
    /// left out.
    pub fn jitter_within_kind(&self) -> i64 {
        let mut above: Vec<i64> = Vec::with_capacity(self.recent.len());
        for by_program in [false, true] {
            let of_kind = self
                .recent
                .iter()
                .filter(|sample| sample.by_program() == by_program);
            let mut took: Vec<i64> = of_kind.map(|sample| sample.ns()).collect();
            let best = quantile_index(took.len(), OUTLIER_SHARE.get());
            let best = nth_smallest(&mut took, best).unwrap_or(0);
            let late = took.iter().map(|took| (took - best).max(0));
            above.extend(late.filter(|late| *late < DELACK_LEAST_NS.get()));
        }
        let third = third_quartile_index(above.len());
        nth_smallest(&mut above, third).unwrap_or(0)
    }

    /// Returns the variation of the path: the third quartile of recent samples above the best (`third_quartile`).
    pub fn jitter_above_best(&self) -> i64 {
        self.third_quartile(|_| true)
    }

    /// Returns the variation of kernels' answers alone, for a capture beside the host, where a program's time is no
    /// jitter.
    pub fn kernel_jitter_above_best(&self) -> i64 {
        self.third_quartile(|sample| !sample.by_program())
    }

    /// Returns the third quartile of the counted samples above the best; between two samples, the larger one. Samples
    /// whose ACK may have been held (`UNHELD_NS`) are left out.
    fn third_quartile(&self, is_counted: impl Fn(&Sample) -> bool) -> i64 {
        let best = self.min_ns.unwrap_or(0);
        let counted = self.recent.iter().filter(|sample| is_counted(sample));
        let mut above: Vec<i64> = counted
            .map(|sample| sample.ns() - best)
            .filter(|above| *above < UNHELD_NS.get())
            .collect();
        let third = above.len() * 3 / 4;
        nth_smallest(&mut above, third).unwrap_or(0)
    }
}

/// Appends a value to a list of at most `max` that grows by `growth`; if it is full, replaces the one at `index`.
fn push_newest<T>(newest: &mut Vec<T>, max: usize, growth: usize, index: usize, value: T) {
    if newest.len() >= max {
        if let Some(slot) = newest.get_mut(index) {
            *slot = value;
        }
        return;
    }
    if newest.len() == newest.capacity() {
        newest.reserve_exact(growth);
    }
    newest.push(value);
}

/// Returns the 95th percentile of delays in any order.
pub(crate) fn p95(mut delays: Vec<i64>) -> i64 {
    let last = delays.len().saturating_sub(1);
    let index = (delays.len() * (RARE_ONE_IN.get() - 1) / RARE_ONE_IN.get()).min(last);
    nth_smallest(&mut delays, index).unwrap_or(0)
}

/// Returns the quantile of a rising list.
pub(crate) fn at_share(rising: &[i64], share: f64) -> Option<i64> {
    rising.get(quantile_index(rising.len(), share)).copied()
}

/// Returns the value that would be at this index if the list were sorted. Reorders the list.
fn nth_smallest<T: Copy + Ord>(values: &mut [T], index: usize) -> Option<T> {
    (index < values.len()).then(|| *values.select_nth_unstable(index).1)
}

/// Returns the index of a quantile in a sorted list.
fn quantile_index(count: usize, share: f64) -> usize {
    ((count as f64 * share).ceil() as usize).max(1) - 1
}

/// Returns the index of the third quartile in a sorted list.
fn third_quartile_index(count: usize) -> usize {
    (count * 3).div_ceil(4).saturating_sub(1)
}

fn brief(ns: i64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// A round trip of one connection by a kernel's own answer, in ns; 0 if there is none. The lowest of the 32 bits shows
/// that at least one ACK of the connection could not have been delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelRtt(u32);

impl KernelRtt {
    #[inline]
    pub(crate) fn new(ns: i64, prompt: bool) -> Self {
        KernelRtt(brief(ns) & !1 | u32::from(prompt))
    }

    /// Returns the excess over the path's best, or 0 if a delayed-ACK timer explains it.
    pub fn beyond(self, best: i64) -> i64 {
        let beyond = (i64::from(self.0) - best).max(0);
        let is_prompt = self.0 & 1 != 0;
        if is_prompt || beyond < DELACK_LEAST_NS.get() {
            beyond
        } else {
            0
        }
    }
}

/// Round trips of one connection without those that a delayed-ACK timer may have lengthened.
///
/// A receiver may delay an ACK, unless two full segments have arrived or it is the handshake's (RFC 9293 3.8.6.3). A
/// sample of an ACK that must not be delayed always counts. Any other counts if it is less than `DELACK_LEAST_NS`
/// above the best so far. ACKs with data or FIN are no samples, as they may wait for a program.
#[derive(Debug, Clone, Default)]
pub struct RoundTrips {
    /// Samples of ACKs that must not be delayed.
    prompt: Spread,
    /// Samples of ACKs that could have been delayed, and were not.
    free: Spread,
    prompts: u32,
    frees: u32,
    held: u32,
    best: Best,
    /// The newest sample that counts.
    newest: KernelRtt,
}

/// The shortest round trip so far; `i64::MAX` before the first. (An `Option` would make a closed stream too large.)
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
    sum_of_squares: f64,
    max_ns: i64,
}

impl Spread {
    #[inline]
    fn add(&mut self, ns: i64) {
        let ms = ns as f64 / 1e6;
        self.sum += ms;
        self.sum_of_squares += ms * ms;
        self.max_ns = self.max_ns.max(ns);
    }
}

impl RoundTrips {
    #[inline]
    pub fn add(&mut self, ns: i64, prompt: bool) {
        let best = if self.best.0 == i64::MAX { ns } else { self.best.0 };
        if ns < best - DELACK_LEAST_NS.get() {
            // the path is so much shorter that all earlier ones were delayed
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

    /// Returns the path's round trip by the kernel's answers: the newest where timestamps show the path's variation
    /// (`stamped`) or beside the host, else the longest.
    #[inline]
    pub fn round(&self, stamped: bool) -> KernelRtt {
        if stamped { self.newest } else { self.worst() }
    }

    #[cold]
    fn worst(&self) -> KernelRtt {
        if self.best.0 < AT_HOST_NS.get() {
            return self.newest;
        }
        KernelRtt::new(self.prompt.max_ns.max(self.free.max_ns), self.prompts > 0)
    }

    pub fn samples(&self) -> u64 {
        u64::from(self.prompts) + u64::from(self.frees)
    }

    /// Returns the number of samples that a timer may have delayed.
    pub fn held(&self) -> u64 {
        u64::from(self.held)
    }

    pub fn mean_ms(&self) -> Option<f64> {
        let count = self.samples();
        (count > 0).then(|| (self.prompt.sum + self.free.sum) / count as f64)
    }

    /// Returns the sample standard deviation (n - 1).
    pub fn stdev_ms(&self) -> Option<f64> {
        let count = self.samples();
        let mean = self.mean_ms().filter(|_| count > 1)?;
        let above = self.prompt.sum_of_squares + self.free.sum_of_squares - count as f64 * mean * mean;
        Some((above.max(0.0) / (count - 1) as f64).sqrt())
    }

    pub fn max(&self) -> Option<i64> {
        (self.samples() > 0).then(|| self.prompt.max_ns.max(self.free.max_ns))
    }
}

/// Round trips to a client address and to a server address.
#[derive(Debug, Clone, Default)]
pub struct Pair {
    /// By `Side`.
    pub rtts: [Rtt; 2],
}

/// Round trips of all address pairs with data. Streams of a pair share them by its number.
#[derive(Debug, Default)]
pub struct Pairs {
    /// Numbers, hashed by the addresses in `ends`: half the memory of a table of addresses.
    index: HashTable<u32>,
    hasher: RandomState,
    ends: Vec<(IpAddr, IpAddr)>,
    pairs: Vec<Pair>,
    /// Number looked up last: a cache, as connections of the same hosts follow each other.
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
        let has_ends = |id: &u32| self.ends.get(*id as usize) == Some(&ends);
        let hash = |id: &u32| hasher.hash_one(self.ends.get(*id as usize));
        match self.index.entry(hasher.hash_one(Some(&ends)), has_ends, hash) {
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

    /// Returns the number of a known pair.
    pub fn find(&self, client: IpAddr, server: IpAddr) -> Option<u32> {
        let ends = (client, server);
        let hash = self.hasher.hash_one(Some(&ends));
        let has_ends = |id: &u32| self.ends.get(*id as usize) == Some(&ends);
        self.index.find(hash, has_ends).copied()
    }

    /// Returns the client and the server address of a known pair.
    pub fn ends(&self, id: u32) -> [IpAddr; 2] {
        let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let (client, server) = self.ends.get(id as usize).copied().unwrap_or((none, none));
        [client, server]
    }

    pub fn get(&self, id: u32) -> Option<&Pair> {
        self.pairs.get(id as usize)
    }

    pub fn rtt(&self, id: u32, side: Side) -> Option<&Rtt> {
        self.get(id).map(|pair| side.pick(&pair.rtts))
    }

    #[inline(always)]
    pub fn add(&mut self, id: u32, side: Side, sample: i64, by_program: bool) {
        if let Some(pair) = self.pairs.get_mut(id as usize) {
            side.pick_mut(&mut pair.rtts).add(sample, by_program);
        }
    }

    /// Adds a round trip of a handshake.
    pub fn add_handshake_rtt(&mut self, id: u32, side: Side, sample: i64) {
        if let Some(pair) = self.pairs.get_mut(id as usize) {
            side.pick_mut(&mut pair.rtts).add_handshake_rtt(sample);
        }
    }

    /// Whether both sides have so many samples that one more will hardly be the best.
    pub fn is_firm(&self, id: u32) -> bool {
        self.get(id)
            .is_some_and(|pair| pair.rtts.iter().all(Rtt::is_firm))
    }

    pub fn min(&self, id: u32, side: Side) -> Option<i64> {
        self.rtt(id, side).and_then(Rtt::min)
    }
}

#[cfg(test)]
mod tests;
