//! A connection's set-up as an exchange of its own: SYN, SYN/ACK, the ACK, and the wait for the client's first byte.
//!
//! A handshake takes equally long seen from either end. It is the one wait for the path that a capture at the server
//! shows.

use std::num::{NonZeroI64, NonZeroU32};

use super::{Context, CutBy, Exchange, Message, Opening, RowKind, Symbol};
use crate::base::{At, Side};
use crate::limits::{OUTLIER_ONE_IN, SYN_TIMER_NS};
use crate::observe::{Repair, Step, Wait};
use crate::segment::{FIN, RST, SYN, Segment};

/// What the data of a stream show about its beginning.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beginning {
    /// When a server that speaks first sent its first byte, in ns.
    pub greeted: Option<NonZeroI64>,
    /// Duration of the TLS handshake.
    pub tls_ns: Option<NonZeroI64>,
    /// Properties of the TLS handshake.
    pub secured: Option<Symbol>,
    /// Name of the server in the first request that contains one.
    pub named: Option<Symbol>,
    /// What it carries for its control connection.
    pub carries: Option<Symbol>,
}

/// State of one stream's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Setup {
    /// None if the capture lacks it.
    first_syn: Option<At>,
    /// The newest SYN before the first SYN/ACK.
    last_syn: At,
    /// The first SYN/ACK, or the RST in its place.
    answered: Option<At>,
    /// The newest retransmission of SYN or SYN/ACK after the first SYN/ACK, or that one itself.
    answered_again: At,
    /// The ACK that completed the handshake, or the RST that aborted it.
    ended: Option<At>,
    /// The client's first data after that.
    used: Option<At>,
    /// TSvals of the first SYN/ACK and of that ACK, until data is sent.
    stamps: [Option<u32>; 2],
    /// An RST ended it.
    refused: bool,
    /// No further segment belongs to it.
    over: bool,
}

impl Setup {
    /// Begins with the client's first SYN.
    pub fn new(syn: At) -> Self {
        Setup {
            first_syn: Some(syn),
            last_syn: syn,
            ..Setup::default()
        }
    }

    /// Whether further segments may belong to it.
    pub fn pending(&self) -> bool {
        !self.over
    }

    /// Reads a segment of the stream, from its second one on.
    pub fn segment(&mut self, segment: &Segment<'_>, side: Side, at: At) {
        let syn = segment.has(SYN);
        let Some(first_syn) = self.first_syn else { return };
        let last = [first_syn, self.last_syn, self.answered_again];
        let at = At {
            time_ns: last
                .iter()
                .map(|packet| packet.time_ns)
                .fold(at.time_ns, i64::max),
            ..at
        };
        if let Some(ended) = self.ended {
            if side == Side::Client && segment.len > 0 {
                self.used = Some(At {
                    time_ns: at.time_ns.max(ended.time_ns),
                    ..at
                });
            }
            self.over = segment.len > 0 || segment.has(RST) || segment.has(FIN);
        } else if segment.has(RST) {
            // refused by the server, or aborted by the client
            if side == Side::Server && self.answered.is_none() {
                (self.answered, self.answered_again) = (Some(at), at);
            }
            (self.ended, self.refused, self.over) = (Some(at), true, true);
        } else if syn && self.is_copy(side, at) {
            // a duplicate of the network or of the capture, since no timer is so short
        } else if syn {
            match (self.answered, side) {
                (None, Side::Client) => self.last_syn = at,
                (None, Side::Server) => {
                    (self.answered, self.answered_again) = (Some(at), at);
                    self.stamps = [segment.options.timestamps.map(|(tsval, _)| tsval), None];
                }
                (Some(_), _) => self.answered_again = at,
            }
        } else if self.answered.is_none() {
            (self.first_syn, self.over) = (None, true); // the capture lacks the answer
        } else if side == Side::Client {
            self.ended = Some(at);
            let [_, ack] = &mut self.stamps;
            *ack = segment.options.timestamps.map(|(tsval, _)| tsval);
            if segment.len > 0 {
                (self.used, self.over) = (Some(at), true);
            }
        }
    }

    /// Whether a SYN or SYN/ACK follows the previous one sooner than any retransmission timer allows.
    fn is_copy(&self, side: Side, at: At) -> bool {
        let before = match side {
            Side::Client => Some(self.last_syn),
            Side::Server => self.answered,
        };
        before.is_some_and(|before| at.time_ns - before.time_ns < SYN_TIMER_NS.get())
    }

    /// Returns side, time in ns and TSval of the SYN/ACK and of the ACK after it, once.
    pub fn take_stamps(&mut self) -> [Option<(Side, i64, u32)>; 2] {
        let [answer, ack] = std::mem::take(&mut self.stamps);
        let stamp = |side, at: Option<At>, stamp: Option<u32>| Some((side, at?.time_ns, stamp?));
        [
            stamp(Side::Server, self.answered, answer),
            stamp(Side::Client, self.ended, ack),
        ]
    }

    /// Whether the set-up has a row of its own. It has one with TLS. Otherwise it must take time, with the greeting
    /// and the lookup (`lookup`, ns) before it, and have a retransmission, or be at least a tenth of set-up and
    /// requests (`busy`, ns) together.
    pub fn deserves_row(&self, busy: i64, lookup: i64, begun: Beginning) -> bool {
        let Some(first_syn) = self.first_syn else {
            return false;
        };
        let answered = self.answered.unwrap_or(self.last_syn);
        let is_repeated = self.last_syn.frame != first_syn.frame
            || self
                .answered
                .is_some_and(|first| first.frame != self.answered_again.frame);
        let last = self.used.or(self.ended).unwrap_or(answered);
        // the client waits for the greeting of a server that speaks first
        let greeted = begun.greeted.map_or(0, NonZeroI64::get).max(last.time_ns);
        let took = greeted.saturating_sub(first_syn.time_ns).saturating_add(lookup);
        let is_long =
            took > 0 && (is_repeated || took.saturating_mul(OUTLIER_ONE_IN.get() as i64 - 1) >= busy);
        is_long || begun.secured.is_some()
    }

    /// Its exchange, with steps that the two sides make in turn; None if the capture lacks the SYN. Its id and its
    /// `index` follow those of all requests.
    pub fn exchange(
        &self,
        stream: u32,
        index: u32,
        begun: Beginning,
        context: &mut Context,
    ) -> Option<Box<Exchange>> {
        let first_syn = self.first_syn?;
        let mut exchange = context.open(stream, index, 0);
        let [client, server] = &mut exchange.steps;
        let step = |steps: &mut Vec<Step>, from: At, to: At, wait: Wait| {
            if to.time_ns > from.time_ns {
                steps.push(Step { from, to, wait });
            }
        };
        let repeated = |steps: &mut Vec<Step>, first: At, again: At| {
            if again.time_ns > first.time_ns {
                step(
                    steps,
                    first,
                    again,
                    Wait::repair(Repair::Syn, Some(first), None, true),
                );
            }
        };
        repeated(client, first_syn, self.last_syn);
        if let Some(answered) = self.answered {
            step(server, self.last_syn, answered, Wait::Handshake);
            repeated(server, answered, self.answered_again);
        }
        if let Some(ended) = self.ended {
            step(client, self.answered_again, ended, Wait::Handshake);
            if let Some(used) = self.used {
                step(client, ended, used, Wait::App);
            }
        }
        let last = self.used.or(self.ended).unwrap_or(self.answered_again);
        let complete = |message: &mut Message, first, last| {
            (message.first, message.last, message.is_complete) = (first, last, true);
        };
        complete(&mut exchange.request, first_syn, self.last_syn);
        if let Some(first) = self.answered {
            complete(exchange.response.get_or_insert_default(), first, last);
        }
        let made_ns = self.ended.filter(|_| !self.refused).map(|at| at.time_ns);
        exchange.opening = Some(Box::new(Opening {
            handshake_ns: made_ns.map(|made_ns| made_ns - first_syn.time_ns),
            lookup: None,
            tls_ns: begun.tls_ns.map(NonZeroI64::get),
            secured: begun
                .secured
                .and_then(|symbol| context.secured.get(symbol))
                .cloned(),
            greeting_ns: made_ns
                .zip(begun.greeted)
                .map(|(made_ns, greeted)| greeted.get().saturating_sub(made_ns).max(0)),
        }));
        exchange.row = RowKind::Connect;
        exchange.cut_by = match (self.refused, self.ended) {
            (true, _) => Some(CutBy::Rst),
            (false, None) => Some(CutBy::CaptureEnd),
            (false, Some(_)) => None,
        };
        exchange.is_dialogue = true;
        Some(exchange)
    }
}

/// Compact form of the set-up of an ended connection. Most handshakes are three packets in quick succession.
#[derive(Debug)]
pub enum CompactSetup {
    /// No packet was repeated or late.
    Plain(PlainSetup),
    /// Any other set-up.
    Whole(Box<Setup>),
}

/// A set-up without retransmissions, as offsets from its SYN.
#[derive(Debug)]
pub struct PlainSetup {
    answered: Option<SynOffset>,
    ended: Option<SynOffset>,
    used: Option<SynOffset>,
    refused: bool,
    over: bool,
}

/// Offset of a packet from the SYN: in frames and ns.
#[derive(Debug, Clone, Copy)]
struct SynOffset {
    frames: NonZeroU32,
    ns: u32,
}

impl SynOffset {
    /// None if the packet is earlier than the SYN, or more than four seconds later.
    fn of(syn: At, at: At) -> Option<Self> {
        let frames = u32::try_from(at.frame.checked_sub(syn.frame)?).ok()?;
        Some(SynOffset {
            frames: NonZeroU32::new(frames)?,
            ns: u32::try_from(at.time_ns.checked_sub(syn.time_ns)?).ok()?,
        })
    }

    fn at(self, syn: At) -> At {
        At {
            frame: syn.frame + u64::from(self.frames.get()),
            time_ns: syn.time_ns + i64::from(self.ns),
        }
    }
}

impl CompactSetup {
    /// Compacts the set-up of a connection whose first packet is `syn`.
    pub fn of(setup: Setup, syn: At) -> Self {
        let since = |at: Option<At>| at.and_then(|at| SynOffset::of(syn, at));
        let made = PlainSetup {
            answered: since(setup.answered),
            ended: since(setup.ended),
            used: since(setup.used),
            refused: setup.refused,
            over: setup.over,
        };
        if made.setup(syn) == setup {
            CompactSetup::Plain(made)
        } else {
            CompactSetup::Whole(Box::new(setup))
        }
    }

    /// Restores the set-up.
    pub fn setup(self, syn: At) -> Setup {
        match self {
            CompactSetup::Plain(made) => made.setup(syn),
            CompactSetup::Whole(setup) => *setup,
        }
    }
}

impl PlainSetup {
    fn setup(&self, syn: At) -> Setup {
        let at = |since: Option<SynOffset>| since.map(|since| since.at(syn));
        Setup {
            answered: at(self.answered),
            answered_again: at(self.answered).unwrap_or_default(),
            ended: at(self.ended),
            used: at(self.used),
            refused: self.refused,
            over: self.over,
            ..Setup::new(syn)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(frame: u64, time_ns: i64) -> At {
        At { frame, time_ns }
    }

    fn kept(setup: Setup) -> bool {
        let kept = CompactSetup::of(setup, at(9, 100));
        let brief = matches!(kept, CompactSetup::Plain(_));
        assert_eq!(kept.setup(at(9, 100)), setup);
        brief
    }

    #[test]
    fn a_setup_is_brief_where_nothing_came_twice_or_late() {
        let most = i64::from(u32::MAX);
        let made = Setup {
            answered: Some(at(10, 100)),
            answered_again: at(10, 100),
            ended: Some(at(12, 100 + most)),
            over: true,
            ..Setup::new(at(9, 100))
        };
        assert!(kept(made) && kept(Setup::new(at(9, 100))));
        let used = |used| Setup {
            used: Some(used),
            ..made
        };
        assert!(kept(used(at(13, 100 + most))));
        assert!(!kept(used(at(13, 101 + most))) && !kept(used(at(13, 99))) && !kept(used(at(9, 100))));
        let first_syn = |first_syn| Setup {
            last_syn: first_syn,
            ..made
        };
        assert!(
            !kept(first_syn(at(10, 200)))
                && !kept(Setup {
                    first_syn: None,
                    ..made
                })
        );
        let stamps = [None, Some(7)];
        assert!(!kept(Setup { stamps, ..made }));
        let answered_again = at(11, 200);
        assert!(!kept(Setup {
            answered_again,
            ..made
        }));
    }
}
