//! Issues: what could not be read, or be trusted. Every layer reports through these types, with the file offset, the
//! frame, the layer, and where a length is wrong, the bytes needed and present.

use std::fmt::Write;

/// Consequence for the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The file is not a capture: there are no rows.
    Refused,
    /// The file is damaged at this offset: earlier rows are good, later ones are missing.
    Damaged,
    /// The frames were skipped because latpcap does not understand them.
    Skipped,
    /// Read, but not to be trusted (a limit was reached, the clock went back, frames are missing).
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

/// Machine-readable kind of the few issues that limit what the tables can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The capture's clock was set back by 1 ms or more; less is the skew of two processors.
    ClockBack,
    /// The capturing interface reports dropped packets; `group` is their number.
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

/// One finding, located.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub kind: Kind,
    /// Byte offset in the (decompressed) capture file.
    pub offset: Option<u64>,
    /// Index of the file, from 0.
    pub file: u32,
    /// Wireshark's frame.number.
    pub frame: Option<u64>,
    /// Layer that reports: "pcap", "pcapng", "ethernet", "ipv4", "tcp", "http", ...
    pub layer: &'static str,
    /// Lower-case phrase without numbers, so that equal reasons are counted together.
    pub reason: &'static str,
    /// Bytes needed, where the reason is a length.
    pub needed: Option<u64>,
    /// Bytes present, where the reason is a length.
    pub had: Option<u64>,
    /// Detail of the first occurrence (a field's value, say). It does not split the count.
    pub detail: Option<String>,
    /// Number that splits the count (a link type, say); 0 if there is none.
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

    /// Counts this issue apart from others with another `number`, and shows the number in the sentence.
    pub fn grouped(mut self, number: u32) -> Self {
        self.group = number;
        self.detail(number.to_string())
    }

    pub fn coded(mut self, code: Code) -> Self {
        self.code = Some(code);
        self
    }

    /// The reason for people: "record header is cut: needed 16 bytes, had 7".
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

/// Number of issues with the same reason, and the first of them.
#[derive(Debug, Clone)]
pub struct Counted {
    pub issue: Issue,
    pub count: u64,
    pub last_frame: Option<u64>,
}
