//! How numbers, words, addresses and lists of the standard library are packed.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use smol_str::SmolStr;

use super::{Pack, Packer, Unpacker};

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
