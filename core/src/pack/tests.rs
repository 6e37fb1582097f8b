use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::messages::At;

const NOW: i64 = 1_700_000_000_000_000_000;

fn there_and_back<T: Pack + PartialEq + std::fmt::Debug>(value: T) -> usize {
    let [_, sparse] = [false, true].map(|sparse| packed_and_unpacked(&value, sparse));
    sparse
}

fn packed_and_unpacked<T: Pack + PartialEq + std::fmt::Debug>(value: &T, sparse: bool) -> usize {
    let (mut out, mut words, base) = (Vec::new(), Words::default(), (1_000_000, NOW));
    let mut packer = Packer::new(&mut out, &mut words, base);
    packer.sparse = sparse;
    value.pack(&mut packer);
    7u8.pack(&mut packer);
    let packed = packer.finish().to_vec();
    let mut unpacker = Unpacker::new(&packed, &words, base);
    assert_eq!(T::unpack(&mut unpacker), *value);
    assert_eq!(u8::unpack(&mut unpacker), 7, "behind {value:?}");
    packed.len() - 1
}

#[test]
fn numbers_come_back() {
    for shift in 0..64 {
        for near in [-1i64, 0, 1] {
            let number = (1u64 << shift).wrapping_add(near as u64);
            there_and_back(number);
            there_and_back(number as i64);
            there_and_back((number as i64).wrapping_neg());
            there_and_back(number as u32);
            there_and_back(number as f64 / 1e6);
        }
    }
    assert_eq!(there_and_back([0u64; 300]), 40, "a bit each");
    assert_eq!(there_and_back(1_699_999_999_999_999_990i64), 9, "near the base");
}

#[test]
fn words_and_lists_come_back() {
    there_and_back(vec!["fin", "rst", "fin", ""]);
    there_and_back((Cow::Borrowed("GET"), Cow::<str>::Owned("BREW\u{e9}".to_string())));
    there_and_back([
        Some(IpAddr::from([10, 0, 0, 1])),
        None,
        Some(IpAddr::from([0u16; 8])),
    ]);
    there_and_back(VecDeque::from([(1u16, true), (0, false)]));
    there_and_back(BTreeMap::from([(5u64, vec![0u8; 1000])]));
}

#[derive(Debug, Clone, PartialEq)]
struct Alike {
    set: bool,
    other: bool,
    few: u8,
    some: Option<u32>,
    many: u64,
    span: i64,
    held: Option<i64>,
    time: i64,
    asked: Option<At>,
    answered: At,
    list: Vec<u16>,
}

packed!(struct Alike {
    Flags set, other;
    U32s few, some, many;
    Spans span, held;
    Times time;
    Same asked;
    Moments answered;
} rest { list });

fn alike() -> impl Strategy<Value = Alike> {
    let number = || (any::<u64>(), 0..64).prop_map(|(number, shift)| number >> shift);
    let span = move || number().prop_map(zagzig);
    let time = move || prop_oneof![Just(0), span(), span().prop_map(|span| span.wrapping_add(NOW))];
    let at = move || (number(), time()).prop_map(|(frame, time_ns)| At { frame, time_ns });
    let held = prop::option::of(span().prop_map(|span| span.min(i64::MAX - 1)));
    (
        (any::<bool>(), any::<bool>(), any::<u8>(), any::<Option<u32>>()),
        (number(), span(), held, time()),
        (
            prop::option::of(at()),
            at(),
            prop::collection::vec(any::<u16>(), 0..9),
        ),
    )
        .prop_map(
            |((set, other, few, some), (many, span, held, time), (asked, answered, list))| Alike {
                set,
                other,
                few,
                some,
                many,
                span,
                held,
                time,
                asked,
                answered,
                list,
            },
        )
}

proptest! {
    #[test]
    fn groups_come_back(all in prop::collection::vec(alike(), 0..40)) {
        there_and_back(all);
    }

    /// Whatever is read, of nothing too.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let words = Words::default();
        let mut from = Unpacker::new(&bytes, &words, (7, 9));
        for _ in 0..20 {
            from.groups::<(Flags<5>, U8s<4>, U16s<3>, U32s<2>, Zeros<2>)>();
            from.groups::<(LongSpans<2>, Spans<1>, Times<2>, Moments<3>, Same<1>)>();
            from.instant();
            u64::unpack(&mut from);
        }
        let mut nothing = Unpacker::new(&[], &words, (7, 9));
        let (U16s { 0: numbers }, Times(times), Moments { 0: moments }) = nothing.groups();
        assert_eq!((numbers, times, moments), ([0; 5], [0], [None]));
    }
}
