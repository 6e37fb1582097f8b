//! One step of the server, judged: its rows.

use latpcap_core::base::At;
use latpcap_core::exchange::Exchange;
use latpcap_core::judge::{self, ExchangeContext, NagleUse, Paths, Row, SenderVerdict};
use latpcap_core::observe::{Candidate, Step, Wait};

use crate::common::MS;

pub const US: i64 = 1000;

/// The capture is 2 ms there and back from either end.
pub fn proven() -> SenderVerdict {
    let mut judged = SenderVerdict {
        nagle_use: NagleUse::Acts,
        ..SenderVerdict::default()
    };
    judged.measures.holds.count = 20;
    judged.measures.path.prompt_limit_ns = 2 * MS;
    (
        judged.measures.path.sender_rtt_ns,
        judged.measures.path.receiver_rtt_ns,
    ) = (2 * MS, 2 * MS);
    judged
}

/// The ACK was held for 43 ms.
pub fn stall() -> Candidate {
    let at = |frame, time_ns| At { frame, time_ns };
    Candidate {
        small: at(3, 0),
        held_from: at(3, 0),
        ack: at(4, 45 * MS),
        ack_lacks_data: true,
        freed: at(5, 47 * MS + 10 * US),
        freed_bytes: 612,
        ..Candidate::default()
    }
}

/// The rows of one step of the server, from 0 on.
pub fn cut(wait: Wait, from: i64, to: i64, judged: &[SenderVerdict], paths: &Paths) -> Vec<Row> {
    let at = |frame, time_ns| At { frame, time_ns };
    let step = Step {
        from: at(1, from),
        to: at(9, to),
        wait,
    };
    let mut rows = Vec::new();
    let mut exchange = Exchange::default();
    (exchange.request.first, exchange.request.last) = (step.from, step.to);
    exchange.is_dialogue = true;
    exchange.steps[1].push(step);
    let known = ExchangeContext {
        paths,
        stream: 0,
        judged_senders: judged,
        spurious_frames: None,
        is_spread: false,
        calls_others: false,
        is_multi_message: false,
    };
    judge::judge_exchange(&exchange, &known, &mut rows);
    rows
}
