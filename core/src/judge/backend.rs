//! Another server: the program waited for a request of its host to that server, which has a verdict of its own.
//!
//! Claims: this exchange's server waited for the request that lies inside it. Predictions and rivals: see `inside`.

use super::grounds::Grounds;
use super::partition::Row;
use super::vocabulary::{Because, Cause, Owner, Rule};

/// Replaces the server program's time in `rows` by the rows of the inner request, as far as those cover it. `doubt`
/// weakens them to probable; None if the nesting is proven.
pub fn explain(rows: &mut Vec<Row>, inside: &[Row], doubt: Option<Because>) {
    let before = std::mem::take(rows);
    for row in before {
        if row.cause != Cause::ServerThink || row.owner != Owner::Server {
            rows.push(row);
            continue;
        }
        let mut at = row.start_ns;
        let inner_rows = inside.iter();
        for inner in inner_rows.filter(|inner| inner.end_ns > row.start_ns && inner.start_ns < row.end_ns) {
            let (start, end) = (inner.start_ns.max(at), inner.end_ns.min(row.end_ns));
            if start > at {
                rows.push(Row {
                    start_ns: at,
                    end_ns: start,
                    ..row
                });
            }
            rows.push(Row {
                start_ns: start,
                end_ns: end,
                ..passed_on(inner, doubt)
            });
            at = end;
        }
        if at < row.end_ns {
            rows.push(Row { start_ns: at, ..row });
        }
    }
}

/// Returns a row of the inner request as one of the outer one: its owner is the backend, its parent the server's
/// program.
fn passed_on(row: &Row, doubt: Option<Because>) -> Row {
    let mut row = *row;
    (row.rule, row.parent) = (Rule::Backend, Some(Cause::ServerThink));
    if row.owner != Owner::Capture {
        row.owner = Owner::Backend;
    }
    if row.cause == Cause::ClientThink {
        row.cause = Cause::ServerThink; // the inner client is this server, or a proxy between
    }
    if let Some(because) = doubt {
        row.grounds
            .at_most(Grounds::probable(because, Cause::ServerThink));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Grade;

    fn row(start: i64, end: i64, cause: Cause, owner: Owner) -> Row {
        Row {
            start_ns: start,
            end_ns: end,
            cause,
            parent: (cause == Cause::DelayedAck).then_some(Cause::Nagle),
            owner,
            from_frame: 1,
            to_frame: 2,
            evidence: [1, 2, 0],
            rule: Rule::Turn,
            grounds: Grounds::proven(Because::PathBounded),
        }
    }

    fn summary(rows: &[Row]) -> Vec<(i64, i64, Cause, Owner)> {
        rows.iter()
            .map(|row| (row.start_ns, row.end_ns, row.cause, row.owner))
            .collect()
    }

    #[test]
    fn only_the_programs_time_is_explained_and_none_is_lost() {
        let mut rows = vec![
            row(0, 10, Cause::Network, Owner::Network),
            row(10, 60, Cause::ServerThink, Owner::Server),
            row(60, 70, Cause::DelayedAck, Owner::Client),
        ];
        let inside = [
            row(5, 20, Cause::ClientThink, Owner::Client),
            row(20, 50, Cause::DelayedAck, Owner::Client),
            row(50, 65, Cause::CaptureGap, Owner::Capture),
        ];
        explain(&mut rows, &inside, None);
        assert_eq!(
            summary(&rows),
            [
                (0, 10, Cause::Network, Owner::Network),
                (10, 20, Cause::ServerThink, Owner::Backend),
                (20, 50, Cause::DelayedAck, Owner::Backend),
                (50, 60, Cause::CaptureGap, Owner::Capture),
                (60, 70, Cause::DelayedAck, Owner::Client),
            ]
        );
        let held = rows.get(2).unwrap();
        assert_eq!(
            (held.parent, held.rule),
            (Some(Cause::ServerThink), Rule::Backend)
        );
        assert_eq!(held.grounds.grade, Grade::Proven);
        // a second request takes nothing from the first
        explain(&mut rows, &[row(0, 70, Cause::Rto, Owner::Network)], None);
        assert!(rows.iter().all(|row| row.cause != Cause::Rto));
    }

    #[test]
    fn what_is_before_and_behind_stays_the_programs() {
        let mut rows = vec![row(0, 50, Cause::ServerThink, Owner::Server)];
        explain(
            &mut rows,
            &[row(10, 40, Cause::Network, Owner::Network)],
            Some(Because::FewInside),
        );
        assert_eq!(
            summary(&rows),
            [
                (0, 10, Cause::ServerThink, Owner::Server),
                (10, 40, Cause::Network, Owner::Backend),
                (40, 50, Cause::ServerThink, Owner::Server),
            ]
        );
        let [before, inside] = [0, 1].map(|n: usize| rows.get(n).unwrap().grounds);
        assert_eq!(before.grade, Grade::Proven);
        assert_eq!(
            (inside.grade, inside.because),
            (Grade::Probable, Because::FewInside)
        );
    }
}
