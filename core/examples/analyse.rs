//! How much work is one capture? Reads it in blocks, analyses it as latpcap does, and prints what was counted.
//! `benchmarks/instructions` runs this under callgrind.

use std::fs::File;
use std::io::{self, Read, Write};

use latpcap_core::engine::Engine;
use latpcap_core::table::NAMES;

/// As in latpcap/sources.py.
const BLOCK_BYTES: usize = 1 << 17;

/// As to a file: what is kept costs memory.
fn hand_on(engine: &mut Engine) {
    for table in NAMES {
        engine.pipeline().tables.take(table);
    }
}

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
        hand_on(&mut engine);
    }
    while engine.finish_some() {
        hand_on(&mut engine);
    }
    writeln!(
        io::stdout(),
        "frames {} streams {}",
        engine.frames(),
        engine.streams()
    )
}
