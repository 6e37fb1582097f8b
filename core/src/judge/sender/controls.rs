//! The control group: what a sender's program takes between the same two writes where nothing held the second one back.
//!
//! A segment that follows a held ACK shows that something ended with that ACK, not that the kernel had the bytes all the
//! time. Where the ACK was not held, or the segment left before it, the pause is the program's own. A wait that such
//! pauses explain is the program's; of any other the program had at most the longest of them, or where there is one alone
//! half as much again: it does not show how they differ.

mod group;
mod pause;

use std::sync::OnceLock;

use ahash::AHashMap;

use self::group::{Group, about};
pub(super) use self::pause::Pause;
use super::Judged;
use super::spread::at_share;
use crate::evidence::{AckWait, SenderEvidence};
use crate::limits::{
    AT_HOST_NS, HELD_AWAY, HELD_NS, LONGER_TIMES, MAJORITY_ONE_IN, MIN_SAMPLES, NOISE_NS, OUTLASTED,
    OUTLIER_ONE_IN, PROMPT_NS, SEVERAL, SOON_NS, UNHELD_NS,
};

/// What the control group shows of one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// There is none.
    Nothing,
    /// Its pauses do not reach the wait: the program took at most `most` (which may), and where it is `exact` about `likely`.
    Shorter { most: i64, likely: i64, exact: bool },
    /// Its pauses are as long as the wait; those that are shorter took about `likely`, or where there is none half of it.
    Explains { likely: i64 },
    /// Some are, or all are longer: the program may have taken any part of it.
    Unclear,
}

#[derive(Debug, Clone, Default)]
pub struct Controls {
    /// Of all streams, as they came.
    all: Lists,
    /// Made when a wait is judged by them first: of most senders none ever is.
    sorted: OnceLock<Sorted>,
    /// Held ACKs that were not followed at once: the waits until their segments left, rising; and their streams.
    late: Vec<i64>,
    /// One of them was not the path's: its program took longer than the hold.
    wrote_late: bool,
    longest_held: i64,
    /// Beside it, held ACKs that were followed later than a busy host explains, if not by much: its program wrote then.
    after_ack: usize,
    /// The most bytes of a segment that left where the ACK was not held; and of one behind its message's first.
    most_bytes: u32,
    first_bytes: u32,
    /// Where nothing was held, a message had a third segment.
    has_third: bool,
    /// Where nothing was held, its program paused again behind a later segment of its message.
    goes_on: bool,
    /// The capture lacks some ACKs, and so perhaps the requests between what looks like one message.
    lacks_acks: bool,
    /// The first and the last segment of a stream that left before their ACKs.
    early: AHashMap<u32, [u64; 2]>,
    /// Held ACKs that were followed soon, if not at once; and of them as its kernel sends, and as a slow one.
    soon: usize,
    by_kernel: [usize; 2],
    at_host: bool,
}

#[derive(Debug, Clone, Default)]
struct Lists {
    /// Where the ACK was not held.
    unheld: Vec<Pause>,
    /// Where the segment left before the ACK.
    early: Vec<Pause>,
    /// Where the segment left so long after a held ACK that its program was done after it: a busy host takes less.
    outlasting: Vec<Pause>,
    /// The streams of held ACKs that were followed at once.
    held: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Sorted {
    /// Of all streams: rising.
    all: Lists,
    /// Of each stream alone: rising.
    own: AHashMap<u32, Lists>,
}

impl Sorted {
    fn of(lists: &Lists) -> Sorted {
        let mut all = lists.clone();
        all.unheld.sort_unstable_by_key(Pause::rank);
        all.early.sort_unstable_by_key(Pause::rank);
        all.outlasting.sort_unstable_by_key(Pause::rank);
        let mut own: AHashMap<u32, Lists> = AHashMap::new();
        for pause in &all.unheld {
            own.entry(pause.stream).or_default().unheld.push(*pause);
        }
        for pause in &all.early {
            own.entry(pause.stream).or_default().early.push(*pause);
        }
        for pause in &all.outlasting {
            own.entry(pause.stream).or_default().outlasting.push(*pause);
        }
        for stream in &all.held {
            own.entry(*stream).or_default().held.push(*stream);
        }
        Sorted { all, own }
    }
}

impl Controls {
    /// Of all that was seen.
    pub(in crate::judge) fn of(evidence: &SenderEvidence, j: &Judged) -> Controls {
        let mut controls = Controls {
            at_host: j.sender_rtt < AT_HOST_NS.get(),
            ..Controls::default()
        };
        let early = evidence.early.iter().map(|(stream, early)| Pause {
            stream: *stream,
            ns: early.pause,
            exact: true,
        });
        controls.all.early.extend(early);
        for (stream, early) in &evidence.early {
            controls.left_before(*stream, early.frame);
        }
        // by stream, the newest candidate that a held ACK freed
        let mut freed: AHashMap<u32, &AckWait> = AHashMap::new();
        for gap in &evidence.ack_waits {
            let left = gap.acked_at - gap.wait;
            let held = freed
                .get(&gap.stream)
                .filter(|held| held.acked_at + held.release == left);
            // with more bytes than this one the last of its writes was not held for so long
            let written = held.filter(|held| held.bytes <= gap.bytes);
            controls.add(gap, written.map_or(0, |held| held.wait + held.release), j);
            if j.is_held(gap) {
                freed.insert(gap.stream, gap);
            }
        }
        controls.late.sort_unstable();
        controls
    }

    /// Of a program that took so long where nothing was held.
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

    /// It writes so many bytes at once, again and again.
    #[cfg(test)]
    pub(super) fn writes(&mut self, bytes: u32) {
        (self.most_bytes, self.goes_on) = (bytes, true);
    }

    /// Counts a candidate whose small segment may have been written so long `before` it left: its program's pause began then.
    fn add(&mut self, gap: &AckWait, before: i64, j: &Judged) {
        let pause = |exact| Pause {
            stream: gap.stream,
            ns: gap.wait + gap.release + if exact { before } else { 0 },
            exact,
        };
        if j.before_ack(gap.release, gap.arrived) {
            self.all.early.push(pause(true));
            self.left_before(gap.stream, gap.frame);
            return;
        }
        if gap.unseen {
            self.lacks_acks = true;
            return; // its ACK is not seen to the microsecond
        }
        let late = j.late(gap);
        let prompt = j.is_prompt(gap);
        if j.is_held(gap) {
            self.soon += usize::from(late <= PROMPT_NS.get().max(j.prompt_limit_ns));
            for (count, is) in self.by_kernel.iter_mut().zip(j.is_by_kernel(gap)) {
                *count += usize::from(is);
            }
            self.after_ack += usize::from(self.at_host && late > SOON_NS.get() && !j.outlasts(late));
            if prompt {
                self.all.held.push(gap.stream);
                self.longest_held = self.longest_held.max(gap.wait + gap.release);
            } else {
                self.late.push(gap.wait + gap.release);
                self.wrote_late |= j.wrote_after(gap);
                if j.outlasts(late) {
                    self.all.outlasting.push(pause(true));
                }
            }
        } else if gap.timer
            && !gap.after_end
            // an ACK that was late on its way is no control either: its hold is not known so well
            && gap.covered - j.receiver_rtt < UNHELD_NS.get()
        {
            let pause = pause(!prompt);
            self.goes_on |= !gap.first && !pause.is_at_once();
            self.all.unheld.push(pause);
            self.most_bytes = self.most_bytes.max(gap.bytes);
            if gap.first {
                self.first_bytes = self.first_bytes.max(gap.bytes);
            }
            self.has_third |= !gap.first;
        }
    }

    fn left_before(&mut self, stream: u32, frame: u64) {
        let [first, last] = self.early.entry(stream).or_insert([frame; 2]);
        (*first, *last) = (frame.min(*first), frame.max(*last));
    }

    /// Whether segments of this stream left before their ACKs by then, and afterwards: an option may be switched off.
    pub(in crate::judge) fn leaves_early(&self, stream: u32, frame: u64) -> bool {
        let early = self.early.get(&stream);
        early.is_some_and(|[first, last]| (*first..=*last).contains(&frame))
    }

    fn sorted(&self) -> &Sorted {
        self.sorted.get_or_init(|| Sorted::of(&self.all))
    }

    fn of_all(&self) -> Group<'_> {
        Group::of(&self.sorted().all)
    }

    fn of_stream(&self, stream: u32) -> Group<'_> {
        let own = self.sorted().own.get(&stream);
        own.map(Group::of).unwrap_or_default()
    }

    /// What the sender's own connection shows of a wait, or where it shows nothing all of its connections.
    pub(in crate::judge) fn compare(&self, stream: u32, wait: i64) -> Control {
        let group = self.of_stream(stream);
        let all = self.of_all().compare(wait);
        let control = match (group.compare(wait), all) {
            // what left early elsewhere left by a socket with TCP_NODELAY: it bounds what that program takes, and no more
            (Control::Nothing, Control::Shorter { most, .. }) if self.all.unheld.is_empty() => {
                if !(self.at_host && self.always_follow()) {
                    return Control::Nothing;
                }
                Control::Shorter {
                    most,
                    likely: 0,
                    exact: false,
                }
            }
            (Control::Nothing, all) => all,
            // one pause of the program does not predict the next one; writes without a pause do
            (Control::Shorter { exact: true, .. }, all) if group.pauses() < SEVERAL.get() => all,
            (own, _) => own,
        };
        // pauses of one length beyond every hold are those of other answers: they say nothing of what was held
        if control == Control::Unclear && self.are_of_one_length(wait) {
            return Control::Nothing;
        }
        control
    }

    fn are_of_one_length(&self, wait: i64) -> bool {
        let all = self.of_all();
        let (below, ..) = about(all.unheld, wait);
        let (early, ..) = about(all.early, wait);
        let unheld = self.all.unheld.iter().map(|pause| pause.ns);
        let mut longer: Vec<i64> = unheld.chain(self.late.iter().copied()).collect();
        longer.sort_unstable();
        let (low, high) = (at_share(&longer, 0.05), at_share(&longer, 0.95));
        below + early == 0
            && longer.len() >= SEVERAL.get()
            && low.zip(high).is_some_and(|(low, high)| {
                high - low <= PROMPT_NS.get() && low - self.longest_held >= NOISE_NS.get()
            })
    }

    /// Whether a segment of so many bytes that left before its ACK may hold what was written one by one: its program's pauses,
    /// where nothing was held, are shorter than this one, and what they ended is. To send what Nagle's algorithm holds, a
    /// program may set TCP_NODELAY at the end of each answer.
    pub(in crate::judge) fn may_flush(&self, wait: i64, bytes: u32) -> bool {
        let unheld = &self.sorted().all.unheld;
        let (below, near, above) = about(unheld, wait);
        bytes > self.most_bytes
            && below >= SEVERAL.get()
            && OUTLIER_ONE_IN.get() * (near + above) <= unheld.len()
    }

    /// How many more of its program's writes a segment of so many bytes may hold than one that left where nothing was held.
    pub(super) fn gathered(&self, bytes: u32) -> i64 {
        let writes = bytes.div_ceil(self.most_bytes.max(1)).max(1);
        if self.goes_on() { i64::from(writes) - 1 } else { 0 }
    }

    /// Whether a segment may hold later writes of a program that was not seen to pause behind its second: it holds about as many
    /// bytes as two that left where nothing was held, or more than the second held of messages of three segments. Where ACKs
    /// are missing from the capture, so may be segments.
    pub(super) fn may_gather(&self, gap: &AckWait) -> bool {
        let two = self.most_bytes > 0 && gap.bytes.saturating_add(self.most_bytes / 2) / self.most_bytes > 1;
        let third = self.has_third && gap.first && self.first_bytes > 0 && gap.bytes > self.first_bytes;
        !self.goes_on && !self.lacks_acks && (two || third)
    }

    /// Whether its program is known to write again and again within a message.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on && !self.lacks_acks && self.most_bytes > 0
    }

    /// Held ACKs that were followed at once.
    pub(in crate::judge) fn followed(&self) -> usize {
        self.all.held.len()
    }

    /// Whether the segments follow the held ACKs as what a kernel sends does, often enough to be no luck.
    pub(in crate::judge) fn follow(&self) -> bool {
        let held = self.followed();
        let least = if self.at_host {
            SEVERAL.get()
        } else {
            HELD_AWAY.get()
        };
        held >= least && self.are_kernels()
    }

    /// Whether nearly all held ACKs were followed at once, so often that no control group is needed. One that its program was seen to
    /// outlast shows that it works between the two writes: it may have worked in all of them.
    pub(in crate::judge) fn always_follow(&self) -> bool {
        let of_others = self.are_of_one_length(self.longest_held);
        let nearly_all = !self.wrote_late && OUTLIER_ONE_IN.get() * self.late.len() <= self.followed();
        self.followed() >= MIN_SAMPLES.get() && (of_others || nearly_all) && !self.outlast()
    }

    /// Whether the program was seen, beside it, to pause for longer than ACKs are held, and not for one time: then its pauses
    /// may end within any wait.
    fn outlast(&self) -> bool {
        let reach = (self.longest_held as f64 * LONGER_TIMES.get()) as i64; // what takes longer is another answer
        let longer = self.all.outlasting.iter().filter(|pause| pause.ns <= reach);
        let are_accidents = OUTLASTED.get() * (longer.count() + self.after_ack) <= self.followed();
        self.at_host && !are_accidents && !self.are_of_one_length(self.longest_held)
    }

    /// Whether its program was seen to pause for about so long, beyond held ACKs, too often for luck.
    pub(super) fn pauses_for(&self, wait: i64) -> bool {
        let from = self.late.partition_point(|pause| *pause < wait - PROMPT_NS.get());
        let until = self
            .late
            .partition_point(|pause| *pause <= wait + PROMPT_NS.get());
        until - from >= HELD_AWAY.get()
    }

    /// Whether nothing left early on a connection of which some held ACKs were followed.
    pub(in crate::judge) fn follows_alone(&self, stream: u32) -> bool {
        let own = self.of_stream(stream);
        own.early.is_empty() && own.held >= SEVERAL.get()
    }

    /// Whether what a connection sends goes without ACKs: some left before ACKs that were as late as held ones. Where
    /// an option was set on the way, what left early left right behind the one before it.
    pub(in crate::judge) fn goes_without(&self, stream: u32) -> bool {
        let own = self.of_stream(stream);
        let early = own.early.len() - own.early.partition_point(|pause| pause.ns < HELD_NS.least());
        early >= SEVERAL.get() && OUTLIER_ONE_IN.get() * early > early + own.held
    }

    /// Beside its sender: what left soon left as promptly as its kernel sends.
    pub(in crate::judge) fn are_kernels(&self) -> bool {
        self.left_within(0)
    }

    /// Beside its sender: what left soon left as promptly as a slow kernel sends, or a quick relay.
    pub(in crate::judge) fn may_be_kernels(&self) -> bool {
        self.are_kernels() || self.left_within(1)
    }

    fn left_within(&self, limit: usize) -> bool {
        let left = self.by_kernel.get(limit).copied().unwrap_or_default();
        !self.at_host || MAJORITY_ONE_IN.get() * left >= (MAJORITY_ONE_IN.get() - 1) * self.soon
    }

    /// Connections with any evidence, with stalls (on these), and with segments before the ACK and no stalls.
    pub(in crate::judge) fn streams(&self, stalls: Vec<u32>) -> [usize; 3] {
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
        [every.len(), held.len(), off.count()]
    }
}

#[cfg(test)]
mod tests;
