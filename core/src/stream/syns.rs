//! The SYNs of a stream without data so far, and their answers. If no data follows, they are probes (port scans, TCP
//! traceroutes, refused connections).

use std::net::IpAddr;

use super::Stream;
use crate::base::At;
use crate::segment::{ACK, RST, SYN, Segment};

/// Upper bound on the different SYNs kept per stream; further ones count as retransmissions of the newest.
const MAX_SYNS: usize = 16;

/// A SYN, its retransmissions and the first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentSyn {
    pub from_low: bool,
    pub seq: u32,
    pub sent: At,
    pub ttl: u8,
    pub retransmissions: u32,
    /// The first answer.
    pub answer: Option<SynAnswer>,
}

/// An answer to a SYN or to an echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynAnswer {
    pub kind: AnswerKind,
    /// Address of the host that answered: a router, for an ICMP error.
    pub from: IpAddr,
    pub at: At,
}

/// Kind of packet that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    SynAck,
    Rst,
    EchoReply,
    TimeExceeded,
    Unreachable,
}

impl AnswerKind {
    pub fn word(self) -> &'static str {
        match self {
            AnswerKind::SynAck => "syn_ack",
            AnswerKind::Rst => "rst",
            AnswerKind::EchoReply => "echo_reply",
            AnswerKind::TimeExceeded => "time_exceeded",
            AnswerKind::Unreachable => "unreachable",
        }
    }
}

impl Stream {
    /// Reads a segment of this stream; only SYN and RST segments have an effect.
    pub(super) fn track_syn(&mut self, segment: &Segment<'_>, from_low: bool, at: At) {
        if segment.len > 0 || segment.flags & (SYN | RST) == 0 {
            return;
        }
        match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => self.syn(segment, from_low, at),
            (syn, true) => {
                // it acknowledges the SYN and no data
                let kind = if syn { AnswerKind::SynAck } else { AnswerKind::Rst };
                let syn_seq = segment.ack.wrapping_sub(1);
                self.answered(
                    !from_low,
                    syn_seq,
                    SynAnswer {
                        kind,
                        from: segment.src,
                        at,
                    },
                );
            }
            (false, false) => {}
        }
    }

    fn syn(&mut self, segment: &Segment<'_>, from_low: bool, at: At) {
        let seq = segment.seq;
        if self.counts.iter().any(|side| side.payload > 0) {
            return;
        }
        let is_full = self.syns.len() >= MAX_SYNS;
        match self.syns.last_mut() {
            Some(last) if is_full || (last.from_low, last.seq) == (from_low, seq) => {
                last.retransmissions = last.retransmissions.saturating_add(1);
            }
            _ => {
                self.syns.reserve_exact(1);
                self.syns.push(SentSyn {
                    from_low,
                    seq,
                    sent: at,
                    ttl: segment.ttl,
                    retransmissions: 0,
                    answer: None,
                });
            }
        }
    }

    /// Records the answer if the newest SYN came from this endpoint and has this sequence number.
    pub(super) fn answered(&mut self, from_low: bool, seq: u32, answer: SynAnswer) {
        if let Some(last) = self.syns.last_mut()
            && (last.from_low, last.seq) == (from_low, seq)
        {
            last.answer.get_or_insert(answer);
        }
    }
}
