//! The pcap file format (draft-ietf-opsawg-pcap): a file header, then records. Both byte orders, microseconds and
//! nanoseconds, and the "modified" format whose record headers have 24 bytes (magic 0xa1b2cd34).

use super::{Next, Position, Record, RecordSink};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};

pub(super) const FILE_HEADER: usize = 24;

/// Upper bound on a record's data: Wireshark's WTAP_MAX_PACKET_SIZE_STANDARD and libpcap's MAXIMUM_SNAPLEN. A larger
/// length is wrong, and the next record cannot be found without it.
pub(super) const MAX_RECORD_BYTES: u32 = 262_144;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Micro,
    Nano,
    Modified,
}

/// The magic number: the first four bytes of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Magic {
    variant: Variant,
    is_big_endian: bool,
}

const MAGICS: [(u32, Variant); 3] = [
    (0xa1b2_c3d4, Variant::Micro),
    (0xa1b2_3c4d, Variant::Nano),
    (0xa1b2_cd34, Variant::Modified),
];

impl Magic {
    pub(super) fn of(bytes: &[u8]) -> Option<Magic> {
        let head = Header::<4>::of(bytes)?;
        MAGICS.iter().find_map(|&(magic, variant)| match magic {
            _ if magic == head.u32::<false, 0>() => Some(Magic {
                variant,
                is_big_endian: false,
            }),
            _ if magic == head.u32::<true, 0>() => Some(Magic {
                variant,
                is_big_endian: true,
            }),
            _ => None,
        })
    }

    /// Whether these bytes, fewer than a file header, may begin a pcap file.
    pub(super) fn may_begin(bytes: &[u8]) -> bool {
        let first = cursor::upto(bytes, 4);
        MAGICS.iter().any(|(magic, _)| {
            magic.to_le_bytes().starts_with(first) || magic.to_be_bytes().starts_with(first)
        })
    }

    pub(super) fn open(self, bytes: &[u8]) -> Result<Pcap, Box<Issue>> {
        let head = Header::<FILE_HEADER>::of(bytes);
        let fields = head.map(|head| match self.is_big_endian {
            true => (
                head.u16::<true, 4>(),
                head.u16::<true, 6>(),
                head.u32::<true, 20>(),
            ),
            false => (
                head.u16::<false, 4>(),
                head.u16::<false, 6>(),
                head.u32::<false, 20>(),
            ),
        });
        let (major, minor, link) = fields.unwrap_or_default();
        // As in libpcap's check_header and Wireshark's libpcap_open: before 2.3 a record had its two lengths in reverse
        // order, in 2.3 in either order. Version 543.0 is written by the tcpdump of DG/UX.
        let swapped = match (major, minor) {
            (2, 0..=2) | (543, _) => Swapped::Always,
            (2, 3) => Swapped::IfFirstIsLarger,
            (2.., _) => Swapped::Never,
            (0..=1, _) => {
                let issue = Issue::new(Kind::Refused, "pcap", "pcap version is not known");
                return Err(Box::new(issue.at(0).detail(format!("{major}.{minor}"))));
            }
        };
        // the upper half holds the FCS length and reserved bits
        Ok(Pcap {
            magic: self,
            swapped,
            link: link & 0xffff,
        })
    }
}

/// Whether a record has its original length before its captured length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swapped {
    Never,
    IfFirstIsLarger,
    Always,
}

#[derive(Debug)]
pub(super) struct Pcap {
    magic: Magic,
    swapped: Swapped,
    link: u32,
}

impl Pcap {
    pub(super) fn name(&self) -> &'static str {
        match self.magic.variant {
            Variant::Micro => "pcap",
            Variant::Nano => "pcap (ns)",
            Variant::Modified => "pcap (modified)",
        }
    }

    /// Decimal places of the time stamps' seconds.
    pub(super) fn digits(&self) -> u8 {
        if self.magic.variant == Variant::Nano { 9 } else { 6 }
    }

    /// Length of a record header in bytes.
    fn record_header(&self) -> usize {
        if self.magic.variant == Variant::Modified {
            24
        } else {
            16
        }
    }

    pub(super) fn walk(&mut self, bytes: &[u8], position: &mut Position, sink: &mut impl RecordSink) -> Next {
        match (self.magic.variant, self.magic.is_big_endian) {
            (Variant::Micro, false) => self.records::<16, false, 1000>(bytes, position, sink),
            (Variant::Micro, true) => self.records::<16, true, 1000>(bytes, position, sink),
            (Variant::Nano, false) => self.records::<16, false, 1>(bytes, position, sink),
            (Variant::Nano, true) => self.records::<16, true, 1>(bytes, position, sink),
            (Variant::Modified, false) => self.records::<24, false, 1000>(bytes, position, sink),
            (Variant::Modified, true) => self.records::<24, true, 1000>(bytes, position, sink),
        }
    }

    fn records<const HEADER: usize, const BIG: bool, const UNIT: i64>(
        &self,
        bytes: &[u8],
        position: &mut Position,
        sink: &mut impl RecordSink,
    ) -> Next {
        let Position {
            mut offset,
            mut frames,
        } = *position;
        let mut rest = bytes;
        let next = loop {
            let Some((head, after)) = Header::<HEADER>::split(rest) else {
                break Next::Need(HEADER);
            };
            let (captured, original_len) = self.lengths::<HEADER, BIG>(head);
            if captured > MAX_RECORD_BYTES {
                let reason = "captured length is beyond the longest record";
                let issue = Issue::new(Kind::Damaged, "pcap", reason).at(offset);
                let issue = issue.in_frame(frames + 1);
                sink.issue(issue.lengths(captured.into(), MAX_RECORD_BYTES.into()));
                break Next::Halt;
            }
            let Some((data, following)) = after.split_at_checked(captured as usize) else {
                break Next::Need(HEADER + captured as usize);
            };
            frames += 1;
            // at most 2^32 * 10^9 + 2^32 * 10^3, which fits an i64
            let time_ns =
                i64::from(head.u32::<BIG, 0>()) * 1_000_000_000 + i64::from(head.u32::<BIG, 4>()) * UNIT;
            sink.record(Record {
                frame: frames,
                time_ns,
                link: self.link,
                interface: 0,
                offset,
                data,
                original_len,
            });
            offset += HEADER as u64 + u64::from(captured);
            rest = following;
        };
        *position = Position { offset, frames };
        next
    }

    /// Returns the captured and the original length of a record.
    #[inline(always)]
    fn lengths<const HEADER: usize, const BIG: bool>(&self, head: Header<'_, HEADER>) -> (u32, u32) {
        let (first, second) = (head.u32::<BIG, 8>(), head.u32::<BIG, 12>());
        let swap = match self.swapped {
            Swapped::Never => false,
            Swapped::IfFirstIsLarger => first > second,
            Swapped::Always => true,
        };
        if swap { (second, first) } else { (first, second) }
    }

    /// Describes a record that is cut by the end of the file; `bytes` are all of it.
    pub(super) fn truncated(&self, bytes: &[u8], position: &Position) -> Option<Issue> {
        if bytes.is_empty() {
            return None;
        }
        let available = bytes.len() as u64;
        let (reason, needed, available) = match Header::<16>::of(bytes) {
            Some(head) if bytes.len() >= self.record_header() => {
                let (captured, _) = match self.magic.is_big_endian {
                    true => self.lengths::<16, true>(head),
                    false => self.lengths::<16, false>(head),
                };
                (
                    "record data is cut",
                    captured.into(),
                    available.saturating_sub(self.record_header() as u64),
                )
            }
            _ => ("record header is cut", self.record_header() as u64, available),
        };
        let issue = Issue::new(Kind::Damaged, "pcap", reason);
        Some(
            issue
                .at(position.offset)
                .in_frame(position.frames.saturating_add(1))
                .lengths(needed, available),
        )
    }
}
