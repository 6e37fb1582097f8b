//! Small segments freed across turns: an ACK that comes with the peer's data frees a segment that was written before,
//! which then looks like an answer to those data.

use super::reason::candidate;
use super::{AckSeen, Sender, Small};
use crate::base::At;
use crate::limits::{AT_HOST_NS, KERNEL_NS, OUTLIER_ONE_IN, PROMPT_NS, SEVERAL};
use crate::observe::{Candidate, Data, Wait};

/// Counts of freed segments on a connection.
#[derive(Debug, Default)]
pub(super) struct NagleReleases {
    /// Segments freed by pure ACKs: this program writes without waiting for answers, unlike one that takes turns.
    by_acks: u32,
    /// Segments that left upon data of the peer that acknowledged the small segment before.
    by_data: u32,
    /// The program's shortest time to answer, in ns, with nothing in flight that could have delayed it.
    pub(super) fastest_answer_ns: Option<i64>,
    /// Segments as in `by_data`, but later than a kernel sends.
    later: u32,
    /// A small segment left over an unacknowledged one: Nagle's algorithm is off.
    has_overtaken: bool,
    newest: Option<Box<Candidate>>,
}

impl Sender {
    /// Takes the client's newest segment that the server's data freed, if the counts make that likely.
    pub fn take_freed(&mut self) -> Option<Box<Candidate>> {
        self.freed.newest.take()
    }

    /// Counts the first segment after the peer's data, with nothing of its own side in flight then.
    pub(super) fn answers_freely(&mut self, peer_sent: At, data: &Data) {
        let took = data.at.time_ns - peer_sent.time_ns;
        self.freed.fastest_answer_ns = Some(self.freed.fastest_answer_ns.map_or(took, |best| best.min(took)));
    }

    /// Counts a small segment after an acknowledged one of the same message.
    pub(super) fn count_freed(&mut self, candidate: &Candidate, rtt: i64) {
        if candidate.is_pure_ack() && at_once(candidate.ack, candidate.freed, rtt) {
            self.freed.by_acks = self.freed.by_acks.saturating_add(1);
        }
    }

    /// Notes a small segment that left over an unacknowledged one.
    pub(super) fn overtakes(&mut self) {
        self.freed.has_overtaken = true;
    }

    /// Judges the first small segment after the peer's data (`peer_sent`), which acknowledged the small one before it.
    #[inline(always)]
    pub(super) fn freed_by_peer_data(&mut self, small: &Small, peer_sent: At, data: &Data) -> Option<Wait> {
        let freed = &self.freed;
        let may_be =
            freed.by_acks > 0 && !freed.has_overtaken && data.is_small && !data.has_fin && !small.is_tainted;
        if may_be {
            self.weigh_freed(small, peer_sent, data)
        } else {
            None
        }
    }

    /// Returns the wait if more segments were freed by data than by pure ACKs. (A program that takes turns and writes
    /// each message in two parts is freed by a pure ACK once per turn.) A server without an earlier unanswered request
    /// answers the data themselves.
    #[cold]
    fn weigh_freed(&mut self, small: &Small, peer_sent: At, data: &Data) -> Option<Wait> {
        let ack = small.ack.filter(|ack| !ack.has_fin)?;
        if !data.is_from_server {
            self.count_client_release(small, &ack, data);
            return None;
        }
        let since = self
            .peer
            .unanswered
            .filter(|first| first.frame < peer_sent.frame)?;
        let release = data.at.time_ns - ack.at.time_ns;
        // beside its host, where a kernel is faster than a program
        let is_by_kernel = self
            .freed
            .fastest_answer_ns
            .is_some_and(|took| 2 * release <= took);
        if !is_by_kernel || release > KERNEL_NS.get() {
            return None;
        }
        self.freed.by_data = self.freed.by_data.saturating_add(1);
        (self.freed.by_data > self.freed.by_acks).then(|| Wait::FreedTurn {
            since,
            candidate: Box::new(candidate(small, &ack, data, self.echoes_acks)),
        })
    }

    /// Counts a client's segment, which it wrote upon the answer, or before it. Segments later than a kernel sends are
    /// evidence of the former, and weigh ten times as much as prompt ones do for the latter.
    fn count_client_release(&mut self, small: &Small, ack: &AckSeen, data: &Data) {
        if at_once(ack.at, data.at, 0) {
            self.freed.by_data = self.freed.by_data.saturating_add(1);
        } else {
            self.freed.later = self.freed.later.saturating_add(1);
        }
        let threshold = self
            .freed
            .by_acks
            .saturating_add(OUTLIER_ONE_IN.get() as u32 * self.freed.later);
        if self.freed.by_data > threshold.max(SEVERAL.get() as u32) {
            self.freed.newest = Some(Box::new(candidate(small, ack, data, self.echoes_acks)));
        }
    }

    /// Judges the first small segment after the peer's data where an earlier one was not acknowledged by then.
    #[cold]
    pub(super) fn freed_in_turn(&mut self, small: &Small, since: At, data: &Data) -> Option<Wait> {
        let Some(ack) = small.ack else {
            self.overtakes();
            return None;
        };
        let candidate = candidate(small, &ack, data, self.echoes_acks);
        let is_prompt = data.at.time_ns - ack.at.time_ns - data.own_rtt_ns <= PROMPT_NS.get();
        if candidate.arrived == Some(false) || !is_prompt {
            return None;
        }
        self.count_freed(&candidate, data.own_rtt_ns);
        Some(Wait::FreedTurn {
            since,
            candidate: Box::new(candidate),
        })
    }
}

/// Whether a segment left as promptly as a kernel sends upon an ACK.
fn at_once(ack: At, freed: At, rtt: i64) -> bool {
    freed.time_ns - ack.time_ns - rtt <= AT_HOST_NS.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::sender::Peer;

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;

    fn at(frame: u64, time_ns: i64) -> At {
        At { frame, time_ns }
    }

    /// A small segment at 0, acknowledged in frame 5 after 40 ms.
    fn small() -> Small {
        Small {
            at: at(1, 0),
            end_seq: 100,
            tsecr: None,
            ack: Some(AckSeen {
                at: at(5, 40 * MS),
                lacks_data: false,
                has_fin: false,
                tsval: None,
                is_echoed: true,
                held_from: at(1, 0),
            }),
            is_tainted: false,
            begins_message: false,
        }
    }

    /// A small segment of the server, `release` ns after that ACK.
    fn after(release: i64) -> Data {
        Data {
            at: at(9, 40 * MS + release),
            start_seq: 100,
            end_seq: 200,
            is_small: true,
            is_pushed: true,
            mss: 1000,
            is_from_server: true,
            ..Data::default()
        }
    }

    /// Its request is frame 3; it answers after 1 ms at best, and was freed by one ACK and by data once.
    fn freed() -> NagleReleases {
        NagleReleases {
            by_acks: 1,
            by_data: 1,
            fastest_answer_ns: Some(MS),
            ..NagleReleases::default()
        }
    }

    fn along(freed: NagleReleases, earlier: Small, data: Data) -> bool {
        let mut sender = Sender {
            peer: Peer {
                unanswered: Some(at(3, 0)),
                ..Peer::default()
            },
            freed,
            ..Sender::default()
        };
        sender
            .freed_by_peer_data(&earlier, at(5, 40 * MS), &data)
            .is_some()
    }

    #[test]
    fn a_server_that_was_asked_before_is_freed_as_a_kernel_sends() {
        assert!(along(freed(), small(), after(100 * US)));
        assert!(!along(freed(), small(), after(100 * US + 1)), "no kernel");
        let quick = |took| NagleReleases {
            fastest_answer_ns: Some(took),
            ..freed()
        };
        assert!(
            along(quick(80 * US), small(), after(40 * US)),
            "half of what its program takes"
        );
        assert!(!along(quick(80 * US - 1), small(), after(40 * US)));
        let unknown = NagleReleases {
            fastest_answer_ns: None,
            ..freed()
        };
        assert!(!along(unknown, small(), after(US)));
        // more often than by ACKs alone, and by those at all
        let counts = |along, by_acks| NagleReleases {
            by_data: along,
            by_acks,
            ..freed()
        };
        assert!(along(counts(2, 2), small(), after(US)) && !along(counts(1, 2), small(), after(US)));
        assert!(!along(counts(9, 0), small(), after(US)));
        let overtook = NagleReleases {
            has_overtaken: true,
            ..freed()
        };
        assert!(!along(overtook, small(), after(US)));
        let fin = true;
        assert!(!along(
            freed(),
            small(),
            Data {
                has_fin: fin,
                ..after(US)
            }
        ));
        assert!(!along(
            freed(),
            small(),
            Data {
                is_small: false,
                ..after(US)
            }
        ));
        assert!(!along(
            freed(),
            Small {
                is_tainted: true,
                ..small()
            },
            after(US)
        ));
        let ended = small().ack.map(|ack| AckSeen { has_fin: fin, ..ack });
        assert!(!along(
            freed(),
            Small {
                ack: ended,
                ..small()
            },
            after(US)
        ));
        let mut new = Sender {
            peer: Peer {
                unanswered: Some(at(5, 40 * MS)),
                ..Peer::default()
            },
            freed: freed(),
            ..Sender::default()
        };
        let wait = new.freed_by_peer_data(&small(), at(5, 40 * MS), &after(US));
        assert_eq!(wait, None, "it answers those very data");
    }

    #[test]
    fn a_client_is_freed_more_often_than_it_is_late() {
        // numbers of releases along, later and by ACKs, and the delay of one more after its ACK
        let found = |along, later, by_acks, release| {
            let mut sender = Sender {
                freed: NagleReleases {
                    by_data: along,
                    later,
                    by_acks,
                    ..NagleReleases::default()
                },
                ..Sender::default()
            };
            let data = Data {
                is_from_server: false,
                ..after(release)
            };
            let wait = sender.freed_by_peer_data(&small(), at(5, 40 * MS), &data);
            assert_eq!(wait, None);
            (
                sender.take_freed().is_some(),
                sender.freed.by_data,
                sender.freed.later,
            )
        };
        assert_eq!(found(3, 0, 1, 70 * US), (true, 4, 0));
        assert_eq!(found(2, 0, 1, 70 * US), (false, 3, 0), "three are luck");
        assert_eq!(found(3, 0, 1, 70 * US + 1), (false, 3, 1));
        assert_eq!((found(4, 0, 4, US).0, found(4, 0, 5, US).0), (true, false));
        // each late one is ten
        assert_eq!((found(11, 1, 1, US).0, found(10, 1, 1, US).0), (true, false));
    }

    #[test]
    fn an_ack_alone_frees_within_what_a_kernel_needs() {
        let by_acks = |ack_pure, ack_fin, release, rtt| {
            let mut sender = Sender::default();
            let ack = small().ack.unwrap_or_else(|| unreachable!());
            let candidate = Candidate {
                ack_lacks_data: ack_pure,
                ack_has_fin: ack_fin,
                ..candidate(&small(), &ack, &after(release), false)
            };
            sender.count_freed(&candidate, rtt);
            sender.freed.by_acks
        };
        assert_eq!(
            (
                by_acks(true, false, 70 * US, 0),
                by_acks(true, false, 70 * US + 1, 0)
            ),
            (1, 0)
        );
        assert_eq!(
            (
                by_acks(true, false, MS, MS - 70 * US),
                by_acks(true, false, MS, 0)
            ),
            (1, 0)
        );
        assert_eq!((by_acks(false, false, US, 0), by_acks(true, true, US, 0)), (0, 0));
    }

    #[test]
    fn a_program_answers_as_soon_as_it_did_at_best() {
        let mut sender = Sender::default();
        sender.answers_freely(at(2, 37 * MS), &after(0));
        assert_eq!(sender.freed.fastest_answer_ns, Some(3 * MS));
        sender.answers_freely(at(2, 38 * MS), &after(0));
        sender.answers_freely(at(2, 30 * MS), &after(0));
        assert_eq!(sender.freed.fastest_answer_ns, Some(2 * MS));
    }

    #[test]
    fn in_a_turn_an_ack_frees_within_two_milliseconds_of_the_path() {
        let in_turn = |earlier: Small, release, own_rtt_ns| {
            let mut sender = Sender::default();
            let data = Data {
                own_rtt_ns,
                ..after(release)
            };
            let wait = sender.freed_in_turn(&earlier, at(4, 0), &data);
            (wait.is_some(), sender.freed.by_acks, sender.freed.has_overtaken)
        };
        let pure = Small {
            ack: small().ack.map(|ack| AckSeen {
                lacks_data: true,
                ..ack
            }),
            ..small()
        };
        assert_eq!(in_turn(pure, 2 * MS, 0), (true, 0, false));
        assert_eq!(in_turn(pure, 2 * MS + 1, 0), (false, 0, false));
        assert_eq!(in_turn(pure, 12 * MS, 10 * MS), (true, 0, false));
        assert_eq!(in_turn(pure, 12 * MS + 1, 10 * MS), (false, 0, false));
        assert_eq!(
            in_turn(pure, 10 * MS, 10 * MS),
            (true, 1, false),
            "as a kernel sends"
        );
        let none = Small { ack: None, ..small() };
        assert_eq!(in_turn(none, US, 0), (false, 0, true));
    }
}
