//! Which stream has these ends now? Numbers only: the ends lie with the streams.

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::store::Store;
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

fn is(store: &Store, id: u32, key: &FourTuple) -> bool {
    store
        .head(id)
        .is_some_and(|head| FourTuple::between(head.low, head.high) == *key)
}

impl Index {
    fn half(&self, key: &FourTuple) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    pub(super) fn get(&self, key: &FourTuple, store: &Store) -> Option<u32> {
        let half = self.half(key);
        let found = self
            .table
            .find(whole(half), |(known, id)| *known == half && is(store, *id, key));
        found.map(|(_, id)| *id)
    }

    /// The newest stream between these ends, which may have been another one's.
    pub(super) fn insert(&mut self, key: &FourTuple, id: u32, before: Option<u32>) {
        let half = self.half(key);
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
