//! Suspected stalls in a capture of one direction. Reads the packets of the captured side; returns gaps that a held ACK
//! may explain. Only the other side's packets could distinguish a stall from a program's pause.
//!
//! One kind of pause is excluded, where timestamps show when the ACKs left: gaps that keep their length while the ACKs
//! inside them move.

use super::is_small;
use crate::base::At;
use crate::limits::{HELD_AWAY, ONE_WAY_GAP_NS, RARE_ONE_IN, TICK_NS, TWO_TICKS_NS};

/// Upper bound on the gaps kept per stream.
const MAX_SUSPECTS: usize = 1024;
/// Number of later gaps with which each gap is compared, so that the work stays linear.
const COMPARED: usize = 48;

/// One packet of the captured side.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub at: At,
    pub start_seq: i64,
    pub len: u32,
    pub ack: i64,
    pub mss: u32,
    /// TSval and TSecr.
    pub stamps: Option<(u32, u32)>,
}

/// A gap that a held ACK may explain: the peer's, or one of this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    pub from: At,
    /// The ACK that this side seems to have held; None if this side waited for the peer's ACK.
    pub ack: Option<At>,
    pub to: At,
    /// Silence of the waiting sender. On the clocks of both sides, so that only differences between gaps have a
    /// meaning.
    silent_ns: i64,
    /// Time from its start to the ACK, on the same clocks.
    acked_ns: i64,
    /// Timestamp of the peer at the end of the gap.
    ticks: Option<u32>,
}

/// State of a stream with one captured direction.
#[derive(Debug, Default)]
pub struct OneWay {
    last: Option<Passed>,
    /// Newest packet with data.
    data: Option<Passed>,
    /// A late pure ACK, and the packet before it.
    late_ack: Option<(At, Passed)>,
    /// Gaps that a held ACK may explain.
    suspects: Vec<Suspect>,
}

impl OneWay {
    /// Takes the next packet of this side.
    pub fn take(&mut self, packet: Passed) {
        let before_data = self.gap_before_data(&packet);
        let before_ack = self.gap_before_ack(&packet);
        for suspect in [before_data, before_ack].into_iter().flatten() {
            if self.suspects.len() < MAX_SUSPECTS {
                self.suspects.push(suspect);
            }
        }
        if packet.len > 0 {
            self.data = Some(packet);
        }
        self.last = Some(packet);
    }

    /// Returns the gaps that a held ACK may explain, without those that a program's pause explains better.
    pub fn suspects(&self) -> impl Iterator<Item = &Suspect> {
        let [data_paused, acks_paused] = [false, true].map(|of_acks| self.keep_their_length(of_acks));
        let is_pause = move |suspect: &&Suspect| {
            if suspect.ack.is_some() {
                acks_paused
            } else {
                data_paused
            }
        };
        self.suspects.iter().filter(move |suspect| !is_pause(suspect))
    }

    /// Whether gaps of one kind keep their length while the ACKs in them move: then nothing waited for those. Each pair
    /// of gaps whose ACKs differ by two ticks votes: for a stall if the gaps differ as much, for a pause if they are
    /// equal.
    fn keep_their_length(&self, of_acks: bool) -> bool {
        let gaps = || {
            self.suspects
                .iter()
                .filter(|suspect| suspect.ack.is_some() == of_acks && suspect.ticks.is_some())
        };
        let (Some(first), Some(last)) = (gaps().next(), gaps().next_back()) else {
            return false;
        };
        let elapsed = between(first.to, last.to);
        let ticks = last.ticks.unwrap_or(0).wrapping_sub(first.ticks.unwrap_or(0));
        let away = i64::from(ticks).saturating_mul(TICK_NS).saturating_sub(elapsed);
        if away.saturating_abs() > elapsed / RARE_ONE_IN.get() as i64 + (ONE_WAY_GAP_NS.most)() {
            return false; // the timestamps do not count milliseconds
        }
        let (mut stalls, mut pauses) = (0u32, 0u32);
        for (number, gap) in gaps().enumerate() {
            for other in gaps().skip(number + 1).take(COMPARED) {
                let moved = other.acked_ns.wrapping_sub(gap.acked_ns);
                let longer = other.silent_ns.wrapping_sub(gap.silent_ns);
                if moved.saturating_abs() >= 2 * TICK_NS {
                    stalls += u32::from(moved.wrapping_sub(longer).saturating_abs() <= TICK_NS);
                    pauses += u32::from(longer.saturating_abs() <= TICK_NS);
                }
            }
        }
        pauses as usize >= HELD_AWAY.get() && pauses > stalls.saturating_mul(2)
    }

    /// Returns the gap between two small segments of one message if it has a timer's length and a packet of the peer
    /// came in it.
    fn gap_before_data(&self, packet: &Passed) -> Option<Suspect> {
        let before = self.data.filter(|_| packet.len > 0)?;
        let is_one_message =
            packet.start_seq == before.start_seq + i64::from(before.len) && packet.ack == before.ack;
        let are_small = [&before, packet]
            .iter()
            .all(|segment| is_small(segment.len, segment.mss));
        let is_gap = is_one_message && are_small && ONE_WAY_GAP_NS.contains(between(before.at, packet.at));
        (is_gap && clock_moved(&before, packet) == Some(true)).then(|| {
            let ticks = packet.stamps.map(|(_, tsecr)| tsecr);
            Suspect {
                from: before.at,
                ack: None,
                to: packet.at,
                silent_ns: between(before.at, packet.at),
                acked_ns: nanos(ticks).wrapping_sub(before.at.time_ns),
                ticks,
            }
        })
    }

    /// Returns the gap before a pure ACK of something small if it has a timer's length and the peer sends more within a
    /// round trip: it waited for that ACK.
    fn gap_before_ack(&mut self, packet: &Passed) -> Option<Suspect> {
        let held = self.late_ack.take().filter(|(from, late)| {
            let round_ns = between(late.at, packet.at);
            packet.ack > late.ack
                && round_ns <= between(*from, late.at)
                && clock_moved(late, packet) != Some(false)
        });
        if let Some(last) = self.last
            && packet.len == 0
            && (1..i64::from(packet.mss)).contains(&(packet.ack - last.ack))
            && ONE_WAY_GAP_NS.contains(between(last.at, packet.at))
        {
            self.late_ack = Some((last.at, *packet));
        }
        held.map(|(from, late)| {
            // timestamps of both segments of the sender
            let (first, freed) = (
                late.stamps.map(|(_, tsecr)| tsecr),
                packet.stamps.map(|(_, tsecr)| tsecr),
            );
            Suspect {
                from,
                ack: Some(late.at),
                to: packet.at,
                silent_ns: nanos(freed).wrapping_sub(nanos(first)),
                acked_ns: late.at.time_ns.wrapping_sub(nanos(first)),
                ticks: freed,
            }
        })
    }
}

/// Whether the peer's timestamps, as this side echoes them, moved by a hold between two packets; None without
/// timestamps.
fn clock_moved(earlier: &Passed, later: &Passed) -> Option<bool> {
    let (before, after) = (earlier.stamps?.1, later.stamps?.1);
    Some(((TWO_TICKS_NS.get() / TICK_NS) as u32..1 << 31).contains(&after.wrapping_sub(before)))
}

/// Converts ticks to ns, wrapping, as only differences have a meaning.
fn nanos(ticks: Option<u32>) -> i64 {
    i64::from(ticks.unwrap_or(0)).wrapping_mul(TICK_NS)
}

fn between(earlier: At, later: At) -> i64 {
    later.time_ns.saturating_sub(earlier.time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn at(time_ns: i64) -> At {
        At { frame: 1, time_ns }
    }

    /// A packet of `len` bytes that echoes the timestamp `echo`.
    fn packet(time_ns: i64, start: i64, len: u32, ack: i64, echo: u32) -> Passed {
        Passed {
            at: at(time_ns),
            start_seq: start,
            len,
            ack,
            mss: 1000,
            stamps: Some((0, echo)),
        }
    }

    fn suspects(packets: &[Passed]) -> Vec<Suspect> {
        let mut side = OneWay::default();
        packets.iter().for_each(|packet| side.take(*packet));
        side.suspects
    }

    #[test]
    fn a_timers_gap_between_two_small_parts_is_suspected() {
        let gap = |second: Passed| suspects(&[packet(0, 0, 100, 1, 100), second]).len();
        let good = packet(40 * MS, 100, 100, 1, 140);
        let at = |ms| Passed { at: at(ms), ..good };
        assert_eq!((gap(at(35 * MS - 1)), gap(at(35 * MS))), (0, 1));
        assert_eq!((gap(at(90 * MS)), gap(at(90 * MS + 1))), (1, 0));
        assert_eq!(
            gap(Passed {
                start_seq: 101,
                ..good
            }),
            0,
            "bytes are missing"
        );
        assert_eq!(gap(Passed { ack: 2, ..good }), 0, "the peer spoke");
        assert_eq!(gap(Passed { len: 1000, ..good }), 0, "a full segment");
        assert_eq!(gap(Passed { len: 0, ..good }), 0, "no data");
        // the peer sent something meanwhile
        let clock_moved = |echo| {
            gap(Passed {
                stamps: Some((0, echo)),
                ..good
            })
        };
        assert_eq!((clock_moved(119), clock_moved(120)), (0, 1));
        assert_eq!(clock_moved(99), 0, "its clock went back");
        assert_eq!(gap(Passed { stamps: None, ..good }), 0);
        let acks_between = [packet(0, 0, 100, 1, 100), packet(10 * MS, 100, 0, 1, 110), good];
        assert_eq!(suspects(&acks_between).len(), 1, "its own ACKs are no data");
        let full = [packet(0, 0, 1000, 1, 100), packet(40 * MS, 1000, 100, 1, 140)];
        assert_eq!(suspects(&full).len(), 0);
    }

    #[test]
    fn a_late_ack_that_more_follows_is_suspected() {
        let held = |late: Passed, next: Passed| {
            let suspects = suspects(&[packet(0, 1, 0, 100, 100), late, next]);
            suspects.iter().filter(|suspect| suspect.ack.is_some()).count()
        };
        let (late, next) = (packet(40 * MS, 1, 0, 300, 100), packet(41 * MS, 1, 0, 500, 140));
        assert_eq!(held(late, next), 1);
        let at = |time_ns| Passed {
            at: at(time_ns),
            ..late
        };
        assert_eq!((held(at(35 * MS - 1), next), held(at(35 * MS), next)), (0, 1));
        let acks = |ack| Passed { ack, ..late };
        assert_eq!(held(acks(100), next), 0, "of nothing new");
        let further = Passed { ack: 1500, ..next };
        assert_eq!(
            (held(acks(1099), further), held(acks(1100), further)),
            (1, 0),
            "a full one"
        );
        assert_eq!(held(Passed { len: 5, ..late }, next), 0, "not alone");
        // what waited comes no more than a round trip later, and echoes it
        let after = |ms: i64| Passed {
            at: super::tests::at(ms),
            ..next
        };
        assert_eq!(
            (held(late, after(80 * MS)), held(late, after(80 * MS + 1))),
            (1, 0)
        );
        assert_eq!(held(late, Passed { ack: 300, ..next }), 0, "nothing more");
        let echo = |echo| Passed {
            stamps: Some((0, echo)),
            ..next
        };
        assert_eq!((held(late, echo(119)), held(late, echo(120))), (0, 1));
        assert_eq!(held(late, Passed { stamps: None, ..next }), 1, "no clock");
    }

    /// Gaps that were so long, in which an ACK began so late; ended at these times by the peer's clock.
    fn gaps(silent_and_acked: &[(i64, i64)], last: (i64, u32)) -> OneWay {
        let count = silent_and_acked.len();
        let mut side = OneWay::default();
        for (number, (silent, acked)) in silent_and_acked.iter().enumerate() {
            let (time_ns, ticks) = if number + 1 == count { last } else { (0, 0) };
            side.suspects.push(Suspect {
                from: at(0),
                ack: None,
                to: at(time_ns),
                silent_ns: *silent,
                acked_ns: *acked,
                ticks: Some(ticks),
            });
        }
        side
    }

    #[test]
    fn five_pairs_of_gaps_that_stay_alike_are_a_pause() {
        let stays = |acked: &[i64]| {
            let list: Vec<_> = acked.iter().map(|acked| (50 * MS, acked * MS)).collect();
            gaps(&list, (0, 0)).keep_their_length(false)
        };
        assert!(stays(&[0, 2, 4, 5]), "the last two are too near each other");
        assert!(!stays(&[0, 2, 4, 3]), "four pairs");
        assert!(
            !gaps(&[(0, 0); 9], (0, 0)).keep_their_length(true),
            "those are of the other kind"
        );
        assert!(!OneWay::default().keep_their_length(false));
    }

    #[test]
    fn gaps_that_go_with_their_acks_are_stalls() {
        // five gaps stay alike, and so many more are longer by what their ACKs are later
        let stays = |list: &[(i64, i64)]| {
            let list: Vec<_> = list
                .iter()
                .map(|(silent, acked)| (silent * MS, acked * MS))
                .collect();
            gaps(&list, (0, 0)).keep_their_length(false)
        };
        assert!(!stays(&[(0, 0), (4, 4), (8, 8), (12, 12)]));
        assert!(stays(&[(0, 0), (1, 4), (0, 8), (1, 12)]), "within a tick");
        assert!(!stays(&[(0, 0), (2, 4), (0, 8), (2, 12)]), "more than a tick");
        // 11 pairs stay alike, 4 go
        let mixed = [(0, 0), (0, 4), (0, 8), (0, 12), (0, 16), (20, 20)];
        assert!(stays(&mixed));
        let half = [(0, 0), (0, 4), (0, 8), (0, 12), (20, 20), (24, 24)];
        assert!(!stays(&half));
    }

    #[test]
    fn what_goes_within_a_tick_goes() {
        let list = [(0, 0), (0, 4), (0, 8), (0, 12), (17, 16), (21, 20)];
        let list: Vec<_> = list
            .iter()
            .map(|(silent, acked)| (silent * MS, acked * MS))
            .collect();
        assert!(
            !gaps(&list, (0, 0)).keep_their_length(false),
            "six stay, three go"
        );
    }

    #[test]
    fn pauses_before_data_say_nothing_of_late_acks() {
        let kept = |paused_before_data: bool| {
            let mut side = gaps(
                &[
                    (50 * MS, 0),
                    (50 * MS, 2 * MS),
                    (50 * MS, 4 * MS),
                    (50 * MS, 6 * MS),
                ],
                (0, 0),
            );
            let more = gaps(&[(0, 0)], (0, 0)).suspects;
            side.suspects.extend(more);
            for (number, suspect) in side.suspects.iter_mut().enumerate() {
                suspect.ack = ((number < 4) != paused_before_data).then_some(at(1));
            }
            side.suspects()
                .map(|suspect| suspect.ack.is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!((kept(true), kept(false)), (vec![true], vec![false]));
    }

    #[test]
    fn a_clock_that_is_far_from_milliseconds_is_not_asked() {
        let stays = |ticks| {
            let list = [
                (50 * MS, 0),
                (50 * MS, 2 * MS),
                (50 * MS, 4 * MS),
                (50 * MS, 6 * MS),
            ];
            gaps(&list, (10_000 * MS, ticks)).keep_their_length(false)
        };
        // one part in twenty, and a gap
        assert!(stays(10_590) && !stays(10_591));
        assert!(stays(9_410) && !stays(9_409));
    }

    #[test]
    fn so_many_gaps_of_a_stream_are_told() {
        let mut side = OneWay::default();
        for number in 0..1030 {
            side.take(packet(40 * MS * number, 100 * number, 100, 1, 40 * number as u32));
        }
        assert_eq!(side.suspects.len(), MAX_SUSPECTS);
    }
}
