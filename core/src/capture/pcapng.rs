//! The pcapng file format (draft-ietf-opsawg-pcapng): sections of blocks, each section with its own byte order and
//! interfaces. Reads packets, interfaces, interface statistics and TLS key logs. Every other block is skipped without
//! being kept.

mod packet;

use super::interface::{Interface, report_drops};
use super::{NO_LINK, Next, Position, Record, RecordSink};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};
use packet::{OLD_PACKET, PACKET, SIMPLE_PACKET, ticks};

/// Type of the section header block, the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Length of a section header's type, length, byte-order magic and version.
pub(super) const SECTION_HEADER: usize = 16;

/// Upper bound on a block that is read whole: Wireshark's MAX_BLOCK_SIZE.
pub(super) const MAX_BLOCK_BYTES: u32 = 16 * 1024 * 1024;

/// Upper bound on the interfaces of a section, for memory.
const MAX_INTERFACES: usize = 65_536;
/// Upper bound on a statistics block. It has a few options of 8 bytes, and perhaps comments; longer ones are skipped.
const MAX_STATISTICS_BYTES: u32 = 4096;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const SECRETS: u32 = 10;
/// Type of secrets that are a TLS key log: "TLSK".
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Length of the type and length of a secrets block and of its secrets.
const SECRETS_HEADER: usize = 16;

/// Whether a file begins with a section header.
pub(super) fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// A block that is being skipped.
#[derive(Debug, Clone, Copy)]
struct SkippedBlock {
    /// The block's length, which its end must repeat.
    total: u32,
    /// File offset of the block.
    start: u64,
    /// Whether Wireshark gives it a frame number.
    is_frame: bool,
}

#[derive(Debug)]
pub(super) struct Pcapng {
    is_big_endian: bool,
    interfaces: Vec<Interface>,
    /// Decimal places of the finest clock in all sections so far.
    digits: Option<u8>,
    /// Time of the last packet, for records without a time.
    last_ns: i64,
    skipped: Option<SkippedBlock>,
}

impl Pcapng {
    /// Begins to read a file. `None` if the byte order of its first section is not known.
    pub(super) fn open(bytes: &[u8]) -> Option<Pcapng> {
        let is_big_endian = byte_order(bytes)?;
        Some(Pcapng {
            is_big_endian,
            interfaces: Vec::new(),
            digits: None,
            last_ns: 0,
            skipped: None,
        })
    }

    /// Decimal places of the seconds of the finest clock. `None` before the first interface.
    pub(super) fn digits(&self) -> Option<u8> {
        self.digits
    }

    pub(super) fn walk(&mut self, bytes: &[u8], position: &mut Position, sink: &mut impl RecordSink) -> Next {
        let parsed = match self.is_big_endian {
            true => self.blocks::<true>(bytes, position, sink),
            false => self.blocks::<false>(bytes, position, sink),
        };
        parsed.unwrap_or_else(|issue| {
            sink.issue(*issue);
            Next::Halt
        })
    }

    fn blocks<const BIG: bool>(
        &mut self,
        bytes: &[u8],
        position: &mut Position,
        sink: &mut impl RecordSink,
    ) -> Result<Next, Box<Issue>> {
        let mut rest = bytes;
        if let Some(block) = self.skipped {
            let Some((end, after)) = Header::<4>::split(rest) else {
                return Ok(Next::Need(4));
            };
            self.end_skipped(block, end.u32::<BIG, 0>(), position, sink)?;
            rest = after;
        }
        loop {
            rest = self.plain_packets::<BIG>(rest, position, sink);
            let Some(head) = Header::<8>::of(rest) else {
                return Ok(Next::Need(8));
            };
            let (kind, total) = (head.u32::<BIG, 0>(), head.u32::<BIG, 4>());
            if kind == SECTION {
                return self.section(rest, position);
            }
            if total < min_length(kind) {
                let reason = "block is too short for its kind";
                return Err(damaged(position, kind, reason, min_length(kind), total));
            }
            // a length that is not a multiple of four is rounded up, as in Wireshark
            let padded = u64::from(total).next_multiple_of(4);
            if !is_read(kind, total, position, sink) {
                self.skipped = Some(SkippedBlock {
                    total,
                    start: position.offset,
                    is_frame: packet::is_counted(kind),
                });
                position.offset += 8;
                return Ok(Next::Skip(padded - 12));
            }
            if total > MAX_BLOCK_BYTES {
                let reason = "block is beyond the longest block";
                return Err(damaged(position, kind, reason, total, MAX_BLOCK_BYTES));
            }
            let Some((block, next)) = rest.split_at_checked(padded as usize) else {
                return Ok(Next::Need(padded as usize));
            };
            let (body, end) = cursor::split(block, block.len() - 4);
            let end = Header::<4>::of(end).map_or(0, |end| end.u32::<BIG, 0>());
            let is_packet = packet::is_packet(kind);
            check_trailing_length(total, end, position.offset, position, is_packet)?;
            match kind {
                INTERFACE => self.interface::<BIG>(body, position, sink)?,
                SECRETS => pass_on_secrets::<BIG>(body, position, sink),
                STATISTICS => report_drops::<BIG>(body, position, sink),
                _ => self.packet::<BIG>(kind, body, position, sink)?,
            }
            position.offset += padded;
            rest = next;
        }
    }

    /// Reads the plain packets at the beginning of `bytes`. Returns the bytes after them.
    #[inline(always)]
    fn plain_packets<'a, const BIG: bool>(
        &mut self,
        mut bytes: &'a [u8],
        position: &mut Position,
        sink: &mut impl RecordSink,
    ) -> &'a [u8] {
        while let Some((record, next)) = self.plain_packet::<BIG>(bytes, position) {
            *position = Position {
                offset: position.offset + (bytes.len() - next.len()) as u64,
                frames: record.frame,
            };
            self.last_ns = record.time_ns;
            sink.record(record);
            bytes = next;
        }
        bytes
    }

    /// The fast path: reads an enhanced packet block that is whole and valid. Returns its record and the bytes after
    /// it. `None` for every other block, which the general path reads and reports.
    #[inline(always)]
    fn plain_packet<'a, const BIG: bool>(
        &self,
        bytes: &'a [u8],
        position: &Position,
    ) -> Option<(Record<'a>, &'a [u8])> {
        let head = Header::<28>::of(bytes)?;
        let total = head.u32::<BIG, 4>();
        if head.u32::<BIG, 0>() != PACKET || total % 4 != 0 || total > MAX_BLOCK_BYTES {
            return None;
        }
        let (block, next) = bytes.split_at_checked(total as usize)?;
        let (body, end) = block.split_last_chunk::<4>()?;
        if *end != head.bytes::<4, 4>() {
            return None;
        }
        let captured = head.u32::<BIG, 20>();
        let data = body.get(28..)?.get(..captured as usize)?;
        let interface = self.interfaces.get(head.u32::<BIG, 8>() as usize)?;
        let record = Record {
            frame: position.frames + 1,
            time_ns: interface.quick_ns(ticks::<BIG>(head))?,
            link: interface.link,
            interface: head.u32::<BIG, 8>(),
            offset: position.offset,
            data,
            original_len: head.u32::<BIG, 24>(),
        };
        Some((record, next))
    }

    /// Reads the end of a skipped block. A block that counts as a frame becomes a record without data.
    #[cold]
    fn end_skipped(
        &mut self,
        block: SkippedBlock,
        end: u32,
        position: &mut Position,
        sink: &mut impl RecordSink,
    ) -> Result<(), Box<Issue>> {
        check_trailing_length(block.total, end, block.start, position, block.is_frame)?;
        self.skipped = None;
        position.offset += 4;
        if block.is_frame {
            position.frames += 1;
            sink.record(Record {
                frame: position.frames,
                time_ns: self.last_ns,
                link: NO_LINK,
                interface: 0,
                offset: block.start,
                data: &[],
                original_len: 0,
            });
        }
        Ok(())
    }

    /// Begins a section: sets its byte order and forgets the interfaces of the section before.
    #[cold]
    fn section(&mut self, bytes: &[u8], position: &mut Position) -> Result<Next, Box<Issue>> {
        let Some(head) = Header::<SECTION_HEADER>::of(bytes) else {
            return Ok(Next::Need(SECTION_HEADER));
        };
        let Some(is_big_endian) = byte_order(bytes) else {
            let reason = "byte-order magic of a section is not known";
            let issue = Issue::new(Kind::Damaged, "pcapng", reason).at(position.offset);
            return Err(Box::new(issue.detail(format!("{:#010x}", head.be32::<8>()))));
        };
        let (total, major) = match is_big_endian {
            true => (head.u32::<true, 4>(), head.u16::<true, 12>()),
            false => (head.u32::<false, 4>(), head.u16::<false, 12>()),
        };
        if total < 28 {
            let reason = "block is too short for its kind";
            return Err(damaged(position, SECTION, reason, 28, total));
        }
        if major != 1 {
            let kind = if position.offset == 0 {
                Kind::Refused
            } else {
                Kind::Damaged
            };
            let issue = Issue::new(kind, "pcapng", "pcapng version is not known").at(position.offset);
            return Err(Box::new(issue.detail(format!("major version {major}"))));
        }
        self.is_big_endian = is_big_endian;
        self.interfaces.clear();
        self.skipped = Some(SkippedBlock {
            total,
            start: position.offset,
            is_frame: false,
        });
        position.offset += SECTION_HEADER as u64;
        Ok(Next::Skip(
            u64::from(total).next_multiple_of(4) - SECTION_HEADER as u64 - 4,
        ))
    }

    #[cold]
    fn interface<const BIG: bool>(
        &mut self,
        body: &[u8],
        position: &Position,
        sink: &mut impl RecordSink,
    ) -> Result<(), Box<Issue>> {
        if self.interfaces.len() >= MAX_INTERFACES {
            let (reason, max) = ("too many interfaces", MAX_INTERFACES as u32);
            return Err(damaged(position, INTERFACE, reason, max + 1, max));
        }
        let Some((interface, is_well_formed)) = Interface::read::<BIG>(body) else {
            return Ok(());
        };
        if !is_well_formed {
            let reason = "options of an interface are malformed";
            let issue = Issue::new(Kind::Distrusted, "pcapng", reason).at(position.offset);
            sink.issue(issue.detail("its clock may be wrong"));
        }
        self.digits = self.digits.max(Some(interface.digits()));
        self.interfaces.push(interface);
        Ok(())
    }

    /// Describes a block that is cut by the end of the file; `bytes` are all of it, or of its end if it was skipped.
    pub(super) fn truncated(&self, bytes: &[u8], position: &Position) -> Option<Issue> {
        let issue = Issue::new(Kind::Damaged, "pcapng", "block is cut");
        if let Some(block) = self.skipped {
            let available = position
                .offset
                .saturating_sub(block.start)
                .saturating_add(bytes.len() as u64);
            let issue = issue
                .at(block.start)
                .lengths(u64::from(block.total).next_multiple_of(4), available);
            return Some(with_frame(issue, position, block.is_frame));
        }
        if bytes.is_empty() {
            return None;
        }
        let available = bytes.len() as u64;
        let Some(head) = Header::<8>::of(bytes) else {
            let issue = Issue::new(Kind::Damaged, "pcapng", "block header is cut");
            return Some(issue.at(position.offset).lengths(8, available));
        };
        let (kind, total) = match self.is_big_endian {
            true => (head.u32::<true, 0>(), head.u32::<true, 4>()),
            false => (head.u32::<false, 0>(), head.u32::<false, 4>()),
        };
        // a section header that is cut may have another byte order, so its length is not known
        let needed = if kind == SECTION {
            SECTION_HEADER as u64
        } else {
            u64::from(total).next_multiple_of(4)
        };
        Some(with_frame(
            issue.at(position.offset).lengths(needed, available),
            position,
            packet::is_packet(kind),
        ))
    }
}

/// Returns the byte order of a section, `true` for big endian.
fn byte_order(bytes: &[u8]) -> Option<bool> {
    match Header::<12>::of(bytes)?.be32::<8>() {
        0x1a2b_3c4d => Some(true),
        0x4d3c_2b1a => Some(false),
        _ => None,
    }
}

/// Returns the least length of a block of this kind.
fn min_length(kind: u32) -> u32 {
    match kind {
        INTERFACE => 20,
        OLD_PACKET | PACKET => 32,
        SIMPLE_PACKET => 16,
        _ => 12,
    }
}

/// Whether a block of this kind and length is read. Reports secrets that are not, because they are too long.
fn is_read(kind: u32, total: u32, position: &Position, sink: &mut impl RecordSink) -> bool {
    match kind {
        STATISTICS => (24..=MAX_STATISTICS_BYTES).contains(&total),
        SECRETS if total > MAX_BLOCK_BYTES => {
            report_long_secrets(total, position, sink);
            false
        }
        _ => kind == SECRETS || kind == INTERFACE || packet::is_packet(kind),
    }
}

/// Passes on the key log in a decryption secrets block; `body` is without its trailing length. Secrets of other
/// protocols are ignored.
#[cold]
fn pass_on_secrets<const BIG: bool>(body: &[u8], position: &Position, sink: &mut impl RecordSink) {
    let Some((head, rest)) = Header::<SECRETS_HEADER>::split(body) else {
        return;
    };
    if head.u32::<BIG, 8>() != TLS_KEY_LOG {
        return;
    }
    let needed = head.u32::<BIG, 12>();
    if rest.len() < needed as usize {
        let reason = "decryption secrets are shorter than their length";
        let issue = Issue::new(Kind::Skipped, "pcapng", reason).at(position.offset);
        sink.issue(issue.lengths(needed.into(), rest.len() as u64));
    }
    sink.secrets(cursor::upto(rest, needed as usize));
}

/// Reports a decryption secrets block that is too long to be kept.
#[cold]
fn report_long_secrets(total: u32, position: &Position, sink: &mut impl RecordSink) {
    let reason = "decryption secrets are beyond the longest block";
    let issue = Issue::new(Kind::Skipped, "pcapng", reason).at(position.offset);
    sink.issue(issue.lengths(total.into(), MAX_BLOCK_BYTES.into()));
}

/// Checks that the length at the end of a block equals the one at its beginning.
#[inline(always)]
fn check_trailing_length(
    total: u32,
    end: u32,
    start: u64,
    position: &Position,
    is_frame: bool,
) -> Result<(), Box<Issue>> {
    if total == end {
        Ok(())
    } else {
        length_issue(total, end, start, position, is_frame)
    }
}

#[cold]
fn length_issue(
    total: u32,
    end: u32,
    start: u64,
    position: &Position,
    is_frame: bool,
) -> Result<(), Box<Issue>> {
    if total.checked_next_multiple_of(4) == Some(end) {
        return Ok(());
    }
    let reason = "lengths at the two ends of a block differ";
    let issue = Issue::new(Kind::Damaged, "pcapng", reason).at(start);
    let issue = issue.detail(format!("{total} and {end}"));
    Err(Box::new(with_frame(issue, position, is_frame)))
}

#[cold]
pub(super) fn damaged(
    position: &Position,
    kind: u32,
    reason: &'static str,
    needed: u32,
    had: u32,
) -> Box<Issue> {
    let issue = Issue::new(Kind::Damaged, "pcapng", reason).at(position.offset);
    let issue = issue
        .lengths(needed.into(), had.into())
        .detail(format!("block type {kind:#x}"));
    Box::new(with_frame(issue, position, packet::is_packet(kind)))
}

/// Adds the number of the next frame to an issue, if the block is a frame.
fn with_frame(issue: Issue, position: &Position, is_frame: bool) -> Issue {
    if is_frame {
        issue.in_frame(position.frames.saturating_add(1))
    } else {
        issue
    }
}
