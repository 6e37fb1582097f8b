//! The file format of Microsoft Network Monitor, versions 1 and 2, in little-endian byte order: a header, the frames,
//! and a table with the offset of each frame.
//!
//! The table follows the frames, so a reader of a stream cannot use it to find them. The frames are read in file order
//! instead, and the table is compared with their offsets at the end. A difference is an issue.

use super::{NO_LINK, Next, Position, Record, RecordSink, TRUSTED_NS};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};

pub(super) const FILE_HEADER: usize = 128;

/// Upper bound on a record's data: as for pcap, a larger length is wrong.
const MAX_RECORD_BYTES: u32 = super::pcap::MAX_RECORD_BYTES;

/// Minimum length of the radio header before an 802.11 frame.
const MIN_RADIO_HEADER: usize = 32;
/// Length of the addresses and circuit numbers before an ATM packet.
const ATM_HEADER: usize = 16;
/// The Unix epoch as a Windows file time: units of 100 ns since 1601.
const UNIX_EPOCH: i64 = 116_444_736_000_000_000;

#[derive(Debug)]
pub(super) struct Netmon {
    /// Major and minor version.
    version: (u8, u8),
    media: u16,
    start_ns: i64,
    /// Offset and length of the frame table. `u64::MAX` as the offset if the header names none.
    table: (u64, u64),
    /// Offsets of the frames that were read.
    frames: OffsetDigest,
    /// Offsets of the frames in the table.
    listed: OffsetDigest,
    last_ns: i64,
    is_in_table: bool,
}

/// A digest of a list of offsets. `sum` does not depend on their order, `order` does. Two digests are equal if the
/// lists are, and practically never otherwise.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct OffsetDigest {
    count: u64,
    sum: u64,
    order: u64,
}

impl OffsetDigest {
    fn add(&mut self, offset: u64) {
        let mixed = offset.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.count += 1;
        self.sum = self.sum.wrapping_add(mixed);
        self.order = self.order.wrapping_mul(3).wrapping_add(mixed);
    }
}

/// The kind of a record, by its media type.
enum Medium {
    Link(u32),
    /// A note of the capturing program: Wireshark counts it as a frame, but it is not a packet.
    Note,
    /// A record that is neither a packet nor counted as a frame.
    Uncounted,
    Unknown,
}

pub(super) fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(b"GMBU") || bytes.starts_with(b"RTSS")
}

impl Netmon {
    pub(super) fn open(bytes: &[u8]) -> Result<Netmon, Box<Issue>> {
        let refused = |reason| Issue::new(Kind::Refused, "netmon", reason).at(0);
        let Some(head) = Header::<FILE_HEADER>::of(bytes) else {
            return Err(Box::new(refused("file header is cut")));
        };
        let version = (head.u8::<5>(), head.u8::<4>());
        if !matches!(version.0, 1 | 2) {
            let issue = refused("netmon version is not known").detail(version.0.to_string());
            return Err(Box::new(issue));
        }
        let table = head.u32::<false, 24>().into();
        Ok(Netmon {
            version,
            media: head.u16::<false, 6>(),
            start_ns: start_ns(head),
            table: (
                if table < FILE_HEADER as u64 {
                    u64::MAX
                } else {
                    table
                },
                head.u32::<false, 28>().into(),
            ),
            frames: OffsetDigest::default(),
            listed: OffsetDigest::default(),
            last_ns: 0,
            is_in_table: false,
        })
    }

    pub(super) fn walk(&mut self, bytes: &[u8], position: &mut Position, sink: &mut impl RecordSink) -> Next {
        let mut rest = bytes;
        loop {
            if self.is_in_table || position.offset == self.table.0 {
                self.is_in_table = true;
                return self.read_table(rest, position, sink);
            }
            let Some((captured, original_len)) = self.lengths(rest) else {
                return Next::Need(self.record_header());
            };
            let total = self.record_header() as u64 + u64::from(captured) + self.trailer_len() as u64;
            let room = self.table.0.saturating_sub(position.offset);
            if captured > MAX_RECORD_BYTES || total > room {
                let reason = "record length does not fit its place";
                let issue = Issue::new(Kind::Damaged, "netmon", reason).at(position.offset);
                let issue = issue.in_frame(position.frames.saturating_add(1));
                sink.issue(issue.lengths(total, room.min(u64::from(MAX_RECORD_BYTES))));
                return Next::Halt;
            }
            let Some((record, next)) = rest.split_at_checked(total as usize) else {
                return Next::Need(total as usize);
            };
            self.frames.add(position.offset);
            self.record(record, captured as usize, original_len, position, sink);
            position.offset += total;
            rest = next;
        }
    }

    fn record(
        &mut self,
        record: &[u8],
        captured: usize,
        original_len: u32,
        position: &mut Position,
        sink: &mut impl RecordSink,
    ) {
        let (mut data, trailer) = cursor::split(cursor::from(record, self.record_header()), captured);
        self.last_ns = self.time(record, trailer).unwrap_or(self.last_ns);
        let media = match Header::<2>::of(trailer) {
            Some(trailer) => trailer.u16::<false, 0>(),
            None => self.media,
        };
        let mut medium = medium(media);
        let mut skipped = 0;
        match (media, Header::<3>::of(data)) {
            (4, _) if trailer.is_empty() => skipped = ATM_HEADER,
            (6, Some(head)) => skipped = head.u16::<false, 1>().into(),
            _ => {}
        }
        if media == 6 && (skipped < MIN_RADIO_HEADER || data.first() != Some(&2)) {
            medium = Medium::Unknown;
        }
        data = cursor::from(data, skipped);
        let link = match medium {
            Medium::Uncounted => return,
            Medium::Link(link) => link,
            Medium::Note | Medium::Unknown => NO_LINK,
        };
        position.frames += 1;
        if matches!(medium, Medium::Unknown) {
            let issue = Issue::new(Kind::Skipped, "netmon", "media type is not read").at(position.offset);
            sink.issue(issue.in_frame(position.frames).grouped(media.into()));
        }
        sink.record(Record {
            frame: position.frames,
            time_ns: self.last_ns,
            link,
            interface: 0,
            offset: position.offset,
            data,
            original_len: original_len.saturating_sub(skipped as u32),
        });
    }

    fn time(&self, record: &[u8], trailer: &[u8]) -> Option<i64> {
        if self.version >= (2, 3) {
            let ticks = i64::try_from(Header::<15>::of(trailer)?.u64::<false, 6>()).ok()?;
            return ticks
                .checked_sub(UNIX_EPOCH)?
                .checked_mul(100)
                .filter(|ns| TRUSTED_NS.contains(ns));
        }
        let since = match self.version.0 {
            1 => i64::from(Header::<4>::of(record)?.u32::<false, 0>()) * 1_000_000,
            // Microseconds. Wraps to a negative number of 100 ns units for frames before the start.
            _ => (Header::<8>::of(record)?.u64::<false, 0>().wrapping_mul(10) as i64).checked_mul(100)?,
        };
        self.start_ns
            .checked_add(since)
            .filter(|ns| TRUSTED_NS.contains(ns))
    }

    /// Returns the captured and the original length of a record.
    fn lengths(&self, bytes: &[u8]) -> Option<(u32, u32)> {
        if self.version.0 == 1 {
            let head = Header::<8>::of(bytes)?;
            return Some((head.u16::<false, 6>().into(), head.u16::<false, 4>().into()));
        }
        let head = Header::<16>::of(bytes)?;
        Some((head.u32::<false, 12>(), head.u32::<false, 8>()))
    }

    fn record_header(&self) -> usize {
        if self.version.0 == 1 { 8 } else { 16 }
    }

    /// Length of the fields after the frame: the media type from version 2.1 on, later also a process, a time and its
    /// zone.
    fn trailer_len(&self) -> usize {
        match self.version {
            (1, _) | (2, 0) => 0,
            (_, 1) => 2,
            (_, 2) => 6,
            _ => 15,
        }
    }

    /// Reads the frame table and compares it with the frames that were read.
    fn read_table(&mut self, bytes: &[u8], position: &mut Position, sink: &mut impl RecordSink) -> Next {
        let mut rest = bytes;
        while self.listed.count < self.table.1 / 4 {
            let Some((entry, next)) = Header::<4>::split(rest) else {
                return Next::Need(4);
            };
            self.listed.add(entry.u32::<false, 0>().into());
            position.offset += 4;
            rest = next;
        }
        if self.listed != self.frames {
            let (listed, read) = (self.listed.count, self.frames.count);
            let note = |reason| Issue::new(Kind::Distrusted, "netmon", reason).at(self.table.0);
            sink.issue(if (listed, self.listed.sum) == (read, self.frames.sum) {
                note("frames stand in another order than in their table")
            } else {
                note("frame table names other places than those of the frames")
                    .detail(format!("{listed} in the table, {read} read"))
            });
        }
        // comments and names of processes follow; they are not read
        Next::Halt
    }

    /// Describes a record or a frame table that is cut by the end of the file; `bytes` are all of the record.
    pub(super) fn truncated(&self, bytes: &[u8], position: &Position) -> Option<Issue> {
        let len = bytes.len() as u64;
        let (reason, needed, len) = match self.lengths(bytes) {
            _ if self.is_in_table => ("frame table is cut", self.table.1, self.listed.count * 4 + len),
            _ if bytes.is_empty() && self.table.0 == u64::MAX => ("frame table is missing", 0, 0),
            _ if bytes.is_empty() => ("frame table is missing", self.table.0, position.offset),
            Some((captured, _)) => (
                "record data is cut",
                captured.into(),
                len - self.record_header() as u64,
            ),
            None => ("record header is cut", self.record_header() as u64, len),
        };
        let issue = Issue::new(Kind::Damaged, "netmon", reason).at(position.offset);
        let issue = issue.in_frame(position.frames.saturating_add(1));
        Some(issue.lengths(needed, len))
    }
}

/// Classifies the media types of NDIS and Network Monitor's own: converted libpcap captures (0xe000 + LINKTYPE_) and
/// notes.
fn medium(media: u16) -> Medium {
    match media {
        0 | 1 => Medium::Link(1),
        2 => Medium::Link(6),
        3 => Medium::Link(10),
        4 => Medium::Link(100),
        6 => Medium::Link(105),
        7..=9 => Medium::Link(101), // tunnels, wireless networks, raw IP
        0xe080 => Medium::Link(105),
        0xe081..=0xe08a => Medium::Unknown,
        0xe000..=0xefff => Medium::Link(u32::from(media) & 0xfff),
        0xffe0 | 0xfffb | 0xffff => Medium::Note, // events, adapters, filters
        0xfffc..=0xfffe => Medium::Uncounted,     // reassembled payload, networks, names
        _ => Medium::Unknown,
    }
}

/// Returns the start of the capture in ns; 0 for an invalid date. The header has it in UTC as year, month, day of the
/// week, day, hour, minute, second and millisecond.
fn start_ns(head: Header<'_, FILE_HEADER>) -> i64 {
    let (year, month) = (
        i64::from(head.u16::<false, 8>()),
        i64::from(head.u16::<false, 10>()),
    );
    // days since 1970, by years that begin in March so that the leap day is the last of the year
    let (year, month) = (year + (month - 3).div_euclid(12), (month - 3).rem_euclid(12));
    let day = i64::from(head.u16::<false, 14>()) - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 719_468;
    let seconds = i64::from(head.u16::<false, 16>()) * 3600
        + i64::from(head.u16::<false, 18>()) * 60
        + i64::from(head.u16::<false, 20>());
    let ms = (days * 86_400 + seconds) * 1000 + i64::from(head.u16::<false, 22>());
    let ns = ms.checked_mul(1_000_000).filter(|ns| TRUSTED_NS.contains(ns));
    ns.unwrap_or(0)
}
