//! What a stream speaks, by what both sides say first; until that is sure, it is held.

use super::readers::KNOWN;
use super::sink::MessageSink;
use super::{
    At, Close, First, Guess, Listener, Memory, MessageReader, Messages, Note, Side, Stage, Stretch, banner,
    joined, turns,
};

/// One side's first bytes that may be held while no protocol is sure, for `Guess::More`.
pub(super) const MAX_UNDECIDED: usize = 32;
/// Bytes and packets of both sides that may be held for `Guess::Other`.
const MAX_HELD: usize = 4096;
const MAX_HELD_PACKETS: usize = 512;
impl Messages {
    /// Whether this stretch can be read now: the protocol is known with it. Else it is held.
    #[cold]
    pub(super) fn decided(
        &mut self,
        side: Side,
        at: At,
        stretch: Stretch<'_>,
        listener: &mut impl Listener,
    ) -> bool {
        let decided = self.decide(side, stretch, listener.memory());
        if let (None, Stretch::Bytes(bytes)) = (decided, stretch) {
            self.undecided.push((side, at, bytes.into()));
            return false;
        }
        self.begin(decided.unwrap_or(Stage::Turns), listener);
        true
    }

    /// Looks at what both sides said first: `None` when that is too little to tell.
    fn decide(&mut self, side: Side, stretch: Stretch<'_>, memory: &mut Memory) -> Option<Stage> {
        let Stretch::Bytes(bytes) = stretch else {
            self.join();
            return Some(Stage::Turns);
        };
        let held = |of: Side| {
            let before = self.undecided.iter().filter(move |(whose, ..)| *whose == of);
            before
                .flat_map(|(.., held)| held.iter().copied())
                .collect::<Vec<_>>()
        };
        let (mut joined, other) = (Vec::new(), held(side.other()));
        let said = if self.undecided.is_empty() {
            bytes
        } else {
            joined.append(&mut held(side));
            joined.extend_from_slice(bytes);
            &joined
        };
        let first = First {
            side,
            said,
            other: &other,
            began: self.undecided.first().map_or(side, |(whose, ..)| *whose),
        };
        let few = said.len() < MAX_UNDECIDED;
        let fits = said.len() + other.len() <= MAX_HELD && self.undecided.len() < MAX_HELD_PACKETS;
        let mut stage = Some(Stage::Turns);
        for known in &KNOWN {
            match (known.sniff)(&first) {
                Guess::Yes => {
                    self.reader = (known.reader)(memory);
                    return Some(Stage::Following);
                }
                Guess::More if few => stage = None,
                Guess::Other if fits => stage = None,
                Guess::More | Guess::Other | Guess::No => {}
            }
        }
        stage
    }

    /// The stream is known: reads what was held until now.
    pub(super) fn begin(&mut self, stage: Stage, listener: &mut impl Listener) {
        self.stage = stage;
        listener.note(Note::Protocol(self.reader.protocol()));
        for (side, at, bytes) in std::mem::take(&mut self.undecided) {
            let held = Stretch::Bytes(&bytes);
            if bytes.is_empty() {
                self.close(side, at, Close::Fin, listener);
            } else if stage == Stage::Following {
                self.feed(side, at, held, listener);
            } else {
                // no protocol took it for its beginning: that is not asked again
                self.greeting_of(side, held);
                let mut sink = MessageSink::new(&mut self.open, listener, side, at);
                joined::heard(&mut self.joined, &mut sink, &bytes);
                turns::Turns.feed(sink, held);
            }
        }
    }

    /// The server's first words, which may say what it is.
    #[inline(always)]
    pub(super) fn greeting_of(&mut self, side: Side, stretch: Stretch<'_>) {
        if side == Side::Server && !self.greeted {
            self.greeting(stretch);
        }
    }

    #[cold]
    fn greeting(&mut self, stretch: Stretch<'_>) {
        self.greeted = true;
        if let (Stretch::Bytes(first), true) = (stretch, self.reader.is_turns()) {
            self.open.software = banner::of_greeting(first);
        }
    }
}
