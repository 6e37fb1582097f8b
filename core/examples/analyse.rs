//! Analyses a capture as latpcap does, in blocks, and prints the numbers of frames and streams.
//! `benchmarks/instructions` runs it under callgrind.

use std::fs::File;
use std::io::{self, Read, Write};

use latpcap_core::engine::Engine;
use latpcap_core::table::NAMES;

/// Block size, as in latpcap.
const BLOCK_BYTES: usize = 1 << 17;

/// Drops the finished batches, which would otherwise take memory.
fn drop_batches(engine: &mut Engine) {
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
        drop_batches(&mut engine);
    }
    while engine.finish_some() {
        drop_batches(&mut engine);
    }
    writeln!(
        io::stdout(),
        "frames {} streams {}",
        engine.frames(),
        engine.stream_count()
    )
}
