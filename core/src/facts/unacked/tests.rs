//! Long lists that are sorted tell the same as lists that are looked through.

use proptest::prelude::*;

use super::*;

/// All that were sent, in that order, looked through for each question.
#[derive(Default)]
struct Plain(Vec<Sent>);

impl Plain {
    fn acknowledge(&mut self, ack: u32) -> Acknowledged {
        let (mut credited, mut first, mut last) = (None, None::<Sent>, None::<Sent>);
        for sent in self.0.iter().rev() {
            if lt(ack, sent.next) && !lt(sent.seq, ack) {
                continue;
            }
            if first.is_none_or(|first| {
                lt(sent.seq, first.seq) || sent.seq == first.seq && sent.frame < first.frame
            }) {
                first = Some(*sent);
            }
            last = last.filter(|last| last.frame >= sent.frame).or(Some(*sent));
            credited = if sent.next == ack { Some(*sent) } else { credited };
        }
        let covered = first.zip(last).map(|(first, last)| Covered {
            bytes: ack.wrapping_sub(first.seq),
            first_frame: first.frame,
            first_time_ns: first.time_ns,
            last_frame: last.frame,
            last_time_ns: last.time_ns,
        });
        self.0.retain(|sent| lt(ack, sent.next));
        for sent in &mut self.0 {
            sent.seq = if lt(sent.seq, ack) { ack } else { sent.seq };
        }
        (credited, covered)
    }

    /// Of many that begin with one byte, the oldest and the newest.
    fn thin_out(&mut self) {
        let all = std::mem::take(&mut self.0);
        for (index, sent) in all.iter().enumerate() {
            let before = all[..index].iter().filter(|other| other.seq == sent.seq).count();
            let is_last = all[index + 1..].iter().all(|other| other.seq != sent.seq);
            if before < MAX_SAME_START - 1 || is_last {
                self.0.push(*sent);
            }
        }
    }

    fn extremes(&self, base: u32) -> Option<(u32, u32)> {
        let low = self.0.iter().map(|sent| sent.seq.wrapping_sub(base)).min();
        low.zip(self.0.iter().map(|sent| sent.next.wrapping_sub(base)).max())
    }
}

/// What an ACK at time 0 tells.
fn acknowledge(list: &mut Unacked, base: u32, ack: u32) -> Facts {
    let mut facts = Facts::default();
    list.acknowledge(base, ack, 0, &mut facts);
    facts
}

#[derive(Debug, Clone)]
enum Step {
    Send(u32, u32),
    Ack(u32),
    Ask(u32),
    Rebase(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let any_near = || prop_oneof![30 => 0u32..4000, 1 => any::<u32>()];
    let step = prop_oneof![
        60 => (any_near(), 1u32..40).prop_map(|(at, len)| Step::Send(at, len)),
        3 => (0u32..1500).prop_map(Step::Ack),
        1 => any_near().prop_map(Step::Ack),
        20 => any_near().prop_map(Step::Ask),
        1 => (0u32..9).prop_map(Step::Rebase),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn long_lists_tell_what_plain_ones_tell(steps in steps(), base in prop_oneof![Just(0), Just(u32::MAX - 2000), any::<u32>()]) {
        let (mut base, start) = (base, base);
        let (mut list, mut plain) = (Unacked::default(), Plain::default());
        let (mut sorted, mut far) = (false, false);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send(at, len) => {
                    let before = |sent: &Sent| sent.seq.wrapping_sub(base) >= NEAR; // the base has moved on since
                    far |= at >= 4000 || start.wrapping_add(at).wrapping_sub(base) >= NEAR || plain.0.iter().any(before);
                    if far && (plain.0.len() >= ALWAYS_KEPT || list.sorted.is_some()) {
                        return Ok(()); // a long list has only what lies together
                    }
                    let seq = start.wrapping_add(at);
                    let frame = number as u64 / 2;
                    let sent = Sent { seq, next: seq.wrapping_add(len), frame, time_ns: frame as i64 };
                    list.push(base, sent);
                    plain.0.push(sent);
                }
                Step::Ack(at) => {
                    let ack = start.wrapping_add(at);
                    let beyond = |sent: &Sent| lt(ack, sent.next);
                    if list.rising && !plain.0.is_sorted_by_key(beyond) {
                        continue; // some of them lie half the circle away: nobody can say what it acknowledges
                    }
                    let acked = acknowledge(&mut list, base, ack);
                    let (credited, covered) = plain.acknowledge(ack);
                    prop_assert_eq!(acked.acks, credited.map(|sent| (sent.frame, -sent.time_ns)));
                    prop_assert_eq!(acked.covered, covered);
                }
                Step::Ask(at) => {
                    let seq = start.wrapping_add(at);
                    let want = plain.0.iter().find(|sent| sent.holds(seq)).copied();
                    prop_assert_eq!(list.first_copy(base, seq), want);
                }
                Step::Rebase(_) if plain.0.len() > ALWAYS_KEPT => continue, // what is long is cut
                Step::Rebase(by) => {
                    base = base.wrapping_add(by);
                    list.base_moved();
                }
            }
            if list.sorted.is_some() {
                sorted = true;
                plain.thin_out();
            }
            prop_assert_eq!(list.len(), plain.0.len());
            prop_assert_eq!(list.extremes(base), plain.extremes(base));
        }
        prop_assume!(sorted || list.len() <= ALWAYS_KEPT);
    }
}

/// Copies and numbers without an order stay few.
#[test]
fn what_a_kernel_never_sends_is_not_remembered() {
    let sent = |seq: u32, frame| Sent {
        seq,
        next: seq.wrapping_add(9),
        frame,
        time_ns: 0,
    };
    let (mut copies, mut anywhere) = (Unacked::default(), Unacked::default());
    for number in 0..1000_u32 {
        copies.push(0, sent(5, u64::from(number)));
        anywhere.push(0, sent(number.wrapping_mul(1_900_000_001), u64::from(number)));
    }
    assert!(copies.len() <= MAX_SAME_START && anywhere.len() <= MAX_UNSORTED);
    let facts = acknowledge(&mut copies, 0, 14);
    assert_eq!(facts.acks.map(|(frame, _)| frame), Some(0), "the first copy");
    assert_eq!(facts.covered.map(|covered| covered.last_frame), Some(999));
}

/// What is sorted tells at once where a look through all of them would take its time.
#[test]
fn ten_thousand_in_any_order_are_sorted() {
    let mut list = Unacked::default();
    for number in 0..10_000u32 {
        let seq = number * 7919 % 10_000 * 100;
        let frame = u64::from(number);
        list.push(
            0,
            Sent {
                seq,
                next: seq + 100,
                frame,
                time_ns: 0,
            },
        );
    }
    assert!(list.sorted.is_some() && list.list.is_empty());
    assert_eq!((list.len(), list.extremes(0)), (10_000, Some((0, 1_000_000))));
    assert_eq!(list.first_copy(0, 791_950).map(|sent| sent.frame), Some(1));
    let acked = acknowledge(&mut list, 0, 500_000);
    assert_eq!(acked.covered.map(|covered| covered.bytes), Some(500_000));
    let credited = acked.acks.map(|(frame, _)| frame * 7919 % 10_000);
    assert_eq!(credited, Some(4_999), "the one that ends there");
    assert_eq!(
        (list.len(), list.extremes(0)),
        (5_000, Some((500_000, 1_000_000)))
    );
    acknowledge(&mut list, 0, 1_000_000);
    assert!(list.len() == 0 && list.sorted.is_none());
}
