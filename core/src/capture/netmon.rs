//! Microsoft Network Monitor's files, versions 1 and 2, in little-endian byte order: a header, the frames, and a table of
//! where each frame begins.
//!
//! The table stands behind the frames, and what comes as a stream cannot be read by it. So the frames are read
//! one after the other, as writers put them, and the table is held against them when it comes: one that names other
//! places, or the same in another order, is an issue.

use super::{Ask, NO_LINK, Position, Record, SOUND_NS, Sink};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};

pub(super) const FILE_HEADER: usize = 128;

/// As for pcap: a longer record is a lying length.
const MAX_RECORD_BYTES: u32 = super::pcap::MAX_RECORD_BYTES;

/// The radio's own header before an 802.11 frame, at least.
const RADIO: usize = 32;
/// Addresses and circuit before an ATM packet.
const ATM: usize = 16;
/// From 1601, where Windows counts from, to 1970, in its units of 100 ns.
const EPOCH: i64 = 116_444_736_000_000_000;

#[derive(Debug)]
pub(super) struct Netmon {
    version: (u8, u8),
    media: u16,
    start_ns: i64,
    table: (u64, u64),
    frames: Places,
    listed: Places,
    last_ns: i64,
    in_table: bool,
}

/// How many places, which ones, and in which order: equal where all of them are, for all that happens by chance.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Places {
    count: u64,
    sum: u64,
    order: u64,
}

impl Places {
    fn add(&mut self, offset: u64) {
        let mixed = offset.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.count += 1;
        self.sum = self.sum.wrapping_add(mixed);
        self.order = self.order.wrapping_mul(3).wrapping_add(mixed);
    }
}

/// What a record is.
enum Medium {
    Link(u32),
    /// What the program noted for itself: a frame to Wireshark, but no packet.
    Note,
    /// A record of another kind: no packet, and no frame number.
    Nothing,
    Unknown,
}

pub(super) fn begins(bytes: &[u8]) -> bool {
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
            start_ns: start(head),
            // without a place it can only be missing
            table: (
                if table < FILE_HEADER as u64 {
                    u64::MAX
                } else {
                    table
                },
                head.u32::<false, 28>().into(),
            ),
            frames: Places::default(),
            listed: Places::default(),
            last_ns: 0,
            in_table: false,
        })
    }

    pub(super) fn walk(&mut self, bytes: &[u8], place: &mut Position, sink: &mut impl Sink) -> Ask {
        let mut left = bytes;
        loop {
            if self.in_table || place.offset == self.table.0 {
                self.in_table = true;
                return self.read_table(left, place, sink);
            }
            let Some((captured, original_len)) = self.lengths(left) else {
                return Ask::Need(self.head());
            };
            let total = self.head() as u64 + u64::from(captured) + self.trailer() as u64;
            let room = self.table.0.saturating_sub(place.offset);
            if captured > MAX_RECORD_BYTES || total > room {
                let reason = "record length does not fit its place";
                let issue = Issue::new(Kind::Damaged, "netmon", reason).at(place.offset);
                let issue = issue.in_frame(place.frames.saturating_add(1));
                sink.issue(issue.lengths(total, room.min(u64::from(MAX_RECORD_BYTES))));
                return Ask::Halt;
            }
            let Some((record, next)) = left.split_at_checked(total as usize) else {
                return Ask::Need(total as usize);
            };
            self.frames.add(place.offset);
            self.record(record, captured as usize, original_len, place, sink);
            place.offset += total;
            left = next;
        }
    }

    fn record(
        &mut self,
        record: &[u8],
        captured: usize,
        original_len: u32,
        place: &mut Position,
        sink: &mut impl Sink,
    ) {
        let (mut data, trailer) = cursor::split(cursor::from(record, self.head()), captured);
        self.last_ns = self.time(record, trailer).unwrap_or(self.last_ns);
        let media = match Header::<2>::of(trailer) {
            Some(own) => own.u16::<false, 0>(),
            None => self.media,
        };
        let mut medium = medium(media);
        let mut skipped = 0;
        match (media, Header::<3>::of(data)) {
            (4, _) if trailer.is_empty() => skipped = ATM,
            (6, Some(head)) => skipped = head.u16::<false, 1>().into(),
            _ => {}
        }
        if media == 6 && (skipped < RADIO || data.first() != Some(&2)) {
            medium = Medium::Unknown;
        }
        data = cursor::from(data, skipped);
        let link = match medium {
            Medium::Nothing => return,
            Medium::Link(link) => link,
            Medium::Note | Medium::Unknown => NO_LINK,
        };
        place.frames += 1;
        if matches!(medium, Medium::Unknown) {
            let issue = Issue::new(Kind::Skipped, "netmon", "media type is not read").at(place.offset);
            sink.issue(issue.in_frame(place.frames).grouped(media.into()));
        }
        sink.record(Record {
            frame: place.frames,
            time_ns: self.last_ns,
            link,
            interface: 0,
            offset: place.offset,
            data,
            original_len: original_len.saturating_sub(skipped as u32),
        });
    }

    fn time(&self, record: &[u8], trailer: &[u8]) -> Option<i64> {
        if self.version >= (2, 3) {
            let ticks = i64::try_from(Header::<15>::of(trailer)?.u64::<false, 6>()).ok()?;
            return ticks
                .checked_sub(EPOCH)?
                .checked_mul(100)
                .filter(|ns| SOUND_NS.contains(ns));
        }
        let since = match self.version.0 {
            1 => i64::from(Header::<4>::of(record)?.u32::<false, 0>()) * 1_000_000,
            // microseconds, which may be negative once they are tenths of it
            _ => (Header::<8>::of(record)?.u64::<false, 0>().wrapping_mul(10) as i64).checked_mul(100)?,
        };
        self.start_ns
            .checked_add(since)
            .filter(|ns| SOUND_NS.contains(ns))
    }

    /// Captured and original length.
    fn lengths(&self, bytes: &[u8]) -> Option<(u32, u32)> {
        if self.version.0 == 1 {
            let head = Header::<8>::of(bytes)?;
            return Some((head.u16::<false, 6>().into(), head.u16::<false, 4>().into()));
        }
        let head = Header::<16>::of(bytes)?;
        Some((head.u32::<false, 12>(), head.u32::<false, 8>()))
    }

    fn head(&self) -> usize {
        if self.version.0 == 1 { 8 } else { 16 }
    }

    /// From version 2.1 on the medium stands behind the frame, later a process, a time and its zone.
    fn trailer(&self) -> usize {
        match self.version {
            (1, _) | (2, 0) => 0,
            (_, 1) => 2,
            (_, 2) => 6,
            _ => 15,
        }
    }

    /// Its entries as they come: nothing of them is kept but what distinguishes them from others.
    fn read_table(&mut self, bytes: &[u8], place: &mut Position, sink: &mut impl Sink) -> Ask {
        let mut left = bytes;
        while self.listed.count < self.table.1 / 4 {
            let Some((entry, next)) = Header::<4>::split(left) else {
                return Ask::Need(4);
            };
            self.listed.add(entry.u32::<false, 0>().into());
            place.offset += 4;
            left = next;
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
        // Comments and the names of processes follow.
        Ask::Halt
    }

    /// The file ends with `bytes` of a record that is not whole, or before its table does.
    pub(super) fn cut(&self, bytes: &[u8], place: &Position) -> Option<Issue> {
        let had = bytes.len() as u64;
        let (reason, needed, had) = match self.lengths(bytes) {
            _ if self.in_table => ("frame table is cut", self.table.1, self.listed.count * 4 + had),
            _ if bytes.is_empty() && self.table.0 == u64::MAX => ("frame table is missing", 0, 0),
            _ if bytes.is_empty() => ("frame table is missing", self.table.0, place.offset),
            Some((captured, _)) => ("record data is cut", captured.into(), had - self.head() as u64),
            None => ("record header is cut", self.head() as u64, had),
        };
        let issue = Issue::new(Kind::Damaged, "netmon", reason).at(place.offset);
        let issue = issue.in_frame(place.frames.saturating_add(1));
        Some(issue.lengths(needed, had))
    }
}

/// The media types of NDIS, and what was added: captures of libpcap that were converted, and notes.
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
        0xfffc..=0xfffe => Medium::Nothing,       // reassembled payload, networks, names
        _ => Medium::Unknown,
    }
}

/// When the capture began (1970 without a sound date): year, month, day of the week, day, hour, minute, second, millisecond, in UTC.
fn start(head: Header<'_, FILE_HEADER>) -> i64 {
    let (year, month) = (
        i64::from(head.u16::<false, 8>()),
        i64::from(head.u16::<false, 10>()),
    );
    // Days since 1970 by years that begin in March, so that the leap day is the last.
    let (year, month) = (year + (month - 3).div_euclid(12), (month - 3).rem_euclid(12));
    let day = i64::from(head.u16::<false, 14>()) - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 719_468;
    let seconds = i64::from(head.u16::<false, 16>()) * 3600
        + i64::from(head.u16::<false, 18>()) * 60
        + i64::from(head.u16::<false, 20>());
    let ms = (days * 86_400 + seconds) * 1000 + i64::from(head.u16::<false, 22>());
    let ns = ms.checked_mul(1_000_000).filter(|ns| SOUND_NS.contains(ns));
    ns.unwrap_or(0)
}
