//! Nested requests: those that a server's host sent to another server because it had received one. Returns for each
//! exchange the one that it lies inside (its front).
//!
//! Claims: the host sent this request while it had one open, and answered that when this one was answered.
//! Predicts: inner requests begin just after an outer request and end just before its answer, whenever that is.
//! Rivals: requests of the host's own (health checks, timers), which begin and end anywhere.

use std::net::IpAddr;

use ahash::AHashMap;

use super::vocabulary::Because;
use crate::evidence::Key;
use crate::limits::{CHANCE_MAX, CHANCE_MAX_ALONE, CLEAR_RATIO, LARGE_RATIO, MIN_SAMPLES, NEARLY_ALL};

/// Upper bounds on pairs of servers, on exchanges that are open at once, and on lengths kept per pair.
const MAX_PAIRS: usize = 1024;
const MAX_OPEN: usize = 4096;
const MAX_LENGTHS: usize = 256;

/// Times of an exchange, in ns, and its endpoints.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub key: Key,
    pub start_ns: i64,
    /// End of the request.
    pub request_end_ns: i64,
    /// Start of the answer.
    pub answered_ns: i64,
    pub end_ns: i64,
    /// By `Side`: the capture was taken at this side's host.
    pub is_at_host: [bool; 2],
    /// The server requests from others, so this may be an outer exchange; the client is a server, so it may be an inner
    /// one.
    pub may_be_outer: bool,
    pub may_be_inner: bool,
}

impl Span {
    fn server(&self) -> (IpAddr, u16) {
        (self.key.server, self.key.server_port)
    }

    /// Whether the server's host of `front` sent this request.
    fn is_sent_by_server_of(&self, front: &Span) -> bool {
        // a capture of loopback traffic was taken at the host that serves and sends those requests
        let ([at_client, _], [_, at_server]) = (self.is_at_host, front.is_at_host);
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

    /// Returns the part of the front's wait outside of this exchange, and the whole wait, if this one lies inside.
    fn inside(&self, front: &Span) -> Option<(i64, i64)> {
        if self.start_ns < front.request_end_ns || self.end_ns > front.end_ns {
            return None;
        }
        // an answer that is relayed while it comes begins before the inner one has ended
        let until = if self.end_ns <= front.answered_ns {
            front.answered_ns
        } else {
            front.end_ns
        };
        let around = self.start_ns - front.request_end_ns + (until - self.end_ns);
        Some((around, until - front.request_end_ns))
    }

    /// Whether a program on the front's host may send requests to both servers side by side.
    fn may_send_side_by_side(front: &Span) -> bool {
        front.key.client == front.key.server
    }
}

/// The exchange around another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    /// Index of the front in the list.
    pub front: usize,
    /// The reason why the front may not have caused the inner request; None if it is proven.
    pub doubt: Option<Because>,
}

/// Evidence on a pair of servers, of which the first one's host sends requests to the second.
#[derive(Debug, Default)]
struct PairEvidence {
    inside: usize,
    outside: usize,
    /// Sum of the logarithms of the probabilities that independent requests lie inside as closely.
    chance: f64,
    /// Where one host may send both: times of inner requests, and times left around them, in ns.
    lengths: Vec<(i64, i64)>,
}

impl PairEvidence {
    fn add(&mut self, near: &Near, is_side_by_side: bool) {
        let Near {
            around_ns: around,
            wait_ns: wait,
            ..
        } = *near;
        let chance = near.front_count as f64 * around as f64 / wait.max(1) as f64;
        self.chance += chance.clamp(CHANCE_MAX.get(), 1.0).ln();
        self.inside += 1;
        if is_side_by_side && self.lengths.len() < MAX_LENGTHS {
            self.lengths.push((wait - around, around));
        }
    }

    /// Whether chance hardly explains the requests inside (likelihood ratio against independent requests).
    fn is_no_luck(&self) -> bool {
        let (inside, outside) = (self.inside as f64, self.outside as f64);
        let chance = (self.chance / inside.max(1.0)).exp();
        let share = NEARLY_ALL.get();
        let within = self.chance - inside * share.ln();
        let beyond = outside * ((1.0 - chance).max(CHANCE_MAX.get()) / (1.0 - share)).ln();
        self.inside > 0 && within + beyond <= CHANCE_MAX_ALONE.get().ln() && self.wait_follows_inner()
    }

    /// Whether outer waits vary with their inner requests, where one host may send both: times around them vary far
    /// less.
    fn wait_follows_inner(&self) -> bool {
        let spread = |duration: fn(&(i64, i64)) -> i64| {
            let mut durations: Vec<i64> = self.lengths.iter().map(duration).collect();
            durations.sort_unstable();
            let at = |tenth: usize| durations.get(durations.len() * tenth / 10).copied().unwrap_or(0);
            at(9) - at(1)
        };
        self.lengths.is_empty()
            || self.lengths.len() >= MIN_SAMPLES.get()
                && spread(|(inner, _)| *inner) >= LARGE_RATIO.get() * spread(|(_, around)| *around).max(1)
    }
}

/// The outer server, the client address of the inner requests, and the inner server.
type Pair = ((IpAddr, u16), IpAddr, (IpAddr, u16));

/// Evidence on all pairs of servers so far.
#[derive(Debug, Default)]
pub struct Nesting {
    pairs: AHashMap<Pair, PairEvidence>,
}

/// A front around an exchange.
#[derive(Clone, Copy)]
struct Near {
    front: usize,
    /// Time of the front's wait outside of the exchange.
    around_ns: i64,
    /// The front's whole wait.
    wait_ns: i64,
    /// No other front of that server surrounds the exchange nearly as closely.
    is_clear: bool,
    /// Number of fronts of that server around it.
    front_count: usize,
}

impl Nesting {
    /// Returns for each exchange the one that it lies inside, if any; `spans` rise by `start`. An exchange without a
    /// front counts as outside only if it was looked at before (`is_known`) or this is the last call (`is_last`): its
    /// front may not have ended.
    pub fn look(&mut self, spans: &[Span], is_known: &[bool], is_last: bool) -> Vec<Option<Inside>> {
        let mut open: Vec<usize> = Vec::new();
        let mut busy: AHashMap<(usize, (IpAddr, u16)), i64> = AHashMap::new();
        let mut nearby: Vec<Vec<Near>> = vec![Vec::new(); spans.len()];
        for (index, span) in spans.iter().enumerate() {
            if span.may_be_inner {
                open.retain(|front| {
                    spans
                        .get(*front)
                        .is_some_and(|front| front.end_ns >= span.start_ns)
                });
                let nearest_fronts = nearest(span, spans, &open, &busy);
                for near in &nearest_fronts {
                    busy.insert((near.front, span.server()), span.end_ns);
                }
                self.count(
                    span,
                    spans,
                    &nearest_fronts,
                    is_last || is_known.get(index) == Some(&true),
                );
                if let Some(slot) = nearby.get_mut(index) {
                    *slot = nearest_fronts;
                }
            }
            if span.may_be_outer && open.len() < MAX_OPEN {
                open.push(index);
            }
        }
        let chosen = |(index, nearest_fronts): (usize, &Vec<Near>)| {
            let span = spans.get(index)?;
            let candidates = nearest_fronts.iter().filter_map(|near| {
                let pair_evidence = self.pairs.get(&span.pair(spans.get(near.front)?))?;
                let few = (pair_evidence.inside < MIN_SAMPLES.get()).then_some(Because::FewInside);
                let doubt = if near.is_clear {
                    few
                } else {
                    Some(Because::SeveralAround)
                };
                pair_evidence.is_no_luck().then_some((near, doubt))
            });
            // in a chain of proxies, the nearest one
            let (near, doubt) = candidates.min_by_key(|(near, _)| near.around_ns)?;
            Some(Inside {
                front: near.front,
                doubt,
            })
        };
        nearby.iter().enumerate().map(chosen).collect()
    }

    fn count(&mut self, span: &Span, spans: &[Span], nearest_fronts: &[Near], is_final: bool) {
        for near in nearest_fronts {
            let Some(front) = spans.get(near.front) else {
                continue;
            };
            let pair = span.pair(front);
            if self.pairs.len() < MAX_PAIRS || self.pairs.contains_key(&pair) {
                let pair_evidence = self.pairs.entry(pair).or_default();
                pair_evidence.add(near, Span::may_send_side_by_side(front));
            }
        }
        if nearest_fronts.is_empty() && is_final {
            for (pair, pair_evidence) in &mut self.pairs {
                pair_evidence.outside += usize::from((pair.1, pair.2) == (span.key.client, span.server()));
            }
        }
    }
}

/// Returns for each server its front that surrounds this exchange the most closely. Of two about as close, the one that
/// has no other inner request to that server at the time (`busy` has the end of each) is preferred.
fn nearest(
    span: &Span,
    spans: &[Span],
    open: &[usize],
    busy: &AHashMap<(usize, (IpAddr, u16)), i64>,
) -> Vec<Near> {
    let mut best: Vec<(Near, bool)> = Vec::new();
    for &index in open {
        let Some(front) = spans.get(index).filter(|front| span.is_sent_by_server_of(front)) else {
            continue;
        };
        let Some((around, wait)) = span.inside(front) else {
            continue;
        };
        let is_busy = busy
            .get(&(index, span.server()))
            .is_some_and(|until| *until > span.start_ns);
        let near = Near {
            front: index,
            around_ns: around,
            wait_ns: wait,
            is_clear: true,
            front_count: 1,
        };
        let same =
            |(other, _): &&mut (Near, bool)| spans.get(other.front).map(Span::server) == Some(front.server());
        let Some((nearest, nearest_busy)) = best.iter_mut().find(same) else {
            best.push((near, is_busy));
            continue;
        };
        let is_clear = |closer: i64, wider: i64| wider >= CLEAR_RATIO.get() * closer;
        let clear = is_clear(around.min(nearest.around_ns), around.max(nearest.around_ns));
        let is_better = match (clear, *nearest_busy, is_busy) {
            (false, true, false) => true,
            (false, false, true) => false,
            _ => around < nearest.around_ns,
        };
        (nearest.is_clear, nearest.front_count) =
            (clear && (is_better || nearest.is_clear), nearest.front_count + 1);
        if is_better {
            let (clear, fronts) = (nearest.is_clear, nearest.front_count);
            (*nearest, *nearest_busy) = (
                Near {
                    is_clear: clear,
                    front_count: fronts,
                    ..near
                },
                is_busy,
            );
        }
    }
    best.into_iter().map(|(near, _)| near).collect()
}

#[cfg(test)]
mod tests;
