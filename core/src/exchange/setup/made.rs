//! A set-up as it is kept of a connection that is over: most were made in three packets, soon one after the other.

use std::num::NonZeroU32;

use super::Setup;
use crate::base::At;

/// In as little room as it needs.
#[derive(Debug)]
pub enum Kept {
    Made(Made),
    /// Of which packets came twice, or late.
    Whole(Box<Setup>),
}

/// A set-up of which no packet was sent again, counted from its SYN.
#[derive(Debug)]
pub struct Made {
    answered: Option<Since>,
    ended: Option<Since>,
    used: Option<Since>,
    refused: bool,
    over: bool,
}

/// So much later: in frames and nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Since {
    frames: NonZeroU32,
    ns: u32,
}

impl Since {
    /// None where it is earlier, or more than four seconds later.
    fn of(syn: At, at: At) -> Option<Self> {
        let frames = u32::try_from(at.frame.checked_sub(syn.frame)?).ok()?;
        Some(Since {
            frames: NonZeroU32::new(frames)?,
            ns: u32::try_from(at.time_ns.checked_sub(syn.time_ns)?).ok()?,
        })
    }

    fn at(self, syn: At) -> At {
        At {
            frame: syn.frame + u64::from(self.frames.get()),
            time_ns: syn.time_ns + i64::from(self.ns),
        }
    }
}

impl Kept {
    /// Of a connection that began with the packet `syn`.
    pub fn of(setup: Setup, syn: At) -> Self {
        let since = |at: Option<At>| at.and_then(|at| Since::of(syn, at));
        let made = Made {
            answered: since(setup.answered),
            ended: since(setup.ended),
            used: since(setup.used),
            refused: setup.refused,
            over: setup.over,
        };
        if made.setup(syn) == setup {
            Kept::Made(made)
        } else {
            Kept::Whole(Box::new(setup))
        }
    }

    /// As it was.
    pub fn setup(self, syn: At) -> Setup {
        match self {
            Kept::Made(made) => made.setup(syn),
            Kept::Whole(setup) => *setup,
        }
    }
}

impl Made {
    fn setup(&self, syn: At) -> Setup {
        let at = |since: Option<Since>| since.map(|since| since.at(syn));
        Setup {
            answered: at(self.answered),
            answered_again: at(self.answered).unwrap_or_default(),
            ended: at(self.ended),
            used: at(self.used),
            refused: self.refused,
            over: self.over,
            ..Setup::new(syn)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(frame: u64, time_ns: i64) -> At {
        At { frame, time_ns }
    }

    fn kept(setup: Setup) -> bool {
        let kept = Kept::of(setup, at(9, 100));
        let brief = matches!(kept, Kept::Made(_));
        assert_eq!(kept.setup(at(9, 100)), setup);
        brief
    }

    #[test]
    fn a_setup_is_brief_where_nothing_came_twice_or_late() {
        let most = i64::from(u32::MAX);
        let made = Setup {
            answered: Some(at(10, 100)),
            answered_again: at(10, 100),
            ended: Some(at(12, 100 + most)),
            over: true,
            ..Setup::new(at(9, 100))
        };
        assert!(kept(made) && kept(Setup::new(at(9, 100))));
        let used = |used| Setup {
            used: Some(used),
            ..made
        };
        assert!(kept(used(at(13, 100 + most))));
        assert!(!kept(used(at(13, 101 + most))) && !kept(used(at(13, 99))) && !kept(used(at(9, 100))));
        let first_syn = |first_syn| Setup {
            last_syn: first_syn,
            ..made
        };
        assert!(
            !kept(first_syn(at(10, 200)))
                && !kept(Setup {
                    first_syn: None,
                    ..made
                })
        );
        let stamps = [None, Some(7)];
        assert!(!kept(Setup { stamps, ..made }));
        let answered_again = at(11, 200);
        assert!(!kept(Setup {
            answered_again,
            ..made
        }));
    }
}
