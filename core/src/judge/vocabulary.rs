//! The vocabulary: every cause's name, who owns it, and by which rule it was named.

use crate::base::Side;

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

/// What a row was named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Leg,
    Turn,
    App,
    WriteGap,
    Burst,
    Spacing,
    Queue,
    AckClocked,
    CwndDelayedAck,
    LookAlike,
    NoPool,
    Window,
    Overtaken,
    NotLost,
    CopyNotSeen,
    SackOrDuplicateAcks,
    TailProbe,
    Timeout,
    HoleFilled,
    IpIdGap,
    HandshakeRepeated,
    Handshake,
    CorkTimer,
    CorkPool,
    CorkAck,
    FramesMissing,
    Timestamps,
    OneWay,
    NagleDelayedAck,
    NagleWait,
    NaglePiggyback,
    NagleFinRelease,
}

impl Rule {
    /// In the order of the enum.
    pub const ALL: [&str; 32] = [
        "leg",
        "turn",
        "app",
        "write_gap",
        "burst",
        "spacing",
        "queue",
        "ack_clocked",
        "cwnd_delayed_ack",
        "look_alike",
        "no_pool",
        "window",
        "overtaken",
        "not_lost",
        "copy_not_seen",
        "sack_or_duplicate_acks",
        "tail_probe",
        "timeout",
        "hole_filled",
        "ip_id_gap",
        "handshake_repeated",
        "handshake",
        "cork_timer",
        "cork_pool",
        "cork_ack",
        "frames_missing",
        "timestamps",
        "one_way",
        "nagle_delayed_ack",
        "nagle_wait",
        "nagle_piggyback",
        "nagle_fin_release",
    ];

    /// The name of the rule at this place of the list.
    pub fn word(place: usize) -> &'static str {
        Rule::ALL.get(place).copied().unwrap_or_default()
    }

    pub fn name(self) -> &'static str {
        Rule::word(self as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists stand in the order of their enums, whose names they are.
    #[test]
    fn every_word_is_its_own() {
        let plain = |name: String| name.to_lowercase();
        for (place, (cause, word)) in Cause::ALL.iter().enumerate() {
            assert_eq!(
                (*cause as usize, plain(format!("{cause:?}"))),
                (place, word.replace('_', ""))
            );
        }
        let rules = [
            Rule::Leg,
            Rule::Turn,
            Rule::App,
            Rule::WriteGap,
            Rule::Burst,
            Rule::Spacing,
            Rule::Queue,
            Rule::AckClocked,
            Rule::CwndDelayedAck,
            Rule::LookAlike,
            Rule::NoPool,
            Rule::Window,
            Rule::Overtaken,
            Rule::NotLost,
            Rule::CopyNotSeen,
            Rule::SackOrDuplicateAcks,
            Rule::TailProbe,
            Rule::Timeout,
            Rule::HoleFilled,
            Rule::IpIdGap,
            Rule::HandshakeRepeated,
            Rule::Handshake,
            Rule::CorkTimer,
            Rule::CorkPool,
            Rule::CorkAck,
            Rule::FramesMissing,
            Rule::Timestamps,
            Rule::OneWay,
            Rule::NagleDelayedAck,
            Rule::NagleWait,
            Rule::NaglePiggyback,
            Rule::NagleFinRelease,
        ];
        for (place, rule) in rules.into_iter().enumerate() {
            assert_eq!(
                (rule as usize, plain(format!("{rule:?}"))),
                (place, rule.name().replace('_', ""))
            );
        }
        assert_eq!(rules.len(), Rule::ALL.len());
        for owner in [Owner::Client, Owner::Server, Owner::Network, Owner::Capture] {
            assert_eq!(plain(format!("{owner:?}")), Owner::word(owner as usize));
        }
    }
}
