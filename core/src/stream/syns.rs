//! The SYNs of a stream that has carried no data yet, and what came back: with no data ever they were probes (port scans,
//! TCP traceroutes, refused connections).

use std::net::IpAddr;

use super::Stream;
use crate::base::At;
use crate::segment::{ACK, RST, SYN, Segment};

/// SYNs of one stream that differ; beyond it the rest count as repeats of the newest.
const MAX_SYNS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentSyn {
    pub from_low: bool,
    pub seq: u32,
    pub sent: At,
    pub ttl: u8,
    pub repeats: u32,
    /// The first answer counts.
    pub answer: Option<SynAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynAnswer {
    pub kind: AnswerKind,
    pub from: IpAddr,
    pub at: At,
}

/// What came back.
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
    /// A segment of this stream; those with neither SYN nor RST change nothing here.
    pub(super) fn track_syn(&mut self, segment: &Segment<'_>, from_low: bool, at: At) {
        if segment.len > 0 || segment.flags & (SYN | RST) == 0 {
            return;
        }
        match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => self.syn(segment, from_low, at),
            (syn, true) => {
                // an answer acknowledges the SYN, and no data: with data it is no probe
                let kind = if syn { AnswerKind::SynAck } else { AnswerKind::Rst };
                let of = segment.ack.wrapping_sub(1);
                self.answered(
                    !from_low,
                    of,
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
        let full = self.syns.len() >= MAX_SYNS;
        match self.syns.last_mut() {
            Some(last) if full || (last.from_low, last.seq) == (from_low, seq) => {
                last.repeats = last.repeats.saturating_add(1);
            }
            _ => {
                self.syns.reserve_exact(1);
                self.syns.push(SentSyn {
                    from_low,
                    seq,
                    sent: at,
                    ttl: segment.ttl,
                    repeats: 0,
                    answer: None,
                });
            }
        }
    }

    /// The newest SYN was answered, if it came from there and had this number.
    pub(super) fn answered(&mut self, from_low: bool, seq: u32, answer: SynAnswer) {
        if let Some(last) = self.syns.last_mut()
            && (last.from_low, last.seq) == (from_low, seq)
        {
            last.answer.get_or_insert(answer);
        }
    }
}
