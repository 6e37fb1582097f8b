//! Hosts that are looked up on a link (ARP, IPv6 neighbour solicitations). Only a repeated request has a row: the
//! usual answer comes within microseconds.

use std::net::IpAddr;

use super::{Lookup, Lookups};
use crate::base::At;
use crate::frame::Neighbour;
use crate::limits::{NEIGHBOUR_ANEW_NS, SYN_TIMER_NS, UNANSWERED_NEIGHBOUR};

/// Upper bound on the open requests; beyond it new ones are ignored.
const MAX_SOUGHT: usize = 1024;

/// An open request; `last` is the time of its last copy in ns.
#[derive(Debug, Clone, Copy)]
pub struct Sought {
    sent: At,
    last_ns: i64,
    retransmissions: u32,
}

impl Lookups {
    /// Reads a request or an answer.
    #[cold]
    pub fn neighbour(&mut self, message: &Neighbour, at: At) {
        let key = (message.asker, message.target);
        if message.is_answer {
            if let Some(sought) = self
                .neighbours
                .remove(&key)
                .filter(|sought| sought.retransmissions > 0)
            {
                let row = self.sought(key, sought, Some(at));
                self.done.push(row);
            }
            return;
        }
        let fresh = Sought {
            sent: at,
            last_ns: at.time_ns,
            retransmissions: 0,
        };
        if let Some(sought) = self.neighbours.get_mut(&key) {
            let since = at.time_ns.saturating_sub(sought.last_ns);
            if since > NEIGHBOUR_ANEW_NS.get() {
                let old = std::mem::replace(sought, fresh);
                if old.retransmissions >= UNANSWERED_NEIGHBOUR.get() {
                    let row = self.sought(key, old, None);
                    self.done.push(row);
                }
            } else if since >= SYN_TIMER_NS.get() {
                sought.retransmissions = sought.retransmissions.saturating_add(1); // a sooner one is a duplicate
                sought.last_ns = at.time_ns;
            }
        } else if self.neighbours.len() < MAX_SOUGHT {
            self.neighbours.insert(key, fresh);
        }
    }

    /// The row of a request.
    fn sought(&mut self, (asker, target): (IpAddr, IpAddr), sought: Sought, answered: Option<At>) -> Lookup {
        let number = self.next;
        self.next += 1;
        let kind = if target.is_ipv4() { "ARP" } else { "NDP" };
        Lookup {
            name: target.to_string().into(),
            last_ns: sought.last_ns,
            retransmissions: sought.retransmissions,
            answered,
            addresses: answered.map(|_| target).into_iter().collect(),
            ..Lookup::new(number, kind, (asker, 0), (target, 0), sought.sent)
        }
    }

    /// Removes and returns the repeated requests without an answer, at the end of the capture.
    pub(super) fn take_unanswered_neighbours(&mut self) -> Vec<Lookup> {
        let mut unanswered: Vec<_> = self
            .neighbours
            .drain()
            .filter(|(_, sought)| sought.retransmissions >= UNANSWERED_NEIGHBOUR.get())
            .collect();
        unanswered.sort_unstable_by_key(|(_, sought)| sought.sent.frame);
        unanswered
            .into_iter()
            .map(|(key, sought)| self.sought(key, sought, None))
            .collect()
    }
}
