//! A scripted sender: what it sends and hears, and what each of its segments had waited for.

use latpcap_core::base::At;
use latpcap_core::facts::Covered;
use latpcap_core::observe::{Candidate, Data, Outcome, PeerPacket, Repair, Sender, Wait, is_small};

use crate::common::MS;

pub const MSS: i64 = 1000;

pub const RTT: i64 = 10 * MS;

/// A sender at the capture and its peer, 10 ms away and back.
#[derive(Default)]
pub struct Play {
    pub sender: Sender,
    pub frame: u64,
    pub id: u16,
    /// The number of the newest segment.
    pub newest: u16,
    pub window: i64,
    pub una: i64,
    pub sent: Vec<(i64, At)>,
}

impl Play {
    pub fn new() -> Self {
        Play {
            window: 1 << 20,
            una: 1,
            ..Play::default()
        }
    }

    pub fn at(&mut self, us: i64) -> At {
        self.frame += 1;
        At {
            frame: self.frame,
            time_ns: us * 1000,
        }
    }

    /// The peer's request.
    pub fn asked(&mut self, us: i64) -> At {
        let at = self.at(us);
        self.answer_at(at, self.una, None);
        self.sender.peer_spoke(at);
        at
    }

    pub fn ack(&mut self, us: i64, ack: i64) -> At {
        let at = self.at(us);
        self.answer_at(at, ack, None);
        at
    }

    /// Data of the peer that acknowledge.
    pub fn echo(&mut self, us: i64, ack: i64) -> At {
        let at = self.at(us);
        self.answer_with(at, ack, None, 2);
        self.sender.peer_spoke(at);
        at
    }

    pub fn answer_at(&mut self, at: At, ack: i64, sacked: Option<i64>) {
        self.answer_with(at, ack, sacked, 0);
    }

    pub fn answer_with(&mut self, at: At, ack: i64, sacked: Option<i64>, len: u32) {
        let (una, mut covered) = (self.una, None);
        for (_, sent) in self.sent.iter().filter(|s| s.0 >= una && s.0 < ack) {
            let c = covered.get_or_insert(Covered {
                bytes: (ack - una) as u32,
                first_frame: sent.frame,
                first_time_ns: sent.time_ns,
                last_frame: sent.frame,
                last_time_ns: sent.time_ns,
            });
            (c.last_frame, c.last_time_ns) = (sent.frame, sent.time_ns);
        }
        self.una = self.una.max(ack);
        let answer = PeerPacket {
            at,
            ack,
            window: self.window,
            is_scale_known: true,
            len,
            is_duplicate: sacked.is_some(),
            highest_sacked: sacked,
            is_echoed: true,
            covered,
            ..PeerPacket::default()
        };
        self.sender.answer(&answer);
    }

    pub fn data(&mut self, us: i64, start: i64, len: i64) -> Data {
        self.id += 1;
        let at = self.at(us);
        Data {
            at,
            start_seq: start,
            end_seq: start + len,
            is_small: is_small(len as u32, MSS as u32),
            is_pushed: true,
            mss: MSS as u32,
            ip_id: Some(self.id),
            rtt_ns: RTT,
            is_from_server: true,
            sender_id: 7,
            ..Data::default()
        }
    }

    pub fn give(&mut self, d: &Data) -> Outcome {
        let missing = (self.id - self.newest).saturating_sub(1);
        self.newest = self.id;
        let first = self.sent.iter().find(|s| s.0 == d.start_seq).map(|s| s.1);
        self.sent.push((d.start_seq, d.at));
        self.sender.data(d, Some(missing), first)
    }

    /// A segment that must bring the stream forward.
    pub fn send(&mut self, us: i64, start: i64, len: i64) -> Wait {
        let d = self.data(us, start, len);
        wait(self.give(&d))
    }
}

pub fn wait(outcome: Outcome) -> Wait {
    match outcome {
        Outcome::Forward(step) => step.wait,
        Outcome::NothingNew => panic!("the segment was needed"),
    }
}

pub fn candidate(wait: Wait) -> Candidate {
    match wait {
        Wait::Small(candidate) => *candidate,
        other => panic!("no candidate but {other:?}"),
    }
}

pub fn repaired(wait: Wait) -> (Repair, Option<i64>) {
    match wait {
        Wait::Repair(repaired) => (repaired.how, repaired.first_copy.map(|at| at.time_ns / 1000)),
        other => panic!("no repair but {other:?}"),
    }
}
