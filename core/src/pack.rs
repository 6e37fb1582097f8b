//! State at rest: what is remembered of a stream that has been quiet while many others spoke, as few bytes as it needs.
//!
//! `packed!` names the fields of a structure once more, in any order; a field that is forgotten does not compile.
//! Numbers are written with as many bytes as they need, instants and frames by their distance to the stream's newest
//! packet where that is shorter, and a run of zeros as its length: most of a stream's state is nothing yet.
//! The bytes are this process's own and are never stored; whatever they say, reading them cannot fail.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use smol_str::SmolStr;

/// The words of this crate that were packed so far: a word is its number here.
#[derive(Debug)]
pub struct Words(Vec<&'static str>);

impl Default for Words {
    fn default() -> Self {
        Words(vec![""])
    }
}

/// Bits of a number: a distance from the base; it did not fit beside these bits and stands behind them.
const NEAR: u64 = 1;
const WHOLE: u64 = 2;

/// How many instants are named by their place.
const NAMED: usize = 16;

/// A frame and an instant that others lie near.
pub type Base = (u64, i64);

/// Instants that were named lately, the first of them none: most are named more than once.
#[derive(Debug)]
struct Named {
    bases: [Base; NAMED],
    next: usize,
}

impl Named {
    fn new() -> Self {
        Named {
            bases: [(0, 0); NAMED],
            next: 1,
        }
    }

    fn push(&mut self, base: Base) {
        if let Some(place) = self.bases.get_mut(self.next) {
            *place = base;
        }
        self.next = if self.next + 1 < NAMED { self.next + 1 } else { 1 };
    }
}

#[derive(Debug)]
pub struct Packer<'a> {
    out: &'a mut Vec<u8>,
    zeros: u8,
    words: &'a mut Words,
    named: Named,
    pub base: Base,
}

#[derive(Debug)]
pub struct Unpacker<'a> {
    rest: &'a [u8],
    zeros: u8,
    words: &'a Words,
    named: Named,
    pub base: Base,
}

pub trait Pack: Sized {
    fn pack(&self, to: &mut Packer<'_>);
    fn unpack(from: &mut Unpacker<'_>) -> Self;
}

impl<'a> Packer<'a> {
    pub fn new(out: &'a mut Vec<u8>, words: &'a mut Words, base: Base) -> Self {
        Packer {
            out,
            zeros: 0,
            words,
            named: Named::new(),
            base,
        }
    }

    /// To be called last: writes the zeros at the end.
    pub fn finish(self) {
        if self.zeros > 0 {
            self.out.extend([0, self.zeros]);
        }
    }

    /// A frame and its time.
    pub fn instant(&mut self, instant: Base) {
        match self.named.bases.iter().position(|named| *named == instant) {
            Some(place) => self.byte(place as u8),
            None => {
                self.byte(NAMED as u8);
                instant.0.pack(self);
                instant.1.pack(self);
                self.named.push(instant);
            }
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if byte == 0 && self.zeros < u8::MAX {
            self.zeros += 1;
        } else {
            self.byte_behind_zeros(byte);
        }
    }

    fn byte_behind_zeros(&mut self, byte: u8) {
        if self.zeros > 0 {
            self.out.extend([0, std::mem::take(&mut self.zeros)]);
        }
        if byte == 0 {
            self.zeros = 1;
        } else {
            self.out.push(byte);
        }
    }

    /// Seven bits a byte, the lowest first.
    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// As it is or by its distance, whichever is shorter; the two lowest bits say how.
    fn near(&mut self, plain: u64, distance: u64) {
        let shorter = plain.min(distance);
        let tag = if distance < plain { NEAR } else { 0 };
        if shorter >> 62 == 0 {
            self.number(shorter << 2 | tag);
        } else {
            self.number(WHOLE | tag);
            self.number(shorter);
        }
    }
}

impl<'a> Unpacker<'a> {
    pub fn new(packed: &'a [u8], words: &'a Words, base: Base) -> Self {
        Unpacker {
            rest: packed,
            zeros: 0,
            words,
            named: Named::new(),
            base,
        }
    }

    pub fn instant(&mut self) -> Base {
        let place = usize::from(self.byte());
        if let Some(named) = self.named.bases.get(place) {
            return *named;
        }
        let instant = (Pack::unpack(self), Pack::unpack(self));
        self.named.push(instant);
        instant
    }

    #[inline]
    fn byte(&mut self) -> u8 {
        if self.zeros > 0 {
            self.zeros -= 1;
            0
        } else {
            self.next_byte()
        }
    }

    fn next_byte(&mut self) -> u8 {
        match self.rest {
            [0, zeros, rest @ ..] => {
                (self.zeros, self.rest) = (zeros.saturating_sub(1), rest);
                0
            }
            [byte, rest @ ..] => {
                self.rest = rest;
                *byte
            }
            [] => 0,
        }
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    /// The number, and whether it is a distance.
    fn near(&mut self) -> (u64, bool) {
        let number = self.number();
        let whole = if number & WHOLE == 0 {
            number >> 2
        } else {
            self.number()
        };
        (whole, number & NEAR != 0)
    }
}

/// Small numbers, whatever their sign, are small.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn zagzig(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

impl Pack for u64 {
    fn pack(&self, to: &mut Packer<'_>) {
        to.near(*self, zigzag(self.wrapping_sub(to.base.0) as i64));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        match from.near() {
            (number, false) => number,
            (distance, true) => from.base.0.wrapping_add(zagzig(distance) as u64),
        }
    }
}

impl Pack for i64 {
    fn pack(&self, to: &mut Packer<'_>) {
        to.near(zigzag(*self), zigzag(self.wrapping_sub(to.base.1)));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        match from.near() {
            (number, false) => zagzig(number),
            (distance, true) => from.base.1.wrapping_add(zagzig(distance)),
        }
    }
}

macro_rules! unsigned {
    ($($number:ty)*) => {$(
        impl Pack for $number {
            fn pack(&self, to: &mut Packer<'_>) {
                to.number(*self as u64);
            }

            fn unpack(from: &mut Unpacker<'_>) -> Self {
                from.number() as $number
            }
        }
    )*};
}
unsigned!(u16 u32 usize);

impl Pack for u8 {
    fn pack(&self, to: &mut Packer<'_>) {
        to.byte(*self);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.byte()
    }
}

impl Pack for bool {
    fn pack(&self, to: &mut Packer<'_>) {
        to.byte(u8::from(*self));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.byte() != 0
    }
}

impl Pack for f64 {
    fn pack(&self, to: &mut Packer<'_>) {
        to.number(self.to_bits().swap_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        f64::from_bits(from.number().swap_bytes())
    }
}

impl Pack for &'static str {
    fn pack(&self, to: &mut Packer<'_>) {
        let same = |word: &&str| std::ptr::eq(*word, *self); // `table::columns` tells words apart by their place
        let known = to.words.0.iter().position(same);
        known
            .unwrap_or_else(|| {
                to.words.0.push(self);
                to.words.0.len() - 1
            })
            .pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let number = usize::unpack(from);
        from.words.0.get(number).copied().unwrap_or_default()
    }
}

impl Pack for String {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        self.bytes().for_each(|byte| to.byte(byte));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        String::from_utf8_lossy(&Vec::unpack(from)).into_owned()
    }
}

impl Pack for Box<str> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        self.bytes().for_each(|byte| to.byte(byte));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        String::unpack(from).into()
    }
}

impl Pack for SmolStr {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        self.bytes().for_each(|byte| to.byte(byte));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        String::unpack(from).into()
    }
}

impl Pack for Cow<'static, str> {
    fn pack(&self, to: &mut Packer<'_>) {
        match self {
            Cow::Borrowed(word) => (true, *word).pack(to),
            Cow::Owned(text) => {
                false.pack(to);
                text.pack(to);
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        if bool::unpack(from) {
            Cow::Borrowed(Pack::unpack(from))
        } else {
            Cow::Owned(Pack::unpack(from))
        }
    }
}

impl Pack for IpAddr {
    fn pack(&self, to: &mut Packer<'_>) {
        match self {
            IpAddr::V4(v4) => (false, v4.to_bits()).pack(to),
            IpAddr::V6(v6) => {
                true.pack(to);
                v6.octets().pack(to);
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        if bool::unpack(from) {
            IpAddr::from(<[u8; 16]>::unpack(from))
        } else {
            IpAddr::from(u32::unpack(from).to_be_bytes())
        }
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.is_some().pack(to);
        if let Some(value) = self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        bool::unpack(from).then(|| T::unpack(from))
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, to: &mut Packer<'_>) {
        T::pack(self, to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Box::new(T::unpack(from))
    }
}

impl<T: Pack, const N: usize> Pack for [T; N] {
    fn pack(&self, to: &mut Packer<'_>) {
        self.iter().for_each(|value| value.pack(to));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        std::array::from_fn(|_| T::unpack(from))
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, to: &mut Packer<'_>) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        (A::unpack(from), B::unpack(from))
    }
}

impl<A: Pack, B: Pack, C: Pack> Pack for (A, B, C) {
    fn pack(&self, to: &mut Packer<'_>) {
        self.0.pack(to);
        self.1.pack(to);
        self.2.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        (A::unpack(from), B::unpack(from), C::unpack(from))
    }
}

macro_rules! lists {
    ($($list:ty),*) => {$(
        impl<T: Pack> Pack for $list {
            fn pack(&self, to: &mut Packer<'_>) {
                self.len().pack(to);
                self.iter().for_each(|value| value.pack(to));
            }

            fn unpack(from: &mut Unpacker<'_>) -> Self {
                let len = usize::unpack(from);
                (0..len).map(|_| Pack::unpack(from)).collect()
            }
        }
    )*};
}
lists!(Vec<T>, VecDeque<T>, Box<[T]>);

impl<T: Pack> Pack for BTreeMap<u64, T> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        for (key, value) in self {
            key.pack(to);
            value.pack(to);
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let len = usize::unpack(from);
        (0..len).map(|_| Pack::unpack(from)).collect()
    }
}

/// Makes a structure or an enum fit to rest: `packed!(struct Name { field, ... })`, `packed!(struct Name(value))` or
/// `packed!(enum Name { 0 Variant, 1 Variant { field }, 2 Variant(value) } else Variant)`.
macro_rules! packed {
    (struct $name:ident ( $field:ident )) => {
        impl $crate::pack::Pack for $name {
            fn pack(&self, to: &mut $crate::pack::Packer<'_>) {
                let Self($field) = self;
                $crate::pack::Pack::pack($field, to);
            }

            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Self {
                Self($crate::pack::Pack::unpack(from))
            }
        }
    };
    (struct $name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::pack::Pack for $name {
            fn pack(&self, to: &mut $crate::pack::Packer<'_>) {
                let Self { $($field,)* } = self;
                $($crate::pack::Pack::pack($field, to);)*
            }

            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Self {
                Self { $($field: $crate::pack::Pack::unpack(from)),* }
            }
        }
    };
    (enum $name:ident { $($tag:literal $variant:ident $({ $($field:ident),* })? $(($value:ident))?),* $(,)? } else $other:ident) => {
        impl $crate::pack::Pack for $name {
            fn pack(&self, to: &mut $crate::pack::Packer<'_>) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(($value))? => {
                        u8::pack(&$tag, to);
                        $($($crate::pack::Pack::pack($field, to);)*)?
                        $($crate::pack::Pack::pack($value, to);)?
                    })*
                }
            }

            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Self {
                match u8::unpack(from) {
                    $($tag => {
                        $($(let $field = $crate::pack::Pack::unpack(from);)*)?
                        $(let $value = $crate::pack::Pack::unpack(from);)?
                        Self::$variant $({ $($field),* })? $(($value))?
                    })*
                    _ => Self::$other,
                }
            }
        }
    };
}
pub(crate) use packed;

#[cfg(test)]
mod tests {
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
        packer.finish();
        let mut unpacker = Unpacker::new(&out, &words, base);
        assert_eq!(T::unpack(&mut unpacker), value);
        assert_eq!(u8::unpack(&mut unpacker), 7, "behind {value:?}");
        out.len() - 1
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
        assert_eq!(there_and_back([0u64; 300]), 4);
        assert_eq!(there_and_back(999_990u64), 1, "near the base");
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
}
