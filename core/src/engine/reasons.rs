//! Counts issues by reason: each reason has one row, however often it occurs.

use std::collections::BTreeMap;

use crate::issue::{Counted, Issue, Kind};

/// Upper bound on the reasons counted apart; all others share one row.
const MAX_REASONS: usize = 4096;

/// Issues with an equal key are counted together: file, kind, layer, reason, group.
type Reason = (u32, Kind, &'static str, &'static str, u32);

#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// Indexes into `counted`.
    indices: BTreeMap<Reason, usize>,
    counted: Vec<Counted>,
    /// Index of the reason counted last: it is likely to occur next as well, as in captures with a short snap length.
    newest: usize,
}

impl Reasons {
    #[inline(always)]
    pub(super) fn count(&mut self, issue: &Issue) {
        let index = match self.counted.get(self.newest) {
            Some(newest) if is_same(&newest.issue, issue) => self.newest,
            _ => self.index_of(issue),
        };
        if let Some(counted) = self.counted.get_mut(index) {
            counted.count += 1;
            counted.last_frame = issue.frame.or(counted.last_frame);
        }
    }

    /// Returns the counts in the order of their keys.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Counted> {
        let indices = self.indices.values();
        indices.filter_map(|index| self.counted.get(*index))
    }

    /// Finds or adds the index of the issue's reason.
    #[cold]
    fn index_of(&mut self, issue: &Issue) -> usize {
        let mut key = (issue.file, issue.kind, issue.layer, issue.reason, issue.group);
        let index = self.indices.get(&key).copied();
        self.newest = index.unwrap_or_else(|| {
            if self.indices.len() >= MAX_REASONS {
                key = (0, issue.kind, "capture", "further reasons", 0);
            }
            *self.indices.entry(key).or_insert_with(|| {
                self.counted.push(Counted {
                    issue: issue.clone(),
                    count: 0,
                    last_frame: None,
                });
                self.counted.len() - 1
            })
        });
        self.newest
    }
}

/// Whether two issues are counted together.
#[inline(always)]
fn is_same(issue: &Issue, other: &Issue) -> bool {
    (issue.file, issue.kind, issue.group) == (other.file, other.kind, other.group)
        && issue.reason == other.reason
        && issue.layer == other.layer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_turns_is_counted_apart_and_beyond_the_limit_together() {
        let mut reasons = Reasons::default();
        let issue = |group: u32, frame| Issue {
            group,
            ..Issue::new(Kind::Skipped, "ethernet", "unknown").in_frame(frame)
        };
        for frame in 1..=6 {
            reasons.count(&issue(2 - frame as u32 / 3, frame));
        }
        let rows = |reasons: &Reasons| {
            let row = |c: &Counted| (c.issue.group, c.issue.frame, c.count, c.last_frame);
            reasons.counted().map(row).collect::<Vec<_>>()
        };
        let want = [
            (0, Some(6), 1, Some(6)),
            (1, Some(3), 3, Some(5)),
            (2, Some(1), 2, Some(2)),
        ];
        assert_eq!(rows(&reasons), want);
        for group in 3..MAX_REASONS as u32 + 9 {
            reasons.count(&issue(group, 7));
            reasons.count(&issue(1, 8));
        }
        let rows = rows(&reasons);
        assert_eq!(rows.len(), MAX_REASONS + 1);
        assert_eq!(
            rows.iter().map(|row| row.2).max(),
            Some(3 + MAX_REASONS as u64 + 6)
        );
        assert!(rows.iter().any(|row| row.2 == 9 && row.0 == MAX_REASONS as u32));
    }
}
