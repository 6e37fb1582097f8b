//! State at rest: what is remembered of a stream that has been quiet while many others spoke, as few bytes as it needs.
//!
//! `packed!` names the fields of a structure once more, in any order; a field that is forgotten does not compile.
//! Numbers are written with as many bytes as they need, instants and frames by their distance to the stream's newest
//! packet where that is shorter, and a run of zeros as its length: most of a stream's state is nothing yet.
//! The bytes are this process's own and are never stored; whatever they say, reading them cannot fail.

#[cfg(test)]
mod tests;
mod values;

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
