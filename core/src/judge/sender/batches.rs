//! Lines that hand over packets in batches: Wi-Fi that gathers frames, uplinks whose stations are asked in turn. What an ACK
//! frees passes with the next batch, which may be milliseconds later than the path needs.
//!
//! Predicts: the times between a sender's packets are whole numbers of batches, those until the ACKs are not; and by its
//! clock it sent them as the batch with the ACK came, not between two batches.
//! Rivals: a program's pauses of one length, which are whole numbers of many periods: so there have to be several lengths,
//! or some that follow their ACKs. A kernel's tick, on which ACKs and pauses end: then the ACKs fit as well.

use std::f64::consts::TAU;

use super::Judged;
use super::spread::at_share;
use crate::evidence::Gap;
use crate::judge::limits::{
    BATCH_APART_NS, BATCH_NS, BATCH_PARTS, BATCH_SENT_NS, BELIEVED_PART, ENOUGH, FITS, FITS_WELL, HELD_AWAY,
    PROMPT_NS, SOON_NS, STRAY_PART, TICK_LUCK, TICK_NS,
};

/// Times that are held against each period.
const USED: usize = 96;
/// Each period that is tried is shorter than the one before by one part in so many: over `BATCH_APART_NS` that is a tenth of the
/// shortest.
const STEP: i64 = 512;

/// The batches in which a line hands over what a sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// The time between two of them.
    period: i64,
    /// Since when in each, by its sender's clock, is sent what ACKs free, where that clock tells.
    sent: Option<i64>,
}

impl Batches {
    #[cfg(test)]
    pub(super) fn every(period: i64) -> Batches {
        Batches { period, sent: None }
    }

    /// How late a release may be where a batch explains a part of that.
    pub(super) fn limit(self, late: i64) -> i64 {
        PROMPT_NS.get().max(late - self.period)
    }

    /// The same of what came so late, that long after the small segment, where its ACK lets it come no sooner than this.
    #[cold]
    fn late(self, [soonest, came]: [i64; 2], ticks: Option<i32>, late: i64) -> i64 {
        if self.is_between(came, ticks) {
            return late;
        }
        (came - next(soonest, self.period)).max(0).min(late)
    }

    /// Whether a packet was sent between two batches, so many ticks after one that was sent as a batch came.
    fn is_between(self, seen: i64, ticks: Option<i32>) -> bool {
        let sent = ticks.and_then(|ticks| sent(seen, ticks, self.period));
        self.sent
            .zip(sent)
            .is_some_and(|(since, sent)| !is_within(sent, since, self.period))
    }
}

/// The batches with which passes what held ACKs free, if it does.
pub(super) fn of(gaps: &[Gap], j: &Judged) -> Option<Batches> {
    if 2 * j.sender_rtt < BATCH_NS.least.get() {
        return None; // no line lies between
    }
    let held = gaps.iter().filter(|gap| j.is_held(gap) && gap.release > 0);
    let held: Vec<&Gap> = held.collect();
    let period = period(gaps, &held, j)?;
    let sent = held
        .iter()
        .filter_map(|gap| sent(gap.wait + gap.release, gap.ticks?, period));
    let sent: Vec<i64> = sent.collect();
    // two of three ticks are no evidence
    if 2 * period < 3 * BATCH_SENT_NS.get() || BATCH_PARTS.get() * (held.len() - sent.len()) > held.len() {
        return Some(Batches { period, sent: None });
    }
    let within = |since: i64| {
        sent.iter()
            .filter(|sent| is_within(**sent, since, period))
            .count()
    };
    let tried = sent.iter().step_by(sent.len() / USED + 1);
    let (most, since) = tried.map(|since| (within(*since), *since)).max()?;
    (BATCH_PARTS.get() * (sent.len() - most) <= sent.len()).then_some(Batches {
        period,
        sent: Some(since),
    })
}

/// When in a batch a packet was sent, so many ticks after one that was sent as a batch came; both passed the capture so far
/// apart. None where that clock does not count milliseconds.
fn sent(seen: i64, ticks: i32, period: i64) -> Option<i64> {
    let counted = i64::from(ticks) * TICK_NS;
    let counts_ms = (seen - counted).abs() <= seen / BELIEVED_PART.get();
    counts_ms.then(|| counted.rem_euclid(period))
}

fn is_within(sent: i64, since: i64, period: i64) -> bool {
    (sent - since).rem_euclid(period) < BATCH_SENT_NS.get()
}

/// The time between two batches.
fn period(gaps: &[Gap], held: &[&Gap], j: &Judged) -> Option<i64> {
    let mut late: Vec<i64> = held.iter().map(|gap| gap.release - j.sender_rtt).collect();
    late.sort_unstable();
    if held.len() < ENOUGH.get() || at_share(&late, 0.5)? <= SOON_NS.get() {
        return None; // no batch is needed to explain these
    }
    let between = between(gaps);
    let few = between.get(..ENOUGH.get() * 2)?;
    let longest = BATCH_NS.most.get().min(2 * j.sender_rtt);
    let shorter = |period: &i64| Some(period - period / STEP);
    let periods = std::iter::successors(Some(longest), shorter);
    let periods = periods.take_while(|period| *period >= BATCH_NS.least.get());
    let fit = |period| {
        let fit = fits(few, period);
        if fit > FITS.get() {
            fits(&between, period)
        } else {
            fit
        }
    };
    let tried: Vec<(f64, i64)> = periods.map(|period| (fit(period), period)).collect();
    let (_, best) = tried
        .iter()
        .copied()
        .max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    // parts of a period fit as well as it does
    let whole = (1..=longest / best)
        .rev()
        .map(|part| refined(&between, best * part));
    let period = whole
        .flatten()
        .find(|period| fits(&between, *period) >= FITS_WELL.get())?;
    let fit = fits(&between, period);
    let luck = tried.len() as f64 * (-(between.len() as f64) * fit * fit).exp();
    (luck <= TICK_LUCK.get() && differ(held, period, j)).then_some(period)
}

/// The times between its sender's packets, without those of one batch and the long ones.
fn between(gaps: &[Gap]) -> Vec<i64> {
    let ends = |gap: &Gap| [gap.acked_at - gap.wait, gap.acked_at + gap.release];
    let mut passed: Vec<i64> = gaps.iter().flat_map(ends).collect();
    passed.sort_unstable();
    let steps = passed
        .iter()
        .zip(passed.iter().skip(1))
        .map(|(one, next)| next - one);
    let steps = steps.filter(|step| (BATCH_NS.least.get() / 2..=BATCH_APART_NS.get()).contains(step));
    let steps: Vec<i64> = steps.collect();
    steps.iter().step_by(steps.len() / USED + 1).copied().collect()
}

/// How well times are whole numbers of a period, from 1 (all of them) over 0 (anything) to -1.
fn fits(times: &[i64], period: i64) -> f64 {
    let turns = times
        .iter()
        .map(|time| (*time as f64 / period as f64 * TAU).cos());
    turns.sum::<f64>() / times.len().max(1) as f64
}

/// The period that fits best, near one that fits (least squares).
fn refined(times: &[i64], period: i64) -> Option<i64> {
    let counts = || {
        times
            .iter()
            .map(|time| ((*time as f64 / period as f64).round(), *time as f64))
    };
    let squares: f64 = counts().map(|(count, _)| count * count).sum();
    let sum: f64 = counts().map(|(count, time)| count * time).sum();
    (squares > 0.0).then(|| (sum / squares) as i64)
}

/// Whether these took several numbers of batches, and the ACKs in them lie anywhere between. Where most took one number, a
/// program's pause may be as long: unless others followed their ACKs, with the next batch behind them.
fn differ(held: &[&Gap], period: i64, j: &Judged) -> bool {
    let batches = |gap: &Gap| (gap.wait + gap.release + period / 2) / period;
    let mut numbers: Vec<i64> = held.iter().map(|gap| batches(gap)).collect();
    numbers.sort_unstable();
    let alike = numbers.chunk_by(|one, next| one == next);
    let usual = alike.max_by_key(|alike| alike.len()).and_then(<[i64]>::first);
    let others = || held.iter().filter(|gap| Some(&batches(gap)) != usual);
    let follow = others().filter(|gap| batches(gap) * period == next(gap.wait + j.sender_rtt, period));
    let (others, follow) = (others().count(), follow.count());
    let several = BATCH_PARTS.get() * others >= held.len()
        || follow >= HELD_AWAY.get() && STRAY_PART.get() * follow >= held.len() && 2 * follow >= others;
    several && together(held, period) <= FITS_WELL.get()
}

/// How closely the ACKs lie together in a batch, from 0 (anywhere) to 1.
fn together(held: &[&Gap], period: i64) -> f64 {
    let turns = held
        .iter()
        .map(|gap| (gap.wait % period) as f64 / period as f64 * TAU);
    let (x, y) = turns.fold((0.0, 0.0), |(x, y), turn| (x + turn.cos(), y + turn.sin()));
    x.hypot(y) / held.len().max(1) as f64
}

/// The end of the batch in which so much time ends.
fn next(time: i64, period: i64) -> i64 {
    (time + period - 1) / period * period
}

impl Judged {
    /// How much later than the path needs what an ACK freed passed, without what the path took for sure. Where the line hands
    /// over packets in batches it is how much later than the next one, unless it was sent between two.
    #[inline]
    pub(in crate::judge) fn late(&self, gap: &Gap) -> i64 {
        let late = gap.release - self.sender_rtt;
        let sent = late - self.took(gap).min(late.max(0));
        match self.batches {
            Some(batches) => {
                let passed = [self.sender_rtt, gap.release].map(|after| gap.wait + after);
                batches.late(passed, gap.ticks, late).min(sent)
            }
            None => sent,
        }
    }
}

#[cfg(test)]
mod tests;
