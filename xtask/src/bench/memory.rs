//! Resident memory of a recording at 1 kHz, and of reading one of NUMAscope.

use super::recorder::Recording;
use super::results::Results;
use crate::process::Figures;
use crate::{python, workspace};
use anyhow::Result;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub fn run(results: &mut Results) -> Result<()> {
    let vmstat = Recording::of_vmstat(20.0).make()?;
    results.at_most("RSS, vmstat* at 1 kHz", vmstat.get("rss_kib")? / 1024.0, "MiB", 8.0)?;
    let default = Recording::new("-i 1ms", 20.0).make()?;
    results.at_most("RSS, default events at 1 kHz", default.get("rss_kib")? / 1024.0, "MiB", 12.0)?;
    results.show("series of the default events", default.get("series")?, "")?;
    reading(results)
}

/// Files of one column and of many, in two sizes: memory must not depend on the size.
fn reading(results: &mut Results) -> Result<()> {
    for columns in [1, 720] {
        let small = peak(&json(columns, 10 << 20)?)?;
        let large = peak(&json(columns, 40 << 20)?)?;
        results.show(&format!("RSS, 40 MiB of NUMAscope, {columns} columns"), large / 1024.0, "MiB")?;
        let name = format!("that / of 10 MiB, {columns} columns");
        results.at_most(&name, large / small, "ratio", 1.5)?;
    }
    Ok(())
}

/// Writes a file with one-digit numbers: these need most memory relative to their text.
fn json(columns: usize, bytes: u64) -> Result<PathBuf> {
    let path = workspace::target().join(format!("bench/{columns}-{bytes}.json"));
    let mut to = BufWriter::new(File::create(&path)?);
    let headings: Vec<String> = (0..columns).map(|column| format!("\"event {column}\"")).collect();
    write!(to, "[[\"NumaConnect2\",6,200000000],\n[{}]", headings.join(","))?;
    let (values, mut written, mut time) = (",2".repeat(columns), 0, 1u64);
    while written < bytes {
        let row = format!(",\n[{time}{values}]");
        to.write_all(row.as_bytes())?;
        written += row.len() as u64;
        time += 1;
    }
    writeln!(to, "]")?;
    to.flush()?;
    Ok(path)
}

/// Peak memory of an export, in KiB.
fn peak(file: &Path) -> Result<f64> {
    let mut script = python::script("peak.py")?;
    script.arg(workspace::measured()).args(["export", "--to", "csv"]).arg(file);
    let peak = Figures::of(&mut script)?.get("peak_kib");
    std::fs::remove_file(file)?;
    peak
}
