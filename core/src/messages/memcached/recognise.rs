//! Is it memcached's text protocol? By both sides' first lines.

use super::command::{self, Answer, Command, Wants};
use crate::messages::recognise::MAX_UNDECIDED;
use crate::messages::{FirstBytes, Guess, Side};

/// What joins a stream knows of its first line; none where that is not whole.
pub(super) fn whole_line(first: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b'\n', first)?;
    first.get(..end)?.strip_suffix(b"\r")
}

pub(super) fn sniff(first: &FirstBytes<'_>) -> Guess {
    match (first.side, whole_line(first.input)) {
        (_, None)
            if !first
                .input
                .iter()
                .all(|byte| *byte > b' ' || b" \r".contains(byte)) =>
        {
            Guess::No
        }
        (Side::Client, None) if first.began == Side::Server && first.other.is_empty() => Guess::No,
        (Side::Server, None) if !command::may_answer(first.input) => Guess::No,
        (_, None) if first.input.len() < MAX_UNDECIDED => Guess::More,
        (Side::Client, None) if Command::is_known(first.input) => Guess::NeedsOtherSide, // many keys
        (_, None) => Guess::No,
        (Side::Client, Some(line)) if Command::is_sure(line) => Guess::Yes,
        (Side::Client, Some(line)) if !Command::is_known(line) => Guess::No,
        (Side::Server, Some(line)) if !command::is_answer(line) && !digits(line) => Guess::No,
        (_, Some(_)) if first.other.is_empty() => Guess::NeedsOtherSide,
        (Side::Client, Some(_)) => answered(first.input, first.other),
        (Side::Server, Some(_)) => answered(first.other, first.input),
    }
}

fn digits(line: &[u8]) -> bool {
    (1..=20).contains(&line.len()) && line.iter().all(u8::is_ascii_digit)
}

/// Whether these commands may have these answers.
fn answered(request: &[u8], input: &[u8]) -> Guess {
    let (Some(line), Some(answer)) = (whole_line(request), whole_line(input)) else {
        return Guess::NeedsOtherSide;
    };
    let wants = Command::of(line, false).wants;
    let fits = match wants {
        // any line answers it: too little
        Wants::Line | Wants::Watch | Wants::Lines => command::is_answer(answer),
        _ => wants.answer(answer, false) != Answer::Other || command::is_answer(answer),
    };
    if Command::is_known(line) && fits {
        Guess::Yes
    } else {
        Guess::No
    }
}
