//! Do the connections of one endpoint differ? A socket option belongs to a socket: of two virtual hosts on one port one
//! may set TCP_NODELAY and the other not. Candidates and refutations by stream in; what those streams say by themselves out.
//!
//! Alone a connection is believed only where its evidence cannot be luck. A program that pauses by itself leaves it to
//! chance which ACK a segment follows, so its segments would fit the ACKs of the connection's other exchanges as well.
//! Where Nagle's algorithm holds them they fit their own alone, if the holds differ by more than the releases do.

use ahash::AHashMap;

use super::spread::slope;
use super::{Judged, Verdict, verdict};
use crate::evidence::{Gap, Refuter};
use crate::judge::limits::{AT_HOST_NS, ENOUGH, FEW_HELD, INSTANT_NS, LUCK, REFUTED, STRAY_SHARE};

/// Held ACKs that are compared with each other, evenly picked (their number is squared).
const COMPARED: usize = 48;

/// What single connections say, and what all others say together.
#[derive(Debug, Clone)]
pub struct Apart {
    /// By stream, rising; with the number of held ACKs.
    own: Vec<(u32, Verdict, usize)>,
    rest: (Verdict, usize),
    /// What they make of the endpoint.
    pub verdict: Verdict,
}

#[derive(Default)]
struct Mine<'a> {
    gaps: Vec<&'a Gap>,
    refuted: u64,
}

impl Apart {
    /// Connections that differ from what all evidence together says (`whole`), if there are any; and how many have
    /// evidence, are held up by Nagle's algorithm, and refute it.
    pub(super) fn of(gaps: &[Gap], refuters: &[Refuter], whole: &Judged) -> (Option<Apart>, [usize; 3]) {
        let mut mine: AHashMap<u32, Mine<'_>> = AHashMap::new();
        for gap in gaps {
            mine.entry(gap.stream).or_default().gaps.push(gap);
        }
        for refuter in refuters {
            let refuted = &mut mine.entry(refuter.stream).or_default().refuted;
            *refuted = (*refuted).max(u64::from(refuter.times));
        }
        let streams = mine.len();
        let mut streams_by_number: Vec<(u32, Mine<'_>)> = mine.into_iter().collect();
        streams_by_number.sort_unstable_by_key(|(stream, _)| *stream);

        let (mut own, mut open) = (Vec::new(), Vec::new());
        for (stream, mine) in streams_by_number {
            let (mut judged, held) = whole.by(&mine.gaps, mine.refuted);
            match alone(&mut judged, &held, whole) {
                Some(verdict) => own.push((stream, verdict, judged.held)),
                None => open.push((stream, mine, judged)),
            }
        }
        let decided = |nagle: bool| own.iter().any(|o| (o.1 == Verdict::Proven) == nagle);
        let proven = whole.verdict == Verdict::Proven;
        if own.is_empty() || proven && !decided(false) {
            return (None, all(whole.verdict, streams));
        }

        let left: Vec<&Gap> = open.iter().flat_map(|(_, m, _)| m.gaps.iter().copied()).collect();
        let (mut others, held) = whole.by(&left, open.iter().map(|(_, m, _)| m.refuted).sum());
        others.slope = slope(&held);
        let rest = match verdict(&others) {
            // streams that refute by chance are gone from these: what is left must not look better by that
            Verdict::Proven if !proven && !follows(&others, &held) => Verdict::Open,
            verdict => verdict,
        };
        let against = |verdict| matches!(verdict, Verdict::Refuted | Verdict::AppPause);
        let nagle = decided(true) || rest == Verdict::Proven;
        let differ = decided(false) || against(rest);
        if !nagle || proven && !differ {
            return (None, all(whole.verdict, streams));
        }
        let said = own.iter().map(|o| (o.1, 1)).chain([(rest, open.len())]);
        let counts = said.fold([streams, 0, 0], |[_, on, off], (verdict, number)| {
            let [_, nagle, nodelay] = all(verdict, number);
            [streams, on + nagle, off + nodelay]
        });
        if against(rest) {
            // too little to differ from the others, and no reason to be named after them
            let few = |j: &Judged| j.refuted == 0 && j.held >= FEW_HELD && j.tight == j.held;
            own.extend(
                open.iter()
                    .filter(|(_, _, j)| few(j))
                    .map(|(stream, _, j)| (*stream, Verdict::Open, j.held)),
            );
            own.sort_unstable_by_key(|o| o.0);
        }
        let apart = Apart {
            own,
            rest: (rest, others.held),
            verdict: if differ { Verdict::Mixed } else { Verdict::Proven },
        };
        (Some(apart), counts)
    }

    /// The judgement that holds for a stream, and by how many held ACKs.
    pub(super) fn on(&self, stream: u32) -> (Verdict, usize) {
        let found = self.own.binary_search_by_key(&stream, |o| o.0).ok();
        let own = found.and_then(|at| self.own.get(at));
        own.map_or(self.rest, |(_, verdict, held)| (*verdict, *held))
    }
}

impl Judged {
    /// The same path, with a part of the evidence.
    fn by<'a>(&self, gaps: &[&'a Gap], refuted: u64) -> (Judged, Vec<&'a Gap>) {
        let mut part = Judged {
            sender_rtt: self.sender_rtt,
            receiver_rtt: self.receiver_rtt,
            tight_limit: self.tight_limit,
            sender_jitter: self.sender_jitter,
            sender_late: self.sender_late,
            ..Judged::default()
        };
        let held = part.count(gaps.iter().copied(), refuted);
        (part, held)
    }
}

/// How many streams of so many are held up by Nagle's algorithm, and refute it, where this holds for all of them.
fn all(verdict: Verdict, streams: usize) -> [usize; 3] {
    match verdict {
        Verdict::Proven => [streams, streams, 0],
        Verdict::Refuted => [streams, 0, streams],
        _ => [streams, 0, 0],
    }
}

/// What a connection says by itself; None where it has too little to say.
fn alone(own: &mut Judged, held: &[&Gap], whole: &Judged) -> Option<Verdict> {
    if own.refuted == 0 && own.tight == own.held && whole.verdict == Verdict::Proven {
        return None; // like the others
    }
    own.slope = slope(held);
    match verdict(own) {
        Verdict::Refuted if own.refuted >= REFUTED => Some(Verdict::Refuted),
        Verdict::AppPause if own.held >= ENOUGH => Some(Verdict::AppPause),
        Verdict::Proven if follows(own, held) => Some(Verdict::Proven),
        _ => None,
    }
}

/// Whether these segments followed their ACKs, and cannot have done so by luck.
fn follows(j: &Judged, held: &[&Gap]) -> bool {
    // a kernel sends at once, a program has to be woken up
    let instant = j.sender_rtt >= AT_HOST_NS || j.release_median.is_some_and(|half| half <= INSTANT_NS);
    let tight = j.held - j.tight <= j.held / STRAY_SHARE;
    j.refuted == 0 && j.held >= ENOUGH && tight && instant && luck(held) <= LUCK
}

/// The chance that segments which leave at times of their own lie where these do behind their ACKs: by how many of the
/// other exchanges' ACKs they would lie there as well.
fn luck(held: &[&Gap]) -> f64 {
    let used: Vec<&Gap> = held.iter().step_by(held.len() / COMPARED + 1).copied().collect();
    let strays = used.len() / STRAY_SHARE;
    let near = used.len() - strays;
    let mut releases: Vec<i64> = used.iter().map(|s| s.release).collect();
    releases.sort_unstable();
    // the narrowest window that all but the strays lie in
    let windows = releases.iter().zip(releases.iter().skip(near.saturating_sub(1)));
    let Some((low, high)) = windows.min_by_key(|(low, high)| *high - *low) else {
        return 1.0;
    };
    let fits = |freed: &Gap, acked: &Gap| (*low..=*high).contains(&(freed.wait + freed.release - acked.wait));
    let pairs = || {
        let others = |i| used.iter().enumerate().filter(move |(k, _)| *k != i);
        used.iter()
            .enumerate()
            .flat_map(move |(i, s)| others(i).map(move |(_, other)| (*s, *other)))
    };
    let fitting = pairs().filter(|(freed, acked)| fits(freed, acked)).count();
    let share = (fitting.max(1) as f64) / (pairs().count().max(1) as f64);
    // so many strays can be picked in no more ways than this
    share.powi(near as i32) * (used.len() as f64).powi(strays as i32)
}
