//! The closed lists of words: every cause, owner, family, rule, grade, because and rival once, with its meaning.
//! The tables, Python, the pictures and the documentation take theirs from here.

use crate::base::{Side, word_enum};

word_enum! {
    /// What sets a cause apart from others of its family.
    CauseTrait:
    "ends_with_ack" EndsWithAck "it ends with a packet of the other side, which lets a segment go that was ready"
    "repair" Repair "a lost segment was sent again"
    "of_data" OfData "and it carried data"
    "by_probe_or_timer" ByProbeOrTimer "only the sender's timer saw the loss, no ACK"
}

/// The list of causes: each with its family, owner, colour, traits, meaning and fix ("" where no setting of either side
/// would help).
macro_rules! causes {
    ($(
        $word:literal $variant:ident $family:ident $owner:literal $colour:literal [$($trait:ident)*]
        $meaning:literal $fix:literal
    )+) => {
        word_enum! {
            /// What a piece of time was spent on, in the order of the table and its columns.
            Cause: $($word $variant $meaning)+
        }

        impl Cause {
            pub fn family(self) -> Family {
                match self {
                    $(Cause::$variant => Family::$family,)+
                }
            }

            /// One of `Owner`; or "sender" or "receiver" of the bytes that waited, where the row names
            /// the side.
            pub fn owner(self) -> &'static str {
                match self {
                    $(Cause::$variant => $owner,)+
                }
            }

            /// As `#rrggbb`.
            pub fn colour(self) -> &'static str {
                match self {
                    $(Cause::$variant => $colour,)+
                }
            }

            pub fn traits(self) -> &'static [CauseTrait] {
                match self {
                    $(Cause::$variant => &[$(CauseTrait::$trait),*],)+
                }
            }

            pub fn fix(self) -> Option<&'static str> {
                let fix = match self {
                    $(Cause::$variant => $fix,)+
                };
                (!fix.is_empty()).then_some(fix)
            }
        }
    };
}

// Colours: Okabe-Ito's vermillion and blue for nagle and delayed_ack; the others were searched for, near the hues that
// their families had, so that causes that can stand side by side differ by CIEDE2000 12 or more for everybody, also
// with protanopia and deuteranopia (Machado 2009): tests/test_colours.py. Each has a contrast of at least 3:1 on white
// (WCAG 2.1, graphics), so that it prints. Pictures write the name beside the colour and hatch by family.
causes! {
    "network" Network Path "network" "#5D9B82" []
        "the path's round trip, as far as its minimum goes"
        ""
    "queueing" Queueing Path "network" "#0C5A12" []
        "round trip above the path's minimum, when the packets say that it is the path"
        "Shorten the queue at the bottleneck: fq_codel or CAKE there, or pacing (fq, BBR) at the sender."
    "bandwidth" Bandwidth Line "network" "#6E6D5A" []
        "bytes leaving as fast as the line or the pacing lets them"
        "Send fewer bytes (compress, cache) or use a faster line."
    "server_think" ServerThink Server "server" "#BE6DFC" []
        "the server program had not produced the next byte, and nothing held it back"
        "Profile the server for this request; this time is its program's, not TCP's."
    "client_think" ClientThink Client "client" "#B67EA4" []
        "the client program had not produced the next byte, and nothing held it back"
        "Profile the client; the server and TCP were waiting for it."
    "nagle" Nagle Stall "sender" "#D55E00" [EndsWithAck]
        "a small segment held while an earlier small one is unacknowledged"
        "Set TCP_NODELAY on the sending socket, or hand head and body to the kernel in one write (writev)."
    "delayed_ack" DelayedAck Stall "receiver" "#0072B2" [EndsWithAck]
        "the receiver delays an ACK that the sender needs"
        "Free the sender from waiting for it (TCP_NODELAY there), or set TCP_QUICKACK after each read."
    "cork" Cork Stall "sender" "#754C00" []
        "a tail held by TCP_CORK or MSG_MORE until its timer, or an ACK"
        "Clear TCP_CORK after the last write, and do not set MSG_MORE on it."
    "cwnd" Cwnd Windows "sender" "#3516DC" [EndsWithAck]
        "the sender's congestion window lets nothing more out until an ACK comes"
        "Keep connections open and warm (tcp_slow_start_after_idle=0), or raise the route's initcwnd."
    "receive_window" ReceiveWindow Windows "receiver" "#39227C" [EndsWithAck]
        "the receiver's window has no room for the next segment"
        "Raise the receiver's buffer (tcp_rmem, no small SO_RCVBUF) and let its program read sooner."
    "zero_window" ZeroWindow Windows "receiver" "#0B0C3A" [EndsWithAck]
        "the receiver announced a window of 0: its program does not read"
        "Let the receiving program read sooner; a bigger buffer only moves the moment."
    "fast_retransmit" FastRetransmit Loss "network" "#F5634C" [Repair OfData]
        "a lost segment, repaired after duplicate or selective ACKs"
        "Find where the path drops packets (queue, policer, cable); the repair itself works."
    "tlp" Tlp Loss "network" "#B347A3" [Repair OfData ByProbeOrTimer]
        "a lost tail, repaired by a tail loss probe"
        "Find where the path drops packets; a lost tail costs two round trips, one lone segment 200 ms more."
    "rto" Rto Loss "network" "#8C2470" [Repair OfData ByProbeOrTimer]
        "a lost segment, repaired only by the retransmission timer"
        "Find where the path drops packets; with SACK and tail loss probes on, fewer losses need the timer."
    "syn_rto" SynRto Loss "network" "#480328" [Repair]
        "a lost SYN or SYN, ACK, repaired by its timer of 1 s or more"
        "Look for a full accept queue (backlog, somaxconn) or a firewall dropping SYNs; reuse connections."
    "reordering" Reordering Loss "network" "#885828" []
        "segments overtaken on the path, waited for until they came"
        "Find where one flow is split over several links (per-packet balancing); hash by flow there."
    "capture_gap" CaptureGap Unknown "capture" "#4D4E4C" []
        "the capture lacks packets that were on the wire here"
        "Capture again with a bigger buffer (tcpdump -B), a shorter snap length (-s) or a narrower filter."
    "unknown" Unknown Unknown "capture" "#6E7378" []
        "the capture cannot say"
        ""
}

word_enum! {
    /// Who can own a piece of time.
    Owner:
    "client" Client "the side that requests; mostly it opened the connection"
    "server" Server "the side that accepted the connection"
    "network" Network "the path between the two"
    "capture" Capture "the capture itself: it does not hold what would be needed to tell"
    "backend" Backend "another server, to which this one's host sent a request meanwhile, or the path to it"
}

word_enum! {
    /// What causes add up to in an answer.
    Family:
    "loss" Loss "segments that were lost or overtaken, until they had come"
    "path" Path "the way there and back, and what queues on it"
    "line" Line "bytes that leave as fast as the line or the pacing lets them"
    "stall" Stall "the kernel of either side holds back what a program has written"
    "windows" Windows "the sender's congestion window, or the receiver's window"
    "server" Server "the server's program"
    "client" Client "the client's program"
    "unknown" Unknown "what the capture cannot say"
}

word_enum! {
    /// How sure a row is.
    Grade:
    "proven" Proven "every rival is excluded by something in this capture"
    "probable" Probable "the best explanation; a rival is left"
    "suspected" Suspected "something does not fit: a place to look at, and no more"
    "unknown" Unknown "the capture cannot say"
}

word_enum! {
    /// The test that spoke.
    Rule:
    "rtt" Rtt "the best round trip between the capture and this endpoint"
    "turn" Turn "the first segment after the peer's last byte, less the path"
    "app" App "the same message goes on after a gap that nothing is seen to have made"
    "write_gap" WriteGap "right behind a segment that was not full"
    "burst" Burst "right behind a full segment"
    "spacing" Spacing "at an even pace, or under way before the ACK could have released it"
    "queue" Queue "with an ACK whose round trip had grown"
    "ack_clocked" AckClocked "with an ACK of earlier data, after the path's own round trip"
    "cwnd_delayed_ack" CwndDelayedAck "with the late ACK of the one segment in flight"
    "look_alike" LookAlike "like Nagle's wait, but not with the ACK"
    "control" Control "the first part of a wait, as long as the program takes where nothing is held"
    "no_pool" NoPool "more senders, or more evidence, than are remembered"
    "window" Window "it did not fit before a packet that moved the window's edge, or fills what room there was"
    "overtaken" Overtaken "a hole that closed sooner than a retransmission can come, or a spurious fast retransmit"
    "not_lost" NotLost "a spurious retransmission, by what the receiver sent: the first copy was late"
    "copy_not_seen" CopyNotSeen "a retransmission whose first copy is not in the capture"
    "sack_or_duplicate_acks" SackOrDuplicateAcks "a retransmission after selective or duplicate ACKs called for it"
    "tail_probe" TailProbe "a retransmission of the last segment after about two round trips and the least timeout"
    "timeout" Timeout "a retransmission after silence as long as a retransmission timeout"
    "hole_filled" HoleFilled "missing bytes came as late as a timer sends them"
    "ip_id_gap" IpIdGap "the sender's IP identifications lack a packet, and a timer's time passed"
    "handshake_repeated" HandshakeRepeated "SYN or SYN/ACK sent again"
    "handshake" Handshake "what a kernel's answer in the handshake took beyond the best round trip"
    "cork_timer" CorkTimer "a small tail, nothing in flight, the probe timer's length of silence"
    "cork_pool" CorkPool "all messages of this sender begin with the probe timer's length of silence"
    "cork_ack" CorkAck "short, not pushed, and with the ACK of the small segment before it"
    "frames_missing" FramesMissing "bytes were acknowledged that are not in the capture, or no segment covers the time"
    "timestamps" Timestamps "by its time stamp it left its host sooner than it passed"
    "one_way" OneWay "one direction alone, and a gap as long as a held ACK"
    "nagle_delayed_ack" NagleDelayedAck "small after small, with the first one's late pure ACK"
    "nagle_wait" NagleWait "small after small, with the first one's ACK, which came at once"
    "nagle_piggyback" NaglePiggyback "small after small, with an ACK that came with data"
    "nagle_fin_release" NagleFinRelease "small after small, with the ACK in the peer's FIN"
    "elsewhere" Elsewhere "answers that take a held ACK's time and end on a tick: it is held on another connection"
    "backend" Backend "as the request was judged that its host sent to another server meanwhile"
    "late_close" LateClose "the answer ends with its connection, and the FIN came behind its last byte, which was acknowledged"
}

word_enum! {
    /// What excludes the rivals of a proven row, or what is missing to prove any other.
    Because:
    // what excludes the rivals
    "path_bounded" PathBounded "the path takes less than half of it, by this connection's own round trips"
    "kernel_answered" KernelAnswered "its own kernel had acknowledged these very bytes before"
    "best_round_trip" BestRoundTrip "no answer came back sooner"
    "nothing_open" NothingOpen "nothing small was unacknowledged, no window was full, nothing was lost"
    "left_before_ack" LeftBeforeAck "it left before the ACK could have reached its sender"
    "goes_without_ack" GoesWithoutAck "this sender's small segments leave over unacknowledged ones: no Nagle's algorithm"
    "keeps_its_length" KeepsItsLength "the gaps keep their length while the ACKs in them move"
    "control_shorter" ControlShorter "with the ACK as a kernel sends, and where no ACK was held the program took less"
    "follows_acks" FollowsAcks "eight and more such waits end with their ACKs, wherever those fall; no control group shows how long each was"
    "did_not_fit" DidNotFit "it ends beyond the window's edge before that packet, and within it after"
    "called_for" CalledFor "selective or duplicate ACKs called for the retransmission"
    "timer_ran_out" TimerRanOut "nothing else came before the retransmission, for as long as the timer"
    "receiver_says_twice" ReceiverSaysTwice "the receiver got these bytes twice, or had them already (DSACK, an older stamp echoed, an ACK of nothing new)"
    "sent_again" SentAgain "the handshake's packet is in the capture twice, a timer apart"
    "frames_missing" FramesMissing "the peer acknowledged what the capture lacks"
    // what is missing
    "no_round_trip" NoRoundTrip "no round trip to this endpoint was seen"
    "no_kernel_answer" NoKernelAnswer "no kernel acknowledged these very bytes: the path may have taken longer this time"
    "path_may_be_more" PathMayBeMore "more than half of it may be the path's, or the pacing's"
    "line_may_be_busy" LineMayBeBusy "an unacknowledged full segment, the path's delay or pacing may explain the gap"
    "sender_not_known" SenderNotKnown "this sender's other segments do not say whether Nagle's algorithm acts"
    "control_explains" ControlExplains "where no ACK was held the program took as long"
    "control_unclear" ControlUnclear "where no ACK was held the program took now more, now less: it may have been at work"
    "within_control" WithinControl "the program takes up to as long where nothing is held: when it had written was not seen"
    "not_as_kernel" NotAsKernel "a kernel sends sooner what an ACK frees"
    "ack_not_seen" AckNotSeen "the capture lacks the ACK"
    "few_waits" FewWaits "fewer than eight waits of this sender ended with a held ACK"
    "late_after_ack" LateAfterAck "it left later after the ACK than the path explains"
    "round_trip_by_program" RoundTripByProgram "sooner than any answer of its program, but a kernel may be sooner"
    "own_round_trip" OwnRoundTrip "the only round trip seen there is this answer's own"
    "option_may_change" OptionMayChange "this sender does both: the option may have been set on the way"
    "kernel_was_late" KernelWasLate "a kernel's own answer took longer than the path's best"
    "stamp_is_older" StampIsOlder "the time stamp is older than the path's best explains"
    "full_segments" FullSegments "full segments right behind each other"
    "even_pace" EvenPace "segments at an even pace"
    "sooner_than_ack" SoonerThanAck "it was under way before that ACK reached its sender"
    "round_trip_grew" RoundTripGrew "the acknowledged segment's round trip was longer than the path's"
    "with_the_ack" WithTheAck "it left with the ACK, after the path's own round trip"
    "window_of_one" WindowOfOne "its sender had room for one segment in flight: after a timeout, or always"
    "full_before" FullBefore "what was unacknowledged was full: Linux holds nothing back behind it"
    "timer_on_tick" TimerOnTick "all waits have the timer's length and end on one tick, as a sleeping program's may"
    "timer_length" TimerLength "the wait is as long as the timer"
    "not_pushed" NotPushed "short and not pushed: the program had announced more (MSG_MORE)"
    "copy_may_be_lost" CopyMayBeLost "as late as a retransmission, and nothing shows that no first copy was lost on its way here"
    "nobody_tells" NobodyTells "without time stamps and selective ACKs the receiver cannot say whether the first copy came"
    "no_first_copy" NoFirstCopy "the first copy is not in the capture"
    "by_ip_id" ByIpId "only the sender's IP identifications show the loss"
    "filled_late" FilledLate "the hole closed as late as a timer sends"
    "older_packet" OlderPacket "the packet that closed the hole is older, or came too soon for a retransmission"
    "not_taken" NotTaken "the first copy had come as far as its host"
    "one_direction" OneDirection "the other direction is not in the capture"
    "twice_in_capture" TwiceInCapture "the connection's packets are in the capture twice"
    "on_other_paths" OnOtherPaths "parts of its messages may have passed on other connections (multipath)"
    "only_turns" OnlyTurns "the messages cannot be read (encrypted, or no reader knows the protocol): what came need not be the answer"
    "waits_for_event" WaitsForEvent "the answer, or its next piece, waits for an event, as the request wants"
    "behind_answers" BehindAnswers "the answers to requests before it on this connection came first, as the protocol wants it"
    "fills_window" FillsWindow "it fills the window to the byte, which had room for no full segment"
    "fills_segment" FillsSegment "a full segment behind a small unacknowledged one: a part of it may have been written before, and waited"
    "answered_for" AnsweredFor "no SYN/ACK and no answer came nearly as soon as its ACKs: another host on the path sends those"
    "few_inside" FewInside "fewer than eight requests of that server lie inside such"
    "several_around" SeveralAround "more than one request to its server lies around that one as closely"
    "not_remembered" NotRemembered "there is more evidence than is remembered"
}

word_enum! {
    /// What may explain a row as well and is no cause of its own.
    Hypothesis:
    "pacing" Pacing "the sender's kernel spreads what it sends (SO_MAX_PACING_RATE, fq, BBR)"
    "busy_host" BusyHost "a host without time for its packets"
    "other_path" OtherPath "bytes that passed on another connection"
    "not_asked" NotAsked "nobody waited: a push, a poll that is meant to wait, a person at work"
    "earlier_requests" EarlierRequests "the program was at work on the requests before it on this connection"
    "second_copy" SecondCopy "a copy of a packet that is in the capture already"
}

/// What may explain a row as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    Cause(Cause),
    Other(Hypothesis),
}

impl Rival {
    pub const COUNT: usize = Cause::COUNT + Hypothesis::COUNT;

    /// Its index in the list of all words that a rival can have: causes first.
    pub fn index(self) -> usize {
        match self {
            Rival::Cause(cause) => cause as usize,
            Rival::Other(other) => Cause::COUNT + other as usize,
        }
    }

    /// The word at this index of that list.
    pub fn word_at(index: usize) -> &'static str {
        match index.checked_sub(Cause::COUNT) {
            None => Cause::word_at(index),
            Some(index) => Hypothesis::word_at(index),
        }
    }

    pub fn word(self) -> &'static str {
        Self::word_at(self.index())
    }
}

impl Cause {
    /// Returns the cause that a side's program is.
    pub(super) fn program_of(side: Side) -> Cause {
        match side {
            Side::Client => Cause::ClientThink,
            Side::Server => Cause::ServerThink,
        }
    }

    /// With client and server in each other's place.
    pub(super) fn with_sides_swapped(self) -> Cause {
        match self {
            Cause::ServerThink => Cause::ClientThink,
            Cause::ClientThink => Cause::ServerThink,
            other => other,
        }
    }
}

impl Owner {
    pub(super) fn of(side: Side) -> Owner {
        match side {
            Side::Client => Owner::Client,
            Side::Server => Owner::Server,
        }
    }

    /// With client and server in each other's place.
    pub(super) fn with_sides_swapped(self) -> Owner {
        match self {
            Owner::Client => Owner::Server,
            Owner::Server => Owner::Client,
            other => other,
        }
    }
}

word_enum! {
    /// What limits a transfer.
    Limiter:
    "receiver_window" ReceiverWindow "the receiver's window: the sender had sent all that it allows, and waited for it to open"
    "receiver_program" ReceiverProgram "the receiver's program: it reads more slowly than data come, and the window closes"
    "sender_program" SenderProgram "the sender's program: it had written no more when everything could be sent"
    "sender_buffer" SenderBuffer "the sender's socket buffer: as much as it holds is in flight, and never more"
    "congestion" Congestion "the sender's congestion window, after losses, marks or reordering made it smaller"
    "start" Start "slow start: the transfer was over while the congestion window still grew"
    "line" Line "the slowest line of the path: segments arrive one by one at its rate, and a queue stands before it"
    "pacing" Pacing "the sender's own rate limit: segments leave by a timer, neither held by an ACK nor by the program"
    "http2_window" Http2Window "the window of HTTP/2: the sender went on when WINDOW_UPDATE frames came"
    "none" None "nothing that the capture shows"
}

word_enum! {
    /// What made a congestion window smaller.
    ReducedBy:
    "losses" Losses "lost segments"
    "ecn" Ecn "marks of the path (ECN), by which the sender reduced its window"
    "reordering" Reordering "segments that overtook others, so that the sender took those for lost"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word is the name of its variant.
    #[test]
    fn every_word_is_its_variants_name() {
        fn check<T: std::fmt::Debug>(all: &[T], words: &[&str]) {
            for (variant, word) in all.iter().zip(words) {
                assert_eq!(format!("{variant:?}").to_lowercase(), word.replace('_', ""));
            }
            let mut once = words.to_vec();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), words.len(), "a word stands twice");
        }
        check(&Cause::ALL, &Cause::WORDS);
        check(&Owner::ALL, &Owner::WORDS);
        check(&CauseTrait::ALL, &CauseTrait::WORDS);
        check(&Family::ALL, &Family::WORDS);
        check(&Grade::ALL, &Grade::WORDS);
        check(&Rule::ALL, &Rule::WORDS);
        check(&Limiter::ALL, &Limiter::WORDS);
        check(&ReducedBy::ALL, &ReducedBy::WORDS);
        check(&Because::ALL, &Because::WORDS);
        check(&Hypothesis::ALL, &Hypothesis::WORDS);
        let rivals: Vec<&str> = (0..Rival::COUNT).map(Rival::word_at).collect();
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(rivals[index], Rival::Cause(cause).word());
        }
        for other in Hypothesis::ALL {
            assert_eq!(rivals[Rival::Other(other).index()], other.word());
        }
    }
}
