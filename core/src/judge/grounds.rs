//! How sure a hypothesis is of a piece of time, and why; and what that was measured to be worth.

use super::vocabulary::{Because, Cause, Grade, Hypothesis, Rival, Rule};
use super::worth::worth;

/// A grade, with what excludes the rivals or what is missing, and the rival that is left.
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

    /// The best explanation; a rival is left.
    pub fn probable(because: Because, rival: impl Into<Rival>) -> Self {
        Grounds {
            grade: Grade::Probable,
            because,
            rival: Some(rival.into()),
        }
    }

    /// With client and server in each other's place.
    pub(super) fn turned(self) -> Grounds {
        let turned = |rival| match rival {
            Rival::Cause(cause) => Rival::Cause(cause.turned()),
            other => other,
        };
        Grounds {
            rival: self.rival.map(turned),
            ..self
        }
    }

    /// Something does not fit here.
    pub fn suspected(because: Because, rival: impl Into<Rival>) -> Self {
        Grounds {
            grade: Grade::Suspected,
            because,
            rival: Some(rival.into()),
        }
    }

    /// The capture cannot say.
    pub fn unknown(because: Because) -> Self {
        Grounds {
            grade: Grade::Unknown,
            because,
            rival: None,
        }
    }

    /// The weaker of the two: of grades that are equal, the first.
    pub fn weaker(self, other: Grounds) -> Self {
        if other.grade > self.grade { other } else { self }
    }

    /// No surer than this.
    pub fn at_most(&mut self, most: Grounds) {
        *self = self.weaker(most);
    }

    /// What rows of this rule and grade were measured to be worth.
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
