//! Finds why each data segment left when it did. Reads the segments of one side of a stream and its peer's packets;
//! returns a `Step` for each segment that brought the stream forward.
//!
//! A step is the time between two such segments, with what `judge` needs to judge it later, when round trips and other
//! exchanges of the same endpoints are known.

mod clock;
mod one_way;
mod sender;
mod spacing;
pub mod transfer;

use crate::base::{At, word_enum};
use crate::facts::Covered;
use crate::limits::PROMPT_NS;

pub use one_way::{OneWay, Passed, Suspect};
pub use sender::{Sender, answers_late_copy};

/// How a loss was repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    Fast,
    TailProbe,
    Timeout,
    /// The segment was late, not lost.
    Reordered,
    /// Retransmission of a SYN or SYN/ACK.
    Syn,
}

/// A small segment that left after an ACK covered the previous small one: Nagle's algorithm, or a look-alike.
///
/// Example: a head of 100 bytes at 0 ms, its ACK at 41 ms, the body (the freed segment) at 41.1 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Candidate {
    /// The small segment that was unacknowledged.
    pub small: At,
    /// First byte that the ACK newly covers: the receiver's timer started there.
    pub held_from: At,
    /// The first packet that covers `small`.
    pub ack: At,
    /// The ACK carried no data.
    pub ack_lacks_data: bool,
    pub ack_has_fin: bool,
    /// Delay of the ACK beyond the path's best, in ns, by its sender's timestamps: no part of a hold.
    pub ack_late_ns: i64,
    /// Whether the ACK had reached the sender, by the TSecr of the freed segment; None where that does not show it.
    pub arrived: Option<bool>,
    /// The capture lacks the ACK: its time follows from timestamps, and its frame is 0.
    pub is_ack_unseen: bool,
    /// The peer had sent its FIN, which the freed segment may answer.
    pub is_after_peer_end: bool,
    /// The freed segment.
    pub freed: At,
    pub freed_bytes: u32,
    /// The path, by the timestamps, or pacing, by the bytes, may explain the larger part of the gap.
    pub may_be_delayed: bool,
    /// Delay of the freed segment beyond the path's best, in ns; None beside the sender, and where timestamps do not
    /// show it.
    pub lateness_ns: Option<u32>,
    /// The sender's timestamps count every millisecond.
    pub is_clock_fine: bool,
    /// The small segment was the first of its message.
    pub begins_message: bool,
    /// Number of the sender in `evidence::SenderStore`.
    pub sender_id: u32,
    pub stream: u32,
}

impl Candidate {
    /// Returns a candidate with a pure ACK `wait` ns after the small segment, and the freed one `release` ns after
    /// that.
    #[cfg(test)]
    pub fn of_times(wait: i64, release: i64) -> Candidate {
        let at = |frame, time_ns| At { frame, time_ns };
        Candidate {
            small: at(1, 0),
            held_from: at(1, 0),
            ack: at(2, wait),
            ack_lacks_data: true,
            freed: at(3, wait + release),
            ..Candidate::default()
        }
    }

    /// Returns the time from the small segment to the ACK.
    pub fn wait_ns(&self) -> i64 {
        self.ack.time_ns - self.small.time_ns
    }

    /// Returns the time from the ACK to the freed segment.
    pub fn release_ns(&self) -> i64 {
        self.freed.time_ns - self.ack.time_ns
    }

    /// Returns the time from the small segment to the freed one.
    pub fn total_ns(&self) -> i64 {
        self.freed.time_ns - self.small.time_ns
    }

    /// Returns the time from the first byte that the ACK newly covers to the ACK.
    pub fn covered_ns(&self) -> i64 {
        self.ack.time_ns - self.held_from.time_ns
    }

    /// Whether the ACK had neither data nor FIN, so that a delayed-ACK timer may have held it.
    pub fn is_pure_ack(&self) -> bool {
        self.ack_lacks_data && !self.ack_has_fin
    }
}

/// A retransmission, or a segment that fills a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    pub how: Repair,
    /// The first copy; None if the capture lacks it.
    pub first_copy: Option<At>,
    /// The packet that showed the hole that these bytes fill.
    pub filled: Option<At>,
    /// The receiver can report a first copy that arrived, by timestamps or selective ACKs.
    pub receiver_reports: bool,
}

/// The wait of the first segment after the peer's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The peer's last byte.
    pub since: At,
    /// Time in ns from there to a pure ACK by this side's kernel; 0 if there was none.
    pub acked_ns: u32,
    /// What may have taken the time besides the best path and the program.
    pub doubt: Option<TurnDoubt>,
}

/// What may explain a turn besides the best path and the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnDoubt {
    /// The segment passed `late_ns` later than the path's best, by the sender's timestamps or pacing.
    Queued {
        late_ns: u32,
        /// The part of `late_ns` that the path had for sure.
        queued_ns: u32,
        /// The timestamps count every millisecond.
        is_clock_fine: bool,
    },
    /// A small segment came after about the kernel's probe timer: a cork released it, or the program wrote late.
    CorkLength {
        /// As in `Queued`, or 0.
        late_ns: u32,
        sender_id: u32,
        may_be_retransmission: bool,
    },
    /// The segment is as late as a retransmission whose first copy was lost before the capture, which neither
    /// timestamps nor IP identifications exclude.
    Retransmission,
    /// The segment took about as long as an answer that waits for a held ACK on another connection.
    HoldLength { sender_id: u32 },
}

/// What a segment waited for, as far as its own stream shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The first segment after the peer's data.
    Turn(Turn),
    /// The next segment of a message, which nothing held back: the program wrote it then. Example: the second write of
    /// an answer, 20 ms after the first one was acknowledged.
    App,
    /// As `App`, but the line may have been busy (after a full unacknowledged segment, where few writes end), or the
    /// path or pacing may have delayed it.
    Unsure,
    /// A full segment that left while a small one was unacknowledged: its first bytes may have waited until the segment
    /// was full (tcp_nagle_test lets full ones go).
    Filled { sender_id: u32 },
    /// A small segment of `bytes` that left while another small one was unacknowledged: Nagle's algorithm is off.
    Early { sender_id: u32, bytes: u32 },
    /// Right after the previous segment.
    Burst,
    /// Right after the previous segment, which was full.
    FullBurst,
    /// A small segment after the ACK of the previous small one.
    Small(Box<Candidate>),
    /// As `Small`, at the start of a turn: the ACK came after the peer's last byte, and the segment left as soon after
    /// it as the path allows.
    FreedTurn { since: At, candidate: Box<Candidate> },
    /// Full segments that follow each other at an even pace: the line's, or the pacing's.
    Spaced,
    /// After an ACK of earlier data, with nothing small outstanding.
    Clocked { ack: At, acked: At },
    /// As `Clocked`, by a pure ACK of the only segment in flight, a full one: its receiver may delay such an ACK (RFC
    /// 1122 4.2.3.2). `single`: the sender has room for one segment in flight, after a timeout or always.
    LoneClocked { ack: At, acked: At, single: bool },
    /// Did not fit into the peer's window before the packet `opened`; `was_zero`: the window was 0 meanwhile.
    Window { opened: At, was_zero: bool },
    /// A segment, not full, that fills the window to the byte a timer's time after `since`: there was no room for a
    /// full one (RFC 9293 3.8.6.2.1).
    FillsWindow { since: At },
    /// Boxed, as the other variants are smaller and an open stream holds a dozen.
    Repair(Box<Repaired>),
    /// A small segment over the unacknowledged `small`, after the time of such a probe, which sends the next
    /// segment regardless of Nagle's algorithm (tcp_send_loss_probe); other evidence on the sender decides whether it
    /// was one.
    TailLossProbe { small: At, sender_id: u32 },
    /// A small tail after the time of the kernel's probe timer, with nothing in flight.
    Cork,
    /// A segment neither full nor pushed, after the ACK of the small one before it: more was announced (MSG_MORE).
    Corked { small: At, ack: At },
    /// A FIN without data ends the message, after all of it was acknowledged: the program closed late.
    Close,
    /// A kernel's answer to a SYN or SYN/ACK, without a program.
    Handshake,
    /// The capture lacks frames before this segment.
    Hole,
    /// A gap as long as a held ACK in a capture of one direction, with the late ACK if this side sent it.
    Suspected { held_ack: Option<At> },
}

impl Wait {
    #[cold]
    #[inline(never)]
    pub fn repair(how: Repair, first: Option<At>, filled: Option<At>, receiver_reports: bool) -> Self {
        Wait::Repair(Box::new(Repaired {
            how,
            first_copy: first,
            filled,
            receiver_reports,
        }))
    }

    /// Whether evidence from elsewhere in the capture decides its cause: on how the sender uses Nagle's algorithm, its
    /// corks and timers, or on retransmissions that were spurious.
    pub fn needs_evidence(&self) -> bool {
        match self {
            Wait::Turn(turn) => match turn.doubt {
                Some(TurnDoubt::CorkLength { .. } | TurnDoubt::HoldLength { .. }) => true,
                None | Some(TurnDoubt::Queued { .. } | TurnDoubt::Retransmission) => false,
            },
            Wait::Small(_)
            | Wait::FreedTurn { .. }
            | Wait::Filled { .. }
            | Wait::Early { .. }
            | Wait::TailLossProbe { .. }
            | Wait::Repair(_) => true,
            Wait::App
            | Wait::Unsure
            | Wait::Burst
            | Wait::FullBurst
            | Wait::Spaced
            | Wait::Clocked { .. }
            | Wait::LoneClocked { .. }
            | Wait::Window { .. }
            | Wait::FillsWindow { .. }
            | Wait::Cork
            | Wait::Corked { .. }
            | Wait::Close
            | Wait::Handshake
            | Wait::Hole
            | Wait::Suspected { .. } => false,
        }
    }
}

/// The time from one segment, or from the peer's data, to the next segment of a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub from: At,
    pub to: At,
    pub wait: Wait,
}

word_enum! {
    /// Why a data segment left when it did, by earlier packets alone: the `released_by` of an event.
    Released:
    "first" First "the first of this side, or the first after the peer's data"
    "app" App "the program wrote it then"
    "nagle_ack" NagleAck "a small segment, with the ACK of the small one before it"
    "cwnd_ack" CwndAck "with an ACK that made room in the congestion window"
    "window_open" WindowOpen "with a packet that moved the edge of the receive window"
    "rto" Rto "the retransmission timer"
    "tlp" Tlp "a tail loss probe"
    "fast_retransmit" FastRetransmit "duplicate or selective ACKs"
    "pacing" Pacing "the sender's pace"
    "cork" Cork "the timer or the ACK that frees corked data"
    "burst" Burst "right behind the segment before it"
}

/// The `released_by`, `release_frame` and `waited_ms` of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Release {
    pub by: Option<Released>,
    pub frame: Option<u64>,
    pub waited_ns: Option<i64>,
}

impl Release {
    fn new(by: Released, frame: Option<u64>, waited: i64) -> Self {
        Release {
            by: Some(by),
            frame,
            waited_ns: Some(waited),
        }
    }
}

impl Step {
    /// Returns why the segment left, by earlier packets alone. `rtt` is the best round trip to its sender so far, in
    /// ns.
    pub fn release(&self, rtt: i64) -> Release {
        let waited = self.to.time_ns - self.from.time_ns;
        let by_ack = |ack: At, word: Released| {
            let prompt = self.to.time_ns - ack.time_ns - rtt <= PROMPT_NS.get();
            if prompt {
                Release::new(word, Some(ack.frame), waited)
            } else {
                Release::new(Released::App, None, waited)
            }
        };
        match &self.wait {
            Wait::Turn(turn) => Release::new(
                Released::First,
                Some(turn.since.frame),
                self.to.time_ns - turn.since.time_ns,
            ),
            Wait::App | Wait::Burst | Wait::FullBurst | Wait::Hole if self.from == self.to => Release {
                by: Some(Released::First),
                frame: None,
                waited_ns: None,
            },
            Wait::App
            | Wait::Close
            | Wait::Unsure
            | Wait::Filled { .. }
            | Wait::Early { .. }
            | Wait::TailLossProbe { .. } => Release::new(Released::App, None, waited),
            Wait::Hole | Wait::Handshake | Wait::Suspected { .. } => Release::default(),
            Wait::Burst | Wait::FullBurst => Release::new(Released::Burst, Some(self.from.frame), waited),
            Wait::Spaced => Release::new(Released::Pacing, None, waited),
            Wait::Small(candidate) if candidate.is_ack_unseen => Release::default(), // the ACK has no frame
            Wait::Small(candidate) if candidate.arrived == Some(false) => {
                Release::new(Released::App, None, waited)
            }
            Wait::Small(candidate) | Wait::FreedTurn { candidate, .. } => {
                by_ack(candidate.ack, Released::NagleAck)
            }
            Wait::Clocked { ack, .. } | Wait::LoneClocked { ack, .. } => by_ack(*ack, Released::CwndAck),
            Wait::Window { opened, .. } => Release::new(Released::WindowOpen, Some(opened.frame), waited),
            Wait::FillsWindow { since } => Release::new(Released::WindowOpen, Some(since.frame), waited),
            Wait::Cork => Release::new(Released::Cork, None, waited),
            Wait::Corked { ack, .. } => by_ack(*ack, Released::Cork),
            Wait::Repair(repaired) => {
                let word = match repaired.how {
                    Repair::Fast => Released::FastRetransmit,
                    Repair::TailProbe => Released::Tlp,
                    Repair::Timeout => Released::Rto,
                    Repair::Reordered | Repair::Syn => return Release::default(),
                };
                Release::new(word, repaired.first_copy.map(|copy| copy.frame), waited)
            }
        }
    }
}

/// Whether a write of `len` bytes ends with less than a full segment, which Nagle's algorithm or a cork may hold
/// (tcp_minshall_check).
pub fn is_small(len: u32, mss: u32) -> bool {
    if len < mss {
        return len > 0; // the usual case, without a division
    }
    !len.is_multiple_of(mss.max(1))
}

/// A data segment, with unwrapped sequence numbers and times in ns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Data {
    pub at: At,
    pub start_seq: i64,
    pub end_seq: i64,
    /// Not full, or with a tail that is not; and the end of a write.
    pub is_small: bool,
    pub has_fin: bool,
    pub is_pushed: bool,
    pub mss: u32,
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    /// Both sides have agreed on selective ACKs.
    pub has_sacks: bool,
    pub ip_id: Option<u16>,
    /// Best round trip between both ends so far, and from the capture to this sender.
    pub rtt_ns: i64,
    pub own_rtt_ns: i64,
    /// The sender is the server.
    pub is_from_server: bool,
    pub sender_id: u32,
    pub stream: u32,
}

/// A packet of the peer, with or without data.
#[derive(Debug, Clone, Copy, Default)]
pub struct PeerPacket {
    pub at: At,
    pub ack: i64,
    pub window: i64,
    pub is_scale_known: bool,
    pub len: u32,
    pub has_fin: bool,
    pub is_duplicate: bool,
    /// Highest byte that it selectively acknowledges.
    pub highest_sacked: Option<i64>,
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    /// The other side will echo its timestamp: all earlier data of the peer were acknowledged (RFC 7323 4.3: the
    /// timestamp of a segment beyond the last ACK does not count).
    pub is_echoed: bool,
    /// The segments that it newly acknowledges.
    pub covered: Option<Covered>,
}

/// What a segment did to the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Forward(Step),
    /// A second copy in the capture, or bytes that the peer already had: part of no wait.
    NothingNew,
}

/// A small segment that left before the ACK of the one before it. Nothing held it back, so its program took this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    /// Time from the segment before it, in ns.
    pub pause_ns: i64,
    /// Capture time of the early segment.
    pub time_ns: i64,
    /// Frame of the early segment.
    pub frame: u64,
}

#[cfg(test)]
mod tests;
