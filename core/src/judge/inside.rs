//! Which request did a host send because it had received one? Exchanges in, for each the one that it lies inside.
//!
//! Claims: a server's host sent this request to another server while it had a request open, and answered when that one
//! had answered.
//! Predicts: its requests lie inside the others', from just behind a request to just before an answer, whenever that is.
//! Rivals: a host with requests of its own (a health checker, a clock) while it has one open: they lie anywhere.

use std::net::IpAddr;

use ahash::AHashMap;

use super::vocabulary::Because;
use crate::evidence::Key;
use crate::limits::{CHANCE_MAX, CHANCE_MAX_ALONE, CLEAR_RATIO, LARGE_RATIO, MIN_SAMPLES, NEARLY_ALL};

/// Pairs of servers that are remembered, exchanges that are open at once, and lengths of a pair.
const MAX_PAIRS: usize = 1024;
const MAX_OPEN: usize = 4096;
const MAX_LENGTHS: usize = 256;

/// Request and answer of an exchange, and between whom. Times in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub key: Key,
    pub start: i64,
    /// When the request was whole, and when the answer began.
    pub request_end: i64,
    pub answered: i64,
    pub end: i64,
    /// The capture was taken at this side's host, by `Side`.
    pub at: [bool; 2],
    /// Its server asks others; its client is a server. Both say what may be, and no more.
    pub front: bool,
    pub back: bool,
}

impl Span {
    fn server(&self) -> (IpAddr, u16) {
        (self.key.server, self.key.server_port)
    }

    /// Did the same host send the one and get the other?
    fn is_sent_by_server_of(&self, front: &Span) -> bool {
        // who captures on loopback captures at the host that serves, or sends, the requests there
        let ([at_client, _], [_, at_server]) = (self.at, front.at);
        let local = match (self.key.client.is_loopback(), front.key.server.is_loopback()) {
            (true, false) => at_server,
            (false, true) => at_client,
            _ => false,
        };
        (self.key.client == front.key.server || local) && self.server() != front.server()
    }

    fn pair(&self, front: &Span) -> Pair {
        (front.server(), self.key.client, self.server())
    }

    /// How much of the front's wait is left outside of this one, and the whole wait; where it lies inside.
    fn inside(&self, front: &Span) -> Option<(i64, i64)> {
        if self.start < front.request_end || self.end > front.end {
            return None;
        }
        // what is passed on while it comes begins sooner than the back has ended
        let until = if self.end <= front.answered {
            front.answered
        } else {
            front.end
        };
        let around = self.start - front.request_end + (until - self.end);
        Some((around, until - front.request_end))
    }

    /// The front's host asks both: a program there may ask the two servers side by side.
    fn may_be_asked_beside(front: &Span) -> bool {
        front.key.client == front.key.server
    }
}

/// What an exchange lies inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    /// The front's place in the list.
    pub front: usize,
    /// What is missing to prove that its server sent it for this one.
    pub doubt: Option<Because>,
}

/// What was seen of two servers, one of whose hosts asks the other.
#[derive(Debug, Default)]
struct Seen {
    inside: usize,
    outside: usize,
    /// Logarithms of the chances with which requests that know nothing of each other lie like that, added up.
    chance: f64,
    /// Where one host may ask both: how long the requests inside took, and how much of the waits was left around them.
    lengths: Vec<(i64, i64)>,
}

impl Seen {
    fn add(&mut self, near: &Near, beside: bool) {
        let Near { around, wait, .. } = *near;
        let chance = near.of as f64 * around as f64 / wait.max(1) as f64;
        self.chance += chance.clamp(CHANCE_MAX.get(), 1.0).ln();
        self.inside += 1;
        if beside && self.lengths.len() < MAX_LENGTHS {
            self.lengths.push((wait - around, around));
        }
    }

    /// Whether so many would lie inside by luck hardly ever.
    fn is_no_luck(&self) -> bool {
        let (inside, outside) = (self.inside as f64, self.outside as f64);
        let chance = (self.chance / inside.max(1.0)).exp();
        let share = NEARLY_ALL.get();
        let within = self.chance - inside * share.ln();
        let beyond = outside * ((1.0 - chance).max(CHANCE_MAX.get()) / (1.0 - share)).ln();
        self.inside > 0 && within + beyond <= CHANCE_MAX_ALONE.get().ln() && self.follows()
    }

    /// Where one host may ask both: a wait is longer than others by as much as the request inside it is.
    fn follows(&self) -> bool {
        let spread = |of: fn(&(i64, i64)) -> i64| {
            let mut all: Vec<i64> = self.lengths.iter().map(of).collect();
            all.sort_unstable();
            let at = |tenth: usize| all.get(all.len() * tenth / 10).copied().unwrap_or(0);
            at(9) - at(1)
        };
        self.lengths.is_empty()
            || self.lengths.len() >= MIN_SAMPLES.get()
                && spread(|l| l.0) >= LARGE_RATIO.get() * spread(|l| l.1).max(1)
    }
}

/// Who serves as the front, who asks meanwhile, and whom.
type Pair = ((IpAddr, u16), IpAddr, (IpAddr, u16));

/// What is known of all pairs of servers so far.
#[derive(Debug, Default)]
pub struct Nesting {
    pairs: AHashMap<Pair, Seen>,
}

/// A front that an exchange lies inside of, and how closely.
#[derive(Clone, Copy)]
struct Near {
    front: usize,
    around: i64,
    wait: i64,
    /// No other front of that server surrounds it nearly as closely; so many do at all.
    clear: bool,
    of: usize,
}

impl Nesting {
    /// For each exchange the one that it lies inside of, if any; `spans` rise by `start`. What surrounds an exchange may
    /// not have ended yet: that it lies in nothing counts where it had a look before (`known`), or this is the `last`.
    pub fn look(&mut self, spans: &[Span], known: &[bool], last: bool) -> Vec<Option<Inside>> {
        let mut open: Vec<usize> = Vec::new();
        let mut busy: AHashMap<(usize, (IpAddr, u16)), i64> = AHashMap::new();
        let mut found: Vec<Vec<Near>> = vec![Vec::new(); spans.len()];
        for (place, span) in spans.iter().enumerate() {
            if span.back {
                open.retain(|at| spans.get(*at).is_some_and(|front| front.end >= span.start));
                let near = nearest(span, spans, &open, &busy);
                for near in &near {
                    busy.insert((near.front, span.server()), span.end);
                }
                self.count(span, spans, &near, last || known.get(place) == Some(&true));
                if let Some(slot) = found.get_mut(place) {
                    *slot = near;
                }
            }
            if span.front && open.len() < MAX_OPEN {
                open.push(place);
            }
        }
        let chosen = |(place, near): (usize, &Vec<Near>)| {
            let span = spans.get(place)?;
            let known = near.iter().filter_map(|near| {
                let seen = self.pairs.get(&span.pair(spans.get(near.front)?))?;
                let few = (seen.inside < MIN_SAMPLES.get()).then_some(Because::FewInside);
                let doubt = if near.clear {
                    few
                } else {
                    Some(Because::SeveralAround)
                };
                seen.is_no_luck().then_some((near, doubt))
            });
            // of a chain of proxies the nearest one
            let (near, doubt) = known.min_by_key(|(near, _)| near.around)?;
            Some(Inside {
                front: near.front,
                doubt,
            })
        };
        found.iter().enumerate().map(chosen).collect()
    }

    fn count(&mut self, span: &Span, spans: &[Span], near: &[Near], finally: bool) {
        for near in near {
            let Some(front) = spans.get(near.front) else {
                continue;
            };
            let pair = span.pair(front);
            if self.pairs.len() < MAX_PAIRS || self.pairs.contains_key(&pair) {
                let seen = self.pairs.entry(pair).or_default();
                seen.add(near, Span::may_be_asked_beside(front));
            }
        }
        if near.is_empty() && finally {
            let mine = self
                .pairs
                .iter_mut()
                .filter(|(pair, _)| (pair.1, pair.2) == (span.key.client, span.server()));
            mine.for_each(|(_, seen)| seen.outside += 1);
        }
    }
}

/// Of each server the front that surrounds this exchange the most closely; of two as near, one for which its server was
/// not asking that other one already (`busy`, until when).
fn nearest(
    span: &Span,
    spans: &[Span],
    open: &[usize],
    busy: &AHashMap<(usize, (IpAddr, u16)), i64>,
) -> Vec<Near> {
    let mut best: Vec<(Near, bool)> = Vec::new();
    for &at in open {
        let Some(front) = spans.get(at).filter(|front| span.is_sent_by_server_of(front)) else {
            continue;
        };
        let Some((around, wait)) = span.inside(front) else {
            continue;
        };
        let is_busy = busy
            .get(&(at, span.server()))
            .is_some_and(|until| *until > span.start);
        let near = Near {
            front: at,
            around,
            wait,
            clear: true,
            of: 1,
        };
        let same =
            |(other, _): &&mut (Near, bool)| spans.get(other.front).map(Span::server) == Some(front.server());
        let Some((known, known_busy)) = best.iter_mut().find(same) else {
            best.push((near, is_busy));
            continue;
        };
        let is_clear = |near: i64, far: i64| far >= CLEAR_RATIO.get() * near;
        let clear = is_clear(around.min(known.around), around.max(known.around));
        let is_better = match (clear, *known_busy, is_busy) {
            (false, true, false) => true,
            (false, false, true) => false,
            _ => around < known.around,
        };
        (known.clear, known.of) = (clear && (is_better || known.clear), known.of + 1);
        if is_better {
            let (clear, of) = (known.clear, known.of);
            (*known, *known_busy) = (Near { clear, of, ..near }, is_busy);
        }
    }
    best.into_iter().map(|(near, _)| near).collect()
}

#[cfg(test)]
mod tests;
