//! Upper bounds on grades by what is known of a whole exchange or capture, applied after its rows are judged. Reads and
//! changes rows.

use super::grounds::Grounds;
use super::partition::Row;
use super::vocabulary::{Because, Cause, Grade, Hypothesis, Rule};

/// Caps all but proven stalls at suspected where packets are in the capture twice: second copies look like waits, and
/// they spoil the round trips.
#[cold]
pub fn cap_doubled(rows: &mut [Row]) {
    let is_stall = |row: &Row| {
        matches!(row.cause, Cause::Nagle | Cause::DelayedAck) && row.grounds.grade == Grade::Proven
    };
    let cap = Grounds::suspected(Because::TwiceInCapture, Hypothesis::SecondCopy);
    for row in rows.iter_mut().filter(|row| !is_stall(row)) {
        row.grounds.at_most(cap);
    }
}

/// Caps all rows at probable where parts of the messages may have passed on other connections.
#[cold]
pub fn cap_multipath(rows: &mut [Row]) {
    let cap = Grounds::probable(Because::OnOtherPaths, Hypothesis::OtherPath);
    for row in rows {
        row.grounds.at_most(cap);
    }
}

/// Caps a program's time at probable where no reader knows the protocol. The last data of one side need not be a
/// request that the other answers: they may be a push, the end of a long poll, or a keystroke. `spare_server` exempts
/// the server's time, for callers that know that the client waited for it.
pub fn cap_unknown_protocol(rows: &mut [Row], spare_server: bool) {
    cap_programs(rows, Because::OnlyTurns, spare_server);
}

/// Caps a program's time at probable where the answer waits for an event, as the request wants (a fetch from a queue, a
/// call that rings): the capture does not show how much of it was work.
#[cold]
pub fn cap_long_poll(rows: &mut [Row]) {
    cap_programs(rows, Because::WaitsForEvent, false);
}

/// Caps the server program's time at probable from the start of an answer that is a stream of events, as each piece
/// waits for an event. This reason replaces others of the same grade.
#[cold]
pub fn cap_event_stream(rows: &mut [Row], since: i64) {
    let first = rows.partition_point(|row| row.start_ns < since);
    let cap = Grounds::probable(Because::WaitsForEvent, Hypothesis::NotAsked);
    for row in rows
        .iter_mut()
        .skip(first)
        .filter(|row| row.cause == Cause::ServerThink)
    {
        row.grounds = cap.weaker(row.grounds);
    }
}

/// Caps the server program's time at probable before `until`, when earlier answers on the connection ended: this answer
/// could not overtake them, so the program may have worked on those. Cuts the row that lasts beyond `until`.
#[cold]
pub fn cap_behind_answers(rows: &mut Vec<Row>, until: i64) {
    let cap = Grounds::probable(Because::BehindAnswers, Hypothesis::EarlierRequests);
    let mut index = 0;
    while let Some(row) = rows.get_mut(index).filter(|row| row.start_ns < until) {
        index += 1;
        if row.cause != Cause::ServerThink || row.grounds.grade > Grade::Probable {
            continue;
        }
        let beyond = (row.end_ns > until).then_some(Row {
            start_ns: until,
            ..*row
        });
        row.grounds = cap;
        if let Some(beyond) = beyond {
            row.end_ns = until;
            rows.insert(index, beyond);
            index += 1;
        }
    }
}

/// Caps the programs' time at probable, but for gaps between two writes, which no protocol explains otherwise.
fn cap_programs(rows: &mut [Row], because: Because, spare_server: bool) {
    let cap = Grounds::probable(because, Hypothesis::NotAsked);
    let is_program = |row: &&mut Row| match row.cause {
        Cause::ServerThink => !spare_server && row.rule != Rule::WriteGap,
        Cause::ClientThink => row.rule != Rule::WriteGap,
        _ => false,
    };
    for row in rows.iter_mut().filter(is_program) {
        row.grounds.at_most(cap);
    }
}

/// Caps waits for an ACK with data at suspected, in time that belongs to no request: the client may have written only
/// upon the answer.
#[cold]
pub fn cap_piggyback(rows: &mut [Row]) {
    let cap = Grounds::suspected(Because::SenderNotKnown, Cause::ClientThink);
    for row in rows.iter_mut().filter(|row| row.rule == Rule::NaglePiggyback) {
        row.grounds.at_most(cap);
    }
}
