//! Which endpoint of a stream is the client, and how that was decided.

use super::{Closing, Stream};
use crate::base::Side;
use crate::messages;
use crate::segment::{ACK, SYN, Segment};

/// Ports of servers (IANA's registry, and defaults of servers), in ascending order. They decide before the comparison
/// of ports.
const SERVICES: [u16; 106] = [
    20, 21, 22, 23, 25, 43, 49, 53, 70, 79, 80, 88, 102, 110, 111, 113, 119, 135, 139, 143, 179, 194, 389,
    427, 443, 445, 465, 502, 512, 513, 514, 515, 543, 548, 554, 587, 631, 636, 646, 853, 873, 989, 990, 992,
    993, 995, 1080, 1194, 1352, 1433, 1521, 1723, 1883, 2049, 2181, 2375, 2376, 2379, 2404, 3128, 3260, 3268,
    3269, 3306, 3389, 3690, 4369, 4840, 4880, 5060, 5061, 5222, 5269, 5432, 5671, 5672, 5900, 5984, 5985,
    5986, 6379, 6443, 6514, 6667, 6697, 7001, 8000, 8080, 8081, 8086, 8443, 8883, 9000, 9042, 9092, 9100,
    9200, 9300, 9418, 10000, 11211, 20000, 26379, 27017, 44818, 61616,
];

/// How the client was recognised, the surest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolesBy {
    Syn,
    SynAck,
    Content,
    Port,
    FirstPacket,
}

impl RolesBy {
    pub const COUNT: usize = RolesBy::FirstPacket as usize + 1;

    pub fn word(self) -> &'static str {
        match self {
            RolesBy::Syn => "syn",
            RolesBy::SynAck => "syn_ack",
            RolesBy::Content => "content",
            RolesBy::Port => "port",
            RolesBy::FirstPacket => "first_packet",
        }
    }

    fn is_handshake(self) -> bool {
        matches!(self, RolesBy::Syn | RolesBy::SynAck)
    }
}

/// Whether the sender of a stream's first packet is the client: by handshake, then content, then service ports, then
/// the lower port.
pub(super) fn roles(segment: &Segment<'_>) -> (bool, RolesBy) {
    if segment.has(SYN) {
        return if segment.has(ACK) {
            (false, RolesBy::SynAck)
        } else {
            (true, RolesBy::Syn)
        };
    }
    if let Some(speaker) = messages::likely_sender(segment.payload) {
        return (speaker == Side::Client, RolesBy::Content);
    }
    by_ports(segment.sport, segment.dport)
}

fn by_ports(sport: u16, dport: u16) -> (bool, RolesBy) {
    let serves = |port| SERVICES.binary_search(&port).is_ok();
    match (serves(sport), serves(dport)) {
        (true, false) => return (false, RolesBy::Port),
        (false, true) => return (true, RolesBy::Port),
        _ => {}
    }
    match sport.cmp(&dport) {
        std::cmp::Ordering::Greater => (true, RolesBy::Port),
        std::cmp::Ordering::Less => (false, RolesBy::Port),
        std::cmp::Ordering::Equal => (true, RolesBy::FirstPacket),
    }
}

impl Stream {
    /// Replaces roles that a handshake did not give: by a late SYN, or by content.
    pub(super) fn better_roles(&mut self, segment: &Segment<'_>, from_low: bool) {
        if self.roles_by.is_handshake() {
            return; // nothing is surer
        }
        let (sender_is_client, roles_by) = roles(segment);
        let is_by_content = roles_by == RolesBy::Content && self.roles_by != RolesBy::Content;
        let is_sure = roles_by.is_handshake() || is_by_content;
        if is_sure {
            self.roles_by = roles_by;
            let client_is_low = sender_is_client == from_low;
            if client_is_low != self.client_is_low {
                self.client_is_low = client_is_low;
                self.counts.reverse();
                self.rtts_ns.reverse();
                self.closed_by = self.closed_by.map(|closing| Closing {
                    by: closing.by.other(),
                    ..closing
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_services_tell_more_than_lower_ports() {
        assert!(SERVICES.is_sorted());
        for (sport, dport, expected) in [
            (1930, 3389, (true, RolesBy::Port)),
            (3389, 1930, (false, RolesBy::Port)),
            (50123, 40000, (true, RolesBy::Port)),
            (8080, 80, (true, RolesBy::Port)),
            (9999, 9999, (true, RolesBy::FirstPacket)),
        ] {
            assert_eq!(by_ports(sport, dport), expected, "{sport} > {dport}");
        }
    }
}
