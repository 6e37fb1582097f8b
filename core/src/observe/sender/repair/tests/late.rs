//! Which ACKs show that a first copy came late.

use super::*;

/// An ACK of the peer, so late, which says nothing new but these.
fn heard(time_ns: i64, ack: i64, tsecr: Option<u32>) -> PeerPacket {
    PeerPacket {
        at: At {
            frame: time_ns as u64 + 1,
            time_ns,
        },
        ack,
        window: 9999,
        is_scale_known: true,
        is_duplicate: ack == 0,
        tsecr,
        is_echoed: true,
        ..PeerPacket::default()
    }
}

/// Sent at 0, and again after 225 ms.
fn sent_twice(tsval: Option<u32>) -> Sender {
    let mut sender = sent();
    let again = Data {
        tsval,
        ..data(225 * MS, 0, 100)
    };
    sender.data(&again, Some(0), None);
    sender
}

#[test]
fn an_ack_of_the_first_copy_echoes_an_older_stamp_or_comes_too_soon() {
    let shown = |sent, echo, after| {
        let ack = heard(225 * MS + after, 100, echo);
        sent_twice(sent).answers_first_copy(&ack, Some(20 * MS)).is_some()
    };
    assert!(shown(Some(700), Some(699), 20 * MS) && !shown(Some(700), Some(700), MS));
    assert!(
        shown(None, None, 19 * MS - 1) && !shown(None, None, 19 * MS),
        "ANSWERED_SHARE"
    );
    let beyond = heard(226 * MS, 99, None);
    assert_eq!(
        sent_twice(None).answers_first_copy(&beyond, Some(20 * MS)),
        None,
        "not of all"
    );
    let more = |again: [usize; 2]| {
        let mut sender = sent_twice(None);
        sender.answer(&heard(226 * MS, 100, None));
        for (start, times) in [(100, again[0]), (200, again[1])] {
            for time_ns in [227 * MS, 229 * MS].into_iter().take(times) {
                sender.data(&data(time_ns, start, start + 100), Some(0), None);
            }
        }
        let shown = sender.answers_first_copy(&heard(230 * MS, 300, None), Some(20 * MS));
        shown.map(|at| at.time_ns)
    };
    assert_eq!(more([1, 1]), None, "acknowledged before");
    assert_eq!(more([1, 2]), None, "behind what it acknowledges first");
    assert_eq!(more([2, 1]), Some(229 * MS));
}

#[test]
fn an_ack_of_nothing_new_answers_a_late_first_copy() {
    let shown = |later: &[Data], ack: PeerPacket| {
        let mut sender = sent_twice(None);
        sender.answer(&heard(245 * MS, 100, None));
        for data in later {
            sender.data(data, Some(0), None);
        }
        let unasked = PeerPacket {
            ack: 100,
            is_duplicate: true,
            ..ack
        };
        sender.answers_first_copy(&unasked, Some(20 * MS)).is_some()
    };
    let at = |time_ns| heard(time_ns, 0, None);
    let most = 225 * MS + 2_000_000_000; // MOST_LATE_NS
    assert!(shown(&[], at(most)) && !shown(&[], at(most + 1)));
    let next = data(300 * MS, 100, 200);
    // sooner than it can answer what is under way: ANSWERED_SHARE
    assert!(shown(&[next], at(319 * MS - 1)) && !shown(&[next], at(319 * MS)));
    assert!(
        !shown(&[next, data(301 * MS, 200, 300)], at(302 * MS)),
        "which of two came is open"
    );
    let mut lost = sent();
    lost.data(&data(MS, 100, 200), Some(0), None);
    lost.data(&data(225 * MS, 0, 100), Some(0), None);
    let called = heard(226 * MS, 0, None);
    assert_eq!(
        lost.answers_first_copy(&called, Some(20 * MS)),
        None,
        "it calls for the retransmission"
    );
    let sacked = PeerPacket {
        highest_sacked: Some(300),
        ..at(300 * MS)
    };
    assert!(!shown(&[], sacked), "it reports a hole");
}
