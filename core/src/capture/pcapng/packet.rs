//! The packet blocks of pcapng (enhanced, simple and the obsolete packet block): reads their fields and makes a record.

use super::Pcapng;
use super::damaged;
use crate::capture::{Position, Record, RecordSink};
use crate::cursor::{self, Header};
use crate::issue::{Issue, Kind};

pub(super) const OLD_PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const PACKET: u32 = 6;

/// Whether Wireshark gives a block a frame number although it is not a packet: systemd journal entries, custom blocks
/// and sysdig events (wiretap/pcapng.c).
pub(super) fn is_counted(kind: u32) -> bool {
    matches!(
        kind,
        0x9 | 0xbad | 0x4000_0bad | 0x204 | 0x208 | 0x216 | 0x217 | 0x221 | 0x222
    )
}

pub(super) fn is_packet(kind: u32) -> bool {
    matches!(kind, PACKET | OLD_PACKET | SIMPLE_PACKET)
}

/// The fields of a packet block, whichever kind it is.
struct Packet {
    interface: u32,
    ticks: Option<u64>,
    captured: u32,
    original_len: u32,
    /// Length of the block's fields before the packet data.
    header: usize,
}

impl Packet {
    /// Reads a block of this kind. `None` if it is too short.
    fn read<const BIG: bool>(kind: u32, body: &[u8]) -> Option<Packet> {
        match kind {
            PACKET => Header::<28>::of(body).map(|head| Packet {
                interface: head.u32::<BIG, 8>(),
                ticks: Some(ticks::<BIG>(head)),
                captured: head.u32::<BIG, 20>(),
                original_len: head.u32::<BIG, 24>(),
                header: 28,
            }),
            OLD_PACKET => Header::<28>::of(body).map(|head| Packet {
                interface: head.u16::<BIG, 8>().into(),
                ticks: Some(ticks::<BIG>(head)),
                captured: head.u32::<BIG, 20>(),
                original_len: head.u32::<BIG, 24>(),
                header: 28,
            }),
            _ => Header::<12>::of(body).map(|head| Packet {
                interface: 0,
                ticks: None,
                captured: head.u32::<BIG, 8>(),
                original_len: head.u32::<BIG, 8>(),
                header: 12,
            }),
        }
    }
}

impl Pcapng {
    /// Reads a packet block without its trailing length.
    #[inline(never)]
    pub(super) fn packet<const BIG: bool>(
        &mut self,
        kind: u32,
        body: &[u8],
        position: &mut Position,
        sink: &mut impl RecordSink,
    ) -> Result<(), Box<Issue>> {
        let Some(mut packet) = Packet::read::<BIG>(kind, body) else {
            return Ok(());
        };
        let Some(interface) = self.interfaces.get(packet.interface as usize) else {
            let reason = "packet names an interface that does not exist";
            let (interface, count) = (packet.interface, self.interfaces.len());
            let issue = Issue::new(Kind::Damaged, "pcapng", reason).at(position.offset);
            let issue = issue.in_frame(position.frames.saturating_add(1));
            return Err(Box::new(
                issue.detail(format!("interface {interface} of {count}")),
            ));
        };
        if packet.ticks.is_none() && interface.snaplen != 0 {
            packet.captured = packet.captured.min(interface.snaplen);
        }
        let Some(data) = cursor::from(body, packet.header).get(..packet.captured as usize) else {
            let room = body.len().saturating_sub(packet.header) as u32;
            let reason = "captured length is beyond its block";
            return Err(damaged(position, kind, reason, packet.captured, room));
        };
        let time_ns = match packet.ticks {
            None => Some(self.last_ns),
            Some(ticks) => interface.time_ns(ticks),
        };
        if time_ns.is_none() {
            let issue = Issue::new(Kind::Distrusted, "pcapng", "time stamp is out of range");
            sink.issue(
                issue
                    .at(position.offset)
                    .in_frame(position.frames.saturating_add(1)),
            );
        }
        let time_ns = time_ns.unwrap_or(self.last_ns);
        self.last_ns = time_ns;
        position.frames += 1;
        sink.record(Record {
            frame: position.frames,
            time_ns,
            link: interface.link,
            interface: packet.interface,
            offset: position.offset,
            data,
            original_len: packet.original_len,
        });
        Ok(())
    }
}

/// Returns the time stamp of an enhanced or obsolete packet block.
#[inline(always)]
pub(super) fn ticks<const BIG: bool>(head: Header<'_, 28>) -> u64 {
    u64::from(head.u32::<BIG, 12>()) << 32 | u64::from(head.u32::<BIG, 16>())
}
