//! What other connections brought meanwhile. A proxy sends on what its other side sends it: where the ACKs of both sides
//! are held by one host, they end on one tick, and a segment follows its ACK because the bytes in it have just come,
//! freed on the other side.

/// In one direction, the newest segments that waited for an ACK, of two pools: which, and when.
#[derive(Debug, Default)]
pub(super) struct Relay {
    newest: (u32, i64),
    other: (u32, i64),
}

impl Relay {
    pub(super) fn passed(&mut self, pool: u32, time_ns: i64) {
        if self.newest.0 != pool {
            self.other = self.newest;
            self.newest.0 = pool;
        }
        self.newest.1 = time_ns;
    }

    /// The pool other than this one whose segment passed last, if that was after `since`.
    pub(super) fn since(&self, pool: u32, since: i64) -> Option<u32> {
        let (other, at) = if self.newest.0 == pool {
            self.other
        } else {
            self.newest
        };
        (at > since).then_some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_brought_last() {
        let mut relay = Relay::default();
        assert_eq!(relay.since(7, 0), None);
        relay.passed(7, 10);
        relay.passed(3, 20);
        relay.passed(7, 30);
        relay.passed(7, 40);
        assert_eq!((relay.since(7, 19), relay.since(7, 20)), (Some(3), None));
        assert_eq!(relay.since(3, 39), Some(7));
        relay.passed(5, 50);
        assert_eq!((relay.since(7, 0), relay.since(5, 0)), (Some(5), Some(7)));
    }
}
