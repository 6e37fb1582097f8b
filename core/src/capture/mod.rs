//! Capture files: pcap, pcapng, snoop and Network Monitor's, pushed block by block, give records. Reads container
//! bytes only; knows nothing of what a frame holds. `pcap.rs`, `pcapng.rs`, `snoop.rs` and `netmon.rs` know the
//! formats, `interface.rs` pcapng's clocks, `refuse.rs` what is none of them.
//!
//! The answer is the same however the bytes are cut into blocks: a record that lies whole in a block is
//! handed on as a slice of it, any other is put together in a carry buffer first. That buffer holds at most
//! one record (pcap: `pcap::MAX_RECORD_BYTES`; pcapng: `pcapng::MAX_BLOCK_BYTES`).

mod interface;
mod netmon;
mod pcap;
mod pcapng;
mod refuse;
mod secrets;
mod snoop;
mod statistics;
#[cfg(test)]
mod tests;

use crate::cursor;
use crate::issue::Issue;

/// The link of a record that is no packet (a journal entry, a custom block): it only counts as a frame.
pub const NO_LINK: u32 = u32::MAX;

/// Instants that are trusted, from 1823 to 2116: any two of these lie less than 2^63 ns apart, so no difference wraps.
const SOUND_NS: std::ops::RangeInclusive<i64> = -(1 << 62)..=(1 << 62) - 1;

/// One record of the file. Every record counts as a frame, whatever is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// From 1, Wireshark's frame.number.
    pub frame: u64,
    /// Nanoseconds since the epoch; a record without a readable time has that of the record
    /// before it, or 0.
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

/// Takes what a reader finds, in file order.
pub trait Sink {
    fn record(&mut self, record: Record<'_>);
    fn issue(&mut self, issue: Issue);

    /// The text of a key log that the capture brings along.
    fn secrets(&mut self, _text: &[u8]) {}
}

/// Where the walk stands: the offset of the next byte and the records so far.
#[derive(Debug, Default)]
struct Position {
    offset: u64,
    frames: u64,
}

/// What a walk asks for before it can go on.
enum Ask {
    /// That many bytes in one piece, from `Position::offset` on; always more than it was given.
    Need(usize),
    /// Pass over that many bytes without keeping them.
    Pass(u64),
    /// Look again at the same bytes: the format is known now.
    Again,
    /// Refused or damaged: no further byte is read.
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

/// The time of the first record that lies whole in the first bytes of a file.
pub fn first_time(head: &[u8]) -> Option<i64> {
    struct First(Option<i64>);
    impl Sink for First {
        fn record(&mut self, record: Record<'_>) {
            self.0.get_or_insert(record.time_ns);
        }
        fn issue(&mut self, _: Issue) {}
    }
    let mut first = First(None);
    CaptureReader::new().push(head, &mut first);
    first.0
}

/// Reads a capture from blocks of bytes: one file, or files that follow each other.
pub struct CaptureReader {
    format: Format,
    name: &'static str,
    digits: u8,
    place: Position,
    carry: Vec<u8>,
    need: usize,
    pass: u64,
}

impl Default for CaptureReader {
    fn default() -> Self {
        CaptureReader::new()
    }
}

impl CaptureReader {
    pub fn new() -> Self {
        let place = Position::default();
        CaptureReader {
            format: Format::Unknown,
            name: "",
            digits: 6,
            place,
            carry: Vec::new(),
            need: 0,
            pass: 0,
        }
    }

    /// Records so far.
    pub fn frames(&self) -> u64 {
        self.place.frames
    }

    /// "pcap", "pcap (ns)", "pcap (modified)", "pcapng", "snoop", "netmon", or "" while (or where) it is not known.
    pub fn format(&self) -> &'static str {
        self.name
    }

    /// Decimals of a second of the packets' clock: 0 to 3, 6 or 9, as Wireshark shows them. The
    /// finest of several interfaces; 6 where it is not known.
    pub fn digits(&self) -> u8 {
        match &self.format {
            Format::Pcapng(pcapng) => pcapng.digits().unwrap_or(self.digits),
            _ => self.digits,
        }
    }

    /// Is the rest of the file of no use?
    pub fn halted(&self) -> bool {
        matches!(self.format, Format::Halted)
    }

    pub fn push(&mut self, block: &[u8], sink: &mut impl Sink) {
        let mut rest = block;
        loop {
            if self.pass > 0 {
                let (passed, after) = cursor::split(rest, usize::try_from(self.pass).unwrap_or(usize::MAX));
                rest = after;
                self.pass = self.pass.saturating_sub(passed.len() as u64);
                self.place.offset = self.place.offset.saturating_add(passed.len() as u64);
            }
            if rest.is_empty() || matches!(self.format, Format::Halted) {
                return;
            }
            if self.carry.is_empty() {
                rest = cursor::from(rest, self.walk(rest, sink));
                if self.pass == 0 {
                    self.carry.extend_from_slice(rest);
                    return;
                }
            } else {
                let (missing, after) = cursor::split(rest, self.need.saturating_sub(self.carry.len()));
                self.carry.extend_from_slice(missing);
                rest = after;
                if self.carry.len() >= self.need {
                    let mut carry = std::mem::take(&mut self.carry);
                    let used = self.walk(&carry, sink);
                    carry.drain(..used.min(carry.len()));
                    self.carry = carry;
                }
            }
        }
    }

    /// Says what is missing at the end of the last file. Call it once, after the last block.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        let cut = match &self.format {
            Format::Unknown => Some(refuse::short(&self.carry)),
            Format::Pcap(pcap) => pcap.cut(&self.carry, &self.place),
            Format::Pcapng(pcapng) => pcapng.cut(&self.carry, &self.place),
            Format::Snoop(snoop) => snoop.cut(&self.carry, &self.place),
            Format::Netmon(netmon) => netmon.cut(&self.carry, &self.place),
            Format::Halted => None,
        };
        cut.into_iter().for_each(|issue| sink.issue(issue));
        self.halt();
    }

    /// What is pushed from now on is another file; frames are counted on.
    pub fn next_file(&mut self) {
        *self = CaptureReader {
            name: self.name,
            digits: self.digits(),
            place: Position {
                offset: 0,
                frames: self.place.frames,
            },
            ..CaptureReader::new()
        };
    }

    fn halt(&mut self) {
        self.digits = self.digits();
        self.format = Format::Halted;
        self.carry = Vec::new();
        self.pass = 0;
    }

    /// Walks over what is whole in `bytes`, which begin at `place.offset`. Gives how many were used.
    fn walk(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let begin = self.place.offset;
        let mut left = bytes;
        loop {
            let ask = match &mut self.format {
                Format::Unknown => self.open(left, sink),
                Format::Pcap(pcap) => pcap.walk(left, &mut self.place, sink),
                Format::Pcapng(pcapng) => pcapng.walk(left, &mut self.place, sink),
                Format::Snoop(snoop) => snoop.walk(left, &mut self.place, sink),
                Format::Netmon(netmon) => netmon.walk(left, &mut self.place, sink),
                Format::Halted => Ask::Halt,
            };
            let used = usize::try_from(self.place.offset.saturating_sub(begin)).unwrap_or(usize::MAX);
            match ask {
                // a block of 12 bytes has nothing between its two ends
                Ask::Again | Ask::Pass(0) => left = cursor::from(bytes, used),
                Ask::Need(need) => {
                    self.need = need;
                    return used;
                }
                Ask::Pass(pass) => {
                    self.pass = pass;
                    return used;
                }
                Ask::Halt => {
                    self.halt();
                    return bytes.len();
                }
            }
        }
    }

    /// Learns the format from the first bytes.
    fn open(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Ask {
        if bytes.len() < 4 {
            return Ask::Need(4);
        }
        if pcapng::begins(bytes) {
            if bytes.len() < pcapng::START {
                return Ask::Need(pcapng::START);
            }
            if let Some(format) = pcapng::Pcapng::open(bytes) {
                self.name = "pcapng";
                self.format = Format::Pcapng(format);
                return Ask::Again;
            }
        } else if let Some(magic) = pcap::Magic::of(bytes) {
            if bytes.len() < pcap::FILE_HEADER {
                return Ask::Need(pcap::FILE_HEADER);
            }
            let opened = magic.open(bytes).map(|format| {
                self.digits = format.digits();
                (format.name(), Format::Pcap(format))
            });
            return self.opened(opened, pcap::FILE_HEADER, sink);
        } else if netmon::begins(bytes) {
            if bytes.len() < netmon::FILE_HEADER {
                return Ask::Need(netmon::FILE_HEADER);
            }
            self.digits = 9;
            let opened = netmon::Netmon::open(bytes).map(|format| ("netmon", Format::Netmon(format)));
            return self.opened(opened, netmon::FILE_HEADER, sink);
        }
        if bytes.len() < refuse::LOOK {
            return Ask::Need(refuse::LOOK);
        }
        if bytes.starts_with(snoop::MAGIC) {
            let opened = snoop::Snoop::open(bytes).map(|format| ("snoop", Format::Snoop(format)));
            return self.opened(opened, snoop::FILE_HEADER, sink);
        }
        sink.issue(refuse::unknown(bytes));
        Ask::Halt
    }

    /// The file header is behind us, or it is refused.
    fn opened(
        &mut self,
        opened: Result<(&'static str, Format), Box<Issue>>,
        header: usize,
        sink: &mut impl Sink,
    ) -> Ask {
        match opened {
            Ok((name, format)) => {
                (self.name, self.format) = (name, format);
                self.place.offset = self.place.offset.saturating_add(header as u64);
                Ask::Again
            }
            Err(issue) => {
                sink.issue(*issue);
                Ask::Halt
            }
        }
    }
}
