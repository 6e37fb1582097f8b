//! Interns values that many streams share, such as names of servers and properties of TLS handshakes.

use std::hash::Hash;
use std::num::NonZeroU32;

use ahash::AHashMap;

/// Upper bound on the different values kept.
const MAX_NAMES: usize = 1 << 16;

/// Id of an interned value, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol(NonZeroU32);

/// Stores each different value once.
#[derive(Debug)]
pub struct Interner<T> {
    symbols: AHashMap<T, Symbol>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            symbols: AHashMap::default(),
            values: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Returns the id of an equal value, storing it if needed; None if there are too many.
    pub fn keep(&mut self, value: &T) -> Option<Symbol> {
        if let Some(symbol) = self.symbols.get(value) {
            return Some(*symbol);
        }
        if self.values.len() >= MAX_NAMES {
            return None;
        }
        self.values.push(value.clone());
        let symbol = Symbol(NonZeroU32::new(self.values.len() as u32)?);
        self.symbols.insert(value.clone(), symbol);
        Some(symbol)
    }

    pub fn get(&self, symbol: Symbol) -> Option<&T> {
        self.values.get(symbol.0.get() as usize - 1)
    }
}

#[cfg(test)]
mod tests {
    use smol_str::SmolStr;

    use super::*;

    #[test]
    fn each_is_kept_once_and_their_number_is_bounded() {
        let mut names = Interner::<SmolStr>::default();
        let first = names.keep(&"nginx".into());
        assert_eq!(names.keep(&"nginx".into()), first);
        let name = first.and_then(|symbol| names.get(symbol));
        assert_eq!(name.map(SmolStr::as_str), Some("nginx"));
        let kept = (0..MAX_NAMES)
            .filter(|i| names.keep(&i.to_string().into()).is_some())
            .count();
        assert_eq!((kept, names.values.len()), (MAX_NAMES - 1, MAX_NAMES));
        assert_eq!(names.keep(&"nginx".into()), first);
    }
}
