//! State at rest: what is remembered of a stream that has been quiet while many others spoke, as few bytes as it needs.
//!
//! `packed!` names the fields of a structure once more, in any order; a field that is forgotten does not compile.
//! The structures that every stream has say which of their fields are alike (`groups`): told together they cost less.
//! Numbers are written with as many bytes as they need (`bytes`), none where they are 0, for most of a stream's state is
//! nothing yet; instants and frames by their distance to the stream's newest packet where that is shorter.
//! The bytes are this process's own and are never stored; whatever they say, reading them cannot fail.

mod bytes;
mod groups;
#[cfg(test)]
mod tests;
mod values;

use bytes::{MOST_ROW, Reader, Writer};
pub use groups::{
    Flags, Group, LongSpans, Moments, Same, Spans, Times, U8s, U16s, U24s, U32s, U64s, Value, Zeros,
};
use values::{zagzig, zigzag};

/// The words of this crate that were packed so far: a word is its number here.
#[derive(Debug)]
pub struct Words {
    all: Vec<&'static str>,
    /// A number by the lowest bits of the word's address: most words find theirs here.
    near: [u16; 1 << u8::BITS],
}

impl Default for Words {
    fn default() -> Self {
        Words {
            all: vec![""],
            near: [0; 1 << u8::BITS],
        }
    }
}

impl Words {
    fn get(&self, number: usize) -> &'static str {
        self.all.get(number).copied().unwrap_or_default()
    }

    fn number(&mut self, word: &'static str) -> usize {
        // `table::columns` tells words apart by their place
        let same = |known: &&str| std::ptr::eq(*known, word);
        let Some(near) = self.near.get_mut(usize::from(word.as_ptr().addr() as u8)) else {
            return 0;
        };
        if !self.all.get(usize::from(*near)).is_some_and(same) {
            let known = self.all.iter().position(same);
            *near = known.unwrap_or(self.all.len()) as u16;
            if known.is_none() {
                self.all.push(word);
            }
        }
        usize::from(*near)
    }
}

/// A number that has no room beside the bit for how it is told stands behind this one.
const DISTANT: u64 = u64::MAX >> 1;

/// How many instants are named by their place.
const NAMED: usize = 16;

/// A frame and an instant that others lie near.
pub type Base = (u64, i64);

/// Instants that were named lately, the first of them none: most are named more than once.
#[derive(Debug)]
struct Named {
    bases: [Base; NAMED],
    next: usize,
    known: usize,
}

impl Named {
    fn new() -> Self {
        Named {
            bases: [(0, 0); NAMED],
            next: 1,
            known: 1,
        }
    }

    fn place(&self, base: Base) -> Option<usize> {
        let known = self.bases.get(..self.known)?;
        known.iter().position(|named| *named == base)
    }

    fn push(&mut self, base: Base) {
        if let Some(place) = self.bases.get_mut(self.next) {
            *place = base;
        }
        self.known = self.known.max(self.next + 1);
        self.next = if self.next + 1 < NAMED { self.next + 1 } else { 1 };
    }
}

#[derive(Debug)]
pub struct Packer<'a> {
    to: Writer<'a>,
    words: &'a mut Words,
    named: Named,
    pub base: Base,
    /// Most of what comes is nothing yet.
    pub sparse: bool,
}

#[derive(Debug)]
pub struct Unpacker<'a> {
    from: Reader<'a>,
    words: &'a Words,
    named: Named,
    pub base: Base,
}

pub trait Pack: Sized {
    fn pack(&self, to: &mut Packer<'_>);
    fn unpack(from: &mut Unpacker<'_>) -> Self;

    fn pack_all(all: &[Self], to: &mut Packer<'_>) {
        all.iter().for_each(|value| value.pack(to));
    }

    fn unpack_all(len: usize, from: &mut Unpacker<'_>) -> Vec<Self> {
        (0..len).map(|_| Self::unpack(from)).collect()
    }
}

impl<'a> Packer<'a> {
    /// What is packed will stand in `scratch`.
    pub fn new(scratch: &'a mut Vec<u8>, words: &'a mut Words, base: Base) -> Self {
        Packer {
            to: Writer::new(scratch),
            words,
            named: Named::new(),
            base,
            sparse: false,
        }
    }

    /// All that was packed.
    pub fn finish(self) -> &'a [u8] {
        self.to.finish(self.sparse)
    }

    /// Fields that are alike (`groups`).
    #[inline(always)]
    pub fn groups<G: Group>(&mut self, groups: G) {
        const { assert!(G::FLAGS < u64::BITS && G::ROW <= MOST_ROW) };
        let in_row = !self.sparse && groups.beyond(self.base) == 0;
        self.to
            .bits(groups.flags() << 1 | u64::from(in_row), G::FLAGS + 1);
        if in_row {
            let base = self.base;
            if let Some(row) = self.to.row(G::ROW) {
                groups.put(row, base);
            }
        } else {
            self.sparsely(groups);
        }
    }

    #[cold]
    #[inline(never)]
    fn sparsely<G: Group>(&mut self, groups: G) {
        groups.write(&mut self.to, self.base);
    }

    /// Instants that others will name.
    pub fn know(&mut self, instants: impl IntoIterator<Item = Base>) {
        instants.into_iter().for_each(|instant| self.named.push(instant));
    }

    /// A frame and its time.
    pub fn instant(&mut self, instant: Base) {
        match self.named.place(instant) {
            Some(place) => self.to.number(place as u64),
            None => {
                self.to.number(NAMED as u64);
                let (frame, time) = instant;
                self.near(frame, zigzag(frame.wrapping_sub(self.base.0) as i64));
                time.pack(self);
                self.named.push(instant);
            }
        }
    }

    /// As it is or by its distance, whichever is shorter; the lowest bit says how.
    #[inline]
    fn near(&mut self, plain: u64, distance: u64) {
        let number = plain.min(distance);
        let tag = u64::from(distance < plain);
        let fits = number < DISTANT;
        self.to.number(number.min(DISTANT) << 1 | tag);
        if !fits {
            self.to.number(number);
        }
    }
}

impl<'a> Unpacker<'a> {
    pub fn new(packed: &'a [u8], words: &'a Words, base: Base) -> Self {
        Unpacker {
            from: Reader::new(packed),
            words,
            named: Named::new(),
            base,
        }
    }

    #[inline(always)]
    pub fn groups<G: Group>(&mut self) -> G {
        let bits = self.from.bits(G::FLAGS + 1);
        if bits & 1 == 0 {
            return self.sparsely(bits >> 1);
        }
        match self.from.row(G::ROW) {
            Some(row) => G::get(bits >> 1, row, self.base),
            None => self.lastly(bits >> 1),
        }
    }

    #[cold]
    #[inline(never)]
    fn sparsely<G: Group>(&mut self, flags: u64) -> G {
        G::read(flags, &mut self.from, self.base)
    }

    #[cold]
    #[inline(never)]
    fn lastly<G: Group>(&mut self, flags: u64) -> G {
        let row = self.from.last_row();
        G::get(flags, row.get(..G::ROW).unwrap_or_default(), self.base)
    }

    pub fn know(&mut self, instants: impl IntoIterator<Item = Base>) {
        instants.into_iter().for_each(|instant| self.named.push(instant));
    }

    pub fn instant(&mut self) -> Base {
        let place = self.from.number() as usize;
        if let Some(named) = self.named.bases.get(place) {
            return *named;
        }
        let frame = match self.near() {
            (frame, false) => frame,
            (distance, true) => self.base.0.wrapping_add(zagzig(distance) as u64),
        };
        let instant = (frame, i64::unpack(self));
        self.named.push(instant);
        instant
    }

    /// The number, and whether it is a distance.
    #[inline]
    fn near(&mut self) -> (u64, bool) {
        let said = self.from.number();
        let number = match said >> 1 {
            DISTANT => self.from.number(),
            near => near,
        };
        (number, said & 1 != 0)
    }
}

/// Makes a structure or an enum fit to rest: `packed!(struct Name { field, ... })`, `packed!(struct Name(value))` or
/// `packed!(enum Name { 0 Variant, 1 Variant { field }, 2 Variant(value) } else Variant)`. What is packed often says which
/// fields are alike: `packed!(struct Name { Flags field, ...; U16s field, ...; Spans field, ...; } rest { field, ... })` (`groups`).
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
    (struct $name:ident { $($kind:ident $($field:ident),+;)+ } rest { $($rest:ident),* }) => {
        impl $crate::pack::Pack for $name {
            #[inline]
            fn pack(&self, to: &mut $crate::pack::Packer<'_>) {
                let Self { $($($field,)+)+ $($rest,)* } = self;
                to.groups(($($crate::pack::$kind { 0: [$($crate::pack::Value::told(*$field)),+] },)+));
                $($crate::pack::Pack::pack($rest, to);)*
            }

            #[inline]
            fn unpack(from: &mut $crate::pack::Unpacker<'_>) -> Self {
                let ($($crate::pack::$kind { 0: [$($field),+] },)+) = from.groups();
                Self { $($($field: $crate::pack::Value::of($field),)+)+ $($rest: $crate::pack::Pack::unpack(from),)* }
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
