//! Probes and their answers: pings, and SYNs of connections that never carried data (port scans, TCP traceroutes,
//! refused connections). Fed with ICMP and with the segments of a handshake; reads no ordinary segment.

use std::collections::VecDeque;
use std::net::IpAddr;

use ahash::AHashMap;

use crate::frame::{Echo, Icmp};
use crate::issue::{Issue, Kind};
use crate::messages::At;
use crate::segment::{ACK, RST, SYN, Segment};

/// Echo requests that wait for their answer; beyond this many the oldest is given up.
pub const MAX_WAITING: usize = 65_536;
/// An unanswered echo request that is seen again this soon is a copy (a bridge, a capture on all interfaces);
/// later its numbers have come round.
const COPY_NS: i64 = 1_000_000_000;
const NONE: u32 = u32::MAX;

/// One row of `probes`, before it becomes columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub sent: At,
    pub what: What,
    pub repeats: u32,
    pub answer: Option<Answer>,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Echo {
        id: u16,
        seq: u16,
        ttl: u8,
    },
    Syn {
        stream: u32,
        sport: u16,
        dport: u16,
        seq: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub word: &'static str,
    pub from: IpAddr,
    pub at: At,
}

#[derive(Default)]
pub struct Probes {
    rows: Vec<Probe>,
    /// Echo requests without an answer, and all in the order in which they were sent.
    waiting: AHashMap<Echo, u32>,
    order: VecDeque<(Echo, u32)>,
    /// The last SYN of each stream.
    syns: Vec<u32>,
}

impl Probes {
    /// The probes, but for those of connections that carried data.
    pub fn rows(&self, carried: impl Fn(u32) -> bool) -> Vec<&Probe> {
        let wanted = |probe: &&Probe| match probe.what {
            What::Syn { stream, .. } => !carried(stream),
            What::Echo { .. } => true,
        };
        self.rows.iter().filter(wanted).collect()
    }

    /// A segment with SYN or RST of this stream.
    #[cold]
    pub fn segment(&mut self, segment: &Segment<'_>, stream: u32, at: At) {
        match (segment.has(SYN), segment.has(ACK)) {
            (true, false) => self.syn(segment, stream, at),
            (syn, true) => {
                let Some(probe) = self.syn_of(stream) else { return };
                let What::Syn { dport, seq, .. } = probe.what else {
                    return;
                };
                // an answer acknowledges the SYN, and no data: with data it is no probe
                let acked = segment.ack.wrapping_sub(seq);
                if (segment.src, segment.sport) == (probe.dst, dport) && acked == 1 {
                    probe.answered(if syn { "syn_ack" } else { "rst" }, segment.src, at);
                }
            }
            (false, false) => {}
        }
    }

    fn syn(&mut self, segment: &Segment<'_>, stream: u32, at: At) {
        let what = What::Syn {
            stream,
            sport: segment.sport,
            dport: segment.dport,
            seq: segment.seq,
        };
        if let Some(probe) = self.syn_of(stream)
            && (probe.src, probe.what) == (segment.src, what)
        {
            probe.repeats = probe.repeats.saturating_add(1);
            return;
        }
        let row = self.add(segment.src, segment.dst, at, what);
        let slot = stream as usize;
        if self.syns.len() <= slot {
            self.syns.resize(slot + 1, NONE);
        }
        if let Some(last) = self.syns.get_mut(slot) {
            *last = row;
        }
    }

    fn syn_of(&mut self, stream: u32) -> Option<&mut Probe> {
        let row = *self.syns.get(stream as usize)?;
        self.rows.get_mut(row as usize)
    }

    fn add(&mut self, src: IpAddr, dst: IpAddr, at: At, what: What) -> u32 {
        let row = self.rows.len() as u32;
        self.rows.push(Probe {
            src,
            dst,
            sent: at,
            what,
            repeats: 0,
            answer: None,
        });
        row
    }

    /// An ICMP message; `stream` is that of the segment it quotes. Gives an issue where a probe is given up.
    #[cold]
    pub fn icmp(&mut self, icmp: &Icmp<'_>, stream: Option<u32>, at: At) -> Option<Issue> {
        let echo = Echo {
            src: icmp.src,
            dst: icmp.dst,
            id: icmp.id,
            seq: icmp.seq,
        };
        let word = match (icmp.v6, icmp.kind) {
            (false, 8) | (true, 128) => return self.ping(echo, icmp.ttl, at),
            (false, 0) | (true, 129) => {
                self.echoed(echo.back(), "echo_reply", icmp.src, at);
                return None;
            }
            (false, 11) | (true, 3) => "time_exceeded",
            (false, 3) | (true, 1 | 2) => "unreachable",
            _ => return None,
        };
        if let Some(echo) = icmp.echo {
            self.echoed(echo, word, icmp.src, at);
        }
        if let (Some(quoted), Some(probe)) = (icmp.quoted.or(icmp.brief), stream.and_then(|s| self.syn_of(s)))
            && let What::Syn { seq, .. } = probe.what
            && (probe.src, seq) == (quoted.src, quoted.seq)
        {
            probe.answered(word, icmp.src, at);
        }
        None
    }

    fn ping(&mut self, echo: Echo, ttl: u8, at: At) -> Option<Issue> {
        let known = self.waiting.get(&echo).copied();
        if let Some(probe) = known.and_then(|row| self.rows.get_mut(row as usize))
            && at.time_ns.saturating_sub(probe.sent.time_ns) < COPY_NS
        {
            probe.repeats = probe.repeats.saturating_add(1);
            return None;
        }
        let Echo { id, seq, .. } = echo;
        let row = self.add(echo.src, echo.dst, at, What::Echo { id, seq, ttl });
        self.waiting.insert(echo, row);
        self.order.push_back((echo, row));
        if self.order.len() > 2 * MAX_WAITING {
            let waiting = &self.waiting;
            self.order.retain(|(echo, row)| waiting.get(echo) == Some(row));
        }
        if self.waiting.len() <= MAX_WAITING {
            return None;
        }
        while let Some((echo, row)) = self.order.pop_front() {
            if self.waiting.get(&echo) == Some(&row) {
                self.waiting.remove(&echo);
                break;
            }
        }
        let reason = "too many echo requests wait for an answer: the oldest is given as unanswered";
        Some(Issue::new(Kind::Distrusted, "icmp", reason))
    }

    fn echoed(&mut self, echo: Echo, word: &'static str, from: IpAddr, at: At) {
        let row = self.waiting.remove(&echo);
        if let Some(probe) = row.and_then(|row| self.rows.get_mut(row as usize)) {
            probe.answered(word, from, at);
        }
    }
}

impl Probe {
    /// The first answer counts.
    fn answered(&mut self, word: &'static str, from: IpAddr, at: At) {
        self.answer.get_or_insert(Answer { word, from, at });
    }
}

/// Is this a segment that asks or answers whether somebody is there?
#[inline(always)]
pub fn concerns(segment: &Segment<'_>) -> bool {
    segment.flags & (SYN | RST) != 0
}

#[cfg(test)]
mod tests;
