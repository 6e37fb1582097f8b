//! Fields of one structure that are alike, told together. Each kind of number has a usual width; where all groups of a
//! structure keep to theirs, they stand in one row of bytes, whose places are known beforehand. Otherwise, and where
//! most of a structure is nothing yet, each group takes as many bytes a number as its largest needs.

use super::Base;
use super::bytes::{Reader, Writer};
use super::values::{zagzig, zigzag};

/// What stands in a group with others like it.
pub trait Value: Copy {
    type Told;
    fn told(self) -> Self::Told;
    fn of(told: Self::Told) -> Self;
}

/// One group, or several.
pub trait Group: Sized {
    /// Bits that are told however the numbers are.
    const FLAGS: u32;
    /// Bytes of the row.
    const ROW: usize;

    fn flags(&self) -> u64;

    /// Not 0: it does not fit into a row.
    fn beyond(&self, base: Base) -> u64;
    fn put(&self, row: &mut [u8], base: Base);
    fn get(flags: u64, row: &[u8], base: Base) -> Self;

    /// Without a row, in as few bytes as it needs.
    fn write(&self, to: &mut Writer<'_>, base: Base);
    fn read(flags: u64, from: &mut Reader<'_>, base: Base) -> Self;
}

#[derive(Debug, Clone, Copy)]
pub struct Flags<const N: usize>(pub [bool; N]);

/// Numbers that `A` bytes nearly always hold.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<const N: usize, const A: usize>(pub [u64; N]);

/// Nearly always 0.
pub type Zeros<const N: usize> = Numbers<N, 0>;
pub type U8s<const N: usize> = Numbers<N, 1>;
pub type U16s<const N: usize> = Numbers<N, 2>;
pub type U24s<const N: usize> = Numbers<N, 3>;
pub type U32s<const N: usize> = Numbers<N, 4>;
pub type U64s<const N: usize> = Numbers<N, 8>;

/// Durations, and other small numbers with a sign.
#[derive(Debug, Clone, Copy)]
pub struct Signed<const N: usize, const A: usize>(pub [i64; N]);

/// Of two seconds at most.
pub type Spans<const N: usize> = Signed<N, 4>;
/// Of a day at most.
pub type LongSpans<const N: usize> = Signed<N, 6>;

/// Instants near the base, or none (0).
#[derive(Debug, Clone, Copy)]
pub struct Times<const N: usize>(pub [i64; N]);

/// Frames and their times, each by its distance to the one before it, the first to the base; or none.
#[derive(Debug, Clone, Copy)]
pub struct Instants<const N: usize, const A: usize, const B: usize>(pub [Option<Base>; N]);

pub type Moments<const N: usize> = Instants<N, 1, 4>;
/// Nearly always the base.
pub type Same<const N: usize> = Instants<N, 0, 0>;

impl<const N: usize> Group for Flags<N> {
    const FLAGS: u32 = N as u32;
    const ROW: usize = 0;

    #[inline(always)]
    fn flags(&self) -> u64 {
        self.0.iter().rfold(0, |bits, flag| bits << 1 | u64::from(*flag))
    }

    #[inline(always)]
    fn beyond(&self, _: Base) -> u64 {
        0
    }

    #[inline(always)]
    fn put(&self, _: &mut [u8], _: Base) {}

    #[inline(always)]
    fn get(flags: u64, _: &[u8], _: Base) -> Self {
        Flags(std::array::from_fn(|flag| flags >> flag & 1 != 0))
    }

    fn write(&self, _: &mut Writer<'_>, _: Base) {}

    fn read(flags: u64, _: &mut Reader<'_>, base: Base) -> Self {
        Self::get(flags, &[], base)
    }
}

impl<const N: usize, const A: usize> Group for Numbers<N, A> {
    const FLAGS: u32 = 0;
    const ROW: usize = A * N;

    #[inline(always)]
    fn flags(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn beyond(&self, _: Base) -> u64 {
        let all = self.0.iter().fold(0, |all, number| all | number);
        if A < 8 { all >> (8 * A) } else { 0 }
    }

    #[inline(always)]
    fn put(&self, row: &mut [u8], _: Base) {
        if A == 0 {
            return;
        }
        for (place, number) in row.chunks_exact_mut(A).zip(self.0) {
            place.copy_from_slice(number.to_le_bytes().get(..A).unwrap_or_default());
        }
    }

    #[inline(always)]
    fn get(_: u64, row: &[u8], _: Base) -> Self {
        let mut numbers = [0; N];
        if A == 0 {
            return Numbers(numbers);
        }
        for (number, bytes) in numbers.iter_mut().zip(row.chunks_exact(A)) {
            let mut whole = [0; 8];
            if let Some(low) = whole.get_mut(..A) {
                low.copy_from_slice(bytes);
            }
            *number = u64::from_le_bytes(whole);
        }
        Numbers(numbers)
    }

    fn write(&self, to: &mut Writer<'_>, _: Base) {
        to.alike(&self.0);
    }

    fn read(_: u64, from: &mut Reader<'_>, _: Base) -> Self {
        let mut numbers = [0; N];
        from.alike(&mut numbers);
        Numbers(numbers)
    }
}

impl<const N: usize, const A: usize> Signed<N, A> {
    /// What is added so that none is below 0.
    const BIAS: u64 = if A > 0 { 1 << (8 * A - 1) } else { 0 };

    #[inline(always)]
    fn raised(&self) -> Numbers<N, A> {
        Numbers(self.0.map(|number| (number as u64).wrapping_add(Self::BIAS)))
    }
}

impl<const N: usize, const A: usize> Group for Signed<N, A> {
    const FLAGS: u32 = 0;
    const ROW: usize = A * N;

    #[inline(always)]
    fn flags(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn beyond(&self, _: Base) -> u64 {
        self.raised().0.iter().fold(0, |all, number| all | number) >> (8 * A)
    }

    #[inline(always)]
    fn put(&self, row: &mut [u8], base: Base) {
        self.raised().put(row, base);
    }

    #[inline(always)]
    fn get(flags: u64, row: &[u8], base: Base) -> Self {
        let Numbers(raised) = Numbers::<N, A>::get(flags, row, base);
        Signed(raised.map(|number| number.wrapping_sub(Self::BIAS) as i64))
    }

    fn write(&self, to: &mut Writer<'_>, _: Base) {
        to.alike(&self.0.map(zigzag));
    }

    fn read(flags: u64, from: &mut Reader<'_>, base: Base) -> Self {
        Signed(Numbers::<N, A>::read(flags, from, base).0.map(zagzig))
    }
}

/// A group that is told as another one.
macro_rules! told_as {
    ($name:ident $(($($more:ident)+))? as $other:ty, $to:expr, $from:expr) => {
        impl<const N: usize $($(, const $more: usize)+)?> Group for $name<N $($(, $more)+)?> {
            const FLAGS: u32 = <$other>::FLAGS;
            const ROW: usize = <$other>::ROW;

            #[inline(always)]
            fn flags(&self) -> u64 {
                $to(self, Base::default()).flags()
            }

            #[inline(always)]
            fn beyond(&self, base: Base) -> u64 {
                $to(self, base).beyond(base)
            }

            #[inline(always)]
            fn put(&self, row: &mut [u8], base: Base) {
                $to(self, base).put(row, base);
            }

            #[inline(always)]
            fn get(flags: u64, row: &[u8], base: Base) -> Self {
                $from(<$other>::get(flags, row, base), base)
            }

            fn write(&self, to: &mut Writer<'_>, base: Base) {
                $to(self, base).write(to, base);
            }

            fn read(flags: u64, from: &mut Reader<'_>, base: Base) -> Self {
                $from(<$other>::read(flags, from, base), base)
            }
        }
    };
}

told_as!(Times as Numbers<N, 4>, Times::numbers, Times::of_numbers);
told_as!(
    Instants(A B) as (Flags<N>, Numbers<N, A>, Signed<N, B>),
    Instants::steps,
    Instants::of_steps
);

impl<const N: usize> Times<N> {
    #[inline(always)]
    fn numbers(&self, (_, base): Base) -> Numbers<N, 4> {
        Numbers(self.0.map(|time| since(time, base)))
    }

    #[inline(always)]
    fn of_numbers(numbers: Numbers<N, 4>, (_, base): Base) -> Self {
        Times(numbers.0.map(|told| until(told, base)))
    }
}

/// An instant by its distance, 0 being none and 0: the numbers from 0's own distance down make room for it.
#[inline(always)]
fn since(time: i64, base: i64) -> u64 {
    let (distance, of_none) = (zigzag(time.wrapping_sub(base)), zigzag(base.wrapping_neg()));
    if distance == of_none {
        0
    } else {
        distance + u64::from(distance < of_none)
    }
}

#[inline(always)]
fn until(told: u64, base: i64) -> i64 {
    let of_none = zigzag(base.wrapping_neg());
    if told == 0 {
        0
    } else {
        base.wrapping_add(zagzig(told - u64::from(told <= of_none)))
    }
}

impl<const N: usize, const A: usize, const B: usize> Instants<N, A, B> {
    #[inline(always)]
    fn steps(&self, base: Base) -> (Flags<N>, Numbers<N, A>, Signed<N, B>) {
        let (mut last, mut frames, mut spans) = (base, [0; N], [0; N]);
        for ((frame, span), moment) in frames.iter_mut().zip(&mut spans).zip(self.0) {
            let (to, at) = moment.unwrap_or(last);
            *frame = zigzag(to.wrapping_sub(last.0) as i64);
            *span = at.wrapping_sub(last.1);
            last = (to, at);
        }
        let known = self.0.map(|moment| moment.is_some());
        (Flags(known), Numbers(frames), Signed(spans))
    }

    #[inline(always)]
    fn of_steps(steps: (Flags<N>, Numbers<N, A>, Signed<N, B>), base: Base) -> Self {
        let (Flags(known), Numbers(frames), Signed(spans)) = steps;
        let (mut last, mut moments) = (base, [None; N]);
        for (((moment, known), frame), span) in moments.iter_mut().zip(known).zip(frames).zip(spans) {
            let (frame, time) = (zagzig(frame) as u64, last.1.wrapping_add(span));
            last = (last.0.wrapping_add(frame), time);
            *moment = known.then_some(last);
        }
        Instants(moments)
    }
}

macro_rules! several {
    ($($group:ident)+) => {
        #[allow(non_snake_case)]
        impl<$($group: Group),+> Group for ($($group,)+) {
            const FLAGS: u32 = 0 $(+ $group::FLAGS)+;
            const ROW: usize = 0 $(+ $group::ROW)+;

            #[inline(always)]
            fn flags(&self) -> u64 {
                let ($($group,)+) = self;
                let (mut all, mut bits) = (0, 0);
                $(
                    all |= $group.flags() << bits;
                    bits += $group::FLAGS;
                )+
                let _ = bits;
                all
            }

            #[inline(always)]
            fn beyond(&self, base: Base) -> u64 {
                let ($($group,)+) = self;
                0 $(| $group.beyond(base))+
            }

            #[inline(always)]
            fn put(&self, row: &mut [u8], base: Base) {
                let ($($group,)+) = self;
                let mut rest = row;
                $(
                    let Some((part, behind)) = rest.split_at_mut_checked($group::ROW) else { return };
                    $group.put(part, base);
                    rest = behind;
                )+
                let _ = rest;
            }

            #[inline(always)]
            fn get(flags: u64, row: &[u8], base: Base) -> Self {
                let (mut flags, mut rest) = (flags, row);
                let all = ($({
                    let (part, behind) = rest.split_at_checked($group::ROW).unwrap_or_default();
                    let group = $group::get(flags, part, base);
                    (flags, rest) = (flags >> $group::FLAGS, behind);
                    group
                },)+);
                let _ = (flags, rest);
                all
            }

            fn write(&self, to: &mut Writer<'_>, base: Base) {
                let ($($group,)+) = self;
                $($group.write(to, base);)+
            }

            fn read(flags: u64, from: &mut Reader<'_>, base: Base) -> Self {
                let mut flags = flags;
                let all = ($({
                    let group = $group::read(flags, from, base);
                    flags >>= $group::FLAGS;
                    group
                },)+);
                let _ = flags;
                all
            }
        }
    };
}
several!(A);
several!(A B);
several!(A B C);
several!(A B C D);
several!(A B C D E);
several!(A B C D E F);
several!(A B C D E F G);
several!(A B C D E F G H);
several!(A B C D E F G H I);
several!(A B C D E F G H I J);
