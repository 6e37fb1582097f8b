//! Every number that a verdict rests on. Reads nothing; gives each limit once, with its unit and its source; knows of no
//! segment, sender or exchange. `.ci/sensitivity.py` shows what half and double of each does to the scores.
//!
//! A source is a function of the Linux kernel, an RFC, a measurement on the labelled recordings, or "chosen": nothing but
//! the scores speaks for that number. Bounds of memory are no limits: they stand where the memory is.

mod findings;
mod limit;

pub use findings::OF_FINDINGS;
use limit::limits;
#[cfg(feature = "scaled-limits")]
pub use limit::scaled;
pub use limit::{Band, Limit, LimitRow};

/// The ticks of kernels, the longest first: CONFIG_HZ of 100, 250, 300 and 1000.
pub const TICKS_NS: [i64; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];
/// Linux, BSD and macOS count milliseconds in their time stamps.
pub const TICK_NS: i64 = 1_000_000;

/// An ACK that came this much later than the path needs was held.
pub const HELD_NS: Band<i64> = Band {
    least: HELD_LEAST_NS,
    most: HELD_MOST_NS,
};
/// As long as an answer takes that waits for a held ACK on another connection.
pub const HELD_ELSEWHERE_NS: Band<i64> = Band {
    least: HELD_ELSEWHERE_LEAST_NS,
    most: HELD_ELSEWHERE_MOST_NS,
};
/// A cork's timer.
pub const CORK_NS: Band<i64> = Band {
    least: CORK_LEAST_NS,
    most: CORK_MOST_NS,
};
/// A gap in one direction alone that may be a held ACK and its way.
pub const ONE_WAY_GAP_NS: Band<i64> = Band {
    least: DELACK_LEAST_NS,
    most: ONE_WAY_MOST_NS,
};

limits! {
    // names

    /// A connect within this of the answer that gave its address waited for that lookup.
    LOOKED_UP_NS: i64 = 1_000_000_000, "ns", "chosen: a resolver hands over at once; RFC 8305 waits 250 ms for another address";

    /// A connection to a port that FTP's control connection named within this carries the file that was requested.
    ANNOUNCED_NS: i64 = 60_000_000_000, "ns", "accept_timeout and connect_timeout of vsftpd";

    // what is read

    /// Data that begin so far behind all that the receiver had room for are a damaged packet's, or another connection's.
    BEYOND_ROOM: i64 = 67_108_864, "bytes", "chosen: a capture that lacks more than a window and so much is none of one connection";

    // where a turn ends, and what is worth a row beside the requests

    /// A side that was acknowledged and sends nothing for so long has ended its turn, where no protocol is known: longer than a
    /// kernel holds a segment or its ACK back.
    SILENCE_NS: i64 = 300_000_000, "ns", "TCP_DELACK_MAX and TCP_RTO_MIN (200 ms), and half as much again";
    /// A server inside TLS may go on with its answer until then: no program computes for longer between a head and its body.
    SEALED_SILENCE_NS: i64 = 3_000_000_000, "ns", "chosen";
    /// So many times what exchanges took so far is more than the connection's own rhythm.
    RHYTHM: i64 = 4, "times", "chosen";
    /// So many turns of one form, each two heartbeats, show a rhythm.
    BEATS: i64 = 4, "turns", "chosen: three periods of either side";
    /// So many packets of a byte or two show that a person types.
    TYPED_KEYS: i64 = 4, "packets", "chosen";
    /// A heartbeat inside TLS is no longer.
    BEAT_BYTES: i64 = 128, "bytes", "chosen: keepalives of BGP (19), AMQP (8), WebSocket and TLS records around them";
    /// A timer's wait may differ from its period by this share of it.
    BEAT_DRIFT: f64 = 0.05, "share", "chosen: a program that sleeps between two beats adds its own work";
    /// What is answered within this share of the period is an answer.
    BEAT_PROMPT: f64 = 0.1, "share", "chosen";
    /// What was written behind a message without an answer (MySQL) has left within this: Nagle's algorithm holds it until
    /// the longest delayed ACK has come.
    HELD_BEHIND_NS: i64 = 250_000_000, "ns", "TCP_DELACK_MAX (200 ms), and a quarter as much again";
    /// Two of the slowest kernel's ticks: a client that sends its next request sooner did not pause, its host was busy; and no
    /// clock that counts milliseconds stands still for longer.
    TWO_TICKS_NS: i64 = 20_000_000, "ns", "two ticks of CONFIG_HZ=100";
    /// No host is busy for as long, and no line hands over as late.
    LONG_PAUSE_NS: i64 = 200_000_000, "ns", "chosen";
    /// One part in so many of a connection's time is worth a row.
    ROW_PART: i64 = 10, "parts", "chosen";
    /// No kernel repeats a SYN or its answer sooner.
    SYN_TIMER_NS: i64 = 100_000_000, "ns", "RFC 6298 2.1: one second; far below it";
    /// An ACK that comes sooner after a repeat than this share of the round trip was caused by the first copy.
    ANSWERED_SHARE: f64 = 0.95, "share", "chosen: the best round trip, less what it wavers";

    // what limits a transfer

    /// A direction is watched for what limits it from this many bytes on that the other side did not answer with data.
    WATCHED_BYTES: u32 = 8_192, "bytes", "chosen: less than the ten segments of a first window (RFC 6928)";
    /// Fewer bytes in one go are no transfer.
    TRANSFER_BYTES: u32 = 30_000, "bytes", "two first windows (RFC 6928)";
    /// An ACK of more segments, and of a quarter of what is in flight, comes at its program's pace, not at the line's.
    WHOLE_SEGMENTS: u32 = 8, "segments", "own recordings: 45 with a slow reader, 2 to 4 behind a line";
    /// A limit that holds this share of the time is the transfer's.
    LIMIT_SHARE: f64 = 0.5, "share", "chosen";
    /// A limit that holds this share of the time explains all of it.
    SURE_SHARE: f64 = 0.8, "share", "chosen";
    /// The largest share decides from here on, and is less sure.
    LESSER_LIMIT_SHARE: f64 = 0.3, "share", "chosen";
    /// Segments that arrive one by one fill this share of the time: a line hands them over at its own rate.
    EVEN_SHARE: f64 = 0.75, "share", "the labelled transfers: 0.99 behind a line, 0.08 and less elsewhere";
    /// The best round trip of each turn is longer than the idle one by this share: a queue stands.
    STANDING_SHARE: f64 = 0.08, "share", "the labelled transfers: 0.2 to 5 behind a line, 0.01 elsewhere";
    /// A queue stands where the best round trip of each turn is longer than the idle one by at least this.
    STANDING_NS: i64 = 700_000, "ns", "chosen: what a busy host takes";
    /// Bytes that the receiver acknowledged with less than 3/4 of its largest window left, as a share: its program
    /// leaves them there.
    LOW_SHARE: f64 = 0.4, "share", "own recordings: 0.59 and more with a slow reader, 0.0 without";
    /// Pauses that vary by less than this share of their mean are a timer's.
    STEADY_SHARE: f64 = 0.5, "share", "chosen";
    /// ACKs that come one by one fill this share of the time, and no queue stands: the sender itself meters what it sends.
    PACED_SHARE: f64 = 0.85, "share", "own recordings: 0.95 and more where paced, 0.7 and less behind a small buffer";
    /// A pacer sends no more segments at a time, or milliseconds' worth.
    PACED_BURST: f64 = 3.0, "segments, ms", "tcp_tso_autosize: 1 ms or two segments, and half as much again";
    /// Pauses that end a write, as a share: a program's.
    ENDED_SHARE: f64 = 0.12, "share", "the labelled transfers: 0.2 and more of a slow writer, 0 of a paced sender";
    /// Of all segments so many came late, and soon: the path changes their order.
    REORDERED_SHARE: f64 = 0.01, "share", "the labelled transfers: 0.04 where 5 of 100 are late, 0 elsewhere";

    // what a capture shows of its senders

    /// Two processors that hand over their frames swap them by less than this; a clock that is set goes back further.
    SWAPPED_NS: i64 = 1_000_000, "ns", "chosen";
    /// An unanswered ping that is seen again sooner is a copy (a bridge, a capture on all interfaces); later its numbers
    /// have come round.
    ECHO_COPY_NS: i64 = 1_000_000_000, "ns", "chosen: ping sends one a second";
    /// A host on the link that did not answer so many repeated requests for its address is a row of its own.
    UNANSWERED_NEIGHBOUR: u32 = 2, "count", "chosen: Linux asks three times (mcast_solicit)";
    /// After so long without a request the next one begins anew: Linux asks once a second, and gives up after three.
    NEIGHBOUR_ANEW_NS: i64 = 3_000_000_000, "ns", "chosen: three of retrans_time_ms (1 s)";
    /// A client of a service over UDP repeats its request within this, or has given up.
    SERVICE_ANEW_NS: i64 = 30_000_000_000, "ns", "chosen: SIP repeats for 32 s at intervals of 4 s (RFC 3261 17.1.2.2)";
    /// A capture beside a host measures a round trip to it below this.
    AT_ENDPOINT_NS: i64 = 1_000_000, "ns", "chosen: a busy host, a virtual machine";
    /// Hosts that are both nearer share a machine or a wire: the packets cannot say at which the capture is.
    SAME_PLACE_NS: i64 = 50_000, "ns", "measured: loopback";
    /// What an Ethernet frame leaves for the payload, taken where no MSS option was seen.
    USUAL_MSS: u16 = 1460, "bytes", "RFC 894: 1,500 bytes, less the headers of IPv4 and TCP";
    /// A segment of at most this size was one frame and is no full one: the path does not make segments so short.
    SMALLEST_MSS: u32 = 536, "bytes", "RFC 9293 3.7.1";
    /// An ACK of so many full segments may not wait.
    ACK_AT_ONCE: u32 = 2, "count", "RFC 9293 3.8.6.3";
    /// Of the connection's own counter, as its handshake shows, so many do.
    COUNTED_OWN: u32 = 2, "count", "chosen: by luck two numbers follow each other once in 2^32";
    /// So many steps show a counter at all.
    COUNTED_LEAST: u32 = 5, "count", "chosen";
    /// Of so many steps one may be no step of that counter: a RST, or the last ACK, has its number from elsewhere.
    ODD_PART: u32 = 20, "parts", "chosen";
    /// Of so many steps one may be a gap: a counter that all connections of a busy host share has more.
    GAP_PART: u32 = 3, "parts", "chosen";
    /// Such gaps lack at most so many frames on average: those of a counter that connections share are wider.
    GAP_FRAMES: u32 = 3, "count", "chosen";

    // the path

    /// A round trip to the host that the capture sits at is shorter than this.
    AT_HOST_NS: i64 = 70_000, "ns", "measured: up to 65 us beside a host, 75 us and more half way on a path of 0.1 ms";
    /// A round trip to another host is longer than this.
    AWAY_NS: i64 = 500_000, "ns", "chosen: well above AT_HOST_NS";
    /// A sample that is this much above the best says something about a host, not about the path's jitter.
    HOST_NS: i64 = 15_000_000, "ns", "chosen";
    /// Jitter above this is no basis for a verdict.
    MOST_JITTER_NS: i64 = 10_000_000, "ns", "chosen";
    /// What an ACK releases passes within this of the round trip to its sender, unless the path wavers more.
    PROMPT_NS: i64 = 2_000_000, "ns", "measured: lab, loaded hosts";
    /// A release may be as late as the ACK and the segment together: so many times the ninety-fifth of a hundred samples. What was
    /// sent late more than so many times as often as segments pass late is no path's.
    PATH_LATE: f64 = 2.0, "times", "chosen";
    /// How late the path is now and then: later are so many samples in a hundred at most.
    LATE_PERCENT: usize = 95, "percent", "chosen";
    /// Of the round trip to a sender, this part may be the path's wavering when a segment is held against it: one in so many.
    WAVER_PART: i64 = 4, "parts", "measured: on wavering paths of 2 to 5 ms kernels freed segments up to a fifth sooner than the best answer of a program; case decoy_pauses_on_a_line_of_jitter";
    /// A program's pauses are so many times as even as the ACKs before them, seen behind a path.
    STEADIER: i64 = 2, "times", "chosen: what follows its ACK is less even than the ACKs; case pauses_behind_acks_bursts";

    /// So many times as much is far more: a SYN/ACK behind the soonest ACK is another host's (and HOST_NS later), a host is
    /// farther than the other, requests inside others vary more than the rest.
    FAR_MORE: i64 = 4, "times", "chosen: public captures behind a NAT have 100 ms and 0.1 ms";

    // held ACKs

    /// No delayed-ACK timer is shorter: Linux holds an ACK for 40 ms less a tick, others longer.
    DELACK_LEAST_NS: i64 = 35_000_000, "ns", "TCP_DELACK_MIN";
    /// An ACK that came this much later than the path needs, beside what it wavers, was held; one that waited for the shortest
    /// timer was, however it wavers.
    HELD_LEAST_NS: i64 = 25_000_000, "ns", "chosen: below TCP_DELACK_MIN by the path's wavering";
    /// Where one in so many late ACKs, and more, came sooner than the shortest timer lets them, and as many later, a line made them
    /// late.
    SCATTERED_PARTS: usize = 3, "parts", "measured: lab4, 31 of 83 over Wi-Fi whose receiver acknowledges at once; at most 12 of 44 where it holds";
    /// So many lone segments of a connection at least are acknowledged at once, whatever the option says.
    QUICK_ACKS: u32 = 17, "count", "TCP_MAX_QUICKACKS, and one";
    /// No receiver holds an ACK for longer.
    HELD_MOST_NS: i64 = 520_000_000, "ns", "RFC 1122 4.2.3.2: less than 500 ms, and a tick";
    /// An answer that waits for a held ACK on another connection, behind a proxy say, takes at least this.
    HELD_ELSEWHERE_LEAST_NS: i64 = 38_000_000, "ns", "TCP_DELACK_MIN less a part of a tick";
    /// An answer that waits for a held ACK on another connection takes at most this.
    HELD_ELSEWHERE_MOST_NS: i64 = 52_000_000, "ns", "TCP_DELACK_MIN and three ticks of CONFIG_HZ=250";

    // Nagle's algorithm

    /// What a kernel needs at most to send what an ACK has freed, seen at its own side.
    INSTANT_NS: i64 = 60_000, "ns", "measured: 4 to 50 us in the lab";
    /// What a busy host adds at most to half of its releases: seen from elsewhere to what the path wavers, and beside it;
    /// what it adds to its program's pauses, and to a release behind which others of its sender were prompt.
    SOON_NS: i64 = 750_000, "ns", "measured: lab";
    /// What the promptest answers, so many of all, take is the path's, and what a program always takes.
    BEST_SHARE: f64 = 0.1, "share", "chosen";
    /// In one direction alone, an echoed time stamp that moved this far shows that the peer sent something meanwhile.
    HEARD_TICKS: u32 = 20, "ticks", "chosen: half of TCP_DELACK_MIN";
    /// So many of a kind make a verdict; fewer are at most probable.
    ENOUGH: usize = 8, "count", "chosen";
    /// Of so many one may stray: a held ACK that is followed late, a corked message that left at once, a pause of the control
    /// group (a busy host, an ACK that the capture lacks), a segment that went without its ACK.
    STRAY_PART: usize = 10, "parts", "chosen";
    /// Refutations up to one in so many of the held ACKs are accidents.
    ACCIDENT_PARTS: u64 = 50, "parts", "measured: lab";
    /// A sender follows the ACKs from this slope on, and pauses by itself below.
    FOLLOWS_SLOPE: f64 = 0.5, "slope", "half way between 1 (Nagle's algorithm) and 0 (a pause)";
    /// The chance that a program's own times look like a kernel's by luck.
    LUCK: f64 = 0.0001, "chance", "chosen";
    /// A relay's requests lie inside those of its clients in this share of all.
    INSIDE_SHARE: f64 = 0.95, "share", "chosen: a request may be given up, or be the relay's own";
    /// However closely a request lies inside another, by luck it does so with this chance at least.
    LEAST_CHANCE: f64 = 0.001, "chance", "chosen";
    /// Of two that surround a request one leaves so many times less around it.
    CLEARLY_NEARER: i64 = 2, "times", "chosen";
    /// A sender that has been judged is judged again when its evidence has grown by this share.
    GROWN: f64 = 0.25, "share", "chosen";

    // the control group: what the program takes where nothing was held

    /// An ACK that came no later than this beyond the path was not held.
    UNHELD_NS: i64 = 15_000_000, "ns", "chosen: below the shortest hold, above what paths waver";
    /// A pause of the control group explains a wait that is up to this much longer or shorter.
    CONTROL_NEAR_NS: i64 = 5_000_000, "ns", "chosen: a tick of CONFIG_HZ=250, and one more";
    /// A program of which one pause alone was seen takes up to so many times as long the next time; and what outlasted a held ACK
    /// says that its program may as well have ended within one, up to so many times the wait: longer ones are other answers.
    LONGER_TIMES: f64 = 1.5, "times", "measured: real, a program that works for 5 to 35 ms; twice costs 5 % of simulated stalls with frames missing";
    /// Where no pause of a program is known otherwise, a busy host outlasts one in so many held ACKs at most, seen beside it.
    OUTLASTED: usize = 1000, "parts", "chosen: one in a hundred is a program that works for 20 to 60 ms (real)";
    /// Beside the sender a kernel sends what an ACK freed within this.
    KERNEL_NS: i64 = 100_000, "ns", "measured: at most 50 us in lab and real; a program that waits for the ACK takes 80 to 200 us";
    /// Beside its sender, most of what an ACK freed leaves within so many times what three of four of its kernel's handshakes take.
    AS_SHAKEN: i64 = 2, "times", "measured: 0.9 to 1.7 where a kernel sent them (3 to 4 in one public capture), 2.1 to 6 behind a relay";
    /// A kernel whose caches are cold needs so long, whatever its handshakes took.
    COLD_NS: i64 = 40_000, "ns", "measured: real, lab and lab3: four of five releases of any kernel; of any relay at most one in two";
    /// Where both ends are at hand, the capture is beside the receiver if the round trip to the sender is at least so much of the other.
    NEARER_PERCENT: i64 = 150, "percent", "measured between hosts of one machine: 9 of 10 captures beside the receiver have more, 19 of 20 beside the sender less; two gains of lab";
    /// So many of the segments that left soon after a held ACK beside their sender left as promptly as a kernel.
    KERNEL_PERCENT: usize = 67, "percent", "measured: 90 to 100 where a kernel sent them, 38 where a program waited for the ACK";
    /// No program is woken up and writes sooner than this after an ACK.
    UNWOKEN_NS: i64 = 15_000, "ns", "measured: sooner were a third to nine of ten where a kernel sent them, and none of 220 of three relays";
    /// Where one in so many of those that left soon left before a program could, a kernel sent them.
    UNWOKEN_PARTS: usize = 4, "parts", "measured: as the one before";
    /// So many are no accident, where each alone may be one: held ACKs in front of a clean control group beside the sender (luck
    /// would be (KERNEL_NS / hold)^held), refutations, pauses that show how a program's time differs.
    SEVERAL: usize = 3, "count", "chosen";
    /// The same away from the sender: of held ACKs, late releases of one length, and what gives a slope.
    HELD_AWAY: usize = 5, "count", "chosen";
    /// A program's pauses of one length differ by no more than this: such beyond every hold, one of just two lengths, or those
    /// of which one may have ended a moment after an ACK.
    ONE_LENGTH_NS: i64 = 2_000_000, "ns", "chosen";

    /// Without a control group, so much of a wait before the held ACK that ended it is taken as held, and of the rest nothing is
    /// known: a program may work between two writes for most of a hold, but hardly up to its very end again and again.
    UNCONTROLLED_NS: i64 = 15_000_000, "ns", "chosen: most of the shortest hold is left to a program";

    // values that lie together

    /// Timers of many connections that end on one tick are handled one after the other, within this time.
    TOGETHER_NS: i64 = 500_000, "ns", "measured: lab";
    /// What such ACKs free follows each other, frame by frame, within so many times the time between the ACKs.
    AS_CLOSELY: f64 = 2.0, "times", "measured: 1.0 to 1.8 where a kernel sent them, 2.1 to 2.7 where a program wrote in a loop; case freed_together_by_the_kernel";
    /// How closely ends lie together on a tick, from 0 (anywhere) to 1 (on one point of it). Above this no part of the tick is tried.
    FITS: f64 = 0.7, "share", "chosen";
    /// Above this the tick that was tried is theirs.
    FITS_WELL: f64 = 0.85, "share", "chosen";
    /// The chance that times without a tick fall together.
    TICK_LUCK: f64 = 0.001, "chance", "chosen";

    // the sender's clock

    /// Neither clock drifts by much in two of these.
    CLOCK_WINDOW_NS: i64 = 10_000_000_000, "ns", "chosen";
    /// Clocks whose rate differs by more than one in so many count something else than milliseconds.
    CLOCK_RATE: i64 = 100, "parts", "chosen";
    /// No path holds a segment for longer.
    MOST_LATE_NS: u64 = 2_000_000_000, "ns", "chosen";
    /// What a tick, the drift and a busy host explain, and what two clocks that count milliseconds leave open. A hole that closes
    /// sooner was reordering, where nothing else tells.
    NOISE_NS: i64 = 3_000_000, "ns", "chosen: three ticks of a time stamp";
    /// A clock's rate shows after this.
    RATED_NS: i64 = 500_000_000, "ns", "chosen";
    /// A clock's rate shows after this where only milliseconds have to be told from ticks of 4 ms and more.
    PEER_RATED_NS: i64 = 40_000_000, "ns", "ten ticks of CONFIG_HZ=250";
    /// A clock that is off by more than one part in so many of the time is not believed in a pause.
    BELIEVED_PART: i64 = 4, "parts", "chosen";
    /// A clock that is off by more than this share of the time counts something else.
    OTHER_SHARE: f64 = 0.4, "share", "chosen";
    /// Lateness that is not rare among a sender's segments is its clock's grain: one in so many.
    RARE: u32 = 4, "parts", "chosen";

    // one direction alone

    /// The longest such gap.
    ONE_WAY_MOST_NS: i64 = 90_000_000, "ns", "chosen";
    /// How far the clocks that are read here may be from their ticks over a stream: one part in so many.
    DRIFT: i64 = 50, "parts", "chosen";

    // the line, and pacing

    /// Segments that follow each other this closely were never held by anybody.
    BURST_NS: i64 = 200_000, "ns", "measured: lab";
    /// Gaps that differ by less than one part in so many are even.
    EVEN_PART: i64 = 4, "parts", "chosen";
    /// So many even gaps in a row are a pace.
    EVEN_GAPS: u8 = 2, "count", "chosen";
    /// What keeps the pace comes at most so many times as late as the one before it.
    PACE: i64 = 3, "times", "chosen";
    /// The kernel paces nothing before so many segments.
    UNPACED: i64 = 10, "count", "tcp_update_skb_after_send";
    /// Nobody paces more slowly.
    SLOWEST: u32 = 32_000, "bytes a second", "chosen";
    /// What was idle before is paced at up to twice the rate, and a path may compress gaps by as much.
    HASTE: u32 = 4, "times", "tcp_update_pacing_rate (twice), and as much again";
    /// Rates that differ by less than one part in so many are one rate.
    ALIKE: u32 = 32, "parts", "chosen; cases decoy_paced_answers, paced_tails_by_the_kernel";
    /// Numbers of bytes that differ by less than one part in so many tell nothing of proportion.
    DIFFER: u32 = 4, "parts", "chosen";
    /// So many pairs of gaps in proportion show a pace, each counted twice; each that is not takes one away.
    PACE_SHOWN: u8 = 4, "count", "chosen; cases decoy_paced_answers, paced_tails_by_the_kernel";
    /// So many messages that left whole before anything was paced make the later wait of such a tail the pacing's.
    WHOLE: u8 = 2, "count", "chosen";
    /// No more pairs than this are counted.
    PACE_MOST: u8 = 12, "count", "chosen";

    // corks

    /// A cork's timer is the probe timer at its lowest.
    CORK_LEAST_NS: i64 = 200_000_000, "ns", "TCP_RTO_MIN, tcp_check_probe_timer";
    /// It is up to three ticks late.
    CORK_MOST_NS: i64 = 213_000_000, "ns", "three ticks of CONFIG_HZ=250 later";
    /// The smoothed round trip in that timer may contain a pause between two writes, or a delayed ACK: it may be this long,
    /// whatever was seen. Then the program is not blamed.
    CORK_ROUND_NS: i64 = 44_000_000, "ns", "TCP_DELACK_MIN and a tick of CONFIG_HZ=250; tcp_set_rto";
    /// A clock that stood on so many of each four milliseconds counts every one: it tells what the path took to a tick, and
    /// ticks of 250 Hz are looked for in it.
    FINE_CLOCK: u32 = 3, "count", "a clock of 4 ms stands on one of them, one of 10 ms on two";
    /// A path to the sender that is longer than this is not looked at for a cork.
    LONG_PATH_NS: i64 = 500_000_000, "ns", "chosen";

    // repairs

    /// The lowest retransmission timeout less a tick.
    RTO_NS: i64 = 190_000_000, "ns", "TCP_RTO_MIN";
    /// The first timer of a connection without a sample of its round trip, before 2011, less a tick.
    INITIAL_RTO_NS: i64 = 2_900_000_000, "ns", "RFC 2988 2.1: 3 s";
    /// And with a coarse tick.
    INITIAL_RTO_MOST_NS: i64 = 3_300_000_000, "ns", "RFC 2988 2.1: 3 s";
    /// A tail loss probe waits at most this and two round trips, and fires a few ticks late.
    PROBE_NS: i64 = 215_000_000, "ns", "tcp_schedule_loss_probe, TCP_RTO_MIN";
    /// Its longest: the retransmission timeout bounds it.
    MOST_PROBE_NS: i64 = 1_000_000_000, "ns", "TCP_TIMEOUT_INIT";
    /// What a program may take before the segment that the probe repeats.
    LATE_NS: i64 = 40_000_000, "ns", "chosen";
    /// So many full segments in a row that leave with the ACK of the one before, none in flight beside it, may be luck: one
    /// more shows a sender with room for one.
    LOCKSTEP: u8 = 2, "count", "chosen: the third wait alike";
    /// So many duplicate ACKs call for a repeat.
    DUPLICATES: u32 = 3, "count", "RFC 5681 3.2";
    /// Identifications that are counted lie near each other, others hardly ever.
    NEAR_IDS: i16 = 64, "count", "chosen";
    /// A capture's two points lie no further apart; what a path doubles may come later.
    DOUBLE_NS: i64 = 20_000_000, "ns", "chosen";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_unit_a_source_and_a_sentence() {
        let all = all();
        assert!(all.iter().all(|limit| {
            let texts = [limit.unit, limit.source, limit.doc];
            limit.value > 0.0 && texts.iter().all(|text| !text.is_empty()) && limit.doc.ends_with('.')
        }));
        let mut names: Vec<&str> = all.iter().map(|limit| limit.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn a_band_holds_both_its_ends() {
        let (least, most) = (HELD_NS.least.get(), HELD_NS.most.get());
        assert!(HELD_NS.contains(least) && HELD_NS.contains(most));
        assert!(!HELD_NS.contains(least - 1) && !HELD_NS.contains(most + 1));
    }
}
