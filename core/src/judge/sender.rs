//! Judges one sender by all evidence on it: whether Nagle's algorithm acts there, is off, or its program pauses. Reads
//! a `SenderEvidence` and the round trips of the path; returns a `SenderVerdict`.

mod controls;
mod holds;
mod kernel;
mod path;
mod prompt;
mod spread;
mod together;
mod wait;

use crate::base::word_enum;
use crate::evidence::rtt::Pairs;
use crate::evidence::{SenderEvidence, SenderStore};
use crate::observe::Candidate;

use super::{Change, change, cork, elsewhere};
use crate::limits::{AT_HOST_NS, GROWN, OUTLIER_ONE_IN, SEVERAL, SOON_NS};
pub use controls::Control;
use controls::Controls;
pub use path::SenderPath;
use prompt::Promptness;
pub use spread::Tick;
pub(super) use spread::fit_tick;
use spread::{at_share, slope, sorted};
#[cfg(test)]
pub(super) use tests::paused;

word_enum! {
    /// Whether Nagle's algorithm acts at a sender.
    NagleUse:
    "nagle" Acts "the freed segments follow the ACKs"
    "nodelay" Off "small segments left over unacknowledged small ones"
    "pause" AppPause "the program's own pause ends near the ACK: the releases do not move with it"
    "mixed" Mixed "its connections differ: Nagle's algorithm acts on some of them only"
    "open" Unknown "too little evidence"
}

#[allow(clippy::derivable_impls)] // `word_enum!` gives its variants no attributes
impl Default for NagleUse {
    fn default() -> Self {
        NagleUse::Unknown
    }
}

/// Held ACKs of a receiver, and what its sender released after them. Times in ns; None where there is no sample.
#[derive(Debug, Clone, Default)]
pub struct Holds {
    pub count: usize,
    /// Holds after which the freed segment left as promptly as a kernel sends.
    pub prompt_count: usize,
    pub shortest_ns: Option<i64>,
    pub median_ns: Option<i64>,
    pub longest_ns: Option<i64>,
    /// Scheduler tick of the receiver on which its holds end.
    pub tick: Option<Tick>,
    /// Slope of the whole wait against the wait for the ACK: 1 follows the ACKs, 0 is a pause of one length.
    pub slope: Option<f64>,
    pub release_median_ns: Option<i64>,
    pub release_p95_ns: Option<i64>,
    pub release_max_ns: Option<i64>,
    /// Median release without the path's share, where the sender's timestamps show it; else `release_median_ns`.
    pub sent_median_ns: Option<i64>,
}

/// Numbers of connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamCounts {
    /// With any evidence.
    pub all: usize,
    /// On which Nagle's algorithm acts.
    pub nagle: usize,
    /// With early segments and no stalls.
    pub nodelay: usize,
}

/// What the evidence on one sender shows of its path, its holds and its pauses.
#[derive(Debug, Clone, Default)]
pub struct SenderMeasures {
    pub path: SenderPath,
    pub holds: Holds,
    /// Observations in favour of Nagle's algorithm or against it.
    pub opportunities: u64,
    /// Small segments that left over unacknowledged small ones.
    pub refuted: u64,
    /// Lone small segments acknowledged at once, although the receiver could have delayed that ACK.
    pub prompt: u64,
    /// The receiver's ACKs are late both by more and by less than the shortest delayed-ACK timer: no timer does that.
    pub is_scattered: bool,
    /// Frames freed in one batch, by ACKs that one tick of the receiver sent: later than one alone, but by the kernel.
    pub batched_frames: Vec<u64>,
    /// All messages begin with the kernel's probe timer: a cork that is never cleared.
    pub is_always_corked: bool,
    /// Some messages may begin with that timer: a cork that is set at times.
    pub is_sometimes_corked: bool,
    /// Answers end on a timer's tick after about the length of a held ACK, which must be on another connection.
    pub waits_elsewhere: bool,
    /// Pauses of the program where nothing was held.
    pub controls: Controls,
}

/// Judgement on one sender.
#[derive(Debug, Clone, Default)]
pub struct SenderVerdict {
    pub measures: SenderMeasures,
    /// Shown in a table, and decides where no control group does.
    pub nagle_use: NagleUse,
    pub streams: StreamCounts,
    /// Change of the socket option during the capture, if there was exactly one.
    pub change: Option<Change>,
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
                    || judged_with == observations && judged.measures.path.has_same_rtts(evidence, pairs)
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
            let measures = &mut judged.measures;
            (measures.controls, measures.batched_frames) = Default::default();
            *judged_with = Some(0);
            store.evict(id);
        }
    }
}

impl SenderVerdict {
    /// Judges a sender.
    pub fn new(evidence: &SenderEvidence, pairs: &Pairs) -> SenderVerdict {
        let measures = SenderMeasures::new(evidence, pairs);
        let stalled_streams = measures.stalled_streams(&evidence.candidates);
        let nagle_use = measures.nagle_use(!stalled_streams.is_empty(), &evidence.candidates);
        SenderVerdict {
            nagle_use,
            streams: measures.controls.count_streams(stalled_streams),
            change: change::find(evidence, &measures, nagle_use),
            measures,
        }
    }

    /// Whether a kernel sent one segment `late_ns` after the ACK: seen beside the sender, on a connection without early
    /// ones.
    pub(super) fn sent_by_kernel(&self, stream: u32, late_ns: i64) -> bool {
        let controls = &self.measures.controls;
        self.measures.path.is_at_sender()
            && late_ns <= AT_HOST_NS.get()
            && self.nagle_use != NagleUse::Off
            && controls.may_be_kernels()
            && controls.follows_alone(stream)
    }
}

impl Holds {
    fn new(candidates: &[Candidate], promptness: Promptness<'_>) -> Holds {
        let path = promptness.path;
        let is_held = |candidate: &&Candidate| !path.left_before_ack(candidate) && path.is_held(candidate);
        let held: Vec<&Candidate> = candidates.iter().filter(is_held).collect();
        let holds = sorted(held.iter().map(|candidate| path.hold_ns(candidate)));
        let releases = sorted(held.iter().map(|candidate| path.late_ns(candidate).max(0)));
        let sent = path
            .clock_shows_path
            .then(|| sorted(held.iter().map(|candidate| path.sent_late_ns(candidate).max(0))));
        let release_median_ns = at_share(&releases, 0.5);
        let prompt = held.iter().filter(|candidate| promptness.is_prompt(candidate));
        Holds {
            count: held.len(),
            prompt_count: prompt.count(),
            shortest_ns: holds.first().copied(),
            median_ns: at_share(&holds, 0.5),
            longest_ns: holds.last().copied(),
            tick: fit_tick(held.iter().map(|candidate| candidate.ack.time_ns)),
            slope: slope(&held),
            release_median_ns,
            release_p95_ns: at_share(&releases, 0.95),
            release_max_ns: releases.last().copied(),
            sent_median_ns: sent.map_or(release_median_ns, |sent| at_share(&sent, 0.5)),
        }
    }
}

impl SenderMeasures {
    fn new(evidence: &SenderEvidence, pairs: &Pairs) -> SenderMeasures {
        let path = SenderPath::new(evidence, pairs);
        let candidates = &evidence.candidates;
        let batched_frames = together::freed_in_batches(candidates, &path);
        let promptness = Promptness {
            path: &path,
            batched_frames: &batched_frames,
        };
        let cork_use = |longest_ack| cork::cork_use(&evidence.starts, path.sender_rtt_ns, longest_ack);
        let left_early = candidates
            .iter()
            .filter(|candidate| path.left_before_ack(candidate));
        SenderMeasures {
            holds: Holds::new(candidates, promptness),
            opportunities: evidence.observations(),
            refuted: evidence.refutations + left_early.count() as u64,
            prompt: holds::count_prompt_acks(evidence, path.receiver_rtt_ns),
            is_scattered: holds::are_scattered(evidence, &path),
            is_sometimes_corked: cork_use(path.receiver_rtt_ns).0,
            is_always_corked: cork_use(path.longest_ack_ns).1,
            waits_elsewhere: elsewhere::on_tick(&evidence.starts, path.sender_rtt_ns),
            controls: Controls::new(evidence, promptness),
            path,
            batched_frames,
        }
    }

    /// Returns the streams of the waits for held ACKs that Nagle's algorithm made, one for each wait.
    fn stalled_streams(&self, candidates: &[Candidate]) -> Vec<u32> {
        let stalls = candidates
            .iter()
            .filter(|candidate| self.path.is_held(candidate) && self.is_stall(candidate));
        stalls.map(|candidate| candidate.stream).collect()
    }

    /// Returns whether Nagle's algorithm acts at this sender as a whole.
    fn nagle_use(&self, has_stalls: bool, candidates: &[Candidate]) -> NagleUse {
        let refuted_share = self.refuted as f64 / (self.holds.count as f64 + self.refuted as f64).max(1.0);
        if has_stalls && self.refuted >= SEVERAL.get() as u64 {
            NagleUse::Mixed
        } else if has_stalls {
            NagleUse::Acts
        } else if refuted_share * OUTLIER_ONE_IN.get() as f64 > 1.0 && self.refuted_often() {
            // several small writes in a queue leave at once but for the last (tcp_nagle_test), which looks like
            // refutations. Two held segments that both follow their ACKs within AT_HOST_NS are no chance: (AT_HOST_NS /
            // hold)^2
            let are_instant = self.path.is_at_sender()
                && self
                    .holds
                    .release_max_ns
                    .is_some_and(|max| max <= AT_HOST_NS.get());
            if are_instant && self.holds.count >= 2 {
                NagleUse::Unknown
            } else {
                NagleUse::Off
            }
        } else if self.pauses_explain_most(candidates) {
            NagleUse::AppPause
        } else {
            NagleUse::Unknown
        }
    }

    /// Whether refutations are too many for chance: several, or a large share of the opportunities.
    fn refuted_often(&self) -> bool {
        self.refuted >= SEVERAL.get() as u64
            || self.refuted * OUTLIER_ONE_IN.get() as u64 > self.opportunities
    }

    /// Whether the program's own pauses explain most waits that ended with held ACKs.
    fn pauses_explain_most(&self, candidates: &[Candidate]) -> bool {
        let held = candidates.iter().filter(|candidate| self.path.is_held(candidate));
        let explained = held.filter(|candidate| {
            let control = self.compare(candidate);
            matches!(control, Control::Explains { .. })
        });
        2 * explained.count() > self.holds.count
    }

    /// Whether Nagle's algorithm made this wait for a held ACK beyond doubt.
    fn is_stall(&self, candidate: &Candidate) -> bool {
        !self.path.left_before_ack(candidate)
            && self.is_prompt(candidate)
            && !self.may_be_pause(candidate)
            && self.proves_nagle(candidate.stream, self.compare(candidate))
    }

    /// Whether a kernel sent the freed segments, by their median release: as soon as a kernel does beside the sender,
    /// and elsewhere within the path's variation and a busy host's delay.
    ///
    /// Two others follow held ACKs too: a program that sleeps until a tick of the receiver's kernel (on the same host,
    /// or by a socket's timeout), and a relay whose own server waits for such a timer. Both are later: the program has
    /// to be woken up, and the relay's bytes have their own path.
    fn kernel_sends_most(&self) -> bool {
        let limit = if self.path.is_at_sender() {
            AT_HOST_NS.get() + self.path.sender_jitter_ns
        } else {
            SOON_NS.get() + self.path.jitter_within_kind_ns
        };
        self.holds.sent_median_ns.is_some_and(|release| release <= limit)
    }
}

#[cfg(test)]
mod tests;
