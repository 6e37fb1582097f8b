//! The control group: pauses of a sender's program between two writes where nothing held the second one back.
//!
//! A segment that follows a held ACK shows that something ended with that ACK, not that the kernel had the bytes all
//! the time. Where the ACK was not held, or the segment left before it, the pause is the program's own. A wait as long
//! as such pauses is the program's. Of a longer one the program took at most the longest pause, or 1.5 times a single
//! one.
//!
//! Example: writes 1 ms apart where ACKs are prompt, and waits of 41 ms that end with held ACKs. The program explains 1
//! ms of each wait, and Nagle's algorithm with the delayed ACK the rest.

mod group;

use std::sync::OnceLock;

use ahash::AHashMap;

pub(super) use self::group::Pause;
use self::group::{Group, partition_about};
#[cfg(test)]
use super::SenderPath;
use super::StreamCounts;
use super::prompt::Promptness;
use super::spread::{at_share, sorted};
use crate::evidence::SenderEvidence;
use crate::limits::{
    HELD_AWAY, HELD_NS, LONGER_TIMES, MAJORITY_ONE_IN, MIN_SAMPLES, NOISE_NS, OUTLASTED, OUTLIER_ONE_IN,
    PROMPT_NS, SEVERAL, SOON_NS, UNHELD_NS,
};
use crate::observe::Candidate;

/// What the control group shows of one wait. Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The group is empty.
    Nothing,
    /// Pauses are shorter than the wait: the program took at most `max_ns` of it, about `likely_ns` if `exact`.
    Shorter {
        max_ns: i64,
        likely_ns: i64,
        exact: bool,
    },
    /// Pauses are as long as the wait. `likely_ns` is the median of the shorter ones, half the wait if there are none.
    Explains { likely_ns: i64 },
    /// Some pauses are as long, or all are longer: the program may have taken any part of the wait.
    Unclear,
}

/// The control group of one sender.
#[derive(Debug, Clone, Default)]
pub struct Controls {
    /// Pauses of all streams, in order of capture.
    all: Lists,
    /// Sorted copies, made upon the first comparison: most senders never need them.
    sorted: OnceLock<Sorted>,
    /// Waits whose freed segment did not leave promptly after a held ACK, rising.
    late_waits: Vec<i64>,
    /// The path does not explain one of `late_waits`: the program took longer than the hold.
    has_written_late: bool,
    /// Longest wait that ended promptly after a held ACK.
    longest_held_ns: i64,
    /// Held ACKs, seen beside the sender, that were followed a little later than a busy host explains.
    slightly_late: usize,
    /// Bytes of the largest segment sent where the ACK was not held.
    most_bytes: u32,
    /// Bytes of the largest second segment of a message.
    second_bytes: u32,
    /// A message had a third segment where nothing was held.
    has_third: bool,
    /// The program paused before a third or later segment of a message where nothing was held.
    goes_on: bool,
    /// The capture lacks ACKs, and so perhaps requests inside what looks like one message.
    lacks_acks: bool,
    /// Frames of the first and the last segment sent before its ACK, by stream.
    early: AHashMap<u32, [u64; 2]>,
    /// Held ACKs that were followed soon.
    soon_count: usize,
    /// Those of them that were followed within `KernelLimits::prompt_ns`.
    kernel_count: usize,
    /// Those of them that were followed within `KernelLimits::slow_ns`.
    slow_kernel_count: usize,
    /// The capture was taken at the sender's host.
    is_at_host: bool,
}

#[derive(Debug, Clone, Default)]
struct Lists {
    /// Pauses where the ACK was not held.
    unheld: Vec<Pause>,
    /// Pauses whose segment left before the ACK.
    early: Vec<Pause>,
    /// Pauses that outlasted a held ACK by more than a busy host explains.
    outlasting: Vec<Pause>,
    /// Streams of the held ACKs that were followed promptly, once for each.
    held: Vec<u32>,
}

/// Pauses in rising order.
#[derive(Debug, Clone)]
struct Sorted {
    all: Lists,
    by_stream: AHashMap<u32, Lists>,
}

impl Sorted {
    fn new(lists: &Lists) -> Sorted {
        let mut all = lists.clone();
        all.unheld.sort_unstable_by_key(Pause::rank);
        all.early.sort_unstable_by_key(Pause::rank);
        all.outlasting.sort_unstable_by_key(Pause::rank);
        let mut by_stream: AHashMap<u32, Lists> = AHashMap::new();
        for pause in &all.unheld {
            by_stream.entry(pause.stream).or_default().unheld.push(*pause);
        }
        for pause in &all.early {
            by_stream.entry(pause.stream).or_default().early.push(*pause);
        }
        for pause in &all.outlasting {
            by_stream.entry(pause.stream).or_default().outlasting.push(*pause);
        }
        for stream in &all.held {
            by_stream.entry(*stream).or_default().held.push(*stream);
        }
        Sorted { all, by_stream }
    }
}

impl Controls {
    /// Sorts the evidence on a sender into the lists of pauses.
    pub(super) fn new(evidence: &SenderEvidence, promptness: Promptness<'_>) -> Controls {
        let path = promptness.path;
        let mut controls = Controls {
            is_at_host: path.is_at_sender(),
            ..Controls::default()
        };
        let early = evidence.early.iter().map(|(stream, early)| Pause {
            stream: *stream,
            ns: early.pause_ns,
            exact: true,
        });
        controls.all.early.extend(early);
        for (stream, early) in &evidence.early {
            controls.left_before(*stream, early.frame);
        }
        // newest candidate of each stream that a held ACK freed
        let mut freed: AHashMap<u32, &Candidate> = AHashMap::new();
        for candidate in &evidence.candidates {
            let sent_at = candidate.small.time_ns;
            let held = freed
                .get(&candidate.stream)
                .filter(|held| held.freed.time_ns == sent_at);
            // a larger segment may hold several writes, the last of which waited for less time
            let written = held.filter(|held| held.freed_bytes <= candidate.freed_bytes);
            controls.add(candidate, written.map_or(0, |held| held.total_ns()), promptness);
            if path.is_held(candidate) {
                freed.insert(candidate.stream, candidate);
            }
        }
        controls.late_waits.sort_unstable();
        controls
    }

    /// Returns the group with these pauses where nothing was held.
    #[cfg(test)]
    pub(super) fn paused(unheld: Vec<Pause>) -> Controls {
        let all = Lists {
            unheld,
            ..Lists::default()
        };
        Controls {
            all,
            ..Controls::default()
        }
    }

    /// Makes the program one that writes segments of this size again and again within a message.
    #[cfg(test)]
    pub(super) fn writes(&mut self, bytes: u32) {
        (self.most_bytes, self.goes_on) = (bytes, true);
    }

    /// Adds a candidate. Its small segment may have been written up to `before` ns before it left: the pause began
    /// then.
    fn add(&mut self, candidate: &Candidate, before: i64, promptness: Promptness<'_>) {
        let path = promptness.path;
        let pause = |exact| Pause {
            stream: candidate.stream,
            ns: candidate.total_ns() + if exact { before } else { 0 },
            exact,
        };
        if path.left_before_ack(candidate) {
            self.all.early.push(pause(true));
            self.left_before(candidate.stream, candidate.freed.frame);
            return;
        }
        if candidate.is_ack_unseen {
            self.lacks_acks = true;
            return; // the time of the ACK is too coarse
        }
        let late_ns = path.late_ns(candidate);
        let is_prompt = promptness.is_prompt(candidate);
        if path.is_held(candidate) {
            self.soon_count += usize::from(!path.outlasts(late_ns));
            let limits = path.kernel_limits;
            self.kernel_count += usize::from(promptness.is_by_kernel(candidate, limits.prompt_ns));
            self.slow_kernel_count += usize::from(promptness.is_by_kernel(candidate, limits.slow_ns));
            self.slightly_late +=
                usize::from(self.is_at_host && late_ns > SOON_NS.get() && !path.outlasts(late_ns));
            if is_prompt {
                self.all.held.push(candidate.stream);
                self.longest_held_ns = self.longest_held_ns.max(candidate.total_ns());
            } else {
                self.late_waits.push(candidate.total_ns());
                self.has_written_late |= path.wrote_after_ack(candidate);
                if path.outlasts(late_ns) {
                    self.all.outlasting.push(pause(true));
                }
            }
        } else if candidate.is_pure_ack()
            && !candidate.is_after_peer_end
            // `ack_late` is not subtracted: the hold of an ACK that the path delayed is not known well enough
            && candidate.covered_ns() - path.receiver_rtt_ns < UNHELD_NS.get()
        {
            let pause = pause(!is_prompt);
            self.goes_on |= !candidate.begins_message && !pause.is_at_once();
            self.all.unheld.push(pause);
            self.most_bytes = self.most_bytes.max(candidate.freed_bytes);
            if candidate.begins_message {
                self.second_bytes = self.second_bytes.max(candidate.freed_bytes);
            }
            self.has_third |= !candidate.begins_message;
        }
    }

    fn left_before(&mut self, stream: u32, frame: u64) {
        let [first, last] = self.early.entry(stream).or_insert([frame; 2]);
        (*first, *last) = (frame.min(*first), frame.max(*last));
    }

    /// Whether this frame lies between segments of its stream that left before their ACKs. Outside of them the option
    /// may have been set otherwise.
    pub(in crate::judge) fn leaves_early(&self, stream: u32, frame: u64) -> bool {
        let early = self.early.get(&stream);
        early.is_some_and(|[first, last]| (*first..=*last).contains(&frame))
    }

    fn sorted(&self) -> &Sorted {
        self.sorted.get_or_init(|| Sorted::new(&self.all))
    }

    fn whole_group(&self) -> Group<'_> {
        Group::new(&self.sorted().all)
    }

    fn stream_group(&self, stream: u32) -> Group<'_> {
        let lists = self.sorted().by_stream.get(&stream);
        lists.map(Group::new).unwrap_or_default()
    }

    /// Compares a wait with the pauses of its own connection, or of all connections where that one shows nothing.
    pub(in crate::judge) fn compare(&self, stream: u32, wait: i64) -> Control {
        let group = self.stream_group(stream);
        let overall = self.whole_group().compare(wait);
        let control = match (group.compare(wait), overall) {
            // segments sent early on other connections show that those have TCP_NODELAY: an upper bound and no more
            (Control::Nothing, Control::Shorter { max_ns, .. }) if self.all.unheld.is_empty() => {
                if !(self.is_at_host && self.always_follow()) {
                    return Control::Nothing;
                }
                Control::Shorter {
                    max_ns,
                    likely_ns: 0,
                    exact: false,
                }
            }
            (Control::Nothing, overall) => overall,
            // a few pauses do not predict the next one; writes without a pause do
            (Control::Shorter { exact: true, .. }, overall) if group.pauses() < SEVERAL.get() => overall,
            (stream_control, _) => stream_control,
        };
        // pauses of one length beyond every hold belong to other answers, and show nothing of the held ones
        if control == Control::Unclear && self.are_other_answers(wait) {
            return Control::Nothing;
        }
        control
    }

    /// Whether all pauses have one length, which is longer than this wait and than every wait for a held ACK.
    fn are_other_answers(&self, wait: i64) -> bool {
        let group = self.whole_group();
        let (below, ..) = partition_about(group.unheld, wait);
        let (early, ..) = partition_about(group.early, wait);
        let unheld = self.all.unheld.iter().map(|pause| pause.ns);
        let longer = sorted(unheld.chain(self.late_waits.iter().copied()));
        let (low, high) = (at_share(&longer, 0.05), at_share(&longer, 0.95));
        below + early == 0
            && longer.len() >= SEVERAL.get()
            && low.zip(high).is_some_and(|(low, high)| {
                high - low <= PROMPT_NS.get() && low - self.longest_held_ns >= NOISE_NS.get()
            })
    }

    /// Whether a segment that left before its ACK may hold several writes, which Nagle's algorithm held until the
    /// program set TCP_NODELAY at the end of the answer. Such a segment is larger than those sent where nothing was
    /// held, and came after a longer pause.
    pub(in crate::judge) fn may_flush(&self, wait: i64, bytes: u32) -> bool {
        let unheld = &self.sorted().all.unheld;
        let (below_count, near_count, above_count) = partition_about(unheld, wait);
        bytes > self.most_bytes
            && below_count >= SEVERAL.get()
            && OUTLIER_ONE_IN.get() * (near_count + above_count) <= unheld.len()
    }

    /// Returns how many writes a segment may hold besides the first, by the size of those sent where nothing was held.
    pub(super) fn gathered(&self, bytes: u32) -> i64 {
        let writes = bytes.div_ceil(self.most_bytes.max(1)).max(1);
        if self.goes_on() { i64::from(writes) - 1 } else { 0 }
    }

    /// Whether a segment may hold later writes although the program never paused after the second write of a message.
    /// The segment is as large as two sent where nothing was held, or, in messages of three segments, larger than any
    /// second one. Not decided where the capture lacks ACKs, as it may lack segments too.
    pub(in crate::judge) fn may_gather(&self, candidate: &Candidate) -> bool {
        let is_as_large_as_two = self.most_bytes > 0
            && candidate.freed_bytes.saturating_add(self.most_bytes / 2) / self.most_bytes > 1;
        let is_larger_than_second = self.has_third
            && candidate.begins_message
            && self.second_bytes > 0
            && candidate.freed_bytes > self.second_bytes;
        !self.goes_on && !self.lacks_acks && (is_as_large_as_two || is_larger_than_second)
    }

    /// Whether the program is known to write three times and more within a message.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on && !self.lacks_acks && self.most_bytes > 0
    }

    /// Returns the number of held ACKs that were followed promptly.
    pub(in crate::judge) fn followed(&self) -> usize {
        self.all.held.len()
    }

    /// Whether segments follow held ACKs as promptly as a kernel sends, too often for chance.
    pub(in crate::judge) fn follow(&self) -> bool {
        let held = self.followed();
        let min_held = if self.is_at_host {
            SEVERAL.get()
        } else {
            HELD_AWAY.get()
        };
        held >= min_held && self.are_kernels()
    }

    /// Whether nearly all held ACKs were followed promptly, so often that no control group is needed. A pause that
    /// outlasts a held ACK shows a program at work between the two writes, which may have worked in all of them.
    pub(in crate::judge) fn always_follow(&self) -> bool {
        let are_others = self.are_other_answers(self.longest_held_ns);
        let follow_nearly_all =
            !self.has_written_late && OUTLIER_ONE_IN.get() * self.late_waits.len() <= self.followed();
        self.followed() >= MIN_SAMPLES.get() && (are_others || follow_nearly_all) && !self.outlast()
    }

    /// Whether the program was seen, beside the sender, to pause for longer than ACKs are held, for various times: then
    /// its pauses may end within any wait.
    fn outlast(&self) -> bool {
        let reach = (self.longest_held_ns as f64 * LONGER_TIMES.get()) as i64; // longer pauses belong to other answers
        let longer = self.all.outlasting.iter().filter(|pause| pause.ns <= reach);
        let are_accidents = OUTLASTED.get() * (longer.count() + self.slightly_late) <= self.followed();
        self.is_at_host && !are_accidents && !self.are_other_answers(self.longest_held_ns)
    }

    /// Whether the program paused for about this time, beyond held ACKs, too often for chance.
    pub(super) fn pauses_for(&self, wait: i64) -> bool {
        let from = self
            .late_waits
            .partition_point(|pause| *pause < wait - PROMPT_NS.get());
        let until = self
            .late_waits
            .partition_point(|pause| *pause <= wait + PROMPT_NS.get());
        until - from >= HELD_AWAY.get()
    }

    /// Whether several held ACKs of a connection were followed promptly, and no segment left early there.
    pub(in crate::judge) fn follows_alone(&self, stream: u32) -> bool {
        let group = self.stream_group(stream);
        group.early.is_empty() && group.held >= SEVERAL.get()
    }

    /// Whether a connection does not wait for ACKs: several segments left before an ACK, after pauses as long as a
    /// hold. (Where only the option was set on the way, early segments leave right after the ones before them.)
    pub(in crate::judge) fn goes_without(&self, stream: u32) -> bool {
        let group = self.stream_group(stream);
        let early = group.early.len() - group.early.partition_point(|pause| pause.ns < HELD_NS.least());
        early >= SEVERAL.get() && OUTLIER_ONE_IN.get() * early > early + group.held
    }

    /// Whether most segments that left soon, seen beside the sender, left as promptly as its kernel sends.
    pub(in crate::judge) fn are_kernels(&self) -> bool {
        self.are_most_soon(self.kernel_count)
    }

    /// Whether most of them left as promptly as a slow kernel, or a quick relay, sends.
    pub(in crate::judge) fn may_be_kernels(&self) -> bool {
        self.are_kernels() || self.are_most_soon(self.slow_kernel_count)
    }

    /// Whether so many are most of those that were followed soon; always away from the sender.
    fn are_most_soon(&self, count: usize) -> bool {
        !self.is_at_host || MAJORITY_ONE_IN.get() * count >= (MAJORITY_ONE_IN.get() - 1) * self.soon_count
    }

    /// Counts connections. `stalls` holds the stream of each stall.
    pub(in crate::judge) fn count_streams(&self, stalls: Vec<u32>) -> StreamCounts {
        let distinct = |mut streams: Vec<u32>| {
            streams.sort_unstable();
            streams.dedup();
            streams
        };
        let held = distinct(stalls);
        let early: Vec<u32> = self.early.keys().copied().collect();
        let unheld = self.all.unheld.iter().map(|pause| pause.stream).collect();
        let every = distinct([unheld, early.clone(), self.all.held.clone()].concat());
        let off = early.iter().filter(|stream| held.binary_search(stream).is_err());
        StreamCounts {
            all: every.len(),
            nagle: held.len(),
            nodelay: off.count(),
        }
    }
}

#[cfg(test)]
mod tests;
