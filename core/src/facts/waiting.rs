//! What nobody has acknowledged of a stream that is over, in as little room as it needs.

use super::Flow;
use super::unacked::{Sent, Unacked};

/// That of both directions.
pub enum Waiting {
    /// One segment: mostly all that a RST leaves.
    One {
        from_low: bool,
        sent: Sent,
    },
    More(Box<[Unacked; 2]>),
}

impl Waiting {
    /// Takes it out of the flows. None where there is nothing.
    pub fn of(flows: &mut [Flow; 2]) -> Option<Box<Self>> {
        if flows.iter().all(|flow| flow.unacked.len() == 0) {
            return None; // the lists keep their room for the stream that has this box next
        }
        let [low, high] = flows.each_mut().map(|flow| std::mem::take(&mut flow.unacked));
        let only = match (low.len(), high.len()) {
            (_, 0) => low.only().map(|sent| (true, sent)),
            (0, _) => high.only().map(|sent| (false, sent)),
            _ => None,
        };
        Some(Box::new(match only {
            Some((from_low, sent)) => Waiting::One { from_low, sent },
            None => {
                let mut both = Box::new([low, high]);
                both.iter_mut().for_each(|unacked| unacked.shrink(0));
                Waiting::More(both)
            }
        }))
    }

    /// Puts it back.
    pub fn give_back(self, flows: &mut [Flow; 2]) {
        let both = match self {
            Waiting::One { from_low: true, sent } => [sent.into(), Unacked::default()],
            Waiting::One { sent, .. } => [Unacked::default(), sent.into()],
            Waiting::More(both) => *both,
        };
        for (flow, unacked) in flows.iter_mut().zip(both) {
            flow.unacked = unacked;
        }
    }
}
