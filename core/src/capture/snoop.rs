//! The snoop file format of Solaris (RFC 1761): a file header, then records, all in network byte order.

use super::{Next, Position, Record, RecordSink};
use crate::cursor::Header;
use crate::issue::{Issue, Kind};

pub(super) const MAGIC: &[u8; 8] = b"snoop\0\0\0";
pub(super) const FILE_HEADER: usize = 16;
const RECORD_HEADER: usize = 24;
/// Datalink types of RFC 1761 and later Solaris versions. `Snoop::open` maps them to LINKTYPE_ numbers.
const IEEE_802_3: u32 = 0;
const TOKEN_RING: u32 = 2;
const ETHERNET: u32 = 4;
const FDDI: u32 = 8;
const IPOIB: u32 = 18;
const IPNET: u32 = 26;

/// Upper bound on a record: as for pcap, a larger length is wrong.
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
        let link = match kind {
            IEEE_802_3 | ETHERNET => 1,
            TOKEN_RING => 6,
            FDDI => 10,
            IPOIB => 242,
            IPNET => 226,
            _ => return Err(refused("snoop link type is not known", kind)),
        };
        Ok(Snoop { link })
    }

    pub(super) fn walk(&mut self, bytes: &[u8], position: &mut Position, sink: &mut impl RecordSink) -> Next {
        let mut rest = bytes;
        loop {
            let Some(head) = Header::<RECORD_HEADER>::of(rest) else {
                return Next::Need(RECORD_HEADER);
            };
            let (original_len, captured, total) = (head.be32::<0>(), head.be32::<4>(), head.be32::<8>());
            if total > MAX_RECORD_BYTES
                || total
                    .checked_sub(RECORD_HEADER as u32)
                    .is_none_or(|room| room < captured)
            {
                let reason = "record length does not fit its packet";
                let issue = Issue::new(Kind::Damaged, "snoop", reason).at(position.offset);
                let needed = u64::from(captured) + RECORD_HEADER as u64;
                let issue = issue.in_frame(position.frames.saturating_add(1));
                sink.issue(issue.lengths(needed, total.into()));
                return Next::Halt;
            }
            let Some((record, next)) = rest.split_at_checked(total as usize) else {
                return Next::Need(total as usize);
            };
            let data = record
                .get(RECORD_HEADER..)
                .and_then(|data| data.get(..captured as usize));
            position.frames += 1;
            sink.record(Record {
                frame: position.frames,
                time_ns: i64::from(head.be32::<16>()) * 1_000_000_000 + i64::from(head.be32::<20>()) * 1000,
                link: self.link,
                interface: 0,
                offset: position.offset,
                data: data.unwrap_or_default(),
                original_len,
            });
            position.offset += u64::from(total);
            rest = next;
        }
    }

    /// Describes a record that is cut by the end of the file; `bytes` are all of it.
    pub(super) fn truncated(&self, bytes: &[u8], position: &Position) -> Option<Issue> {
        if bytes.is_empty() {
            return None;
        }
        let (reason, needed) = match Header::<RECORD_HEADER>::of(bytes) {
            Some(head) => ("record data is cut", head.be32::<8>().into()),
            None => ("record header is cut", RECORD_HEADER as u64),
        };
        let issue = Issue::new(Kind::Damaged, "snoop", reason).at(position.offset);
        let issue = issue.in_frame(position.frames.saturating_add(1));
        Some(issue.lengths(needed, bytes.len() as u64))
    }
}
