//! TLS where there are keys: the handshake is read from the records as without them, and behind it what programs say
//! inside instead of them, up to where nothing more can be opened.

use super::super::sink::MessageSink;
use super::super::{Close, Listener, Outcome, Protocol, Side, Stretch};
use super::inside::Inside;
use super::{Stage, Tls};
use crate::decrypt::Sealed;

impl Tls {
    /// What programs speak inside, where that can be read.
    pub(in crate::messages) fn inner_protocol(&self) -> Option<Protocol> {
        self.inside.as_ref().and_then(|inside| inside.protocol())
    }

    /// What the server calls itself there.
    pub(in crate::messages) fn inner_software(&self) -> Option<&str> {
        self.inside.as_ref().and_then(|inside| inside.software())
    }

    /// With keys: the handshake is read from the records as without, and then what programs say instead of them.
    pub(super) fn unsealed<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        piece: Stretch<'a>,
        mut inside: Box<Inside>,
    ) -> Outcome<'a> {
        let keys = sink.memory().keys.clone().unwrap_or_default();
        inside.open(sink.side(), sink.at(), piece, &keys);
        if let Some(why) = inside.sealed() {
            return self.seal(sink, piece, why, inside);
        }
        let keyed = inside.keyed();
        let finished = inside.finished() || inside.is_full();
        self.inside = Some(inside);
        self.blind |= keyed && self.stage == Stage::Data;
        if !self.blind {
            match self.records(sink, piece) {
                Outcome::All => {}
                lost if !keyed => return lost,
                _ => self.blind = true,
            }
        }
        if finished && self.stage != Stage::Data {
            self.established(sink);
        }
        if let Some(inside) = &mut self.inside {
            let over = self.stage == Stage::Data;
            if over {
                inside.read(sink);
            }
            for side in [Side::Client, Side::Server] {
                sink.hold(
                    side,
                    if over {
                        inside.waits(side)
                    } else {
                        inside.is_early()
                    },
                );
            }
        }
        Outcome::All
    }

    /// Nothing more can be opened: what follows is read as records, from where a record is known to begin.
    #[cold]
    fn seal<'a>(
        &mut self,
        sink: &mut MessageSink<'_, impl Listener>,
        piece: Stretch<'a>,
        why: Sealed,
        mut inside: Box<Inside>,
    ) -> Outcome<'a> {
        for side in [Side::Client, Side::Server] {
            sink.hold(side, false);
        }
        if !inside.spoken() {
            sink.sealed(why);
        }
        if !inside.spoken() && !self.blind {
            return self.records(sink, piece);
        }
        if self.stage != Stage::Data {
            self.established(sink);
        }
        inside.read(sink);
        for side in [Side::Client, Side::Server] {
            inside.close(side, Close::CaptureEnd, sink);
        }
        sink.protocol(Protocol::Tls);
        sink.lost(why.reason());
        Outcome::Lost(piece)
    }

    /// Whether what programs say is read inside.
    pub(super) fn keyed(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.keyed())
    }
}
