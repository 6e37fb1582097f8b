//! The vocabulary: every cause's name, and who owns it.

use crate::messages::Side;

/// The closed set of causes, in the order of the table and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    Network,
    Queueing,
    Bandwidth,
    ServerThink,
    ClientThink,
    Nagle,
    DelayedAck,
    Cork,
    Cwnd,
    ReceiveWindow,
    ZeroWindow,
    FastRetransmit,
    Tlp,
    Rto,
    SynRto,
    Reordering,
    CaptureGap,
    Unknown,
}

impl Cause {
    pub const ALL: [(Cause, &'static str); 18] = [
        (Cause::Network, "network"),
        (Cause::Queueing, "queueing"),
        (Cause::Bandwidth, "bandwidth"),
        (Cause::ServerThink, "server_think"),
        (Cause::ClientThink, "client_think"),
        (Cause::Nagle, "nagle"),
        (Cause::DelayedAck, "delayed_ack"),
        (Cause::Cork, "cork"),
        (Cause::Cwnd, "cwnd"),
        (Cause::ReceiveWindow, "receive_window"),
        (Cause::ZeroWindow, "zero_window"),
        (Cause::FastRetransmit, "fast_retransmit"),
        (Cause::Tlp, "tlp"),
        (Cause::Rto, "rto"),
        (Cause::SynRto, "syn_rto"),
        (Cause::Reordering, "reordering"),
        (Cause::CaptureGap, "capture_gap"),
        (Cause::Unknown, "unknown"),
    ];

    pub fn name(self) -> &'static str {
        Cause::word(self as usize)
    }

    /// The name of the cause at this place of the list.
    pub fn word(place: usize) -> &'static str {
        Cause::ALL.get(place).map_or("unknown", |(_, name)| name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Client,
    Server,
    Network,
    Capture,
}

impl Owner {
    /// In the order of the enum.
    pub const ALL: [&str; 4] = ["client", "server", "network", "capture"];

    /// The name of the owner at this place of the list.
    pub fn word(place: usize) -> &'static str {
        Owner::ALL.get(place).copied().unwrap_or("capture")
    }

    pub(super) fn of(side: Side) -> Owner {
        match side {
            Side::Client => Owner::Client,
            Side::Server => Owner::Server,
        }
    }
}
