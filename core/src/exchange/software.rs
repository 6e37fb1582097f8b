//! What servers call themselves, each name once: the streams of one server share it.

use ahash::AHashMap;

/// Different names that are kept.
const MAX_NAMES: usize = 1 << 16;

/// One name's place in `SoftwareNames`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftwareName(u32);

#[derive(Debug, Default)]
pub struct SoftwareNames {
    known: AHashMap<Box<str>, SoftwareName>,
    names: Vec<Box<str>>,
}

impl SoftwareNames {
    /// The name's place; none where too many are known.
    pub fn keep(&mut self, name: &str) -> Option<SoftwareName> {
        if let Some(known) = self.known.get(name) {
            return Some(*known);
        }
        if self.names.len() >= MAX_NAMES {
            return None;
        }
        let place = SoftwareName(self.names.len() as u32);
        self.names.push(name.into());
        self.known.insert(name.into(), place);
        Some(place)
    }

    pub fn get(&self, name: SoftwareName) -> Option<&str> {
        self.names.get(name.0 as usize).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_kept_once_and_their_number_is_bounded() {
        let mut names = SoftwareNames::default();
        let first = names.keep("nginx");
        assert_eq!(names.keep("nginx"), first);
        assert_eq!(first.and_then(|name| names.get(name)), Some("nginx"));
        let kept = (0..MAX_NAMES)
            .filter(|i| names.keep(&i.to_string()).is_some())
            .count();
        assert_eq!((kept, names.names.len()), (MAX_NAMES - 1, MAX_NAMES));
        assert_eq!(names.keep("nginx"), first);
    }
}
