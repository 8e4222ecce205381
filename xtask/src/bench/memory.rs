//! Resident memory of a recording at 1 kHz.

use super::recorder::Recording;
use super::results::Results;
use anyhow::Result;

pub fn run(results: &mut Results) -> Result<()> {
    let vmstat = Recording::of_vmstat(20.0).make()?;
    results.at_most("RSS, vmstat* at 1 kHz", vmstat.get("rss_kib")? / 1024.0, "MiB", 8.0)?;
    let usual = Recording::new("-i 1ms", 20.0).make()?;
    results.at_most("RSS, default events at 1 kHz", usual.get("rss_kib")? / 1024.0, "MiB", 12.0)?;
    results.show("series of the default events", usual.get("series")?, "")
}
