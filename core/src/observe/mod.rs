//! Why did this data segment leave when it did? One sender's side of a stream: its segments and its
//! peer's answers in, one `Step` per segment that brought the stream forward out.
//!
//! A step is the time between two such segments with everything that is needed to judge it later,
//! when the path's round trips and the other exchanges of the same endpoints are known (`judge`).

mod clock;
mod one_way;
mod sender;
mod spacing;
pub mod transfer;

use crate::base::{At, words};
use crate::facts::Covered;
use crate::limits::PROMPT_NS;

pub use one_way::{OneWay, Passed, Suspect};
pub use sender::{Sender, late_copy};

/// How a loss was repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    Fast,
    TailProbe,
    Timeout,
    Reordered,
    /// SYN or SYN/ACK sent again.
    Syn,
}

/// A small segment that left after an ACK covered the previous small one: Nagle, or a look-alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Candidate {
    /// The small segment that was unacknowledged.
    pub small: At,
    /// First byte that the ACK newly covers: the receiver's timer started there.
    pub held_from: At,
    /// The first packet that covers `small`.
    pub ack: At,
    pub ack_pure: bool,
    pub ack_fin: bool,
    /// By its sender's clock the ACK passed so much later than at best: the path's time, and no part of a hold.
    pub ack_late: i64,
    /// Whether the ACK had reached the sender, read off the timestamps option (TSecr of the freed segment).
    pub arrived: Option<bool>,
    /// The capture lacks the ACK: time stamps say when it passed, and its frame is 0.
    pub unseen: bool,
    /// The peer had ended: what comes then answers that.
    pub after_end: bool,
    pub freed: At,
    pub small_bytes: u32,
    pub freed_bytes: u32,
    /// The path may have held it back for the larger part of the gap by its sender's clock, or its sender's pacing by its bytes.
    pub held_back: bool,
    /// By its sender's clock it passed so much later than at best: None beside the sender, and where that does not tell.
    pub lateness: Option<u32>,
    /// That clock was seen to count every millisecond.
    pub fine: bool,
    /// The small segment was its message's first.
    pub first: bool,
    /// Where the endpoints' evidence is pooled (`evidence`).
    pub sender_id: u32,
}

/// A segment that was sent again, or fills a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repaired {
    pub how: Repair,
    /// The first copy.
    pub first: Option<At>,
    /// What showed the hole that these bytes fill.
    pub filled: Option<At>,
    /// The receiver can say whether the first copy came, by time stamps or selective ACKs.
    pub receiver_reports: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The first segment after the peer's data. `since` is the peer's last byte; `acked` ns after it this side's kernel
    /// acknowledged it by a segment of its own (0: it did not).
    Turn {
        since: At,
        acked: u32,
    },
    /// A `Turn` that by its sender's clock passed `late` ns later than at best: the path may have held it so long, or its
    /// sender's pacing. `queued` is the part of it that the path held for sure.
    QueuedTurn {
        since: At,
        acked: u32,
        late: u32,
        queued: u32,
        /// That clock was seen to count every millisecond.
        fine: bool,
    },
    /// A small `Turn` after about the kernel's probe timer: a cork released it, or its program wrote late. `late` is as in
    /// `QueuedTurn`, or 0; `again`: it may be a retransmission, as in `AgainTurn`.
    LateTurn {
        since: At,
        acked: u32,
        late: u32,
        sender_id: u32,
        again: bool,
    },
    /// A `Turn` after so long that it may be a retransmission whose first copy was lost before the capture. The sender's
    /// time stamps and IP identifications do not rule that out.
    AgainTurn {
        since: At,
        acked: u32,
    },
    /// A `Turn` after about as long as an answer takes that waits for a held ACK on another connection.
    TimedTurn {
        since: At,
        acked: u32,
        sender_id: u32,
    },
    /// The next segment of a message, which nothing held back: its program wrote it then. Example: the second write of an
    /// answer, 20 ms after the first one was acknowledged.
    App,
    /// As `App`, but behind a full unacknowledged segment, where few writes end: the line may have been busy. Or the
    /// sender's clock allows that the path held it back, or its bytes that pacing did.
    Unsure,
    /// A full segment that left while a small one was not acknowledged: what its program wrote first may have waited until
    /// a full segment was there (tcp_nagle_test lets full ones go).
    Filled {
        sender_id: u32,
    },
    /// A small segment of `bytes` that left while another small one was not acknowledged: Nagle's algorithm is off.
    Early {
        sender_id: u32,
        bytes: u32,
    },
    /// Right behind the previous one.
    Burst,
    /// Right behind the previous one, which filled its segment.
    FullBurst,
    Small(Box<Candidate>),
    /// As `Small`, at the begin of a turn: the ACK came after the peer's last byte, and the segment left about as soon after
    /// it as the path allows.
    FreedTurn {
        since: At,
        candidate: Box<Candidate>,
    },
    /// Full segments that follow each other at an even pace: the line's, or the pacing's.
    Spaced,
    /// After an ACK of earlier data, with nothing small outstanding.
    Clocked {
        ack: At,
        acked: At,
    },
    /// As `Clocked`, by a pure ACK of one full segment, the only one in flight: its receiver may hold such an ACK (RFC 1122
    /// 4.2.3.2). `alone`: its sender has room for one segment in flight, after a timeout or always.
    LoneClocked {
        ack: At,
        acked: At,
        alone: bool,
    },
    /// Did not fit into the peer's window before the packet `opened`.
    Window {
        opened: At,
    },
    /// Fills the window to the byte, and no full segment: there was no room for one after `since`, for as long as a timer takes
    /// (RFC 9293 3.8.6.2.1).
    FillsWindow {
        since: At,
    },
    /// As `Window`, and the window was 0 meanwhile.
    ZeroWindow {
        opened: At,
    },
    /// Boxed: the others are smaller, and an open stream holds a dozen.
    Repair(Box<Repaired>),
    /// Small over `small`, which its peer has not acknowledged for as long as a tail loss probe waits. That sends what is
    /// next and asks no Nagle (tcp_send_loss_probe): the pool decides whether it was one.
    Probe {
        small: At,
        sender_id: u32,
    },
    /// Small, nothing in flight, no trigger, the kernel's probe timer's length.
    Cork,
    /// Neither full nor pushed, after the ACK of the small one before it: its program had announced more (MSG_MORE).
    Corked {
        small: At,
        ack: At,
    },
    /// A FIN without data ends the message, and all before it was acknowledged: its program closed only now.
    Close,
    /// A kernel's answer to a SYN or SYN/ACK: no program takes part.
    Handshake,
    /// The capture lacks frames here.
    Hole,
    /// Only one direction was captured, and it shows a timer's gap; with the ACK that was late, where that was seen.
    Suspected {
        held: Option<At>,
    },
}

impl Wait {
    #[cold]
    #[inline(never)]
    pub fn repair(how: Repair, first: Option<At>, filled: Option<At>, receiver_reports: bool) -> Self {
        Wait::Repair(Box::new(Repaired {
            how,
            first,
            filled,
            receiver_reports,
        }))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub from: At,
    pub to: At,
    pub wait: Wait,
}

words! {
    /// Why a data segment left when it did, by the past alone: the `released_by` of an event.
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
    pub waited: Option<i64>,
}

impl Release {
    fn new(by: Released, frame: Option<u64>, waited: i64) -> Self {
        Release {
            by: Some(by),
            frame,
            waited: Some(waited),
        }
    }
}

impl Step {
    /// Why the segment left, by the past alone; `rtt` is the best round trip to its sender so far.
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
            Wait::Turn { since, .. }
            | Wait::LateTurn { since, .. }
            | Wait::AgainTurn { since, .. }
            | Wait::TimedTurn { since, .. }
            | Wait::QueuedTurn { since, .. } => Release::new(
                Released::First,
                Some(since.frame),
                self.to.time_ns - since.time_ns,
            ),
            Wait::App | Wait::Burst | Wait::FullBurst | Wait::Hole if self.from == self.to => Release {
                by: Some(Released::First),
                frame: None,
                waited: None,
            },
            Wait::App
            | Wait::Close
            | Wait::Unsure
            | Wait::Filled { .. }
            | Wait::Early { .. }
            | Wait::Probe { .. } => Release::new(Released::App, None, waited),
            Wait::Hole | Wait::Handshake | Wait::Suspected { .. } => Release::default(),
            Wait::Burst | Wait::FullBurst => Release::new(Released::Burst, Some(self.from.frame), waited),
            Wait::Spaced => Release::new(Released::Pacing, None, waited),
            Wait::Small(c) if c.unseen => Release::default(), // the ACK has no frame
            Wait::Small(c) if c.arrived == Some(false) => Release::new(Released::App, None, waited),
            Wait::Small(c) | Wait::FreedTurn { candidate: c, .. } => by_ack(c.ack, Released::NagleAck),
            Wait::Clocked { ack, .. } | Wait::LoneClocked { ack, .. } => by_ack(*ack, Released::CwndAck),
            Wait::Window { opened } | Wait::ZeroWindow { opened } => {
                Release::new(Released::WindowOpen, Some(opened.frame), waited)
            }
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
                Release::new(word, repaired.first.map(|f| f.frame), waited)
            }
        }
    }
}

/// A sub-MSS tail is what Nagle or a cork may hold (tcp_minshall_check).
pub fn is_small(len: u32, mss: u32) -> bool {
    if len < mss {
        return len > 0; // the usual case, without a division
    }
    !len.is_multiple_of(mss.max(1))
}

/// A data segment as this layer needs it; numbers unwrapped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Data {
    pub at: At,
    pub start: i64,
    pub end: i64,
    /// Less than full segments, or with a small tail, and the end of what the program wrote.
    pub small: bool,
    pub fin: bool,
    pub pushed: bool,
    pub mss: u32,
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    /// Both sides have agreed on selective ACKs.
    pub sacks: bool,
    pub ip_id: Option<u16>,
    pub rtt_ns: i64,
    /// Best round trip to this sender so far.
    pub own_rtt_ns: i64,
    /// Its side is the server's.
    pub server: bool,
    pub sender_id: u32,
}

/// Any packet of the peer.
#[derive(Debug, Clone, Copy, Default)]
pub struct PeerPacket {
    pub at: At,
    pub ack: i64,
    pub window: i64,
    pub scale_known: bool,
    pub len: u32,
    pub fin: bool,
    pub duplicate: bool,
    pub sacked: Option<i64>,
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    /// Its time stamp is one that the other side will echo: what the peer had sent before it was acknowledged
    /// (RFC 7323 4.3: a segment beyond the last ACK that was sent does not count).
    pub echoed: bool,
    pub covered: Option<Covered>,
}

/// What a segment did to the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It brought the stream forward.
    Forward(Step),
    /// A packet that is in the capture twice, or bytes that the peer already had: part of no wait.
    Needless,
}

/// Small sent over unacknowledged small: this socket does not do Nagle (once it is sure, see `BURST_NS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refutation {
    pub sender_id: u32,
    pub small: At,
    pub freed: At,
}

impl Refutation {
    fn early(&self) -> Early {
        Early::between(self.small, self.freed)
    }
}

/// A small segment left before the one ahead of it was acknowledged: nothing held it back, so its program took this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    /// From the segment ahead of it.
    pub pause: i64,
    pub at: i64,
    pub frame: u64,
}

impl Early {
    fn between(small: At, freed: At) -> Self {
        Early {
            pause: freed.time_ns - small.time_ns,
            at: freed.time_ns,
            frame: freed.frame,
        }
    }
}

#[cfg(test)]
mod tests;
