//! What all streams share while the capture is read: exchanges that wait for their judgement or to be used again, evidence,
//! names, and issues. Knows no stream; each part has its cap.

use std::collections::VecDeque;

use ahash::AHashSet;
use smol_str::SmolStr;

use super::data_connections::{Carried, DataConnections};
use super::multipath::MultipathStreams;
use super::{Exchange, Interner, Symbol, Tracker, few_steps};
use crate::base::{At, Side};
use crate::decrypt::Sealed;
use crate::evidence::SenderStore;
use crate::issue::{Issue, Kind};
use crate::lookup;
use crate::messages::{Memory, TlsSetup};
use crate::observe::late_copy;
use crate::segment::{self, ACK, SYN, Segment};

/// Needless repeats that are remembered until their exchanges are judged.
const MAX_NEEDLESS: usize = 1 << 16;
/// Repeats of streams that are over, whose first copy may still come; the oldest go.
const MAX_LEFT: usize = 64;

/// What all streams share while the capture is read.
#[derive(Default)]
pub struct Context {
    pub next_id: u64,
    pub sender_store: SenderStore,
    /// What data connections carry.
    pub carried: Interner<Carried>,
    /// What servers call themselves, and what requests call them.
    pub names: Interner<SmolStr>,
    /// How TLS was set up.
    pub secured: Interner<TlsSetup>,
    /// Finished, and judged by evidence that other exchanges may still bring.
    pub pending: Vec<Box<Exchange>>,
    /// Finished, and judged by the path's round trips alone.
    pub pending_plain: Vec<Box<Exchange>>,
    /// Cleared exchanges, to be used again: a capture has many, and each holds buffers.
    #[allow(clippy::vec_box)] // they change hands several times
    spare: Vec<Box<Exchange>>,
    /// Trackers of streams that are over, for the same reason.
    #[allow(clippy::vec_box)] // 2 KB each, and they go where they came from
    pub(super) over: Vec<Box<Tracker>>,
    /// Frames of repeats whose first copy arrived as well, as the receiver's answers show.
    pub needless: AHashSet<u64>,
    /// Of streams that are over, which side sent what again last.
    left: VecDeque<(u32, Side, At)>,
    /// What the streams hold out of order now.
    pub(super) held: usize,
    /// Steps of long messages that they remember now.
    pub(super) steps: usize,
    pub multipath: MultipathStreams,
    /// What passed on connections of one direction.
    pub data_connections: DataConnections,
    /// What the readers of messages remember of all streams.
    pub memory: Memory,
    /// What was read of DNS over TCP; taken away after each packet.
    pub dns: Vec<lookup::DnsMessage>,
    /// What could not be read or trusted on the way; taken away after each packet.
    pub issues: Vec<Issue>,
}

impl Context {
    /// A new exchange.
    pub(crate) fn open(&mut self, stream: u32, index: u32, pair: u32) -> Box<Exchange> {
        let mut exchange = self.spare.pop().unwrap_or_else(|| {
            let mut new = Box::<Exchange>::default();
            new.steps = few_steps();
            new
        });
        (exchange.stream, exchange.index, exchange.pair) = (stream, index, pair);
        exchange.id = self.next_id;
        self.next_id += 1;
        exchange
    }

    /// This exchange has its row. It is cleared now, while the processor's cache has it.
    pub fn done(&mut self, mut exchange: Box<Exchange>) {
        exchange.clear();
        self.spare.push(exchange);
    }

    /// Queues a finished exchange, to be judged.
    #[inline(always)]
    pub(super) fn queue(&mut self, mut exchange: Box<Exchange>) {
        if !self.data_connections.is_empty() {
            self.data_connections.excuse(&mut exchange);
        }
        if exchange.is_plain() {
            self.pending_plain.push(exchange);
        } else {
            self.pending.push(exchange);
        }
    }

    /// The message of this stream that was finished last ends in this packet.
    pub(super) fn ends_in(&self, stream: u32, frame: u64) -> bool {
        [&self.pending, &self.pending_plain].into_iter().any(|list| {
            list.last()
                .filter(|e| e.stream == stream)
                .and_then(|e| e.response.as_ref())
                .is_some_and(|answer| answer.last.frame == frame)
        })
    }

    /// A repeat was not needed. Beyond `MAX_NEEDLESS` of them the rest keep the names of repairs.
    pub(crate) fn not_needed(&mut self, repeat: At) {
        if self.needless.len() < MAX_NEEDLESS {
            self.needless.insert(repeat.frame);
        } else {
            self.distrust(
                "tcp",
                "too many needless repeats; further ones are called repairs",
                repeat,
            );
        }
    }

    /// The newest repeat of a stream that is over.
    pub(super) fn left_repeat(&mut self, stream: u32, side: Side, repeat: At) {
        if self.left.len() >= MAX_LEFT {
            self.left.pop_front();
        }
        self.left.push_back((stream, side, repeat));
    }

    /// This side acknowledges once more what it got in a stream that is over: a late first copy came.
    #[cold]
    pub(crate) fn answers_what_is_over(&mut self, stream: u32, side: Side, ack: At) {
        let mut left = self.left.iter();
        let repeat =
            left.find(|(of, by, repeat)| (*of, *by) == (stream, side.other()) && late_copy(*repeat, ack));
        if let Some((_, _, repeat)) = repeat {
            self.not_needed(*repeat);
        }
    }

    /// A packet of a stream's set-up names multipath TCP: where it is the server's answer, that has agreed.
    #[cold]
    pub fn agreed(&mut self, stream: u32, answer: &Segment<'_>, at: At) {
        if !answer.has(SYN) || !answer.has(ACK) {
            return;
        }
        let joins = answer.options.multipath == segment::Multipath::Joins;
        self.multipath.agreed(stream, joins);
        if joins {
            let reason = "a connection is a further path of another one (multipath): messages may pass in parts on both";
            self.distrust("tcp", reason, at);
        }
    }

    /// What a server calls itself or is called, kept once.
    pub fn name(&mut self, name: &str, at: At) -> Option<Symbol> {
        let known = self.names.keep(&name.into());
        if known.is_none() {
            self.distrust("tcp", "too many names of servers; further ones are left out", at);
        }
        known
    }

    /// A stream between these hosts to this port begins: what it carries for another one.
    pub(crate) fn carries(&mut self, pairs: [Option<u32>; 2], port: u16, at: At) -> Option<Symbol> {
        let carried = self.data_connections.carried(pairs, port, at)?;
        let known = self.carried.keep(&carried);
        if known.is_none() {
            self.distrust(
                "ftp",
                "too many different transfers; what further ones carry is left out",
                at,
            );
        }
        known
    }

    /// How TLS was set up, kept once.
    #[cold]
    pub(super) fn secured(&mut self, how: &TlsSetup, at: At) -> Option<Symbol> {
        let known = self.secured.keep(how);
        if known.is_none() {
            self.distrust(
                "tls",
                "too many different handshakes; what further ones tell is left out",
                at,
            );
        }
        known
    }

    /// What there are keys for, and cannot be read.
    #[cold]
    pub(super) fn sealed(&mut self, why: Sealed, at: At) {
        let mut issue = Issue::new(Kind::Skipped, "tls", why.reason()).in_frame(at.frame);
        issue.group = why.number();
        if issue.group > 0 {
            issue = issue.detail(format!("{:#06x}", why.number()));
        }
        self.issues.push(issue);
    }

    pub(super) fn distrust(&mut self, layer: &'static str, reason: &'static str, at: At) {
        self.issues
            .push(Issue::new(Kind::Distrusted, layer, reason).in_frame(at.frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_ns: i64) -> At {
        let frame = time_ns as u64;
        At { frame, time_ns }
    }

    #[test]
    fn of_streams_that_are_over_the_newest_repeats_may_still_be_answered() {
        // streams 0 to 64, each with a repeat: one more than MAX_LEFT
        let named = |stream, side, ack| {
            let mut context = Context::default();
            (0..65).for_each(|n| context.left_repeat(n, Side::Server, at(i64::from(n) + 1)));
            context.answers_what_is_over(stream, side, at(ack));
            context.needless.into_iter().collect::<Vec<u64>>()
        };
        assert_eq!(
            (named(1, Side::Client, 70), named(64, Side::Client, 70)),
            (vec![2], vec![65])
        );
        assert!(named(0, Side::Client, 70).is_empty(), "the oldest goes");
        assert!(named(1, Side::Server, 70).is_empty() && named(64, Side::Client, 64).is_empty());
    }
}
