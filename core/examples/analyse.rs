//! How much work is one capture? Reads it in blocks, analyses it as latpcap does, and prints what was counted.
//! `benchmarks/instructions` runs this under callgrind.

use std::fs::File;
use std::io::{self, Read, Write};

use latpcap_core::engine::Engine;

/// As in latpcap/sources.py.
const BLOCK_BYTES: usize = 1 << 17;

fn main() -> io::Result<()> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "usage: analyse CAPTURE");
    let mut file = File::open(std::env::args_os().nth(1).ok_or_else(usage)?)?;
    let mut engine = Engine::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let len = file.read(&mut block)?;
        if len == 0 {
            break;
        }
        engine.push(block.get(..len).unwrap_or_default());
        for table in ["events", "exchanges", "causes"] {
            engine.analysis().tables.take(table); // handed on, as to a file: what is kept costs memory
        }
    }
    engine.finish();
    writeln!(
        io::stdout(),
        "frames {} streams {}",
        engine.frames(),
        engine.streams()
    )
}
