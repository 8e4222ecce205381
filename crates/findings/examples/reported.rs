//! `reported FILE`: the time that decoding a recording takes alone, and that of its report, in seconds.
#![allow(clippy::print_stdout)]

use numakit_findings::analyse;
use numakit_formulas::Catalog;
use numakit_recording::{Reader, read_ahead};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let file: PathBuf = std::env::args_os().nth(1).ok_or("usage: reported FILE")?.into();
    let start = Instant::now();
    let mut reader = Reader::open(&file)?;
    let rows: usize = std::iter::from_fn(|| reader.next_batch()).map(|batch| batch.len()).sum();
    println!("decoding {}", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut reader = Reader::open(&file)?;
    let header = reader.header().clone();
    let report = read_ahead(&mut reader, |batches| analyse(&header, batches, None, Catalog::built_in()))?;
    println!("report {}", start.elapsed().as_secs_f64());
    println!("rows {rows}");
    println!("samples {}", report.recording.samples);
    Ok(())
}
