//! How numbers, words, addresses and lists of the standard library are packed.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use smol_str::SmolStr;

use super::{Pack, Packer, Unpacker, Value};

/// Small numbers, whatever their sign, are small.
pub(super) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

pub(super) fn zagzig(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// An instant by its distance, or a duration.
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
                to.to.number(*self as u64);
            }

            fn unpack(from: &mut Unpacker<'_>) -> Self {
                from.from.number() as $number
            }
        }
    )*};
}
unsigned!(u16 u32 u64 usize);

impl Pack for u8 {
    fn pack(&self, to: &mut Packer<'_>) {
        to.to.number(u64::from(*self));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.from.number() as u8
    }

    fn pack_all(all: &[Self], to: &mut Packer<'_>) {
        to.to.bytes(all);
    }

    fn unpack_all(len: usize, from: &mut Unpacker<'_>) -> Vec<Self> {
        from.from.bytes(len)
    }
}

impl Pack for bool {
    fn pack(&self, to: &mut Packer<'_>) {
        to.to.flag(*self);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.from.flag()
    }
}

impl Pack for f64 {
    fn pack(&self, to: &mut Packer<'_>) {
        to.to.number(self.to_bits().swap_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        f64::from_bits(from.from.number().swap_bytes())
    }
}

impl Pack for &'static str {
    fn pack(&self, to: &mut Packer<'_>) {
        to.words.number(self).pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let number = usize::unpack(from);
        from.words.get(number)
    }
}

impl Pack for String {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        u8::pack_all(self.as_bytes(), to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        String::from_utf8_lossy(&Vec::unpack(from)).into_owned()
    }
}

impl Pack for Box<str> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        u8::pack_all(self.as_bytes(), to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        String::unpack(from).into()
    }
}

impl Pack for SmolStr {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        u8::pack_all(self.as_bytes(), to);
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
                u8::pack_all(&v6.octets(), to);
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        if bool::unpack(from) {
            let octets = u8::unpack_all(16, from);
            IpAddr::from(octets.first_chunk::<16>().copied().unwrap_or_default())
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

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        T::pack_all(self, to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let len = usize::unpack(from);
        T::unpack_all(len, from)
    }
}

impl<T: Pack> Pack for Box<[T]> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        T::pack_all(self, to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Vec::unpack(from).into()
    }
}

impl<T: Pack> Pack for VecDeque<T> {
    fn pack(&self, to: &mut Packer<'_>) {
        self.len().pack(to);
        self.iter().for_each(|value| value.pack(to));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Vec::unpack(from).into()
    }
}

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

impl Value for bool {
    type Told = bool;

    fn told(self) -> bool {
        self
    }

    fn of(told: bool) -> Self {
        told
    }
}

impl Value for i64 {
    type Told = i64;

    fn told(self) -> i64 {
        self
    }

    fn of(told: i64) -> Self {
        told
    }
}

/// A duration, and not the longest there is.
impl Value for Option<i64> {
    type Told = i64;

    fn told(self) -> i64 {
        self.map_or(0, |span| span.saturating_add(i64::from(span >= 0)))
    }

    fn of(told: i64) -> Self {
        (told != 0).then(|| told - i64::from(told > 0))
    }
}

impl Value for u64 {
    type Told = u64;

    fn told(self) -> u64 {
        self
    }

    fn of(told: u64) -> Self {
        told
    }
}

macro_rules! words {
    ($($number:ty)*) => {$(
        impl Value for $number {
            type Told = u64;

            fn told(self) -> u64 {
                self as u64
            }

            fn of(told: u64) -> Self {
                told as $number
            }
        }

        impl Value for Option<$number> {
            type Told = u64;

            fn told(self) -> u64 {
                self.map_or(0, |number| u64::from(number) + 1)
            }

            fn of(told: u64) -> Self {
                told.checked_sub(1).map(|number| number as $number)
            }
        }
    )*};
}
words!(u8 u16 u32);

impl Value for usize {
    type Told = u64;

    fn told(self) -> u64 {
        self as u64
    }

    fn of(told: u64) -> Self {
        told as usize
    }
}

impl Value for Option<bool> {
    type Told = u64;

    fn told(self) -> u64 {
        self.map_or(0, |set| u64::from(set) + 1)
    }

    fn of(told: u64) -> Self {
        (told > 0).then_some(told > 1)
    }
}
