//! Grounds of an attribution: its grade, the reason, and the rival that is left.

use super::vocabulary::{Because, Cause, Grade, Hypothesis, Rival, Rule};
use super::worth::worth;

/// Grade of a row, with the reason that excludes rivals or the proof that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grounds {
    pub grade: Grade,
    pub because: Because,
    pub rival: Option<Rival>,
}

impl Grounds {
    /// Every rival is excluded.
    pub fn proven(because: Because) -> Self {
        Grounds {
            grade: Grade::Proven,
            because,
            rival: None,
        }
    }

    /// This is the best explanation; a rival is left.
    pub fn probable(because: Because, rival: impl Into<Rival>) -> Self {
        Grounds {
            grade: Grade::Probable,
            because,
            rival: Some(rival.into()),
        }
    }

    /// Exchanges client and server.
    pub(super) fn with_sides_swapped(self) -> Grounds {
        let swapped = |rival| match rival {
            Rival::Cause(cause) => Rival::Cause(cause.with_sides_swapped()),
            other => other,
        };
        Grounds {
            rival: self.rival.map(swapped),
            ..self
        }
    }

    /// Something does not fit this explanation.
    pub fn suspected(because: Because, rival: impl Into<Rival>) -> Self {
        Grounds {
            grade: Grade::Suspected,
            because,
            rival: Some(rival.into()),
        }
    }

    /// The capture does not show the cause.
    pub fn unknown(because: Because) -> Self {
        Grounds {
            grade: Grade::Unknown,
            because,
            rival: None,
        }
    }

    /// Returns the weaker of two grounds; of equal grades, the first.
    pub fn weaker(self, other: Grounds) -> Self {
        if other.grade > self.grade { other } else { self }
    }

    /// Weakens these grounds to `bound` if they are stronger.
    pub fn at_most(&mut self, bound: Grounds) {
        *self = self.weaker(bound);
    }

    /// Returns the measured precision of rows with this rule and grade.
    pub fn confidence(self, rule: Rule) -> f64 {
        worth(rule).get(self.grade as usize).copied().unwrap_or_default()
    }
}

impl From<Cause> for Rival {
    fn from(cause: Cause) -> Self {
        Rival::Cause(cause)
    }
}

impl From<Hypothesis> for Rival {
    fn from(other: Hypothesis) -> Self {
        Rival::Other(other)
    }
}
