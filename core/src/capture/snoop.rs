//! The snoop file format of Solaris (RFC 1761): a file header, then records, all in network byte order.

use super::{Ask, Position, Record, Sink};
use crate::cursor::Header;
use crate::issue::{Issue, Kind};

pub(super) const MAGIC: &[u8; 8] = b"snoop\0\0\0";
pub(super) const FILE_HEADER: usize = 16;
const HEAD: usize = 24;

/// As for pcap: a longer record is a lying length.
const MAX_RECORD_BYTES: u32 = super::pcap::MAX_RECORD_BYTES;

#[derive(Debug)]
pub(super) struct Snoop {
    link: u32,
}

impl Snoop {
    pub(super) fn open(bytes: &[u8]) -> Result<Snoop, Box<Issue>> {
        let head = Header::<FILE_HEADER>::of(bytes);
        let (version, kind) = head.map_or((0, 0), |head| (head.be32::<8>(), head.be32::<12>()));
        let refused = |reason, number: u32| {
            let issue = Issue::new(Kind::Refused, "snoop", reason).at(0);
            Box::new(issue.detail(number.to_string()))
        };
        if version != 2 {
            return Err(refused("snoop version is not known", version));
        }
        // RFC 1761 and what Solaris added, as LINKTYPE_ numbers.
        let link = match kind {
            0 | 4 => 1,
            2 => 6,
            8 => 10,
            18 => 242,
            26 => 226,
            _ => return Err(refused("snoop link type is not known", kind)),
        };
        Ok(Snoop { link })
    }

    pub(super) fn walk(&mut self, bytes: &[u8], place: &mut Position, sink: &mut impl Sink) -> Ask {
        let mut left = bytes;
        loop {
            let Some(head) = Header::<HEAD>::of(left) else {
                return Ask::Need(HEAD);
            };
            let (original_len, captured, total) = (head.be32::<0>(), head.be32::<4>(), head.be32::<8>());
            if total > MAX_RECORD_BYTES || total.checked_sub(HEAD as u32).is_none_or(|room| room < captured) {
                let reason = "record length does not fit its packet";
                let issue = Issue::new(Kind::Damaged, "snoop", reason).at(place.offset);
                let needed = u64::from(captured) + HEAD as u64;
                let issue = issue.in_frame(place.frames.saturating_add(1));
                sink.issue(issue.lengths(needed, total.into()));
                return Ask::Halt;
            }
            let Some((record, next)) = left.split_at_checked(total as usize) else {
                return Ask::Need(total as usize);
            };
            let data = record.get(HEAD..).and_then(|data| data.get(..captured as usize));
            place.frames += 1;
            sink.record(Record {
                frame: place.frames,
                time_ns: i64::from(head.be32::<16>()) * 1_000_000_000 + i64::from(head.be32::<20>()) * 1000,
                link: self.link,
                interface: 0,
                offset: place.offset,
                data: data.unwrap_or_default(),
                original_len,
            });
            place.offset += u64::from(total);
            left = next;
        }
    }

    /// The file ends with `bytes` of a record that is not whole.
    pub(super) fn cut(&self, bytes: &[u8], place: &Position) -> Option<Issue> {
        if bytes.is_empty() {
            return None;
        }
        let (reason, needed) = match Header::<HEAD>::of(bytes) {
            Some(head) => ("record data is cut", head.be32::<8>().into()),
            None => ("record header is cut", HEAD as u64),
        };
        let issue = Issue::new(Kind::Damaged, "snoop", reason).at(place.offset);
        let issue = issue.in_frame(place.frames.saturating_add(1));
        Some(issue.lengths(needed, bytes.len() as u64))
    }
}
