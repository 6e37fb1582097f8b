//! The counters of one row of `streams`, and the RTTs that its ACKs measure.

use super::full_size::FullSize;
use super::ip_id::IpIds;
use super::{Closing, Stream};
use crate::base::{At, Side};
use crate::evidence::rtt::{Pairs, RoundTrips};
use crate::facts::{Facts, flag};
use crate::limits::{ACK_AT_ONCE, LARGE_RATIO, SMALLEST_MSS, USUAL_MSS};
use crate::segment::{ACK, FIN, PSH, RST, SYN, Segment};

/// Counters of one side of a stream.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub packets: u64,
    /// Bytes of whole frames.
    pub bytes: u64,
    /// TCP payload bytes.
    pub payload: u64,
    /// None for most sides.
    unusual: Option<Box<Unusual>>,
    /// MSS option of the SYN, in bytes; None without the option or the SYN.
    pub mss: Option<u16>,
    /// Estimate of the size of a full segment.
    pub(super) full: FullSize,
    /// Shift of the window scale option.
    pub scale: Option<u8>,
    /// Whether the SYN permits SACK; None without a SYN.
    pub sack: Option<bool>,
    pub(super) window_min: MinWindow,
    pub trips: RoundTrips,
    pub(super) fin: bool,
    pub ip_ids: IpIds,
}

/// Counters that stay 0 for most sides.
#[derive(Debug, Clone, Default)]
pub struct Unusual {
    pub retransmissions: u64,
    pub out_of_order: u64,
    /// Retransmissions of bytes that the peer had acknowledged before: nothing was lost.
    pub spurious: u64,
    /// Segments with SACK blocks.
    pub sacks: u64,
    /// Those of them that report bytes which arrived twice.
    pub dsacks: u64,
    /// ICMP messages that a segment exceeds the MTU.
    pub too_big: u32,
    /// Smallest MTU of the next hop that one of them contains.
    pub next_mtu: Option<u32>,
    /// Frame of the newest retransmission or late segment. By Karn's algorithm, an ACK of it or of earlier segments
    /// measures no RTT.
    newest_late_frame: u64,
}

impl Counts {
    pub fn unusual(&self) -> Unusual {
        self.unusual.as_deref().cloned().unwrap_or_default()
    }

    /// Counts an ICMP message that a segment of this side exceeds the MTU; `mtu` is 0 if the message lacks it.
    pub(super) fn too_big(&mut self, mtu: u32) {
        let unusual = self.unusual.get_or_insert_default();
        unusual.too_big = unusual.too_big.saturating_add(1);
        let named = (mtu > 0).then_some(mtu);
        unusual.next_mtu = [unusual.next_mtu, named].into_iter().flatten().min();
    }

    /// Whether its SYN was captured.
    pub(super) fn has_syn(&self) -> bool {
        self.sack.is_some()
    }

    fn newest_late_frame(&self) -> u64 {
        self.unusual
            .as_ref()
            .map_or(0, |unusual| unusual.newest_late_frame)
    }
}

/// Size of the timestamps option with padding.
const TIMESTAMP_BYTES: u16 = 12;

/// The smallest window so far, scaled, below 2^30; `u32::MAX` for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct MinWindow(u32);

impl Default for MinWindow {
    fn default() -> Self {
        MinWindow(u32::MAX)
    }
}

impl MinWindow {
    pub(super) fn get(self) -> Option<u32> {
        Some(self.0).filter(|window| *window != u32::MAX)
    }
}

impl Stream {
    /// The smallest window in bytes that a side offered. Without the scale only a window of 0 is known.
    pub fn window_min(&self, side: Side) -> Option<u32> {
        let low = (side == Side::Client) == self.client_is_low;
        let [of_low, of_high] = &self.flows;
        let flow = if low { of_low } else { of_high };
        let window_min = self.side(side).window_min.get();
        window_min.filter(|window| *window == 0 || flow.is_scaled())
    }
}

/// Announces the size of a full segment by the options: the smaller MSS less the timestamps option.
pub(super) fn announce_mss(counts: &mut [Counts; 2], timestamps: bool) {
    let mss = counts.iter().filter_map(|side| side.mss).min();
    let stamps = if timestamps { TIMESTAMP_BYTES } else { 0 };
    let announced = mss.unwrap_or(USUAL_MSS.get()).saturating_sub(stamps).max(1);
    counts.iter_mut().for_each(|side| side.full.announce(announced));
}

/// Updates the counters. Returns whether the segment is a small one, and how many frames are missing before it, if
/// known.
#[inline(always)]
pub(super) fn count(
    stream: &mut Stream,
    segment: &Segment<'_>,
    frame: u64,
    frame_bytes: u32,
    side: Side,
    facts: &Facts,
) -> (bool, Option<u16>) {
    let counts = side.pick_mut(&mut stream.counts);
    let is_small = counts
        .full
        .small(segment.len, segment.has(PSH), segment.has(FIN), facts);
    let frames = if segment.len > SMALLEST_MSS.get() {
        segment.len.div_ceil(counts.full.mss())
    } else {
        1
    };
    let missing = counts.ip_ids.packet(segment.ip_id, frames);
    counts.packets += 1;
    counts.bytes += u64::from(frame_bytes);
    counts.payload += u64::from(segment.len);
    if facts.is_ordinary || segment.flags & (SYN | RST) == 0 {
        counts.window_min.0 = counts.window_min.0.min(facts.window);
    }
    if !facts.is_ordinary || !stream.timestamps {
        count_unusual(stream, segment, frame, side, facts);
    }
    (is_small, missing)
}

/// Counts what an ordinary segment of a stream with timestamps does not have.
#[inline(never)]
fn count_unusual(stream: &mut Stream, segment: &Segment<'_>, frame: u64, side: Side, facts: &Facts) {
    let counts = side.pick_mut(&mut stream.counts);
    let is_late = facts.flags & (flag::RETRANSMISSION | flag::OUT_OF_ORDER) != 0;
    let sacks = segment.options.sack.count > 0;
    if is_late || sacks {
        let unusual = counts.unusual.get_or_insert_default();
        unusual.retransmissions += u64::from(facts.flags & flag::RETRANSMISSION != 0);
        unusual.out_of_order += u64::from(facts.flags & flag::OUT_OF_ORDER != 0);
        unusual.spurious += u64::from(facts.flags & flag::SPURIOUS_RETRANSMISSION != 0);
        unusual.sacks += u64::from(sacks);
        unusual.dsacks += u64::from(sacks && facts.flags & flag::DSACK != 0);
        if is_late {
            unusual.newest_late_frame = frame;
        }
    }
    let has_stamp = !stream.timestamps && has_timestamps(segment);
    if segment.flags & (SYN | FIN | RST) != 0 || has_stamp {
        count_control(stream, segment, side);
    }
}

/// Whether it has the timestamps option. If the capture cut the options of a data segment off, they are nearly always
/// timestamps, as SACK blocks are on ACKs.
fn has_timestamps(segment: &Segment<'_>) -> bool {
    segment.options.timestamps.is_some() || segment.options.cut && segment.len > 0
}

/// Records SYN, FIN, RST, and the first timestamps option.
fn count_control(stream: &mut Stream, segment: &Segment<'_>, side: Side) {
    let counts = side.pick_mut(&mut stream.counts);
    if segment.has(SYN) {
        let has_stamp = segment.options.timestamps.is_some();
        counts
            .ip_ids
            .handshake(segment.ip_id, segment.has(ACK), has_stamp);
        counts.mss = segment.options.mss.or(counts.mss);
        counts.scale = segment.options.wscale;
        counts.sack = Some(segment.options.sack_permitted);
    }
    stream.timestamps |= has_timestamps(segment);
    announce_mss(&mut stream.counts, stream.timestamps);
    if segment.flags & (FIN | RST) != 0 {
        let counts = side.pick_mut(&mut stream.counts);
        counts.fin |= segment.has(FIN);
        stream.closed_by.get_or_insert(Closing {
            by: side,
            reset: segment.has(RST),
        });
    }
}

/// Takes an RTT sample from an ACK. Returns how long the ACK was delayed beyond the best RTT so far.
#[inline(always)]
pub(super) fn sample_rtt(
    stream: &mut Stream,
    pairs: Option<&mut Pairs>,
    segment: &Segment<'_>,
    side: Side,
    facts: &Facts,
    at: At,
) -> Option<i64> {
    let covered = facts.covered.filter(|_| segment.has(ACK))?;
    let (own, peer) = side.split_mut(&mut stream.counts);
    if covered.first_frame <= peer.newest_late_frame() {
        return None;
    }
    let sample = at.time_ns - covered.last_time_ns;
    if sample < 0 {
        return None;
    }
    let rtt = side.pick_mut(&mut stream.rtts_ns);
    // A FIN acknowledged much sooner than anything else was acknowledged by a middlebox: not an RTT of the path.
    let is_counted =
        !segment.has(FIN) || rtt.is_none_or(|rtt| sample.saturating_mul(LARGE_RATIO.get()) >= rtt);
    let best = rtt.map_or(sample, |rtt| if is_counted { rtt.min(sample) } else { rtt });
    *rtt = Some(best);
    if let (Some(pairs), Some(pair), true) = (pairs, stream.tracking.pair(), is_counted) {
        let is_by_program = segment.len > 0 || segment.has(FIN);
        pairs.add(pair, side, sample, is_by_program);
    }
    if segment.has(SYN) || (segment.len == 0 && segment.flags & (FIN | RST) == 0) {
        let is_handshake = facts.ack == 1 && peer.has_syn();
        let at_once = ACK_AT_ONCE.get() * peer.full.mss();
        own.trips.add(sample, is_handshake || covered.bytes >= at_once);
    }
    if segment.has(SYN) {
        return None;
    }
    let held = at.time_ns - covered.first_time_ns;
    Some((held - best).max(0))
}
