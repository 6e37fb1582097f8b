//! Counts issues by reason: each reason has one row, however often it occurs.

use std::collections::BTreeMap;

use crate::issue::{Code, Counted, Issue, Kind};

/// Upper bound on the reasons counted apart; beyond it each kind and code has one more row, `FURTHER`.
const MAX_REASONS: usize = 4096;
const FURTHER: &str = "further reasons";

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
        let key = (issue.file, issue.kind, issue.layer, issue.reason, issue.group);
        self.newest = match self.indices.get(&key) {
            Some(index) => *index,
            None if self.indices.len() < MAX_REASONS => self.add(key, issue.clone()),
            None => self.index_of_further(issue),
        };
        self.newest
    }

    /// Finds or adds the index of the row for reasons beyond the limit, which shows the first place of any of them.
    fn index_of_further(&mut self, issue: &Issue) -> usize {
        let key = (
            u32::MAX,
            issue.kind,
            issue.code.map_or("", Code::word),
            FURTHER,
            0,
        );
        if let Some(index) = self.indices.get(&key) {
            return *index;
        }
        let further = Issue {
            layer: "capture",
            reason: FURTHER,
            detail: None,
            needed: None,
            had: None,
            group: 0,
            ..issue.clone()
        };
        self.add(key, further)
    }

    fn add(&mut self, key: Reason, issue: Issue) -> usize {
        let index = self.counted.len();
        self.indices.insert(key, index);
        self.counted.push(Counted {
            issue,
            count: 0,
            last_frame: None,
        });
        index
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
            let row = |counted: &Counted| {
                (
                    counted.issue.group,
                    counted.issue.frame,
                    counted.count,
                    counted.last_frame,
                )
            };
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
        assert_eq!(rows.last(), Some(&(0, Some(7), 9, Some(7))));
    }

    #[test]
    fn reasons_beyond_the_limit_share_a_row_for_each_kind_and_code() {
        let mut reasons = Reasons::default();
        for group in 0..MAX_REASONS as u32 {
            reasons.count(&Issue::new(Kind::Skipped, "ethernet", "unknown").grouped(group));
        }
        let cut = Issue::new(Kind::Skipped, "tcp", "cut")
            .lengths(20, 8)
            .in_file(3)
            .in_frame(5);
        let dropped = Issue::new(Kind::Distrusted, "pcapng", "dropped").coded(Code::Dropped);
        for issue in [&cut, &dropped.grouped(4), &cut] {
            reasons.count(issue);
        }
        reasons.count(&Issue::new(Kind::Skipped, "udp", "unknown").in_frame(9));
        let row = |counted: &Counted| {
            (
                counted.issue.file,
                counted.issue.sentence(),
                counted.issue.code,
                counted.count,
                counted.last_frame,
            )
        };
        let shared: Vec<_> = reasons.counted().skip(MAX_REASONS).map(row).collect();
        let further = |file, code, count, last| (file, FURTHER.to_string(), code, count, last);
        assert_eq!(shared.first(), Some(&further(3, None, 3, Some(9))));
        assert_eq!(
            shared.get(1..),
            Some(&[further(0, Some(Code::Dropped), 1, None)][..])
        );
    }
}
