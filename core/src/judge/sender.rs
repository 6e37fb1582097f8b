//! Judges one sender by all evidence on it: whether Nagle's algorithm acts there, is off, or its program pauses. Reads
//! a `SenderEvidence` and the round trips of the path; returns a `SenderVerdict`.

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
use crate::evidence::{SenderEvidence, SenderStore};
use crate::observe::Candidate;

use super::{Change, change, cork, elsewhere};
use crate::limits::{
    AT_HOST_NS, CORK_ROUND_NS, GROWN, HELD_NS, KERNEL_NS, LARGE_RATIO, MAJORITY_ONE_IN, MIN_SAMPLES,
    OUTLIER_ONE_IN, SEVERAL, SOON_NS, TICK_NS,
};
pub use controls::Control;
use controls::Controls;
pub use spread::Tick;
pub(super) use spread::fit_tick;
use spread::{at_share, slope, sorted};
#[cfg(test)]
pub(super) use tests::paused;

words! {
    /// Whether Nagle's algorithm acts at a sender.
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

/// Judgement on one sender. Times in nanoseconds; None where there is no sample.
///
/// A hold is the time for which the receiver held an ACK. A release is the time from the passing of an ACK to that of
/// the segment that it freed, less the round trip from the capture to the sender.
#[derive(Debug, Clone, Default)]
pub struct SenderVerdict {
    pub nagle_use: NagleUse,
    /// Observations in favour of Nagle's algorithm or against it.
    pub opportunities: u64,
    /// Held ACKs, and those of them after which the freed segment left as promptly as a kernel sends.
    pub held: usize,
    pub prompt_releases: usize,
    /// Lone small segments acknowledged at once, although the receiver could have delayed that ACK.
    pub prompt: u64,
    /// The receiver's ACKs are late both by more and by less than the shortest delayed-ACK timer: no timer does that.
    pub is_scattered: bool,
    /// Frames freed in one batch, by ACKs that one tick of the receiver sent: later than one alone, but by the kernel.
    pub batched_frames: Vec<u64>,
    /// Small segments that left over unacknowledged small ones.
    pub refuted: u64,
    /// Slope of the whole wait against the wait for the ACK: 1 follows the ACKs, 0 is a pause of one length.
    pub slope: Option<f64>,
    /// Best round trips from the capture to the sender and to the receiver.
    pub sender_rtt: i64,
    pub receiver_rtt: i64,
    /// The sender's kernel has answered by itself, so `sender_rtt` contains no program's time.
    pub rtt_is_best: bool,
    /// Upper bound on the release of a segment that a kernel sent.
    pub prompt_limit_ns: i64,
    /// Release beyond which the program wrote the segment after the ACK; None if timestamps do not show the path's
    /// share.
    pub pause_limit: Option<i64>,
    /// The sender's timestamps show the path's share of a release.
    pub clock_shows_path: bool,
    /// Upper bounds on the release beside the sender: of its kernel, and of a slow kernel.
    pub kernel_limits: [i64; 2],
    /// Variation of the round trip to the sender: including a program's time, and without the time it always takes.
    pub sender_jitter: i64,
    pub sender_jitter_within_kind: i64,
    pub hold_min: Option<i64>,
    pub hold_median: Option<i64>,
    pub hold_max: Option<i64>,
    pub release_median: Option<i64>,
    /// Median release without the path's share, where `clock_shows_path`; else `release_median`.
    pub sent_median: Option<i64>,
    pub release_p95: Option<i64>,
    pub release_max: Option<i64>,
    /// Scheduler tick of the receiver on which its holds end.
    pub tick: Option<Tick>,
    /// Longest recent time to an ACK of the receiver, at most a delayed ACK beyond the path.
    pub to_answer: i64,
    /// All messages begin with the kernel's probe timer: a cork that is never cleared.
    pub is_always_corked: bool,
    /// Some messages may begin with that timer: a cork that is set at times.
    pub is_sometimes_corked: bool,
    /// Answers end on a timer's tick after about the length of a held ACK, which must be on another connection.
    pub waits_elsewhere: bool,
    /// Connections with any evidence, those on which Nagle's algorithm acts, and those that refute it.
    pub streams: usize,
    pub nagle_streams: usize,
    pub nodelay_streams: usize,
    /// Change of the socket option during the capture, if there was exactly one.
    pub change: Option<Change>,
    /// Pauses of the program where nothing was held.
    pub controls: Controls,
}

/// Judgements on all senders, by their numbers.
#[derive(Debug, Default)]
pub struct Senders {
    judged: Vec<SenderVerdict>,
    /// Amount of evidence behind each judgement; None before the first.
    judged_with: Vec<Option<u64>>,
}

impl Senders {
    /// Judges all senders by the round trips known now. Before the last time (`is_last`), a judgement stands until its
    /// evidence has grown by `GROWN`, as slopes are expensive. After an eviction it stands until there is new evidence.
    pub fn judge(&mut self, store: &SenderStore, pairs: &Pairs, is_last: bool) -> &[SenderVerdict] {
        self.judged.resize_with(store.len(), SenderVerdict::default);
        self.judged_with.resize(store.len(), None);
        for ((evidence, judged), before) in store.iter().zip(&mut self.judged).zip(&mut self.judged_with) {
            let starts = &evidence.starts;
            let observations = evidence.observations() + starts.count() + starts.prompt_count;
            let stands = before.is_some_and(|judged_with| {
                evidence.is_quiet()
                    || judged_with == observations && judged.has_same_path(evidence, pairs)
                    || !is_last && (observations as f64) < judged_with as f64 * (1.0 + GROWN.get())
            });
            if !stands {
                *judged = SenderVerdict::new(evidence, pairs);
                *before = Some(observations);
            }
        }
        &self.judged
    }

    /// Returns the latest judgements, by the senders' numbers.
    pub fn all(&self) -> &[SenderVerdict] {
        &self.judged
    }

    /// Evicts the evidence on the longest-idle senders. Their judgements stay, without single waits.
    #[cold]
    pub fn evict(&mut self, store: &mut SenderStore, pairs: &Pairs) {
        for id in store.least_recently_used() {
            self.evict_sender(id, store, pairs);
        }
    }

    fn evict_sender(&mut self, id: u32, store: &mut SenderStore, pairs: &Pairs) {
        let index = id as usize;
        let slots = self.judged.get_mut(index).zip(self.judged_with.get_mut(index));
        if let Some((evidence, (judged, judged_with))) = store.get(id).zip(slots) {
            *judged = SenderVerdict::new(evidence, pairs);
            (judged.controls, judged.batched_frames) = Default::default();
            *judged_with = Some(0);
            store.evict(id);
        }
    }
}

impl SenderVerdict {
    /// Judges a sender. The order of the steps matters: later ones read the fields that earlier ones set.
    pub fn new(evidence: &SenderEvidence, pairs: &Pairs) -> SenderVerdict {
        let sender = evidence.key.sender;
        let [sender_rtt, receiver_rtt] = round_trips(evidence, pairs);
        let mut judged = SenderVerdict {
            opportunities: evidence.observations(),
            sender_rtt,
            receiver_rtt,
            ..SenderVerdict::default()
        };
        let [path, to_receiver] = [sender, sender.other()].map(|side| pairs.rtt(evidence.pair, side));
        judged.sender_jitter = path.map_or(0, |rtt| rtt.jitter_above_best());
        judged.sender_jitter_within_kind = path.map_or(0, |rtt| rtt.jitter_within_kind());
        judged.rtt_is_best = path.is_none_or(|rtt| rtt.has_recent_kernel_answer());
        judged.prompt_limit_ns = if judged.sender_rtt < AT_HOST_NS.get() {
            // there is no path to vary, and a program's time to answer shows nothing of the kernel
            judged.sender_jitter = path
                .map_or(0, |rtt| rtt.kernel_jitter_above_best())
                .min(SOON_NS.get());
            judged.kernel_limits = kernel::limits(
                [path, to_receiver],
                judged.sender_jitter,
                [judged.sender_rtt, judged.receiver_rtt],
            );
            KERNEL_NS.get().max(judged.sender_jitter)
        } else {
            prompt::limit(path)
        };
        judged.is_scattered = holds::are_scattered(evidence, &judged);
        judged.clock_shows_path = prompt::clock_shows_path(&evidence.candidates, &judged);
        judged.pause_limit = prompt::limit_by_clock(&evidence.candidates, &judged);
        judged.prompt = holds::count_prompt_acks(evidence, judged.receiver_rtt);
        judged.batched_frames = together::freed_in_batches(&evidence.candidates, &judged);
        let held = judged.count_releases(evidence.candidates.iter(), evidence.refutations);
        judged.slope = slope(&held);
        judged.measure_holds(&held);
        let latest = to_receiver.map_or(0, |rtt| rtt.longest());
        judged.to_answer = latest.min(CORK_ROUND_NS.get()).max(judged.receiver_rtt);
        let cork_use = |to_answer| cork::cork_use(&evidence.starts, [judged.sender_rtt, to_answer]);
        judged.is_sometimes_corked = cork_use(judged.receiver_rtt).0;
        judged.is_always_corked = cork_use(judged.to_answer).1;
        judged.waits_elsewhere = elsewhere::on_tick(&evidence.starts, judged.sender_rtt);
        judged.controls = Controls::new(evidence, &judged);
        judged.decide(evidence);
        judged.change = change::find(evidence, &judged);
        judged
    }

    /// Sets the verdict on the whole sender, which is shown in a table and decides where no control group does.
    fn decide(&mut self, evidence: &SenderEvidence) {
        let stalls = evidence
            .candidates
            .iter()
            .filter(|candidate| self.is_held(candidate) && self.is_stall(candidate));
        let stalls: Vec<u32> = stalls.map(|candidate| candidate.stream).collect();
        let refuted_share = self.refuted as f64 / (self.held as f64 + self.refuted as f64).max(1.0);
        self.nagle_use = if !stalls.is_empty() && self.refuted >= SEVERAL.get() as u64 {
            NagleUse::Mixed
        } else if !stalls.is_empty() {
            NagleUse::Acts
        } else if refuted_share * OUTLIER_ONE_IN.get() as f64 > 1.0 && self.refuted_often() {
            // several small writes in a queue leave at once but for the last (tcp_nagle_test), which looks like
            // refutations. Two held segments that both follow their ACKs within AT_HOST_NS are no chance: (AT_HOST_NS /
            // hold)^2
            let instant = self.sender_rtt < AT_HOST_NS.get()
                && self.release_max.is_some_and(|max| max <= AT_HOST_NS.get());
            if instant && self.held >= 2 {
                NagleUse::Unknown
            } else {
                NagleUse::Off
            }
        } else if self.pauses_explain_most(evidence) {
            NagleUse::AppPause
        } else {
            NagleUse::Unknown
        };
        [self.streams, self.nagle_streams, self.nodelay_streams] = self.controls.streams(stalls);
    }

    /// Whether refutations are too many for chance: several, or a large share of the opportunities.
    fn refuted_often(&self) -> bool {
        self.refuted >= SEVERAL.get() as u64
            || self.refuted * OUTLIER_ONE_IN.get() as u64 > self.opportunities
    }

    /// Whether the program's own pauses explain most waits that ended with held ACKs.
    fn pauses_explain_most(&self, evidence: &SenderEvidence) -> bool {
        let held = evidence
            .candidates
            .iter()
            .filter(|candidate| self.is_held(candidate));
        let explained = held.filter(|candidate| {
            let control = self.compare(candidate);
            matches!(control, Control::Explains { .. })
        });
        2 * explained.count() > self.held
    }

    /// Whether the receiver held this ACK, which carried nothing else.
    pub(super) fn is_held(&self, candidate: &Candidate) -> bool {
        candidate.is_pure_ack() && !candidate.is_ack_unseen && HELD_NS.contains(self.hold_ns(candidate))
    }

    /// Returns for how long the receiver held this ACK, without the path's share.
    pub(in crate::judge) fn hold_ns(&self, candidate: &Candidate) -> i64 {
        candidate.covered_ns() - self.receiver_rtt - candidate.ack_late
    }

    /// Whether Nagle's algorithm made this wait for a held ACK beyond doubt.
    fn is_stall(&self, candidate: &Candidate) -> bool {
        !self.left_before_ack(candidate)
            && self.is_prompt(candidate)
            && !self.may_be_pause(candidate)
            && self.proves_nagle(candidate.stream, self.compare(candidate))
    }

    /// Whether the round trips are still those of this judgement.
    fn has_same_path(&self, evidence: &SenderEvidence, pairs: &Pairs) -> bool {
        [self.sender_rtt, self.receiver_rtt] == round_trips(evidence, pairs)
    }

    /// Sets the counts and releases of these candidates, and returns the held ones. `refuted` are refutations besides
    /// them.
    pub(super) fn count_releases<'a>(
        &mut self,
        candidates: impl Iterator<Item = &'a Candidate>,
        refuted: u64,
    ) -> Vec<&'a Candidate> {
        self.refuted = refuted;
        let mut held: Vec<&Candidate> = Vec::new();
        for candidate in candidates {
            if self.left_before_ack(candidate) {
                self.refuted += 1;
            } else if self.is_held(candidate) {
                held.push(candidate);
            }
        }
        self.held = held.len();
        self.prompt_releases = held.iter().filter(|candidate| self.is_prompt(candidate)).count();
        let releases = sorted(held.iter().map(|candidate| self.late_ns(candidate).max(0)));
        (self.release_median, self.release_p95) = (at_share(&releases, 0.5), at_share(&releases, 0.95));
        self.release_max = releases.last().copied();
        self.sent_median = self.release_median;
        if self.clock_shows_path {
            let sent = sorted(held.iter().map(|candidate| self.sent_late_ns(candidate).max(0)));
            self.sent_median = at_share(&sent, 0.5);
        }
        held
    }

    /// Sets the lengths of these holds and the tick on which they end.
    pub(super) fn measure_holds(&mut self, held: &[&Candidate]) {
        let holds = sorted(held.iter().map(|candidate| self.hold_ns(candidate)));
        (self.hold_min, self.hold_median) = (holds.first().copied(), at_share(&holds, 0.5));
        self.hold_max = holds.last().copied();
        self.tick = fit_tick(held.iter().map(|candidate| candidate.ack.time_ns));
    }

    /// Whether a segment left before the ACK can have reached its sender: by the timestamps, else by the best round
    /// trip less its variation.
    pub(super) fn left_before_ack(&self, candidate: &Candidate) -> bool {
        match candidate.arrived {
            Some(arrived) => !arrived,
            None => {
                let most = AT_HOST_NS.get().max(self.sender_rtt / LARGE_RATIO.get());
                candidate.release_ns() < self.sender_rtt - self.sender_jitter.clamp(AT_HOST_NS.get(), most)
            }
        }
    }

    /// Whether a kernel sent the freed segments, by their median release: as soon as a kernel does beside the sender,
    /// and elsewhere within the path's variation and a busy host's delay.
    ///
    /// Two others follow held ACKs too: a program that sleeps until a tick of the receiver's kernel (on the same host,
    /// or by a socket's timeout), and a relay whose own server waits for such a timer. Both are later: the program has
    /// to be woken up, and the relay's bytes have their own path.
    fn kernel_sends_most(&self) -> bool {
        let limit = if self.sender_rtt < AT_HOST_NS.get() {
            AT_HOST_NS.get() + self.sender_jitter
        } else {
            SOON_NS.get() + self.sender_jitter_within_kind
        };
        self.sent_median.is_some_and(|release| release <= limit)
    }

    /// Whether a kernel sent one segment `late` ns after the ACK: seen beside the sender, on a connection without early
    /// ones.
    pub(super) fn sent_by_kernel(&self, stream: u32, late: i64) -> bool {
        self.sender_rtt < AT_HOST_NS.get()
            && late <= AT_HOST_NS.get()
            && self.nagle_use != NagleUse::Off
            && self.controls.may_be_kernels()
            && self.controls.follows_alone(stream)
    }
}

/// Whether the capture's times are whole milliseconds, and more than one release in three took one or more. A round
/// trip of 0 then does not show that the capture was taken at this host.
fn has_millisecond_times(evidence: &SenderEvidence) -> bool {
    let is_whole = |candidate: &Candidate| {
        [candidate.ack.time_ns, candidate.wait_ns(), candidate.release_ns()].map(|ns| ns % TICK_NS) == [0; 3]
    };
    let away = evidence
        .candidates
        .iter()
        .filter(|candidate| candidate.release_ns() >= TICK_NS)
        .count();
    evidence.candidates.len() >= MIN_SAMPLES.get()
        && MAJORITY_ONE_IN.get() * away > evidence.candidates.len()
        && evidence.candidates.iter().all(is_whole)
}

/// Returns the best round trips to a sender and to its receiver. Where only programs answered at the sender's host, a
/// segment that echoes the timestamp of the ACK before it (RFC 7323 4.3) bounds the first: the ACK had arrived by then.
fn round_trips(evidence: &SenderEvidence, pairs: &Pairs) -> [i64; 2] {
    let rtt = |side: Side| pairs.min(evidence.pair, side).unwrap_or(0);
    let least_rtt = if has_millisecond_times(evidence) {
        AT_HOST_NS.get()
    } else {
        0
    };
    let (sender, receiver) = (
        rtt(evidence.key.sender).max(least_rtt),
        rtt(evidence.key.sender.other()),
    );
    let path = pairs.rtt(evidence.pair, evidence.key.sender);
    if path.is_none_or(Rtt::has_kernel_answer) {
        return [sender, receiver];
    }
    let echoed = evidence
        .candidates
        .iter()
        .filter(|candidate| candidate.arrived == Some(true) && !candidate.is_ack_unseen);
    let soonest = echoed.map(|candidate| candidate.release_ns().max(0)).min();
    [soonest.map_or(sender, |release| release.min(sender)), receiver]
}

#[cfg(test)]
mod tests;
