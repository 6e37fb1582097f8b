//! A sender and its receiver on both sides of a capture, with exact times.

use std::net::IpAddr;

use latpcap_core::base::{At, Side};
use latpcap_core::evidence::rtt::Pairs;
use latpcap_core::evidence::{Key, SenderStore};
use latpcap_core::judge::{Grade, Ruling, SenderVerdict, Senders};
use latpcap_core::observe::{Candidate, Early};

use crate::common::{CLIENT, Lcg, MS, SERVER};

pub const US: i64 = 1000;

/// Round trips from the capture to the sender and to the receiver: at the sender, at the receiver, between.
pub const VANTAGES: [(i64, i64); 3] = [(20 * US, 4 * MS), (4 * MS, 20 * US), (2 * MS, 2 * MS)];

/// One sender (the server) and the small segments that it sent after others.
pub struct Endpoint {
    pub pairs: Pairs,
    pub store: SenderStore,
    pub judged: Senders,
    pub id: u32,
    /// Round trips to the sender and to the receiver.
    pub rtts: (i64, i64),
    pub frame: u64,
    /// Whose gaps come now.
    pub stream: u32,
    pub candidates: Vec<Candidate>,
}

impl Endpoint {
    pub fn new(rtts: (i64, i64)) -> Self {
        let mut pairs = Pairs::default();
        let (client, server) = (IpAddr::V4(CLIENT), IpAddr::V4(SERVER));
        let pair = pairs.id(client, server);
        pairs.add(pair, Side::Server, rtts.0, false);
        pairs.add(pair, Side::Client, rtts.1, false);
        if rtts.0 < 100 * US {
            pairs.add_handshake_rtt(pair, Side::Server, 2 * rtts.0); // more work than an ACK
        }
        let mut store = SenderStore::default();
        let id = store.id(
            Key {
                server,
                server_port: 80,
                client,
                sender: Side::Server,
            },
            pair,
        );
        Endpoint {
            pairs,
            store,
            judged: Senders::default(),
            id,
            rtts,
            frame: 0,
            stream: 0,
            candidates: Vec::new(),
        }
    }

    /// A small segment passes at `small`, its ACK at `ack`, the next small one at `freed`. Where no ACK
    /// passed before the second, `observe` makes a refutation of it.
    pub fn gap(&mut self, small: i64, ack: i64, freed: i64) -> Option<Candidate> {
        self.frame += 3;
        let at = |n: u64, time_ns: i64| At {
            frame: self.frame + n,
            time_ns,
        };
        let candidate = Candidate {
            small: at(0, small),
            held_from: at(0, small),
            ack: at(1, ack),
            ack_lacks_data: true,
            freed: at(2, freed),
            freed_bytes: 612,
            sender_id: self.id,
            stream: self.stream,
            ..Candidate::default()
        };
        self.add(candidate)
    }

    pub fn add(&mut self, candidate: Candidate) -> Option<Candidate> {
        if candidate.freed.time_ns < candidate.ack.time_ns {
            self.refute(candidate.freed.time_ns - candidate.small.time_ns);
            return None;
        }
        self.store.add(&candidate);
        self.candidates.push(candidate);
        Some(candidate)
    }

    /// A small segment leaves over an unacknowledged small one, so long after it.
    pub fn refute(&mut self, pause: i64) {
        self.store.refute(
            self.id,
            self.stream,
            &[Early {
                pause_ns: pause,
                time_ns: 0,
                frame: 0,
            }],
        );
    }

    /// Under Nagle: the ACK leaves after `hold`, the next segment `slack` after it has arrived.
    pub fn nagle(&mut self, small: i64, hold: i64, slack: i64) -> Option<Candidate> {
        let ack = small + self.rtts.1 + hold;
        self.gap(small, ack, ack + self.rtts.0 + slack)
    }

    /// Without: the next segment leaves the program `pause` after the first, whatever was acknowledged.
    pub fn pause(&mut self, small: i64, hold: i64, pause: i64) -> Option<Candidate> {
        self.gap(small, small + self.rtts.1 + hold, small + pause)
    }

    /// True ones.
    pub fn stalls(&mut self, n: i64, random: &mut Lcg) {
        for i in 0..n {
            self.nagle(i * 47 * MS, 40 * MS + random.below(4 * MS), 10 * US);
        }
    }

    pub fn judged(&mut self) -> SenderVerdict {
        self.judged.judge(&self.store, &self.pairs, true)[0].clone()
    }

    /// How many stalls are proven.
    pub fn sure(&mut self) -> usize {
        let rulings = self.rulings();
        rulings.iter().filter_map(confident).filter(|c| *c >= 0.9).count()
    }

    pub fn rulings(&mut self) -> Vec<Ruling> {
        let judged = self.judged();
        let candidates = self.candidates.iter();
        candidates.map(|c| judged.rule(Side::Server, c)).collect()
    }
}

/// Linux' timer of 40 ms fires on the next tick of 4 ms, sometimes one later.
pub fn timer(start: i64, random: &mut Lcg) -> i64 {
    let late = if random.below(20) == 0 { 4 * MS } else { 0 };
    let tick = 4 * MS;
    (start + 40 * MS + tick - 1) / tick * tick + late + random.below(100 * US) - start
}

/// What a stall is worth.
pub fn confident(ruling: &Ruling) -> Option<f64> {
    match ruling {
        Ruling::Held { grounds, .. } if grounds.grade == Grade::Proven => Some(0.99),
        Ruling::Held { .. } => Some(0.8),
        _ => None,
    }
}
