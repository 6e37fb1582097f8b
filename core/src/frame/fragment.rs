//! IP fragments put together (RFC 791 3.2, RFC 8200 4.5). Takes fragments, gives the packet when it is whole;
//! bounded by `MAX_BYTES`. Bytes that came twice count as they came first, as in Wireshark.

use std::collections::VecDeque;
use std::net::IpAddr;

use ahash::AHashMap;

use super::ip;
use super::tcp::Ends;
use super::{Packet, View};
use crate::issue::{Issue, Kind};

/// So much is held for packets that are not whole, bookkeeping included; as much as Linux allows
/// (net.ipv4.ipfrag_high_thresh).
const MAX_BYTES: usize = 4 << 20;
/// What one fragment, and one packet that waits, cost beside the bytes.
const PIECE_BYTES: usize = 48;
const PACKET_BYTES: usize = 256;
/// No packet has more fragments: those of 64 bytes in 64 KiB.
const MAX_PIECES: usize = 1024;
/// An IP packet's payload ends here.
const MAX_PACKET_BYTES: u32 = 65_535;
/// What has waited longer is another packet with the same number (RFC 8200 4.5).
const PATIENCE_NS: i64 = 60_000_000_000;

/// Which packet a fragment belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub id: u32,
    pub protocol: u8,
}

/// One fragment, as its frame has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    key: Key,
    start: u32,
    more: bool,
    /// Of what the packet holds; in IPv6 the first fragment's word counts.
    protocol: u8,
    bytes: &'a [u8],
    /// Its length by its IP header.
    len: u32,
    carrier: Ends,
    depth: u8,
}

impl<'a> Fragment<'a> {
    pub(super) fn of(
        key: Key,
        start: u32,
        more: bool,
        protocol: u8,
        view: View<'a>,
        carrier: Ends,
    ) -> Packet<'a> {
        Packet::Fragment(Fragment {
            key,
            start,
            more,
            protocol,
            bytes: view.held,
            len: view.wire,
            carrier,
            depth: view.depth,
        })
    }
}

/// The payload of a packet whose fragments are all there.
#[derive(Debug)]
pub struct Datagram {
    protocol: u8,
    bytes: Vec<u8>,
    carrier: Ends,
    depth: u8,
}

impl Datagram {
    /// What the whole packet carries.
    pub fn decode(&self) -> Packet<'_> {
        let view = View {
            depth: self.depth,
            ..View::new(&self.bytes, self.bytes.len() as u32)
        };
        view.enter(|view| ip::upper(self.protocol, view, self.carrier))
    }
}

#[derive(Debug)]
struct Partial {
    /// By where they start.
    pieces: Vec<(u32, Vec<u8>)>,
    held: usize,
    /// Where the packet ends, once its last fragment is there.
    end: Option<u32>,
    protocol: u8,
    /// Tells it from earlier packets with the same key in `Fragments::order`.
    serial: u64,
    first: SeenFrame,
}

/// Where and when a frame was seen: time, and the place that an issue reports.
#[derive(Debug, Clone, Copy)]
pub struct SeenFrame {
    pub time_ns: i64,
    pub file: u32,
    pub frame: u64,
    pub offset: u64,
}

impl SeenFrame {
    fn issue(&self, kind: Kind, reason: &'static str) -> Issue {
        Issue::new(kind, "ip", reason)
            .at(self.offset)
            .in_file(self.file)
            .in_frame(self.frame)
    }
}

/// Packets that wait for fragments.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: AHashMap<Key, Partial>,
    order: VecDeque<(Key, u64)>,
    serial: u64,
    held: usize,
    /// What could not be put together; whoever calls takes them.
    pub issues: Vec<Issue>,
}

impl Fragments {
    /// Takes one fragment of the frame at this place; gives the packet that it completes.
    #[cold]
    pub fn add(&mut self, fragment: &Fragment<'_>, place: SeenFrame) -> Option<Datagram> {
        let end = fragment.start.saturating_add(fragment.len);
        if (fragment.bytes.len() as u64) < u64::from(fragment.len) {
            let issue = place.issue(Kind::Skipped, "fragment is cut by the snap length");
            let issue = issue.lengths(fragment.len.into(), fragment.bytes.len() as u64);
            self.issues.push(issue);
            return None;
        }
        if end > MAX_PACKET_BYTES || fragment.len == 0 || (fragment.more && !fragment.len.is_multiple_of(8)) {
            self.issues
                .push(place.issue(Kind::Distrusted, "fragment does not fit any packet"));
            return None;
        }
        let stale = |partial: &Partial| place.time_ns.saturating_sub(partial.first.time_ns) > PATIENCE_NS;
        if self.waiting.get(&fragment.key).is_some_and(stale) {
            self.drop_one(fragment.key, "fragments of a packet are missing");
        }
        self.serial += 1;
        let serial = self.serial;
        let partial = self.waiting.entry(fragment.key).or_insert_with(|| {
            self.order.push_back((fragment.key, serial));
            self.held += PACKET_BYTES;
            Partial {
                pieces: Vec::new(),
                held: PACKET_BYTES,
                end: None,
                protocol: fragment.protocol,
                serial,
                first: place,
            }
        });
        let cost = fragment.bytes.len() + PIECE_BYTES;
        partial.add(fragment, end);
        partial.held += cost;
        self.held += cost;
        if partial.pieces.len() > MAX_PIECES {
            self.drop_one(fragment.key, "packet has too many fragments");
            return None;
        }
        if let Some(bytes) = partial.joined() {
            let protocol = partial.protocol;
            self.forget(fragment.key);
            return Some(Datagram {
                protocol,
                bytes,
                carrier: fragment.carrier,
                depth: fragment.depth,
            });
        }
        while self.held > MAX_BYTES
            && let Some((key, serial)) = self.order.pop_front()
        {
            if self
                .waiting
                .get(&key)
                .is_some_and(|oldest| oldest.serial == serial)
            {
                self.drop_one(key, "too many fragments wait for the rest of their packets");
            }
        }
        if self.order.len() > self.waiting.len() * 2 + 16 {
            let waiting = &self.waiting;
            self.order
                .retain(|(key, serial)| waiting.get(key).is_some_and(|one| one.serial == *serial));
        }
        None
    }

    /// The capture ended: what still waits is missing something.
    pub fn finish(&mut self) {
        let mut left: Vec<_> = self
            .waiting
            .iter()
            .map(|(key, p)| (p.first.frame, *key))
            .collect();
        left.sort_unstable_by_key(|(frame, _)| *frame);
        for (_, key) in left {
            self.drop_one(key, "fragments of a packet are missing");
        }
        self.order.clear();
    }

    fn forget(&mut self, key: Key) -> Option<Partial> {
        let partial = self.waiting.remove(&key)?;
        self.held = self.held.saturating_sub(partial.held);
        Some(partial)
    }

    fn drop_one(&mut self, key: Key, reason: &'static str) {
        if let Some(partial) = self.forget(key) {
            self.issues.push(partial.first.issue(Kind::Skipped, reason));
        }
    }
}

impl Partial {
    fn add(&mut self, fragment: &Fragment<'_>, end: u32) {
        if fragment.start == 0 {
            self.protocol = fragment.protocol;
        }
        if !fragment.more && self.end.is_none() {
            self.end = Some(end);
        }
        let at = self.pieces.partition_point(|(start, _)| *start <= fragment.start);
        let again = |(start, bytes): &(u32, Vec<u8>)| *start == fragment.start && bytes == fragment.bytes;
        if !at
            .checked_sub(1)
            .and_then(|before| self.pieces.get(before))
            .is_some_and(again)
        {
            self.pieces.insert(at, (fragment.start, fragment.bytes.to_vec()));
        }
    }

    /// All the bytes, if none is missing.
    fn joined(&self) -> Option<Vec<u8>> {
        let end = self.end?;
        let mut reach = 0u32;
        for (start, bytes) in &self.pieces {
            if *start > reach {
                return None;
            }
            reach = reach.max(start.saturating_add(bytes.len() as u32));
        }
        if reach < end {
            return None;
        }
        let mut whole = Vec::with_capacity(end as usize);
        for (start, bytes) in &self.pieces {
            let known = whole.len().saturating_sub(*start as usize);
            whole.extend_from_slice(bytes.get(known..).unwrap_or_default());
        }
        whole.truncate(end as usize);
        Some(whole)
    }
}
