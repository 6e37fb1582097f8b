//! The types of limits, and the macro that defines them.

/// A threshold with its unit, its source and its meaning.
#[derive(Debug)]
pub struct Limit<T> {
    /// Index of its factor.
    #[cfg(feature = "scaled-limits")]
    index: usize,
    pub name: &'static str,
    value: T,
    pub unit: &'static str,
    pub source: &'static str,
    pub doc: &'static str,
}

/// A number of a standard or kernel, which is not scaled, or one that follows from limits, so that it scales with them.
#[derive(Debug)]
pub struct Derived<T>(pub(super) fn() -> T);

impl<T> Derived<T> {
    #[inline(always)]
    pub fn get(&self) -> T {
        (self.0)()
    }
}

/// An inclusive range whose ends follow from limits.
#[derive(Debug)]
pub struct Band {
    pub least: fn() -> i64,
    pub most: fn() -> i64,
}

impl Band {
    #[inline(always)]
    pub fn contains(&self, value: i64) -> bool {
        ((self.least)()..=(self.most)()).contains(&value)
    }

    #[inline(always)]
    pub fn least(&self) -> i64 {
        (self.least)()
    }

    #[inline(always)]
    pub fn most(&self) -> i64 {
        (self.most)()
    }
}

/// A limit as a row of the table in docs/thresholds.md.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRow {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub source: &'static str,
    pub doc: &'static str,
}

/// Types of limits. A scaled integer stays at least 1.
pub trait Number: Copy {
    fn as_f64(self) -> f64;
    fn times(self, factor: f64) -> Self;
}

macro_rules! numbers {
    ($($type:ty)+) => {
        $(impl Number for $type {
            fn as_f64(self) -> f64 {
                self as f64
            }

            fn times(self, factor: f64) -> Self {
                ((self as f64 * factor).round() as $type).max(1)
            }
        })+
    };
}

numbers! { i16 i64 u8 u16 u32 u64 usize }

impl Number for f64 {
    fn as_f64(self) -> f64 {
        self
    }

    fn times(self, factor: f64) -> Self {
        self * factor
    }
}

impl<T: Copy> Limit<T> {
    #[cfg_attr(not(feature = "scaled-limits"), allow(unused_variables))]
    pub const fn new(
        index: usize,
        name: &'static str,
        value: T,
        unit: &'static str,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        Limit {
            #[cfg(feature = "scaled-limits")]
            index,
            name,
            value,
            unit,
            source,
            doc,
        }
    }
}

impl<T: Number> Limit<T> {
    #[cfg(not(feature = "scaled-limits"))]
    #[inline(always)]
    pub fn get(&self) -> T {
        self.value
    }

    /// Returns the number times its factor.
    #[cfg(feature = "scaled-limits")]
    pub fn get(&self) -> T {
        scaled::times(self.index, self.value)
    }

    pub fn row(&self) -> LimitRow {
        LimitRow {
            name: self.name,
            value: self.get().as_f64(),
            unit: self.unit,
            source: self.source,
            doc: self.doc.trim(),
        }
    }
}

/// Factors of limits, and which limits were read: for .ci/sensitivity.py only.
#[cfg(feature = "scaled-limits")]
pub mod scaled {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::Number;

    const MAX_LIMITS: usize = 256;
    /// Bits of each f64 factor; 0 stands for a factor of one.
    static FACTORS: [AtomicU64; MAX_LIMITS] = [const { AtomicU64::new(0) }; MAX_LIMITS];
    static READ: [AtomicBool; MAX_LIMITS] = [const { AtomicBool::new(false) }; MAX_LIMITS];

    pub(super) fn times<T: Number>(index: usize, value: T) -> T {
        READ[index].store(true, Relaxed);
        match FACTORS[index].load(Relaxed) {
            0 => value,
            bits => value.times(f64::from_bits(bits)),
        }
    }

    pub fn scale(index: usize, factor: f64) {
        FACTORS[index].store(factor.to_bits(), Relaxed);
    }

    /// Returns the indices of the limits read since the last call.
    pub fn read() -> Vec<usize> {
        (0..MAX_LIMITS)
            .filter(|&index| READ[index].swap(false, Relaxed))
            .collect()
    }
}

macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $value:literal, $unit:literal, $source:literal;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($name),+ }
        $(
            $(#[doc = $doc])+
            #[doc = concat!("\n\nIn ", $unit, ". Source: ", $source, ".")]
            pub const $name: Limit<$type> =
                Limit::new(Index::$name as usize, stringify!($name), $value, $unit, $source, concat!($($doc),+));
        )+

        /// Returns all limits, in the order of this file.
        pub fn all() -> Vec<$crate::limits::LimitRow> {
            vec![$($name.row()),+]
        }
    };
}
pub(super) use limits;
