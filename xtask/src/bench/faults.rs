//! What it costs a program that its page faults are observed, for the first touches of `numa explain`: at 50,000 a second, and
//! as many as there can be.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::process::Figures;
use crate::workspace;
use anyhow::Result;
use std::process::Command;

const PAIRS: usize = 9;
/// Steps of work between two faults, and faults: a second of CPU time.
const AT_50_000: (&str, &str) = ("16500", "50000");
const WITHOUT_WORK: (&str, &str) = ("0", "1000000");
/// Per cent of the program's CPU time.
const LIMIT: f64 = 5.0;

pub fn run(results: &mut Results) -> Result<()> {
    let program = floor::build()?.join("faults");
    let numa = workspace::measured();
    let plain = |(steps, count): (&str, &str)| Figures::of(Command::new(&program).args([steps, count]));
    let text = workspace::target().join("faults.txt");
    let observed = |(steps, count): (&str, &str)| {
        let mut command = Command::new(&numa);
        command.args(["explain", "--output"]).arg(&text).arg("--").arg(&program).args([steps, count]);
        Figures::of(&mut command)
    };
    for (name, work, limit) in
        [("50,000 faults a second", AT_50_000, Some(LIMIT)), ("faults without work", WITHOUT_WORK, None)]
    {
        let measured = pairs(PAIRS, || observed(work), || plain(work))?;
        let more = |(with, without): &(Figures, Figures)| -> Result<f64> {
            Ok((with.get("cpu_seconds")? / without.get("cpu_seconds")? - 1.0) * 100.0)
        };
        let more: Result<Vec<f64>> = measured.iter().map(more).collect();
        let name = format!("{name}, observed");
        match limit {
            Some(limit) => results.at_most(&name, median(more?), "%", limit)?,
            None => results.show(&name, median(more?), "%")?,
        }
        let rates: Result<Vec<f64>> =
            measured.iter().map(|(_, without)| without.get("faults_per_second")).collect();
        results.show(&format!("{name}: faults of the program alone"), median(rates?), "/s")?;
    }
    Ok(())
}
