//! Who is the client of a stream, and how that was decided.

use super::Stream;
use crate::base::Side;
use crate::messages;
use crate::segment::{ACK, SYN, Segment};

/// Who is the client, from a stream's first packet: handshake, then content, then ports.
pub(super) fn roles(segment: &Segment<'_>) -> (bool, &'static str) {
    if segment.has(SYN) {
        return if segment.has(ACK) {
            (false, "syn_ack")
        } else {
            (true, "syn")
        };
    }
    if let Some(speaker) = messages::speaker(segment.payload) {
        return (speaker == Side::Client, "content");
    }
    match segment.sport.cmp(&segment.dport) {
        std::cmp::Ordering::Greater => (true, "port"),
        std::cmp::Ordering::Less => (false, "port"),
        std::cmp::Ordering::Equal => (true, "first_packet"),
    }
}

impl Stream {
    /// Where only ports told the roles, a SYN that comes late or the first bytes of data tell better.
    pub(super) fn better_roles(&mut self, segment: &Segment<'_>, from_low: bool) {
        if matches!(self.roles_by, "syn" | "syn_ack") {
            return; // nothing tells better
        }
        let (sender_is_client, roles_by) = roles(segment);
        let tells = match roles_by {
            "syn" | "syn_ack" => true,
            "content" => self.roles_by != "content",
            _ => false,
        };
        if tells {
            self.roles_by = roles_by;
            let client_is_low = sender_is_client == from_low;
            if client_is_low != self.client_is_low {
                self.client_is_low = client_is_low;
                self.counts.reverse();
                self.legs.reverse();
                self.closed_by = self.closed_by.map(|word| match word {
                    "client_fin" => "server_fin",
                    "server_fin" => "client_fin",
                    "client_rst" => "server_rst",
                    _ => "client_rst",
                });
            }
        }
    }
}
