//! What a limit is: a number with its unit, its source and one sentence.

/// A number with its unit and its source.
#[derive(Debug)]
pub struct Limit<T> {
    pub name: &'static str,
    value: T,
    pub unit: &'static str,
    pub source: &'static str,
    pub says: &'static str,
}

/// Both ends of a range, inclusive.
#[derive(Debug)]
pub struct Band<T> {
    pub least: Limit<T>,
    pub most: Limit<T>,
}

/// One limit as a row of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub source: &'static str,
    pub says: &'static str,
}

/// Numbers that limits have.
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
                (self as f64 * factor).round() as $type
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
    pub const fn new(
        name: &'static str,
        value: T,
        unit: &'static str,
        source: &'static str,
        says: &'static str,
    ) -> Self {
        Limit {
            name,
            value,
            unit,
            source,
            says,
        }
    }

    /// The number as it stands in the source, whatever the environment says.
    pub const fn as_written(&self) -> T {
        self.value
    }
}

impl<T: Number> Limit<T> {
    /// The number.
    #[cfg(not(feature = "limits-from-env"))]
    #[inline(always)]
    pub fn get(&self) -> T {
        self.value
    }

    /// The number, times the factor that `LATPCAP_LIMITS` names for it ("NAME=0.5,OTHER=2").
    #[cfg(feature = "limits-from-env")]
    pub fn get(&self) -> T {
        match factors().iter().find(|(name, _)| name == self.name) {
            Some((_, factor)) => self.value.times(*factor),
            None => self.value,
        }
    }

    pub fn told(&self) -> Told {
        Told {
            name: self.name,
            value: self.get().as_f64(),
            unit: self.unit,
            source: self.source,
            says: self.says.trim(),
        }
    }
}

impl Band<i64> {
    #[inline(always)]
    pub fn contains(&self, value: i64) -> bool {
        (self.least.get()..=self.most.get()).contains(&value)
    }
}

#[cfg(feature = "limits-from-env")]
fn factors() -> &'static [(String, f64)] {
    static FACTORS: std::sync::OnceLock<Vec<(String, f64)>> = std::sync::OnceLock::new();
    FACTORS.get_or_init(|| {
        let given = std::env::var("LATPCAP_LIMITS").unwrap_or_default();
        let pairs = given.split(',').filter_map(|one| one.split_once('='));
        pairs
            .filter_map(|(name, factor)| Some((name.to_string(), factor.parse().ok()?)))
            .collect()
    })
}

macro_rules! limits {
    ($($(#[doc = $says:literal])+ $name:ident: $type:ty = $value:literal, $unit:literal, $source:literal;)+) => {
        $(
            $(#[doc = $says])+
            #[doc = concat!("\n\nIn ", $unit, ". Source: ", $source, ".")]
            pub const $name: Limit<$type> =
                Limit::new(stringify!($name), $value, $unit, $source, concat!($($says),+));
        )+

        /// All limits, in the order of this file.
        pub fn all() -> Vec<$crate::limits::Told> {
            vec![$($name.told()),+]
        }
    };
}
pub(super) use limits;
