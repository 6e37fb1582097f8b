//! The prepared statements of a connection, and its portals: which name stands for which SQL.

use std::collections::VecDeque;

use smol_str::SmolStr;

/// Names that are remembered, and so much of each. The oldest is forgotten beyond it.
const MAX_NAMES: usize = 256;
const MAX_NAME: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Names(VecDeque<(Box<[u8]>, SmolStr)>);

impl Names {
    pub(super) fn put(&mut self, name: &[u8], sql: SmolStr) {
        self.forget(name);
        if name.len() > MAX_NAME {
            return;
        }
        if self.0.len() >= MAX_NAMES {
            self.0.pop_front();
        }
        self.0.push_back((name.into(), sql));
    }

    /// What the name stands for; nothing where that is not known.
    pub(super) fn get(&self, name: &[u8]) -> SmolStr {
        // who prepares statements uses the newest ones most
        let known = self.0.iter().rev().find(|(known, _)| **known == *name);
        known.map_or_else(SmolStr::default, |(_, sql)| sql.clone())
    }

    pub(super) fn forget(&mut self, name: &[u8]) {
        self.0.retain(|(known, _)| **known != *name);
    }
}
