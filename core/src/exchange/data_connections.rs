//! Data connections (FTP, RFC 959): a connection on which one side alone sends carries data for a request on another
//! one, the control connection. Until it has ended, the wait for the response to that request is not attributed to
//! the server's program.
//!
//! Example: `RETR file` on the control connection, `150`, 80 ms of data on the data connection, then `226`. The
//! server was sending during these 80 ms.

use std::collections::VecDeque;

use smol_str::{SmolStr, format_smolstr};

use super::Exchange;
use crate::base::At;
use crate::limits::ANNOUNCED_NS;
use crate::observe::{Step, Turn, TurnDoubt, Wait};

/// Upper bound on the data connections kept, of all hosts.
const MAX_DATA_CONNECTIONS: usize = 32;

/// A connection on which one side alone has sent data.
#[derive(Debug, Clone, Copy)]
struct DataConnection {
    pair: u32,
    stream: u32,
    /// Stream of the control connection, if known.
    control: Option<u32>,
    /// Times of its first data and of its end, in ns.
    start_ns: i64,
    end_ns: i64,
}

/// A port that a control connection announces for a data connection.
#[derive(Debug)]
struct Announced {
    /// Stream of the control connection.
    control: u32,
    pair: u32,
    port: u16,
    time_ns: i64,
    /// The command that uses it; None until it is sent.
    command: Option<SmolStr>,
}

/// What a stream carries for its control connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Carried {
    pub control: u32,
    /// The command with its argument.
    pub command: SmolStr,
}

/// The newest data connections, and the ports announced for further ones.
#[derive(Debug, Default)]
pub struct DataConnections {
    connections: VecDeque<DataConnection>,
    announced: VecDeque<Announced>,
}

impl DataConnections {
    /// Records the end of one side of a stream on which one side alone has sent since `start`.
    pub fn ended(&mut self, pair: u32, stream: u32, control: Option<u32>, start: i64, end: i64) {
        if let Some(connection) = self
            .connections
            .iter_mut()
            .find(|connection| connection.stream == stream)
        {
            connection.end_ns = end;
            return;
        }
        if self.connections.len() >= MAX_DATA_CONNECTIONS {
            self.connections.pop_front();
        }
        self.connections.push_back(DataConnection {
            pair,
            stream,
            control,
            start_ns: start,
            end_ns: end,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Records that a data connection to this port will follow, between the hosts of the control connection.
    #[cold]
    pub fn announced(&mut self, control: u32, pair: u32, port: u16, at: At) {
        // only the newest port without a command counts for a control connection
        self.announced.retain(|announced| {
            announced.control != control || announced.command.is_some() && announced.port != port
        });
        if self.announced.len() >= MAX_DATA_CONNECTIONS {
            self.announced.pop_front();
        }
        self.announced.push_back(Announced {
            control,
            pair,
            port,
            time_ns: at.time_ns,
            command: None,
        });
    }

    /// Assigns this command to the port that was announced last.
    #[cold]
    pub fn requested(&mut self, control: u32, method: &str, target: &str) {
        let mut newest = self.announced.iter_mut().rev();
        if let Some(announced) =
            newest.find(|announced| announced.control == control && announced.command.is_none())
        {
            let gap = if target.is_empty() { "" } else { " " };
            announced.command = Some(format_smolstr!("{method}{gap}{target}"));
        }
    }

    /// Whether any announced port is unused.
    pub fn expects(&self) -> bool {
        !self.announced.is_empty()
    }

    /// Returns what a stream carries whose first data pass now; `pairs` are the ids of its hosts, in both directions.
    /// Returned once.
    #[cold]
    pub fn carried(&mut self, pairs: [Option<u32>; 2], port: u16, at: At) -> Option<Carried> {
        self.announced
            .retain(|announced| at.time_ns.saturating_sub(announced.time_ns) <= ANNOUNCED_NS.get());
        let index = self.announced.iter().position(|announced| {
            announced.port == port && pairs.contains(&Some(announced.pair)) && announced.command.is_some()
        })?;
        let announced = self.announced.remove(index)?;
        Some(Carried {
            control: announced.control,
            command: announced.command?,
        })
    }

    /// Marks steps that look like a program's time as unsure, if a transfer between the same hosts took the larger
    /// part of them and ended within them.
    #[cold]
    pub fn excuse(&self, exchange: &mut Exchange) {
        let (pair, stream) = (exchange.pair, exchange.stream);
        for step in exchange.steps.iter_mut().flatten() {
            self.doubt(step, pair, stream);
        }
    }

    fn doubt(&self, step: &mut Step, pair: u32, stream: u32) {
        let since = match step.wait {
            Wait::App | Wait::Filled { .. } | Wait::Early { .. } => step.from,
            Wait::Turn(turn) if !matches!(turn.doubt, Some(TurnDoubt::CorkLength { .. })) => turn.since,
            _ => return,
        };
        let (from, to) = (since.time_ns, step.to.time_ns);
        let passed = self
            .connections
            .iter()
            .filter(|connection| {
                connection.pair == pair && connection.stream != stream || connection.control == Some(stream)
            })
            .filter(|connection| (from..=to).contains(&connection.end_ns));
        // the server sends the response on the control connection after the client has got all data
        let end = |connection: &DataConnection| {
            if connection.control == Some(stream) {
                to
            } else {
                connection.end_ns
            }
        };
        let longest = passed
            .map(|connection| end(connection) - connection.start_ns.max(from))
            .max()
            .unwrap_or(0);
        if longest <= (to - from) / 2 {
            return;
        }
        let busy = u32::try_from(longest).unwrap_or(u32::MAX);
        step.wait = match step.wait {
            Wait::Turn(turn) => {
                let (late_ns, queued_ns) = match turn.doubt {
                    Some(TurnDoubt::Queued {
                        late_ns, queued_ns, ..
                    }) => (late_ns.max(busy), queued_ns),
                    _ => (busy, 0),
                };
                let doubt = Some(TurnDoubt::Queued {
                    late_ns,
                    queued_ns,
                    is_clock_fine: false,
                });
                Wait::Turn(Turn { doubt, ..turn })
            }
            _ => Wait::Unsure,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::At;

    fn at(ms: i64) -> At {
        At {
            frame: 1,
            time_ns: ms * 1_000_000,
        }
    }

    #[test]
    fn a_transfer_that_took_the_larger_part_excuses_the_program() {
        let mut all = DataConnections::default();
        let ms = |ms: i64| ms * 1_000_000;
        all.ended(7, 2, None, ms(10), ms(60));
        all.ended(7, 2, None, ms(10), ms(80));
        all.ended(8, 3, Some(6), ms(40), ms(41));
        let doubted = |pair, stream, wait: Wait| {
            let mut step = Step {
                from: at(0),
                to: at(100),
                wait,
            };
            all.doubt(&mut step, pair, stream);
            step.wait
        };
        let turn_since = |ms, doubt| {
            Wait::Turn(Turn {
                since: at(ms),
                acked_ns: 0,
                doubt,
            })
        };
        let turn = turn_since(5, None);
        let queued = TurnDoubt::Queued {
            late_ns: 70_000_000,
            queued_ns: 0,
            is_clock_fine: false,
        };
        let late = turn_since(5, Some(queued));
        assert_eq!(doubted(7, 1, Wait::App), Wait::Unsure);
        assert_eq!(doubted(7, 1, turn.clone()), late);
        assert_eq!(doubted(7, 2, turn.clone()), turn); // itself
        assert_eq!(doubted(9, 1, turn.clone()), turn); // other hosts
        assert_eq!(doubted(7, 1, Wait::Hole), Wait::Hole);
        assert_eq!(doubted(7, 6, Wait::App), Wait::Unsure); // requested there, whichever the hosts
        assert_eq!(doubted(8, 9, Wait::App), Wait::App); // it took 1 ms
        let short = turn_since(81, None);
        assert_eq!(doubted(7, 1, short.clone()), short); // it was over before
        for stream in 0..2 * MAX_DATA_CONNECTIONS as u32 {
            all.ended(6, stream + 9, None, 0, 1);
        }
        assert_eq!(all.connections.len(), MAX_DATA_CONNECTIONS);
    }

    #[test]
    fn a_port_is_the_newest_commands_for_a_minute() {
        let (control, pair, pairs) = (4, 7, [Some(7), None]);
        let carried_by = |all: &mut DataConnections, pairs, port, ms| {
            let carried = all.carried(pairs, port, at(ms));
            carried.map(|carried| (carried.control, carried.command.to_string()))
        };
        let mut all = DataConnections::default();
        all.announced(control, pair, 9, at(0));
        assert_eq!(carried_by(&mut all, pairs, 9, 1), None, "nothing was requested");
        all.announced(control, pair, 10, at(1));
        all.requested(control, "RETR", "a b");
        all.requested(control, "LIST", ""); // it has no port
        assert_eq!(
            carried_by(&mut all, pairs, 9, 2),
            None,
            "another port took its place"
        );
        assert_eq!(carried_by(&mut all, [Some(8), None], 10, 2), None, "other hosts");
        assert_eq!(
            carried_by(&mut all, [None, Some(7)], 10, 60_001),
            Some((4, "RETR a b".into()))
        );
        assert_eq!(carried_by(&mut all, pairs, 10, 60_001), None, "given once");
        all.announced(control, pair, 11, at(0));
        all.requested(control, "LIST", "");
        assert_eq!(carried_by(&mut all, pairs, 11, 60_001), None, "too long ago");
        for port in 0..100 {
            all.announced(u32::from(port), pair, port, at(0));
        }
        assert_eq!(all.announced.len(), MAX_DATA_CONNECTIONS);
    }
}
