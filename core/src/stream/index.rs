//! Which stream has these ends now? Numbers only: the ends lie with the streams.

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::store::{Ends, Store};
use super::tuple::FourTuple;

/// Half of an entry's hash, and the stream's number: nine bytes of table each, whatever the addresses.
#[derive(Default)]
pub(super) struct Index {
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
}

/// The table wants its seven bits at one end and the place at the other: both ends get all that is known.
fn whole(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

impl Index {
    pub(super) fn half(&self, key: &FourTuple) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    /// The stream between these ends, and what is known of it without waking it; `half` is that of the key.
    pub(super) fn get(&self, half: u32, key: &FourTuple, store: &Store) -> Option<(u32, Ends)> {
        let mut seen = None;
        let found = self.table.find(whole(half), |(known, id)| {
            seen = (*known == half).then(|| store.head(*id)).flatten();
            seen.as_ref().is_some_and(|head| head.key() == *key)
        });
        Some((found?.1, seen?))
    }

    /// The newest stream between these ends, which may have been another one's.
    pub(super) fn insert(&mut self, half: u32, id: u32, before: Option<u32>) {
        let entry = self.table.entry(
            whole(half),
            |(_, known)| Some(*known) == before,
            |(half, _)| whole(*half),
        );
        match entry {
            Entry::Occupied(mut entry) => entry.get_mut().1 = id,
            Entry::Vacant(entry) => {
                entry.insert((half, id));
            }
        }
    }
}
