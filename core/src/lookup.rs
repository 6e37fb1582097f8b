//! DNS lookups and other requests over UDP: pairs questions with answers, and finds the connection that waited for an
//! answer. Takes datagrams, DNS messages over TCP, and SYNs; returns a row per lookup.

use std::collections::VecDeque;
use std::net::IpAddr;

use ahash::AHashMap;
use smol_str::SmolStr;

use crate::base::{At, Side};
use crate::frame::Udp;
use crate::issue::{Issue, Kind};
use crate::limits::LOOKED_UP_NS;
use neighbour::Sought;

use crate::messages::Status;
use crate::messages::dns::{Message, addresses};

/// Port of DNS (RFC 1035 4.2.1).
const NAME_SERVERS: u16 = 53;
/// Upper bound on the questions without an answer; beyond it the oldest is returned as unanswered.
const MAX_WAITING: usize = 4096;
/// Upper bound on the answers kept for the connections that may follow.
const MAX_ANSWERS: usize = 1024;
/// Upper bound on the connections whose lookup is kept until their stream has its row.
const MAX_CONNECTS: usize = 1 << 16;

/// A DNS message that was read from a TCP stream.
#[derive(Debug)]
pub struct DnsMessage {
    /// Id of the TCP stream; None for UDP.
    pub stream: u32,
    pub side: Side,
    pub at: At,
    /// The bytes that were read of it.
    pub message: Box<[u8]>,
}

/// A question and its answer: of a name server, of another service over UDP, or of a link for the host with an
/// address (ARP).
#[derive(Debug, Clone)]
pub struct Lookup {
    pub number: u64,
    /// None: it went over UDP.
    pub stream: Option<u32>,
    pub client: (IpAddr, u16),
    pub server: (IpAddr, u16),
    pub id: u16,
    pub kind: SmolStr,
    pub name: SmolStr,
    pub sent: At,
    /// Time of the last copy of the question in ns; the time of `sent` if there are no retransmissions.
    pub last_ns: i64,
    /// Retransmissions of the question.
    pub retransmissions: u32,
    pub answered: Option<At>,
    pub status: Option<Status<'static>>,
    pub addresses: Vec<IpAddr>,
}

impl Lookup {
    /// A question without an answer.
    fn new(number: u64, kind: &str, client: (IpAddr, u16), server: (IpAddr, u16), sent: At) -> Self {
        Lookup {
            number,
            stream: None,
            client,
            server,
            id: 0,
            kind: kind.into(),
            name: SmolStr::default(),
            sent,
            last_ns: sent.time_ns,
            retransmissions: 0,
            answered: None,
            status: None,
            addresses: Vec::new(),
        }
    }

    fn retransmit(&mut self, at: i64) {
        self.retransmissions = self.retransmissions.saturating_add(1);
        self.last_ns = at;
    }
}

/// The lookup that a connection waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub number: u64,
    pub name: SmolStr,
    /// From the first question for the name to the last answer before the SYN, in ns.
    pub duration_ns: i64,
}

/// Key that pairs a question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    client: (IpAddr, u16),
    server: (IpAddr, u16),
    stream: Option<u32>,
    id: u16,
}

/// An answer, kept for the connections that may follow; times in ns.
#[derive(Debug)]
struct Resolved {
    number: u64,
    client: IpAddr,
    name: SmolStr,
    start_ns: i64,
    end_ns: i64,
    /// Addresses without a connection so far.
    addresses: Vec<IpAddr>,
}

/// All open lookups.
#[derive(Debug, Default)]
pub struct Lookups {
    /// Number of the next lookup.
    next: u64,
    waiting: AHashMap<Question, Lookup>,
    /// Keys and numbers of `waiting`, oldest first; some may be answered.
    order: VecDeque<(Question, u64)>,
    /// Lookups that have ended, until `take_finished` takes them.
    done: Vec<Lookup>,
    answers: VecDeque<Resolved>,
    /// By the frame of their SYN.
    connects: AHashMap<u64, Found>,
    /// Open requests for hosts on a link: sender and target.
    neighbours: AHashMap<(IpAddr, IpAddr), Sought>,
    /// Open requests of other services.
    services: AHashMap<service::Key, service::Waiting>,
}

impl Lookups {
    /// Reads a datagram of DNS or of another service. Returns an issue if a question is given up.
    #[cold]
    pub fn datagram(&mut self, udp: &Udp<'_>, at: At) -> Option<Issue> {
        if udp.sport != NAME_SERVERS && udp.dport != NAME_SERVERS {
            self.service(udp, at);
            return None;
        }
        let message = Message::parse(udp.payload)?;
        let (from, to) = ((udp.src, udp.sport), (udp.dst, udp.dport));
        let (client, server) = if message.is_answer { (to, from) } else { (from, to) };
        self.message((client, server, None), &message, udp.payload, at)
    }

    /// Reads a DNS message over TCP between these two. Returns an issue if a question is given up.
    #[cold]
    pub fn over_tcp(
        &mut self,
        client: (IpAddr, u16),
        server: (IpAddr, u16),
        dns: &DnsMessage,
    ) -> Option<Issue> {
        let message = Message::parse(&dns.message)?;
        self.message((client, server, Some(dns.stream)), &message, &dns.message, dns.at)
    }

    fn message(
        &mut self,
        (client, server, stream): ((IpAddr, u16), (IpAddr, u16), Option<u32>),
        message: &Message,
        bytes: &[u8],
        at: At,
    ) -> Option<Issue> {
        let question = Question {
            client,
            server,
            stream,
            id: message.id,
        };
        if !message.is_answer {
            return self.ask(question, message, at);
        }
        self.answer(&question, message, bytes, at);
        None
    }

    fn ask(&mut self, question: Question, message: &Message, at: At) -> Option<Issue> {
        let (Some(name), Some(kind)) = (&message.name, &message.kind) else {
            return None; // cut before the end of its name
        };
        if let Some(lookup) = self.waiting.get_mut(&question) {
            if lookup.name == name.as_str() && lookup.kind == kind.as_str() {
                lookup.retransmit(at.time_ns);
                return None;
            }
            self.give_up(&question);
        }
        let number = self.next;
        self.next += 1;
        let lookup = Lookup {
            stream: question.stream,
            id: question.id,
            name: name.into(),
            ..Lookup::new(number, kind, question.client, question.server, at)
        };
        self.order.push_back((question.clone(), number));
        self.waiting.insert(question, lookup);
        if self.order.len() > 2 * MAX_WAITING {
            let waiting = &self.waiting;
            self.order.retain(|(question, number)| {
                let waiting_lookup = waiting.get(question);
                waiting_lookup.is_some_and(|lookup| lookup.number == *number)
            });
        }
        if self.waiting.len() <= MAX_WAITING {
            return None;
        }
        while let Some((question, number)) = self.order.pop_front() {
            if self
                .waiting
                .get(&question)
                .is_some_and(|lookup| lookup.number == number)
            {
                self.give_up(&question);
                break;
            }
        }
        let reason = "too many questions wait for an answer: the oldest is given as unanswered";
        Some(Issue::new(Kind::Distrusted, "dns", reason))
    }

    fn give_up(&mut self, question: &Question) {
        self.done.extend(self.waiting.remove(question));
    }

    fn answer(&mut self, question: &Question, message: &Message, bytes: &[u8], at: At) {
        let Some(waiting_lookup) = self.waiting.get(question) else {
            return;
        };
        // an answer may omit its question, but not contain another one
        if message
            .name
            .as_ref()
            .is_some_and(|name| waiting_lookup.name != name.as_str())
        {
            return;
        }
        let Some(mut lookup) = self.waiting.remove(question) else {
            return;
        };
        lookup.status = Some(message.status());
        lookup.answered = Some(at);
        lookup.addresses = addresses(bytes);
        if self.answers.len() >= MAX_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(Resolved {
            number: lookup.number,
            client: lookup.client.0,
            name: lookup.name.clone(),
            start_ns: lookup.sent.time_ns,
            end_ns: at.time_ns,
            addresses: lookup.addresses.clone(),
        });
        self.done.push(lookup);
    }

    /// Whether a connection may follow a lookup.
    #[inline(always)]
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Reads a client's first SYN to an address. Only the first one after the answer waited for the lookup; later
    /// ones may use an address from a cache.
    #[cold]
    pub fn connect(&mut self, client: IpAddr, server: IpAddr, at: At) {
        let since = at.time_ns.saturating_sub(LOOKED_UP_NS.get());
        while self.answers.front().is_some_and(|answer| answer.end_ns < since) {
            self.answers.pop_front();
        }
        let gave = |answer: &&mut Resolved| answer.client == client && answer.addresses.contains(&server);
        let Some(answer) = self.answers.iter_mut().rev().find(gave) else {
            return;
        };
        answer.addresses.retain(|address| *address != server);
        let (number, name) = (answer.number, answer.name.clone());
        let (mut start, mut end) = (answer.start_ns, answer.end_ns);
        // a client sends questions for A and AAAA at once, and waits for both answers
        for other in &self.answers {
            if other.client == client && other.name == name && other.start_ns <= end && start <= other.end_ns
            {
                (start, end) = (start.min(other.start_ns), end.max(other.end_ns));
            }
        }
        if self.connects.len() < MAX_CONNECTS {
            let ns = end - start;
            self.connects.insert(
                at.frame,
                Found {
                    number,
                    name,
                    duration_ns: ns,
                },
            );
        }
    }

    /// Removes and returns the lookup that preceded the connection whose SYN is in this frame.
    pub fn take_for_syn(&mut self, syn: u64) -> Option<Found> {
        self.connects.remove(&syn)
    }

    /// Removes and returns the lookups that have ended.
    pub fn take_finished(&mut self) -> Vec<Lookup> {
        std::mem::take(&mut self.done)
    }

    /// Removes and returns the lookups without an answer, at the end of the capture.
    pub fn take_unanswered(&mut self) -> Vec<Lookup> {
        self.order.clear();
        let mut rest: Vec<Lookup> = self.waiting.drain().map(|(_, lookup)| lookup).collect();
        rest.extend(self.take_unanswered_neighbours());
        rest.extend(self.services.drain().map(|(_, waiting)| waiting.lookup));
        rest.sort_unstable_by_key(|lookup| lookup.number);
        rest
    }
}

mod neighbour;
mod service;
mod status;
#[cfg(test)]
mod tests;
