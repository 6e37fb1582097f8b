use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::*;

fn there_and_back<T: Pack + PartialEq + std::fmt::Debug>(value: T) -> usize {
    let (mut out, mut words, base) = (
        Vec::new(),
        Words::default(),
        (1_000_000, 1_700_000_000_000_000_000),
    );
    let mut packer = Packer::new(&mut out, &mut words, base);
    value.pack(&mut packer);
    7u8.pack(&mut packer);
    let packed = packer.finish().to_vec();
    let mut unpacker = Unpacker::new(&packed, &words, base);
    assert_eq!(T::unpack(&mut unpacker), value);
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
