//! From the start of the process to its first sample.

use super::recorder::Recording;
use super::results::Results;
use super::statistics::median;
use anyhow::Result;

const STARTS: usize = 11;

pub fn run(results: &mut Results) -> Result<()> {
    for (name, recording) in
        [("vmstat*", Recording::of_vmstat(0.3)), ("default events", Recording::new("-i 1ms", 0.3))]
    {
        let starts = (0..STARTS).map(|_| recording.make()?.get("first_sample_ms"));
        let starts = starts.collect::<Result<Vec<f64>>>()?;
        results.at_most(&format!("start to first sample, {name}"), median(starts), "ms", 20.0)?;
    }
    Ok(())
}
