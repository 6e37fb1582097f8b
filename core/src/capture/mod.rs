//! Capture files: reads pcap, pcapng, snoop and Network Monitor files and returns their records. What a frame contains
//! is read elsewhere (`frame`).
//!
//! Each format has a file of its own; `interface.rs` reads the clocks and statistics of pcapng interfaces, and
//! `refuse.rs` names files of other kinds.
//!
//! Bytes are pushed in blocks of any size, and the records do not depend on where the blocks end. A record that lies
//! whole in a block is passed on as a slice of it. Any other is assembled in the carry buffer, which holds at most one
//! record (pcap: `pcap::MAX_RECORD_BYTES`; pcapng: `pcapng::MAX_BLOCK_BYTES`).

mod interface;
mod netmon;
mod pcap;
mod pcapng;
mod refuse;
mod snoop;
#[cfg(test)]
mod tests;

use crate::cursor;
use crate::issue::Issue;

/// Link type of a record that is not a packet, such as a journal entry. Wireshark gives it a frame number, so it
/// counts.
pub const NO_LINK: u32 = u32::MAX;

/// Time stamps that are trusted, from 1823 to 2116. Any two of them are less than 2^63 ns apart, so differences fit an
/// i64.
const TRUSTED_NS: std::ops::RangeInclusive<i64> = -(1 << 62)..=(1 << 62) - 1;

/// One record of the file. Every record counts as a frame, whatever it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of the frame, from 1: Wireshark's frame.number.
    pub frame: u64,
    /// Nanoseconds since the epoch. A record without a readable time has the time of the record before it, or 0.
    pub time_ns: i64,
    /// LINKTYPE_ number, or `NO_LINK`.
    pub link: u32,
    /// Number of the interface in its pcapng section; 0 in pcap.
    pub interface: u32,
    /// File offset of the record's header.
    pub offset: u64,
    pub data: &'a [u8],
    pub original_len: u32,
}

/// Receives records and issues in file order.
pub trait RecordSink {
    fn record(&mut self, record: Record<'_>);
    fn issue(&mut self, issue: Issue);

    /// Receives the text of a TLS key log that is embedded in the capture.
    fn secrets(&mut self, _text: &[u8]) {}
}

/// The reader's position: the offset of the next byte, and the number of records before it.
#[derive(Debug, Default)]
struct Position {
    offset: u64,
    frames: u64,
}

/// What a format reader needs before it can continue.
enum Next {
    /// This many contiguous bytes from `Position::offset` on; always more than the reader was given.
    Need(usize),
    /// Skip this many bytes without keeping them.
    Skip(u64),
    /// Call the reader again with the bytes from `Position::offset` on: the format is known now.
    Again,
    /// The file is refused or damaged. No further byte is read.
    Halt,
}

enum Format {
    Unknown,
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Snoop(snoop::Snoop),
    Netmon(netmon::Netmon),
    Halted,
}

/// Returns the time of the first record that lies whole in `head`, the first bytes of a file.
pub fn first_time(head: &[u8]) -> Option<i64> {
    struct First(Option<i64>);
    impl RecordSink for First {
        fn record(&mut self, record: Record<'_>) {
            self.0.get_or_insert(record.time_ns);
        }
        fn issue(&mut self, _: Issue) {}
    }
    let mut first = First(None);
    CaptureReader::new().push(head, &mut first);
    first.0
}

/// Reads a capture from blocks of bytes. It may consist of several files, one after the other.
pub struct CaptureReader {
    format: Format,
    name: &'static str,
    digits: u8,
    position: Position,
    /// The beginning of a record that is not yet whole.
    carry: Vec<u8>,
    /// Bytes that `carry` must hold before it is read.
    needed: usize,
    /// Bytes still to be skipped.
    to_skip: u64,
}

impl Default for CaptureReader {
    fn default() -> Self {
        CaptureReader::new()
    }
}

impl CaptureReader {
    pub fn new() -> Self {
        CaptureReader {
            format: Format::Unknown,
            name: "",
            digits: 6,
            position: Position::default(),
            carry: Vec::new(),
            needed: 0,
            to_skip: 0,
        }
    }

    /// Number of records so far, over all files.
    pub fn frames(&self) -> u64 {
        self.position.frames
    }

    /// "pcap", "pcap (ns)", "pcap (modified)", "pcapng", "snoop", "netmon", or "" if not known (yet).
    pub fn format(&self) -> &'static str {
        self.name
    }

    /// Decimal places of the time stamps' seconds, as Wireshark shows them: 0 to 3, 6 or 9. Of several interfaces the
    /// finest; 6 if not known.
    pub fn digits(&self) -> u8 {
        match &self.format {
            Format::Pcapng(pcapng) => pcapng.digits().unwrap_or(self.digits),
            _ => self.digits,
        }
    }

    /// Whether the rest of the file is not read.
    pub fn is_halted(&self) -> bool {
        matches!(self.format, Format::Halted)
    }

    pub fn push(&mut self, block: &[u8], sink: &mut impl RecordSink) {
        let mut rest = block;
        loop {
            if self.to_skip > 0 {
                let (skipped, after) =
                    cursor::split(rest, usize::try_from(self.to_skip).unwrap_or(usize::MAX));
                rest = after;
                self.to_skip = self.to_skip.saturating_sub(skipped.len() as u64);
                self.position.offset = self.position.offset.saturating_add(skipped.len() as u64);
            }
            if rest.is_empty() || matches!(self.format, Format::Halted) {
                return;
            }
            if self.carry.is_empty() {
                rest = cursor::from(rest, self.walk(rest, sink));
                if self.to_skip == 0 {
                    self.carry.extend_from_slice(rest);
                    return;
                }
            } else {
                let (missing, after) = cursor::split(rest, self.needed.saturating_sub(self.carry.len()));
                self.carry.extend_from_slice(missing);
                rest = after;
                if self.carry.len() >= self.needed {
                    let mut carry = std::mem::take(&mut self.carry);
                    let used = self.walk(&carry, sink);
                    carry.drain(..used.min(carry.len()));
                    self.carry = carry;
                }
            }
        }
    }

    /// Ends the last file, and reports a record that is cut by the end. Call it once, after the last block.
    pub fn finish(&mut self, sink: &mut impl RecordSink) {
        let issue = match &self.format {
            Format::Unknown => Some(refuse::short(&self.carry)),
            Format::Pcap(pcap) => pcap.truncated(&self.carry, &self.position),
            Format::Pcapng(pcapng) => pcapng.truncated(&self.carry, &self.position),
            Format::Snoop(snoop) => snoop.truncated(&self.carry, &self.position),
            Format::Netmon(netmon) => netmon.truncated(&self.carry, &self.position),
            Format::Halted => None,
        };
        issue.into_iter().for_each(|issue| sink.issue(issue));
        self.halt();
    }

    /// Begins another file. Frame numbers continue.
    pub fn next_file(&mut self) {
        *self = CaptureReader {
            name: self.name,
            digits: self.digits(),
            position: Position {
                offset: 0,
                frames: self.position.frames,
            },
            ..CaptureReader::new()
        };
    }

    fn halt(&mut self) {
        self.digits = self.digits();
        self.format = Format::Halted;
        self.carry = Vec::new();
        self.to_skip = 0;
    }

    /// Reads the whole records in `bytes`, which begin at `position.offset`. Returns the number of bytes used.
    fn walk(&mut self, bytes: &[u8], sink: &mut impl RecordSink) -> usize {
        let begin = self.position.offset;
        let mut rest = bytes;
        loop {
            let next = match &mut self.format {
                Format::Unknown => self.open(rest, sink),
                Format::Pcap(pcap) => pcap.walk(rest, &mut self.position, sink),
                Format::Pcapng(pcapng) => pcapng.walk(rest, &mut self.position, sink),
                Format::Snoop(snoop) => snoop.walk(rest, &mut self.position, sink),
                Format::Netmon(netmon) => netmon.walk(rest, &mut self.position, sink),
                Format::Halted => Next::Halt,
            };
            let used = usize::try_from(self.position.offset.saturating_sub(begin)).unwrap_or(usize::MAX);
            match next {
                // a pcapng block of 12 bytes is empty: there is nothing to skip
                Next::Again | Next::Skip(0) => rest = cursor::from(bytes, used),
                Next::Need(len) => {
                    self.needed = len;
                    return used;
                }
                Next::Skip(len) => {
                    self.to_skip = len;
                    return used;
                }
                Next::Halt => {
                    self.halt();
                    return bytes.len();
                }
            }
        }
    }

    /// Recognises the format by the first bytes and reads the file header.
    fn open(&mut self, bytes: &[u8], sink: &mut impl RecordSink) -> Next {
        if bytes.len() < 4 {
            return Next::Need(4);
        }
        if pcapng::has_magic(bytes) {
            if bytes.len() < pcapng::SECTION_HEADER {
                return Next::Need(pcapng::SECTION_HEADER);
            }
            if let Some(format) = pcapng::Pcapng::open(bytes) {
                self.name = "pcapng";
                self.format = Format::Pcapng(format);
                return Next::Again;
            }
        } else if let Some(magic) = pcap::Magic::of(bytes) {
            if bytes.len() < pcap::FILE_HEADER {
                return Next::Need(pcap::FILE_HEADER);
            }
            let opened = magic.open(bytes).map(|format| {
                self.digits = format.digits();
                (format.name(), Format::Pcap(format))
            });
            return self.opened(opened, pcap::FILE_HEADER, sink);
        } else if netmon::has_magic(bytes) {
            if bytes.len() < netmon::FILE_HEADER {
                return Next::Need(netmon::FILE_HEADER);
            }
            self.digits = 9;
            let opened = netmon::Netmon::open(bytes).map(|format| ("netmon", Format::Netmon(format)));
            return self.opened(opened, netmon::FILE_HEADER, sink);
        }
        if bytes.len() < refuse::SNIFF_BYTES {
            return Next::Need(refuse::SNIFF_BYTES);
        }
        if bytes.starts_with(snoop::MAGIC) {
            let opened = snoop::Snoop::open(bytes).map(|format| ("snoop", Format::Snoop(format)));
            return self.opened(opened, snoop::FILE_HEADER, sink);
        }
        sink.issue(refuse::unknown(bytes));
        Next::Halt
    }

    /// Begins to read records after a file header, or refuses the file.
    fn opened(
        &mut self,
        opened: Result<(&'static str, Format), Box<Issue>>,
        header: usize,
        sink: &mut impl RecordSink,
    ) -> Next {
        match opened {
            Ok((name, format)) => {
                (self.name, self.format) = (name, format);
                self.position.offset = self.position.offset.saturating_add(header as u64);
                Next::Again
            }
            Err(issue) => {
                sink.issue(*issue);
                Next::Halt
            }
        }
    }
}
