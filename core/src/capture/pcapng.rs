//! The pcapng file format (draft-ietf-opsawg-pcapng): sections of blocks, each section with a byte order and
//! interfaces of its own. Reads packets, interfaces, statistics and TLS secrets; passes over every other block without
//! keeping it.

mod packet;
mod wrong;

use super::interface::Interface;
use super::{Ask, NO_LINK, Position, Record, Sink, secrets, statistics};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};
use packet::{OLD_PACKET, PACKET, SIMPLE_PACKET, ticks};
use wrong::{damaged, framed, same_length};

/// Type of the section header block, the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Type, length, byte-order magic and version of a section header.
pub(super) const START: usize = 16;

/// No block that has to be kept in one piece is longer: Wireshark's MAX_BLOCK_SIZE.
pub(super) const MAX_BLOCK_BYTES: u32 = 16 * 1024 * 1024;

/// So many interfaces are kept for a section.
const MAX_INTERFACES: usize = 65_536;
/// Statistics have a few options of 8 bytes, and maybe comments: longer ones are passed over.
const MAX_STATISTICS_BYTES: u32 = 4096;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const SECRETS: u32 = 10;

/// Does the file begin with a section header?
pub(super) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// A block that is being passed over: what its trailing length must be, and whether it is a frame.
#[derive(Debug, Clone, Copy)]
struct Passing {
    total: u32,
    begin: u64,
    counts: bool,
}

#[derive(Debug)]
pub(super) struct Pcapng {
    big: bool,
    interfaces: Vec<Interface>,
    /// Of the finest clock in all sections so far.
    digits: Option<u8>,
    last_ns: i64,
    passing: Option<Passing>,
}

impl Pcapng {
    /// A file that begins with a section header whose byte order is known.
    pub(super) fn open(bytes: &[u8]) -> Option<Pcapng> {
        let big = byte_order(bytes)?;
        Some(Pcapng {
            big,
            interfaces: Vec::new(),
            digits: None,
            last_ns: 0,
            passing: None,
        })
    }

    /// Decimals of a second of the finest interface's clock; none before there is an interface.
    pub(super) fn digits(&self) -> Option<u8> {
        self.digits
    }

    pub(super) fn walk(&mut self, bytes: &[u8], place: &mut Position, sink: &mut impl Sink) -> Ask {
        let parsed = match self.big {
            true => self.blocks::<true>(bytes, place, sink),
            false => self.blocks::<false>(bytes, place, sink),
        };
        parsed.unwrap_or_else(|issue| {
            sink.issue(*issue);
            Ask::Halt
        })
    }

    fn blocks<const BIG: bool>(
        &mut self,
        bytes: &[u8],
        place: &mut Position,
        sink: &mut impl Sink,
    ) -> Result<Ask, Box<Issue>> {
        let mut left = bytes;
        if let Some(passing) = self.passing {
            let Some((end, after)) = Header::<4>::split(left) else {
                return Ok(Ask::Need(4));
            };
            self.passed(passing, end.u32::<BIG, 0>(), place, sink)?;
            left = after;
        }
        loop {
            while let Some((record, next)) = self.usual::<BIG>(left, place) {
                *place = Position {
                    offset: place.offset + (left.len() - next.len()) as u64,
                    frames: record.frame,
                };
                self.last_ns = record.time_ns;
                sink.record(record);
                left = next;
            }
            let Some(head) = Header::<8>::of(left) else {
                return Ok(Ask::Need(8));
            };
            let (kind, total) = (head.u32::<BIG, 0>(), head.u32::<BIG, 4>());
            let least = match kind {
                SECTION => return self.section(left, place),
                INTERFACE => 20,
                OLD_PACKET | PACKET => 32,
                SIMPLE_PACKET => 16,
                _ => 12,
            };
            if total < least {
                return Err(damaged(
                    place,
                    kind,
                    "block is too short for its kind",
                    least,
                    total,
                ));
            }
            // A length that is no multiple of four is rounded up, as Wireshark does.
            let whole = u64::from(total).next_multiple_of(4);
            let handled = match kind {
                STATISTICS => (24..=MAX_STATISTICS_BYTES).contains(&total),
                SECRETS if total > MAX_BLOCK_BYTES => {
                    secrets::too_long(total, MAX_BLOCK_BYTES, place, sink);
                    false
                }
                _ => kind == SECRETS,
            };
            if !handled && !matches!(kind, INTERFACE | OLD_PACKET | SIMPLE_PACKET | PACKET) {
                self.passing = Some(Passing {
                    total,
                    begin: place.offset,
                    counts: packet::counts(kind),
                });
                place.offset += 8;
                return Ok(Ask::Pass(whole - 12));
            }
            if total > MAX_BLOCK_BYTES {
                return Err(damaged(
                    place,
                    kind,
                    "block is beyond the longest block",
                    total,
                    MAX_BLOCK_BYTES,
                ));
            }
            let Some((block, next)) = left.split_at_checked(whole as usize) else {
                return Ok(Ask::Need(whole as usize));
            };
            let (body, end) = cursor::split(block, block.len() - 4);
            let end = Header::<4>::of(end).map_or(0, |end| end.u32::<BIG, 0>());
            same_length(total, end, place.offset, place, kind != INTERFACE && !handled)?;
            if kind == INTERFACE {
                self.interface::<BIG>(body, place, sink)?;
            } else if kind == SECRETS {
                secrets::hand_on::<BIG>(body, place, sink);
            } else if handled {
                statistics::report::<BIG>(body, place, sink);
            } else {
                self.packet::<BIG>(kind, body, place, sink)?;
            }
            place.offset += whole;
            left = next;
        }
    }

    /// An enhanced packet block that lies whole in `bytes` with nothing wrong or unusual about it, and what
    /// follows it. Every other block takes the long way, which knows what to say of it.
    #[inline(always)]
    fn usual<'a, const BIG: bool>(
        &self,
        bytes: &'a [u8],
        place: &Position,
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
            frame: place.frames + 1,
            time_ns: interface.quick_ns(ticks::<BIG>(head))?,
            link: interface.link,
            interface: head.u32::<BIG, 8>(),
            offset: place.offset,
            data,
            original_len: head.u32::<BIG, 24>(),
        };
        Some((record, next))
    }

    /// The end of a block that was passed over.
    #[cold]
    fn passed(
        &mut self,
        passing: Passing,
        end: u32,
        place: &mut Position,
        sink: &mut impl Sink,
    ) -> Result<(), Box<Issue>> {
        same_length(passing.total, end, passing.begin, place, passing.counts)?;
        self.passing = None;
        place.offset += 4;
        if passing.counts {
            place.frames += 1;
            sink.record(Record {
                frame: place.frames,
                time_ns: self.last_ns,
                link: NO_LINK,
                interface: 0,
                offset: passing.begin,
                data: &[],
                original_len: 0,
            });
        }
        Ok(())
    }

    /// A section begins: its byte order holds from here on, and the interfaces are forgotten.
    #[cold]
    fn section(&mut self, bytes: &[u8], place: &mut Position) -> Result<Ask, Box<Issue>> {
        let Some(head) = Header::<START>::of(bytes) else {
            return Ok(Ask::Need(START));
        };
        let Some(big) = byte_order(bytes) else {
            let issue = Issue::new(
                Kind::Damaged,
                "pcapng",
                "byte-order magic of a section is not known",
            );
            return Err(Box::new(
                issue
                    .at(place.offset)
                    .detail(format!("{:#010x}", head.be32::<8>())),
            ));
        };
        let (total, major) = match big {
            true => (head.u32::<true, 4>(), head.u16::<true, 12>()),
            false => (head.u32::<false, 4>(), head.u16::<false, 12>()),
        };
        if total < 28 {
            return Err(damaged(
                place,
                SECTION,
                "block is too short for its kind",
                28,
                total,
            ));
        }
        if major != 1 {
            let kind = if place.offset == 0 {
                Kind::Refused
            } else {
                Kind::Damaged
            };
            let issue = Issue::new(kind, "pcapng", "pcapng version is not known").at(place.offset);
            return Err(Box::new(issue.detail(format!("major version {major}"))));
        }
        self.big = big;
        self.interfaces.clear();
        self.passing = Some(Passing {
            total,
            begin: place.offset,
            counts: false,
        });
        place.offset += START as u64;
        Ok(Ask::Pass(u64::from(total).next_multiple_of(4) - START as u64 - 4))
    }

    #[cold]
    fn interface<const BIG: bool>(
        &mut self,
        body: &[u8],
        place: &Position,
        sink: &mut impl Sink,
    ) -> Result<(), Box<Issue>> {
        if self.interfaces.len() >= MAX_INTERFACES {
            let most = MAX_INTERFACES as u32;
            return Err(damaged(
                place,
                INTERFACE,
                "too many interfaces",
                most.saturating_add(1),
                most,
            ));
        }
        let Some((interface, sound)) = Interface::read::<BIG>(body) else {
            return Ok(());
        };
        if !sound {
            let issue = Issue::new(
                Kind::Distrusted,
                "pcapng",
                "options of an interface are malformed",
            );
            sink.issue(issue.at(place.offset).detail("its clock may be wrong"));
        }
        self.digits = self.digits.max(Some(interface.digits()));
        self.interfaces.push(interface);
        Ok(())
    }

    /// The file ends with `bytes` of a block that is not whole.
    pub(super) fn cut(&self, bytes: &[u8], place: &Position) -> Option<Issue> {
        let issue = Issue::new(Kind::Damaged, "pcapng", "block is cut");
        if let Some(passing) = self.passing {
            let had = place
                .offset
                .saturating_sub(passing.begin)
                .saturating_add(bytes.len() as u64);
            let issue = issue
                .at(passing.begin)
                .lengths(u64::from(passing.total).next_multiple_of(4), had);
            return Some(framed(issue, place, passing.counts));
        }
        if bytes.is_empty() {
            return None;
        }
        let had = bytes.len() as u64;
        let Some(head) = Header::<8>::of(bytes) else {
            let issue = Issue::new(Kind::Damaged, "pcapng", "block header is cut");
            return Some(issue.at(place.offset).lengths(8, had));
        };
        let (kind, total) = match self.big {
            true => (head.u32::<true, 0>(), head.u32::<true, 4>()),
            false => (head.u32::<false, 0>(), head.u32::<false, 4>()),
        };
        // Of a section header that is cut here, not even the byte order is known.
        let needed = if kind == SECTION {
            START as u64
        } else {
            u64::from(total).next_multiple_of(4)
        };
        Some(framed(
            issue.at(place.offset).lengths(needed, had),
            place,
            packet::holds(kind),
        ))
    }
}

/// The byte order that a section header states, `true` for big endian.
fn byte_order(bytes: &[u8]) -> Option<bool> {
    match Header::<12>::of(bytes)?.be32::<8>() {
        0x1a2b_3c4d => Some(true),
        0x4d3c_2b1a => Some(false),
        _ => None,
    }
}
