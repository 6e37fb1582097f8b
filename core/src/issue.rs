//! What could not be read or trusted. Reads nothing; every other layer reports through these types.
//!
//! Nothing is lost in silence: a layer that cannot go on reports where (file offset, frame), in which
//! layer, what it needed and what it had.

use std::fmt::Write;

/// How bad it is for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Not a capture at all: there are no rows.
    Refused,
    /// The file is damaged here: rows up to this point are good, later ones are missing.
    Damaged,
    /// These frames were passed over because latpcap does not understand them.
    Skipped,
    /// Read, but not to be trusted (a cap was hit, a clock went back, a hole in the capture).
    Distrusted,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Refused => "refused",
            Kind::Damaged => "damaged",
            Kind::Skipped => "skipped",
            Kind::Distrusted => "distrusted",
        }
    }
}

/// An issue's kind for programs: the few reasons that limit what the tables may be read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The capture's clock was set back, by more than two processors disagree.
    ClockBack,
    /// The capturing interface reports dropped packets; the group is how many.
    Dropped,
    /// A SYN went through a tunnel with a wrong outer UDP checksum.
    TunnelChecksum,
}

impl Code {
    pub fn word(self) -> &'static str {
        match self {
            Code::ClockBack => "clock_back",
            Code::Dropped => "dropped",
            Code::TunnelChecksum => "tunnel_checksum",
        }
    }
}

/// One finding, located. `needed` and `had` are bytes where the reason is a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub kind: Kind,
    /// Byte offset in the (decompressed) capture file.
    pub offset: Option<u64>,
    /// Which of several files it is in, from 0.
    pub file: u32,
    /// Wireshark's frame.number.
    pub frame: Option<u64>,
    /// The layer that could not go on: "pcap", "pcapng", "ethernet", "ipv4", "tcp", "http", ...
    pub layer: &'static str,
    /// Lower-case phrase without numbers, so that equal reasons can be counted.
    pub reason: &'static str,
    pub needed: Option<u64>,
    pub had: Option<u64>,
    /// A detail that differs from frame to frame and must not split the count (a field's value, say).
    pub detail: Option<String>,
    /// A number that does split the count (a link type, say), 0 where there is none.
    pub group: u32,
    /// For programs, which do not read the reason.
    pub code: Option<Code>,
}

impl Issue {
    pub fn new(kind: Kind, layer: &'static str, reason: &'static str) -> Self {
        Issue {
            kind,
            offset: None,
            file: 0,
            frame: None,
            layer,
            reason,
            needed: None,
            had: None,
            detail: None,
            group: 0,
            code: None,
        }
    }

    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub fn in_file(mut self, file: u32) -> Self {
        self.file = file;
        self
    }

    pub fn in_frame(mut self, frame: u64) -> Self {
        self.frame = Some(frame);
        self
    }

    pub fn lengths(mut self, needed: u64, had: u64) -> Self {
        (self.needed, self.had) = (Some(needed), Some(had));
        self
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Counted apart by this number, which the sentence names.
    pub fn grouped(mut self, number: u32) -> Self {
        self.group = number;
        self.detail(number.to_string())
    }

    pub fn coded(mut self, code: Code) -> Self {
        self.code = Some(code);
        self
    }

    /// The reason as a person reads it: "record header is cut: needed 16 bytes, had 7".
    pub fn sentence(&self) -> String {
        let mut text = String::from(self.reason);
        if let Some(detail) = &self.detail {
            let _ = write!(text, " ({detail})");
        }
        if let (Some(needed), Some(had)) = (self.needed, self.had) {
            let _ = write!(text, ": needed {needed} bytes, had {had}");
        }
        text
    }
}

/// Equal reasons are counted together; the first one is located.
#[derive(Debug, Clone)]
pub struct Counted {
    pub issue: Issue,
    pub count: u64,
    pub last_frame: Option<u64>,
}
