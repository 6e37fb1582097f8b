//! Situations one by one, then random segmentations and random numbers.

use proptest::prelude::*;

use super::*;

/// What was given, by place: `None` where a byte is missing.
#[derive(Default)]
struct Given(Vec<Option<u8>>);

impl Given {
    fn take(&mut self) -> impl FnMut(Stretch<'_>) {
        |piece| match piece {
            Stretch::Bytes(bytes) => self.0.extend(bytes.iter().copied().map(Some)),
            Stretch::Missing(len) => self.0.extend(std::iter::repeat_n(None, len as usize)),
        }
    }

    fn text(&self) -> String {
        self.0
            .iter()
            .map(|byte| char::from(byte.unwrap_or(b'_')))
            .collect()
    }
}

#[test]
fn first_copy_wins_and_holes_wait_for_the_ack_and_for_data() {
    let (mut stream, mut given) = (Assembler::new(), Given::default());
    stream.start(10);
    stream.start(99);
    let _ = stream.data(12, 2, b"CD", &mut given.take());
    let _ = stream.data(9, 6, b"?abxxe", &mut given.take());
    assert_eq!(
        (given.text().as_str(), stream.next(), stream.held()),
        ("abCDe", Some(15), 0)
    );
    stream.acked(20, &mut given.take());
    assert_eq!(given.text(), "abCDe");
    let _ = stream.data(17, 3, b"h", &mut given.take());
    assert_eq!(given.text(), "abCDe__h__");
    stream.fin(22, &mut given.take());
    assert!(!stream.is_ended());
    stream.acked(23, &mut given.take());
    assert_eq!((given.text().as_str(), stream.is_ended()), ("abCDe__h____", true));
}

#[test]
fn a_hole_that_the_peer_does_not_acknowledge_waits_until_the_finish() {
    let (mut stream, mut given) = (Assembler::new(), Given::default());
    let _ = stream.data(0, 1, b"a", &mut given.take());
    let _ = stream.data(3, 1, b"d", &mut given.take());
    stream.acked(2, &mut given.take());
    assert_eq!((given.text().as_str(), stream.held()), ("a", 1));
    stream.finish(&mut given.take());
    assert_eq!((given.text().as_str(), stream.held()), ("a__d", 0));
}

#[test]
fn what_lacks_before_a_fin_is_not_given_behind_the_finish() {
    let (mut stream, mut given) = (Assembler::new(), Given::default());
    let _ = stream.data(0, 1, b"a", &mut given.take());
    assert!(!stream.has_pending());
    stream.fin(3, &mut given.take());
    assert!(stream.has_pending());
    stream.finish(&mut given.take());
    stream.acked(4, &mut given.take());
    assert_eq!((given.text().as_str(), stream.has_pending()), ("a", false));
}

#[test]
fn caps_hold_and_are_told() {
    let (mut stream, mut exceeded) = (Assembler::new(), 0);
    stream.start(0);
    for index in 1..10_000 {
        exceeded += usize::from(stream.data(index * 2, 1, b"x", &mut |_| {}) == Caps::Exceeded);
        assert!(stream.held() <= MAX_HELD_SEGMENTS);
    }
    assert_eq!(exceeded, 9_999 - MAX_HELD_SEGMENTS);

    let (mut stream, mut given, block) = (Assembler::new(), 0, vec![0; 60_000]);
    stream.start(0);
    for index in 0..100 {
        let _ = stream.data(1 + index * 60_000, 60_000, &block, &mut |piece| {
            given += piece.len()
        });
        assert!(stream.held() <= MAX_HELD_BYTES);
    }
    assert_eq!(given, 6_000_001);
    assert!(size_of::<Assembler>() <= 48);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Repeats, overlaps, other orders, cut segments and early ACKs: every byte comes at its place, once.
    #[test]
    fn any_segmentation_gives_the_stream(
        text in prop::collection::vec(any::<u8>(), 1..300),
        segments in prop::collection::vec((any::<u16>(), 1..80usize, 0..80usize, any::<u8>()), 0..40),
        base in prop_oneof![Just(0), Just(u64::MAX - 400), any::<u32>().prop_map(u64::from)],
    ) {
        let (mut stream, mut given) = (Assembler::new(), Given::default());
        stream.start(base);
        for (start, len, kept, ack) in segments {
            let start = usize::from(start) % text.len();
            let segment = &text[start..text.len().min(start + len)];
            let kept = if kept < 60 { segment } else { &segment[..segment.len().min(kept - 60)] };
            let _ = stream.data(base + start as u64, segment.len() as u64, kept, &mut given.take());
            if ack < 20 {
                stream.acked(base + u64::from(ack) * 10, &mut given.take());
            }
        }
        for (index, chunk) in text.chunks(7).enumerate().collect::<Vec<_>>().into_iter().rev() {
            let _ = stream.data(base + index as u64 * 7, chunk.len() as u64, chunk, &mut given.take());
        }
        prop_assert_eq!(given.0.len(), text.len());
        prop_assert!(given.0.iter().zip(&text).all(|(given, sent)| given.is_none_or(|given| given == *sent)));
        prop_assert!(stream.held.is_none() && stream.next() == Some(base + text.len() as u64));
    }

    /// Whole segments and true ACKs lose nothing.
    #[test]
    fn whole_segments_give_every_byte(
        text in prop::collection::vec(any::<u8>(), 1..300),
        segments in prop::collection::vec((any::<u16>(), 1..80usize), 0..40),
    ) {
        let (mut stream, mut given) = (Assembler::new(), Given::default());
        stream.start(7);
        let places = segments.iter().map(|(start, len)| (usize::from(*start) % text.len(), *len));
        for (start, len) in places.chain([(0, text.len())]) {
            let segment = &text[start..text.len().min(start + len)];
            let _ = stream.data(7 + start as u64, segment.len() as u64, segment, &mut given.take());
            stream.acked(stream.next().unwrap_or(0), &mut given.take());
        }
        prop_assert!(given.0.iter().copied().eq(text.iter().copied().map(Some)));
    }

    #[test]
    fn any_numbers_do_no_harm(calls in prop::collection::vec((0..5, any::<u64>(), any::<u64>(), 0..9usize), 0..30)) {
        let (mut stream, mut total) = (Assembler::new(), 0u64);
        let mut give = |piece: Stretch<'_>| total = total.checked_add(piece.len()).unwrap();
        for (what, offset, len, captured) in calls {
            match what {
                0 => stream.start(offset),
                1 => stream.acked(offset, &mut give),
                2 => stream.fin(offset, &mut give),
                3 => stream.finish(&mut give),
                _ => { let _ = stream.data(offset, len, &[0; 9][..captured], &mut give); }
            }
        }
    }
}
