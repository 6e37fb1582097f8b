//! What all evidence on one sender shows: does Nagle's algorithm hold it up, does it refute that, does its program pause?
//! A pool of evidence and the path's round trips in, one `Judged` out.

mod controls;
mod holds;
mod kernel;
mod prompt;
mod spread;
mod together;
mod wait;

use crate::base::Side;
use crate::base::words;
use crate::evidence::rtt::{Pairs, Rtt};
use crate::evidence::{AckWait, SenderEvidence, SenderStore};

use super::{Change, change, cork, elsewhere};
use crate::limits::{
    AT_HOST_NS, CORK_ROUND_NS, GROWN, HELD_NS, KERNEL_NS, LARGE_RATIO, MAJORITY_ONE_IN, MIN_SAMPLES,
    OUTLIER_ONE_IN, SEVERAL, SOON_NS, TICK_NS,
};
pub use controls::Control;
use controls::Controls;
pub use spread::Tick;
pub(super) use spread::fit_tick;
use spread::{at_share, slope};

words! {
    /// Whether Nagle's algorithm acts at a sender, as its evidence shows.
    NagleUse:
    "nagle" Acts "the freed segments follow the ACKs"
    "nodelay" Off "small segments left over unacknowledged small ones"
    "pause" AppPause "the program's own pause ends near the ACK: the releases do not move with it"
    "mixed" Mixed "its connections differ: Nagle's algorithm acts on some of them only"
    "open" Unknown "too little evidence"
}

#[allow(clippy::derivable_impls)] // `words!` gives its variants no attributes
impl Default for NagleUse {
    fn default() -> Self {
        NagleUse::Unknown
    }
}

/// One sender judged. Times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    pub verdict: NagleUse,
    pub opportunities: u64,
    pub held: usize,
    pub prompt_releases: usize,
    /// Lone small segments that were acknowledged at once, though their receiver might have held that back.
    pub prompt: u64,
    /// Its receiver's ACKs are late as no timer makes them: by more than the shortest one, and by less.
    pub scattered: bool,
    /// The frames that left with others, as one tick freed them: later than one alone, and as a kernel sends them.
    pub together: Vec<u64>,
    pub refuted: u64,
    pub slope: Option<f64>,
    pub sender_rtt: i64,
    /// The sender's kernel has answered by itself: nothing comes back sooner.
    pub rtt_is_best: bool,
    pub receiver_rtt: i64,
    pub prompt_limit_ns: i64,
    /// What left later than this behind an ACK its program wrote then, as far as its clock shows how the path varies.
    pub pause_limit: Option<i64>,
    /// Its clock shows which part of a release the path took.
    pub clock_tells: bool,
    /// Beside the sender: what its kernel sends leaves within the first, and what a slow one may send within the second.
    pub kernel_limits: [i64; 2],
    /// How much the path to the sender wavers, with what its program takes, and without what it always takes.
    pub sender_jitter: i64,
    pub sender_wavering: i64,
    pub hold_min: Option<i64>,
    pub hold_median: Option<i64>,
    pub hold_max: Option<i64>,
    pub release_median: Option<i64>,
    /// Median release by its sender's clock, where that shows what the path took.
    pub sent_median: Option<i64>,
    pub release_p95: Option<i64>,
    pub release_max: Option<i64>,
    /// The receiver's clock tick on whose grid its holds end, and the chance that this is luck.
    pub tick_ns: Option<i64>,
    pub tick_p: Option<f64>,
    /// The longest that its receiver took to acknowledge lately, and no longer than it may delay that, beside the path.
    pub to_answer: i64,
    /// Its messages leave with the kernel's probe timer: a cork that is never taken off.
    pub corked: bool,
    /// Some do, as far as one can tell: a cork that is on at times.
    pub timed: bool,
    /// Its answers wait for a kernel's timer that no connection here shows: a held ACK elsewhere, for about so long.
    pub waits_elsewhere: bool,
    /// Connections with any evidence; those on which Nagle's algorithm acts, and those that refute it.
    pub streams: usize,
    pub nagle_streams: usize,
    pub nodelay_streams: usize,
    /// The option changed on the way.
    pub change: Option<Change>,
    /// What its program takes where nothing is held.
    pub controls: Controls,
}

/// The judgements of all senders, and how much evidence each had: none where it was not judged yet.
#[derive(Debug, Default)]
pub struct Senders {
    judged: Vec<Judged>,
    had: Vec<Option<u64>>,
}

impl Senders {
    /// All senders judged with the round trips known by now, in the order of their pools. Before the `last` time a
    /// judgement stands until there is notably more evidence: slopes over many pools are dear. Of those whose evidence was
    /// let go it stands until there is new evidence.
    pub fn judge(&mut self, store: &SenderStore, pairs: &Pairs, last: bool) -> &[Judged] {
        self.judged.resize_with(store.len(), Judged::default);
        self.had.resize(store.len(), None);
        for ((evidence, judged), before) in store.iter().zip(&mut self.judged).zip(&mut self.had) {
            let observations = evidence.observations() + evidence.starts.count();
            let stands = before.is_some_and(|had| {
                evidence.is_quiet()
                    || had == observations && judged.is_of(evidence, pairs)
                    || !last && (observations as f64) < had as f64 * (1.0 + GROWN.get())
            });
            if !stands {
                *judged = Judged::of(evidence, pairs);
                *before = Some(observations);
            }
        }
        &self.judged
    }

    /// As they were judged last, by the numbers of their pools.
    pub fn all(&self) -> &[Judged] {
        &self.judged
    }

    /// Lets go of the evidence on those that were quiet longest: what it shows stays, without the single waits.
    #[cold]
    pub fn evict(&mut self, store: &mut SenderStore, pairs: &Pairs) {
        for id in store.least_recently_used() {
            self.let_go_of(id, store, pairs);
        }
    }

    fn let_go_of(&mut self, id: u32, store: &mut SenderStore, pairs: &Pairs) {
        let place = id as usize;
        let slots = self.judged.get_mut(place).zip(self.had.get_mut(place));
        if let Some((evidence, (judged, had))) = store.get(id).zip(slots) {
            *judged = Judged::of(evidence, pairs);
            (judged.controls, judged.together) = Default::default();
            *had = Some(0);
            store.evict(id);
        }
    }
}

impl Judged {
    /// One sender judged by all that was seen of it.
    pub fn of(evidence: &SenderEvidence, pairs: &Pairs) -> Judged {
        let (sender, receiver) = (evidence.key.sender.index(), evidence.key.sender.other().index());
        let [sender_rtt, receiver_rtt] = round_trips(evidence, pairs);
        let mut j = Judged {
            opportunities: evidence.observations(),
            sender_rtt,
            receiver_rtt,
            ..Judged::default()
        };
        let [path, to_receiver] =
            [sender, receiver].map(|side| pairs.get(evidence.pair).and_then(|p| p.rtts.get(side)));
        j.sender_jitter = path.map_or(0, |l| l.jitter());
        j.sender_wavering = path.map_or(0, |l| l.wavering());
        j.rtt_is_best = path.is_none_or(|l| l.is_by_kernel());
        j.prompt_limit_ns = if j.sender_rtt < AT_HOST_NS.get() {
            // there is no path, and the time that a program takes to answer shows nothing of the kernel
            j.sender_jitter = path.map_or(0, |rtt| rtt.kernels_jitter()).min(SOON_NS.get());
            j.kernel_limits = kernel::limits(
                [path, to_receiver],
                j.sender_jitter,
                [j.sender_rtt, j.receiver_rtt],
            );
            KERNEL_NS.get().max(j.sender_jitter)
        } else {
            prompt::limit(path)
        };
        j.scattered = holds::are_scattered(evidence, &j);
        j.clock_tells = prompt::clock_tells(&evidence.ack_waits, &j);
        j.pause_limit = prompt::by_its_clock(&evidence.ack_waits, &j);
        j.prompt = holds::prompt(evidence, j.receiver_rtt);
        j.together = together::together(&evidence.ack_waits, &j);
        let held = j.count(evidence.ack_waits.iter(), evidence.refutations);
        j.slope = slope(&held);
        j.held_by_timer(&held);
        let latest = to_receiver.map_or(0, |rtt| rtt.longest());
        j.to_answer = latest.min(CORK_ROUND_NS.get()).max(j.receiver_rtt);
        let corked = |to_answer| cork::corked(&evidence.starts, [j.sender_rtt, to_answer]);
        (j.timed, j.corked) = (corked(j.receiver_rtt).0, corked(j.to_answer).1);
        j.waits_elsewhere = elsewhere::on_tick(&evidence.starts, j.sender_rtt);
        j.controls = Controls::of(evidence, &j);
        j.sum_up(evidence);
        j.change = change::of(evidence, &j);
        j
    }

    /// What its held ACKs are together, for the table and for what no control group decides.
    fn sum_up(&mut self, evidence: &SenderEvidence) {
        let stalls = evidence
            .ack_waits
            .iter()
            .filter(|gap| self.is_held(gap) && self.is_stall(gap));
        let stalls: Vec<u32> = stalls.map(|gap| gap.stream).collect();
        let share = self.refuted as f64 / (self.held as f64 + self.refuted as f64).max(1.0);
        self.verdict = if !stalls.is_empty() && self.refuted >= SEVERAL.get() as u64 {
            NagleUse::Mixed
        } else if !stalls.is_empty() {
            NagleUse::Acts
        } else if share * OUTLIER_ONE_IN.get() as f64 > 1.0 && self.refuted_often() {
            // a queue of small writes leaves all but its tail (tcp_nagle_test), and then only the tail waits: where
            // every held one follows its ACK to the microsecond, luck would be (AT_HOST_NS / hold)^held
            let instant = self.sender_rtt < AT_HOST_NS.get()
                && self.release_max.is_some_and(|max| max <= AT_HOST_NS.get());
            if instant && self.held >= 2 {
                NagleUse::Unknown
            } else {
                NagleUse::Off
            }
        } else if self.pauses(evidence) {
            NagleUse::AppPause
        } else {
            NagleUse::Unknown
        };
        [self.streams, self.nagle_streams, self.nodelay_streams] = self.controls.streams(stalls);
    }

    /// Whether it is no accident that segments went without their ACK: there are several, or many of all that might have waited.
    fn refuted_often(&self) -> bool {
        self.refuted >= SEVERAL.get() as u64
            || self.refuted * OUTLIER_ONE_IN.get() as u64 > self.opportunities
    }

    /// Whether the program's own pauses explain most of what ended with held ACKs.
    fn pauses(&self, evidence: &SenderEvidence) -> bool {
        let held = evidence.ack_waits.iter().filter(|gap| self.is_held(gap));
        let explained = held.filter(|gap| {
            let control = self.compare(gap);
            matches!(control, Control::Explains { .. })
        });
        2 * explained.count() > self.held
    }

    /// A pure ACK that its receiver held.
    pub(super) fn is_held(&self, gap: &AckWait) -> bool {
        gap.timer && !gap.unseen && HELD_NS.contains(self.hold(gap))
    }

    /// How long its receiver held this ACK: what the path took of it, by its clock, is no hold.
    pub(in crate::judge) fn hold(&self, gap: &AckWait) -> i64 {
        gap.covered - self.receiver_rtt - gap.ack_late
    }

    /// This wait for a held ACK is Nagle's beyond doubt.
    fn is_stall(&self, gap: &AckWait) -> bool {
        !self.before_ack(gap.release, gap.arrived)
            && self.is_prompt(gap)
            && !self.may_be_pause(gap)
            && self.proves(gap.stream, self.compare(gap))
    }

    /// Whether the path is still as this judgement knew it.
    fn is_of(&self, evidence: &SenderEvidence, pairs: &Pairs) -> bool {
        [self.sender_rtt, self.receiver_rtt] == round_trips(evidence, pairs)
    }

    /// What these candidates, and so many refutations beside them, say on this path: the numbers that `verdict` needs,
    /// but for the slope, which is dear. Gives the held ones.
    pub(super) fn count<'a>(
        &mut self,
        gaps: impl Iterator<Item = &'a AckWait>,
        refuted: u64,
    ) -> Vec<&'a AckWait> {
        self.refuted = refuted;
        let mut held: Vec<&AckWait> = Vec::new();
        for s in gaps {
            if self.before_ack(s.release, s.arrived) {
                self.refuted += 1;
            } else if self.is_held(s) {
                held.push(s);
            }
        }
        self.held = held.len();
        self.prompt_releases = held.iter().filter(|s| self.is_prompt(s)).count();
        let mut releases: Vec<i64> = held.iter().map(|s| self.late(s).max(0)).collect();
        releases.sort_unstable();
        (self.release_median, self.release_p95) = (at_share(&releases, 0.5), at_share(&releases, 0.95));
        self.release_max = releases.last().copied();
        self.sent_median = self.release_median;
        if self.clock_tells {
            let mut sent: Vec<i64> = held.iter().map(|s| self.sent(s).max(0)).collect();
            sent.sort_unstable();
            self.sent_median = at_share(&sent, 0.5);
        }
        held
    }

    /// How long the receiver held these ACKs, and on which tick.
    pub(super) fn held_by_timer(&mut self, held: &[&AckWait]) {
        let mut holds: Vec<i64> = held.iter().map(|s| self.hold(s)).collect();
        holds.sort_unstable();
        (self.hold_min, self.hold_median) = (holds.first().copied(), at_share(&holds, 0.5));
        self.hold_max = holds.last().copied();
        let tick = fit_tick(held.iter().map(|s| s.acked_at));
        (self.tick_ns, self.tick_p) = tick.map(|tick| (tick.period, tick.luck)).unzip();
    }

    /// The segment left before the ACK could have reached its sender: read off the timestamps, else by the best
    /// round trip, less what the path wavers.
    pub(super) fn before_ack(&self, release: i64, arrived: Option<bool>) -> bool {
        match arrived {
            Some(arrived) => !arrived,
            None => {
                let most = AT_HOST_NS.get().max(self.sender_rtt / LARGE_RATIO.get());
                release < self.sender_rtt - self.sender_jitter.clamp(AT_HOST_NS.get(), most)
            }
        }
    }

    /// Whether a kernel sent these segments: half of them as soon as one does beside the sender, and elsewhere no later than
    /// three of four answers come, and a busy host. A program that sleeps on the tick of the receiver's timer (one kernel, a
    /// socket's timeout), and a relay whose own server waits for such a timer, follow the ACKs as well. But the one has to be
    /// woken up, and what the other passes on comes its way later.
    fn by_kernel(&self) -> bool {
        let least = if self.sender_rtt < AT_HOST_NS.get() {
            AT_HOST_NS.get() + self.sender_jitter
        } else {
            SOON_NS.get() + self.sender_wavering
        };
        self.sent_median.is_some_and(|took| took <= least)
    }

    /// Whether a kernel sent this one, so long after the ACK: beside its sender, on a connection of which nothing left early.
    pub(super) fn sent_by_kernel(&self, stream: u32, late: i64) -> bool {
        self.sender_rtt < AT_HOST_NS.get()
            && late <= AT_HOST_NS.get()
            && self.verdict != NagleUse::Off
            && self.controls.may_be_kernels()
            && self.controls.follows_alone(stream)
    }
}

/// Whether the capture is stamped in whole milliseconds, as all that was seen of this sender shows, and more than one release in
/// three took one or more: then a round trip of 0 does not say that the capture sits at this host.
fn in_steps(evidence: &SenderEvidence) -> bool {
    let whole = |gap: &AckWait| [gap.acked_at, gap.wait, gap.release].map(|ns| ns % TICK_NS) == [0; 3];
    let away = evidence
        .ack_waits
        .iter()
        .filter(|gap| gap.release >= TICK_NS)
        .count();
    evidence.ack_waits.len() >= MIN_SAMPLES.get()
        && MAJORITY_ONE_IN.get() * away > evidence.ack_waits.len()
        && evidence.ack_waits.iter().all(whole)
}

/// The best round trips to a sender and to its receiver. Where only programs answered for the sender's host, a segment that
/// echoes the time stamp of the ACK before it (RFC 7323 4.3) bounds it as well: that ACK had come to the host.
fn round_trips(evidence: &SenderEvidence, pairs: &Pairs) -> [i64; 2] {
    let rtt = |side: Side| pairs.min(evidence.pair, side.index()).unwrap_or(0);
    let least = if in_steps(evidence) { AT_HOST_NS.get() } else { 0 };
    let (sender, receiver) = (
        rtt(evidence.key.sender).max(least),
        rtt(evidence.key.sender.other()),
    );
    let path = pairs.get(evidence.pair);
    let path = path.and_then(|pair| pair.rtts.get(evidence.key.sender.index()));
    if path.is_none_or(Rtt::has_kernels_answer) {
        return [sender, receiver];
    }
    let echoed = evidence
        .ack_waits
        .iter()
        .filter(|gap| gap.arrived == Some(true) && !gap.unseen);
    let soonest = echoed.map(|gap| gap.release.max(0)).min();
    [soonest.map_or(sender, |release| release.min(sender)), receiver]
}

#[cfg(test)]
mod tests;
