//! Who is the client of a stream, and how that was decided.

use super::{Closing, Stream};
use crate::base::Side;
use crate::messages;
use crate::segment::{ACK, SYN, Segment};

/// What told who is the client; the ports tell less than what is above them.
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

/// Whether the sender is the client, from a stream's first packet: handshake, then content, then ports.
pub(super) fn roles(segment: &Segment<'_>) -> (bool, RolesBy) {
    if segment.has(SYN) {
        return if segment.has(ACK) {
            (false, RolesBy::SynAck)
        } else {
            (true, RolesBy::Syn)
        };
    }
    if let Some(speaker) = messages::speaker(segment.payload) {
        return (speaker == Side::Client, RolesBy::Content);
    }
    match segment.sport.cmp(&segment.dport) {
        std::cmp::Ordering::Greater => (true, RolesBy::Port),
        std::cmp::Ordering::Less => (false, RolesBy::Port),
        std::cmp::Ordering::Equal => (true, RolesBy::FirstPacket),
    }
}

impl Stream {
    /// Where only ports told the roles, a SYN that comes late or the first bytes of data tell better.
    pub(super) fn better_roles(&mut self, segment: &Segment<'_>, from_low: bool) {
        if self.roles_by.is_handshake() {
            return; // nothing tells better
        }
        let (sender_is_client, roles_by) = roles(segment);
        let by_content = roles_by == RolesBy::Content && self.roles_by != RolesBy::Content;
        let tells = roles_by.is_handshake() || by_content;
        if tells {
            self.roles_by = roles_by;
            let client_is_low = sender_is_client == from_low;
            if client_is_low != self.client_is_low {
                self.client_is_low = client_is_low;
                self.counts.reverse();
                self.legs.reverse();
                self.closed_by = self.closed_by.map(|closing| Closing {
                    by: closing.by.other(),
                    ..closing
                });
            }
        }
    }
}
