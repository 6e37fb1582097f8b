//! Cuts the steps of one direction to the time of an exchange, and merges steps where there are too many.

use crate::base::{At, Side};
use crate::observe::{Step, Wait};

/// A step, cut to the exchange that it belongs to; times in ns.
#[derive(Debug, Clone, Copy)]
pub struct TimeSlice<'a> {
    pub start_ns: i64,
    pub end_ns: i64,
    /// Packets at its two ends: the step's own, or the exchange's where the step was cut.
    pub from_frame: u64,
    pub to_frame: u64,
    /// When this side's part of the exchange began, in ns: for the server, when it had the request.
    pub request_at_ns: i64,
    pub sender: Side,
    pub step: &'a Step,
}

/// Stands for time that no step covers, which is judged as a gap of the capture.
static UNSEEN: Step = Step {
    from: NOWHERE,
    to: NOWHERE,
    wait: Wait::Hole,
};
const NOWHERE: At = At { frame: 0, time_ns: 0 };

/// The steps that end after `start`.
fn after(steps: &[Step], start: At) -> &[Step] {
    let before = |step: &Step| step.to.time_ns <= start.time_ns;
    match steps.first() {
        Some(first) if before(first) => steps.get(steps.partition_point(before)..).unwrap_or_default(),
        _ => steps,
    }
}

/// The steps that overlap [start, end].
pub(super) fn between(steps: &[Step], start: At, end: At) -> impl Iterator<Item = &Step> {
    after(steps, start)
        .iter()
        .take_while(move |step| step.from.time_ns < end.time_ns)
}

/// Iterator over one side's steps, cut to [start, end]; `UNSEEN` fills the holes.
pub(super) struct CutSteps<'a> {
    steps: std::slice::Iter<'a, Step>,
    sender: Side,
    start_ns: i64,
    /// Start of the part not yet returned.
    at: At,
    end: At,
}

impl<'a> CutSteps<'a> {
    #[inline(always)]
    pub(super) fn new(steps: &'a [Step], sender: Side, start: At, end: At) -> Self {
        CutSteps {
            steps: after(steps, start).iter(),
            sender,
            start_ns: start.time_ns,
            at: start,
            end,
        }
    }
}

impl<'a> Iterator for CutSteps<'a> {
    type Item = TimeSlice<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<TimeSlice<'a>> {
        let (at, end) = (self.at, self.end);
        if at.time_ns >= end.time_ns {
            return None;
        }
        let mut passed = None;
        let (until, step) = loop {
            match self.steps.as_slice().first() {
                Some(step) if step.from.time_ns > at.time_ns => break (step.from, &UNSEEN),
                Some(step) => {
                    self.steps.next();
                    if step.to.time_ns > at.time_ns {
                        break (step.to, step);
                    }
                    if step.to.time_ns == at.time_ns {
                        passed = Some(step.to); // a later packet with an equal time stamp
                    }
                }
                None => break (end, &UNSEEN),
            }
        };
        let at = passed.unwrap_or(at);
        let until = if until.time_ns <= end.time_ns { until } else { end };
        self.at = until;
        Some(TimeSlice {
            start_ns: at.time_ns,
            end_ns: until.time_ns,
            from_frame: at.frame,
            to_frame: until.frame,
            request_at_ns: self.start_ns,
            sender: self.sender,
            step,
        })
    }
}

/// Slices of a dialogue: steps of either side in the order of their ends, each from the end of the one before.
pub(super) fn take_turns<'a>(
    steps: [&'a [Step]; 2],
    start: At,
    end: At,
    give: &mut impl FnMut(TimeSlice<'a>),
) {
    let [client, server] = steps.map(|steps| after(steps, start).iter().peekable());
    let (mut client, mut server, mut at) = (client, server, start);
    while at.time_ns < end.time_ns {
        let (sender, step) = match (client.peek(), server.peek()) {
            (Some(client_step), Some(server_step)) if server_step.to.time_ns < client_step.to.time_ns => {
                (Side::Server, server.next())
            }
            (None, Some(_)) => (Side::Server, server.next()),
            _ => (Side::Client, client.next()),
        };
        let Some(step) = step else { break };
        let until = if step.to.time_ns <= end.time_ns {
            step.to
        } else {
            end
        };
        if until.time_ns > at.time_ns {
            give(TimeSlice {
                start_ns: at.time_ns,
                end_ns: until.time_ns,
                // among packets with equal time stamps, the step's own
                from_frame: if step.from.time_ns == at.time_ns {
                    step.from.frame
                } else {
                    at.frame
                },
                to_frame: until.frame,
                request_at_ns: at.time_ns,
                sender,
                step,
            });
            at = until;
        }
    }
    if at.time_ns < end.time_ns {
        give(TimeSlice {
            start_ns: at.time_ns,
            end_ns: end.time_ns,
            from_frame: at.frame,
            to_frame: end.frame,
            request_at_ns: at.time_ns,
            sender: Side::Server,
            step: &UNSEEN,
        });
    }
}

/// Halves the number of steps: two neighbours become one, with the cause of the longer one.
pub(super) fn merge_pairs(steps: &mut Vec<Step>) {
    let mut unmerged = std::mem::take(steps).into_iter();
    while let Some(first) = unmerged.next() {
        let Some(second) = unmerged.next() else {
            steps.push(first);
            break;
        };
        let (from, to) = (first.from, second.to);
        let longer = if second.to.time_ns - second.from.time_ns > first.to.time_ns - first.from.time_ns {
            second
        } else {
            first
        };
        steps.push(Step { from, to, ..longer });
    }
}
