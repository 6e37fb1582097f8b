//! How a stream ended, and which side ended it.

use super::Stream;
use crate::base::Side;
use crate::facts::completeness;

/// The first FIN or RST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// Side that sent it.
    pub by: Side,
    /// It is an RST.
    pub reset: bool,
}

impl Closing {
    pub const COUNT: usize = 4;

    pub fn code(self) -> usize {
        2 * usize::from(self.reset) + self.by.index()
    }

    pub fn word(self) -> &'static str {
        match (self.by, self.reset) {
            (Side::Client, false) => "client_fin",
            (Side::Server, false) => "server_fin",
            (Side::Client, true) => "client_rst",
            (Side::Server, true) => "server_rst",
        }
    }
}

/// How complete the ending is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// One side has sent its FIN.
    Half,
    Fin,
    FinRst,
    Rst,
}

impl Ending {
    pub const COUNT: usize = Ending::Rst as usize + 1;

    pub fn word(self) -> &'static str {
        match self {
            Ending::Half => "half",
            Ending::Fin => "fin",
            Ending::FinRst => "fin_rst",
            Ending::Rst => "rst",
        }
    }
}

impl Stream {
    /// How the stream ended in the capture; None if it did not.
    pub fn ending(&self) -> Option<Ending> {
        let fins = self.counts.iter().filter(|side| side.fin).count();
        match (fins, self.completeness() & completeness::RST != 0) {
            (0, false) => None,
            (0, true) => Some(Ending::Rst),
            (_, true) => Some(Ending::FinRst),
            (1, false) => Some(Ending::Half),
            (_, false) => Some(Ending::Fin),
        }
    }
}
