//! State that all streams share while the capture is read: exchanges that wait for their judgement, evidence,
//! interned names, DNS messages and issues. Each part is bounded.

use std::collections::VecDeque;

use ahash::AHashSet;
use smol_str::SmolStr;

use super::data_connections::{Carried, DataConnections};
use super::{Exchange, Interner, Symbol, Tracker, few_steps};
use crate::base::{At, Side};
use crate::decrypt::Sealed;
use crate::evidence::SenderStore;
use crate::issue::{Issue, Kind};
use crate::lookup;
use crate::messages::{Memory, TlsSetup};
use crate::observe::answers_late_copy;
use crate::segment::{self, ACK, SYN, Segment};

/// Upper bound on the spurious retransmissions kept until their exchanges are judged.
const MAX_SPURIOUS: usize = 1 << 16;
/// Upper bound on the retransmissions kept of ended streams, whose first copy may still arrive; the oldest are dropped.
const MAX_LAST_RETRANSMISSIONS: usize = 64;

/// Upper bound on the streams with multipath TCP that are kept.
const MAX_MULTIPATH_STREAMS: usize = 1 << 16;

/// State that all streams share.
#[derive(Default)]
pub struct Context {
    /// Id of the next exchange.
    pub next_id: u64,
    pub sender_store: SenderStore,
    /// What data connections carry.
    pub carried: Interner<Carried>,
    /// Names that servers give themselves, or that requests call them by.
    pub names: Interner<SmolStr>,
    /// Properties of TLS handshakes.
    pub secured: Interner<TlsSetup>,
    /// Finished exchanges whose causes depend on evidence from other exchanges.
    pub pending: Vec<Box<Exchange>>,
    /// Finished exchanges whose causes depend on the path's RTTs alone.
    pub pending_plain: Vec<Box<Exchange>>,
    /// Cleared exchanges for reuse: a capture has many, and each holds buffers.
    #[allow(clippy::vec_box)] // they change hands several times
    spare: Vec<Box<Exchange>>,
    /// Trackers of ended streams for reuse.
    #[allow(clippy::vec_box)] // 2 KB each, and they go where they came from
    pub(super) spare_trackers: Vec<Box<Tracker>>,
    /// Frames of spurious retransmissions: the receiver's ACKs show that the first copy arrived as well.
    pub spurious: AHashSet<u64>,
    /// The last retransmission of ended streams: stream, its sender, and packet.
    last_retransmissions: VecDeque<(u32, Side, At)>,
    /// Number of bytes that all streams hold out of order now.
    pub(super) held_bytes: usize,
    /// Number of steps of long messages that all streams hold now.
    pub(super) step_count: usize,
    pub multipath: MultipathStreams,
    /// Data connections of FTP, which send in one direction.
    pub data_connections: DataConnections,
    /// What the protocol readers share between streams.
    pub memory: Memory,
    /// DNS messages read over TCP; the pipeline empties this after each packet.
    pub dns: Vec<lookup::DnsMessage>,
    /// Issues found in the current packet; the pipeline empties this after each packet.
    pub issues: Vec<Issue>,
}

impl Context {
    /// Returns an empty exchange with the next id.
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

    /// Reuses an exchange that has its row. Cleared now, while it is in the processor's cache.
    pub fn recycle(&mut self, mut exchange: Box<Exchange>) {
        exchange.clear();
        self.spare.push(exchange);
    }

    /// Queues a finished exchange for judgement.
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

    /// Whether the message of this stream that was finished last ends in this packet.
    pub(super) fn ends_in(&self, stream: u32, frame: u64) -> bool {
        [&self.pending, &self.pending_plain].into_iter().any(|list| {
            list.last()
                .filter(|exchange| exchange.stream == stream)
                .and_then(|exchange| exchange.response.as_ref())
                .is_some_and(|answer| answer.last.frame == frame)
        })
    }

    /// Marks a retransmission as spurious. After `MAX_SPURIOUS` of them, further ones keep the name of a repair.
    pub(crate) fn mark_spurious(&mut self, retransmission: At) {
        if self.spurious.len() < MAX_SPURIOUS {
            self.spurious.insert(retransmission.frame);
        } else {
            self.distrust(
                "tcp",
                "too many spurious retransmissions; further ones are called repairs",
                retransmission,
            );
        }
    }

    /// Keeps the newest retransmission of a stream that ends.
    pub(super) fn keep_last_retransmission(&mut self, stream: u32, side: Side, retransmission: At) {
        if self.last_retransmissions.len() >= MAX_LAST_RETRANSMISSIONS {
            self.last_retransmissions.pop_front();
        }
        self.last_retransmissions
            .push_back((stream, side, retransmission));
    }

    /// Handles a duplicate ACK of `side` in an ended stream: a late first copy arrived, so the retransmission
    /// was spurious.
    #[cold]
    pub(crate) fn ack_after_end(&mut self, stream: u32, side: Side, ack: At) {
        let mut last_retransmissions = self.last_retransmissions.iter();
        let retransmission = last_retransmissions.find(|(ended, by, retransmission)| {
            (*ended, *by) == (stream, side.other()) && answers_late_copy(*retransmission, ack)
        });
        if let Some((_, _, retransmission)) = retransmission {
            self.mark_spurious(*retransmission);
        }
    }

    /// Handles a packet of the handshake with a multipath option. The option counts if it is the server's SYN/ACK.
    #[cold]
    pub fn agreed(&mut self, stream: u32, answer: &Segment<'_>, at: At) {
        if !answer.has(SYN) || !answer.has(ACK) {
            return;
        }
        let is_joining = answer.options.multipath == segment::Multipath::Joins;
        self.multipath.agreed(stream, is_joining);
        if is_joining {
            let reason = "a connection is a further path of another one (multipath): messages may pass in parts on both";
            self.distrust("tcp", reason, at);
        }
    }

    /// Interns the name of a server.
    pub fn name(&mut self, name: &str, at: At) -> Option<Symbol> {
        let symbol = self.names.keep(&name.into());
        if symbol.is_none() {
            self.distrust("tcp", "too many names of servers; further ones are left out", at);
        }
        symbol
    }

    /// Returns what a new stream between these hosts and to this port carries for its control connection.
    pub(crate) fn carries(&mut self, pairs: [Option<u32>; 2], port: u16, at: At) -> Option<Symbol> {
        let carried = self.data_connections.carried(pairs, port, at)?;
        let symbol = self.carried.keep(&carried);
        if symbol.is_none() {
            self.distrust(
                "ftp",
                "too many different transfers; what further ones carry is left out",
                at,
            );
        }
        symbol
    }

    /// Interns the properties of a TLS handshake.
    #[cold]
    pub(super) fn secured(&mut self, setup: &TlsSetup, at: At) -> Option<Symbol> {
        let symbol = self.secured.keep(setup);
        if symbol.is_none() {
            self.distrust(
                "tls",
                "too many different handshakes; what further ones tell is left out",
                at,
            );
        }
        symbol
    }

    /// Reports TLS that could not be decrypted although there are keys.
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

/// Streams with multipath TCP (RFC 8684), where parts of a message may be sent on several connections (subflows).
#[derive(Debug, Default)]
pub struct MultipathStreams {
    /// Streams whose two hosts support it.
    streams: AHashSet<u32>,
    /// Further streams support it, so that every stream counts as one of them.
    is_full: bool,
    /// Some stream was added to another connection.
    pub joined: bool,
}

impl MultipathStreams {
    /// The server has accepted the option on this stream; `joins`: as a further subflow.
    #[cold]
    pub fn agreed(&mut self, stream: u32, joins: bool) {
        if self.streams.len() < MAX_MULTIPATH_STREAMS {
            self.streams.insert(stream);
        } else {
            self.is_full = true;
        }
        self.joined |= joins;
    }

    /// Whether parts of this stream's messages may be on other streams.
    pub fn is_spread(&self, stream: u32) -> bool {
        self.joined && (self.is_full || self.streams.contains(&stream))
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
    fn beyond_the_bound_every_stream_may_be_multipath() {
        let mut streams = MultipathStreams::default();
        (0..MAX_MULTIPATH_STREAMS as u32).for_each(|stream| streams.agreed(stream, true));
        let further = MAX_MULTIPATH_STREAMS as u32;
        assert!(streams.is_spread(0) && !streams.is_spread(further));
        streams.agreed(further, false);
        assert!(streams.is_spread(further));
    }

    #[test]
    fn an_ack_in_an_ended_stream_marks_its_repeat_as_needless() {
        // streams 0 to 64, each with a retransmission: one more than MAX_LAST_RETRANSMISSIONS
        let named = |stream, side, ack| {
            let mut context = Context::default();
            (0..65).for_each(|n| context.keep_last_retransmission(n, Side::Server, at(i64::from(n) + 1)));
            context.ack_after_end(stream, side, at(ack));
            context.spurious.into_iter().collect::<Vec<u64>>()
        };
        assert_eq!(
            (named(1, Side::Client, 70), named(64, Side::Client, 70)),
            (vec![2], vec![65])
        );
        assert!(named(0, Side::Client, 70).is_empty(), "the oldest goes");
        assert!(named(1, Side::Server, 70).is_empty() && named(64, Side::Client, 64).is_empty());
    }
}
