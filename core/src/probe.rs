//! Probes and their answers: pings, and the SYNs of streams that never carried data (`stream::syns`). Takes ICMP
//! messages, and streams that get their row; returns the rows of `probes` in the order of sending.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use ahash::AHashMap;

use crate::base::At;
use crate::frame::{Echo, Icmp};
use crate::issue::{Issue, Kind};
use crate::limits::ECHO_COPY_NS;
use crate::stream::{AnswerKind, Stream, SynAnswer};

/// Upper bound on the echo requests without an answer; beyond it the oldest is given up.
pub const MAX_WAITING: usize = 65_536;
/// Number of echo requests from which the answered ones are returned.
const MAX_ROWS: usize = 2 * MAX_WAITING;

/// One row of `probes`, before it becomes columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub sent: At,
    pub kind: ProbeKind,
    pub retransmissions: u32,
    pub answer: Option<SynAnswer>,
}

/// Kind of probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    Echo {
        id: u16,
        seq: u16,
        ttl: u8,
    },
    Syn {
        stream: u32,
        sport: u16,
        dport: u16,
        ttl: u8,
    },
}

/// Echo requests and their answers.
#[derive(Default)]
pub struct Probes {
    /// In the order of sending.
    rows: Vec<Probe>,
    /// Index into `rows` of each request without an answer.
    waiting: AHashMap<Echo, u32>,
    /// Keys and indexes of `waiting`, oldest first; some may be answered.
    order: VecDeque<(Echo, u32)>,
}

/// How an ICMP error answers the packet that it quotes; None for other messages.
pub fn icmp_answer_kind(icmp: &Icmp<'_>) -> Option<AnswerKind> {
    match (icmp.v6, icmp.kind) {
        (false, 11) | (true, 3) => Some(AnswerKind::TimeExceeded),
        (false, 3) | (true, 1 | 2) => Some(AnswerKind::Unreachable),
        _ => None,
    }
}

/// The SYNs of a stream that carried no data.
pub fn syn_probes(id: u32, stream: &Stream) -> impl Iterator<Item = Probe> {
    stream.syns.iter().map(move |syn| {
        let ((src, sport), (dst, dport)) = stream.ends(syn.from_low);
        Probe {
            src,
            dst,
            sent: syn.sent,
            kind: ProbeKind::Syn {
                stream: id,
                sport,
                dport,
                ttl: syn.ttl,
            },
            retransmissions: syn.retransmissions,
            answer: syn.answer,
        }
    })
}

impl Probes {
    /// Removes and returns the rows that cannot change any more, if there are many.
    pub fn take_finished(&mut self) -> Vec<Probe> {
        if self.rows.len() < MAX_ROWS {
            return Vec::new();
        }
        let kept: Vec<(Echo, u32)> = std::mem::take(&mut self.order)
            .into_iter()
            .filter(|(echo, row)| self.waiting.get(echo) == Some(row))
            .collect();
        let (mut done, mut rest) = (Vec::new(), Vec::with_capacity(kept.len()));
        let mut next = kept.iter().peekable();
        for (row, probe) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if next.next_if(|(_, kept)| *kept as usize == row).is_some() {
                rest.push(probe);
            } else {
                done.push(probe);
            }
        }
        self.order = (kept.into_iter().zip(0..))
            .map(|((echo, _), row)| (echo, row))
            .collect();
        self.waiting.extend(self.order.iter().copied());
        self.rows = rest;
        done
    }

    /// Removes and returns all rows, at the end of the capture.
    pub fn take_rest(&mut self) -> ProbeRows {
        self.waiting = AHashMap::new();
        self.order = VecDeque::new();
        ProbeRows {
            echoes: std::mem::take(&mut self.rows).into(),
            ..ProbeRows::default()
        }
    }

    /// Reads an echo request or an answer to one. Returns an issue if a request is given up.
    #[cold]
    pub fn icmp(&mut self, icmp: &Icmp<'_>, at: At) -> Option<Issue> {
        let echo = Echo {
            src: icmp.src,
            dst: icmp.dst,
            id: icmp.id,
            seq: icmp.seq,
        };
        match (icmp.v6, icmp.kind) {
            (false, 8) | (true, 128) => return self.add_request(echo, icmp.ttl, at),
            (false, 0) | (true, 129) => self.answer_echo(echo.back(), AnswerKind::EchoReply, icmp.src, at),
            _ => {
                if let (Some(kind), Some(echo)) = (icmp_answer_kind(icmp), icmp.echo) {
                    self.answer_echo(echo, kind, icmp.src, at);
                }
            }
        }
        None
    }

    fn add_request(&mut self, echo: Echo, ttl: u8, at: At) -> Option<Issue> {
        let waiting_row = self.waiting.get(&echo).copied();
        if let Some(probe) = waiting_row.and_then(|row| self.rows.get_mut(row as usize))
            && at.time_ns.saturating_sub(probe.sent.time_ns) < ECHO_COPY_NS.get()
        {
            probe.retransmissions = probe.retransmissions.saturating_add(1);
            return None;
        }
        let Echo { id, seq, .. } = echo;
        let row = self.rows.len() as u32;
        self.rows.push(Probe {
            src: echo.src,
            dst: echo.dst,
            sent: at,
            kind: ProbeKind::Echo { id, seq, ttl },
            retransmissions: 0,
            answer: None,
        });
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

    fn answer_echo(&mut self, echo: Echo, kind: AnswerKind, from: IpAddr, at: At) {
        let row = self.waiting.remove(&echo);
        if let Some(probe) = row.and_then(|row| self.rows.get_mut(row as usize)) {
            probe.answer.get_or_insert(SynAnswer { kind, from, at });
        }
    }
}

/// Merges probes into the order of sending, while streams arrive in the order of their first frames.
#[derive(Default)]
pub struct ProbeRows {
    echoes: VecDeque<Probe>,
    /// By frame, then in the order of `push`.
    syns: BTreeMap<(u64, u64), Probe>,
    pushes: u64,
}

impl ProbeRows {
    pub fn push(&mut self, probe: Probe) {
        self.syns.insert((probe.sent.frame, self.pushes), probe);
        self.pushes += 1;
    }

    /// Removes and returns the next probe, if it was sent before this frame.
    pub fn pop(&mut self, before: u64) -> Option<Probe> {
        let echo = self.echoes.front().map_or(u64::MAX, |echo| echo.sent.frame);
        let syn = self.syns.keys().next().map_or(u64::MAX, |(frame, _)| *frame);
        if echo.min(syn) >= before {
            None
        } else if echo < syn {
            self.echoes.pop_front()
        } else {
            self.syns.pop_first().map(|(_, probe)| probe)
        }
    }
}

#[cfg(test)]
mod tests;
