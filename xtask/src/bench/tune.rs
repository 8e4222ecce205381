//! What tuning finds for programs that people use, and whether ten new pairs of runs confirm it. Results are kept in
//! corpus/tuned; `NUMAKIT_TUNE_ONLY=runs` shows how long programs take and how much runs differ, without tuning.

mod asked;
mod kept;
mod measure;
mod prepare;
mod programs;

use super::results::Results;
use super::statistics::{median, pairs};
use crate::build;
use anyhow::{Context, Result};
use asked::Asked;
use kept::Confirmed;
use programs::{PROGRAMS, Program};
use std::fs;

pub const QUESTION: &str = "what tuning gains, and whether new runs confirm it";

/// Pairs that confirm an answer.
const PAIRS: usize = 10;
/// Of the programs whose answer is a setting, the part whose confirmed gain is in the stated interval. An interval has the true gain in 95
/// of 100 cases, and ten pairs differ from that themselves.
const WITHIN: f64 = 0.7;

/// The programs with these names, or all.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Program>> {
    if names.is_empty() {
        return Ok(PROGRAMS.iter().collect());
    }
    let find = |name: &String| {
        let known = || PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
        PROGRAMS
            .iter()
            .find(|program| program.name == name)
            .with_context(|| format!("no program '{name}' to tune; there are: {}", known()))
    };
    names.iter().map(find).collect()
}

/// Tunes each program. One that cannot be had or tuned keeps no other from it.
pub fn run(results: &mut Results, programs: &[&'static Program]) -> Result<()> {
    let only_runs = std::env::var("NUMAKIT_TUNE_ONLY").is_ok_and(|only| only == "runs");
    if !only_runs {
        build::numa()?;
    }
    let (mut used, mut within) = (0, 0);
    for program in programs {
        let done = prepare::prepare(program).and_then(|()| {
            if only_runs { noise(results, program).map(|()| None) } else { tuned(results, program) }
        });
        match done {
            Ok(None) => {}
            Ok(Some(is_within)) => {
                used += 1;
                within += i32::from(is_within);
            }
            Err(error) => results.fail(&format!("{}: {error:#}", program.name)),
        }
    }
    if used > 0 {
        results.at_least("gains in their interval", f64::from(within) / f64::from(used), "", WITHIN)?;
    }
    if !only_runs {
        println!("\n{}", kept::table(&kept::all()?)?);
    }
    Ok(())
}

/// How long runs take and how much they differ.
fn noise(results: &mut Results, program: &Program) -> Result<()> {
    measure::run(program, program.tuned())?;
    let values: Vec<f64> =
        (0..PAIRS).map(|_| measure::run(program, program.tuned())).collect::<Result<_>>()?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    let unit = if program.metric.is_rate() { "/s" } else { "s" };
    results.show(program.name, median(values), unit)?;
    results.show(&format!("{}, deviation", program.name), variance.sqrt() / mean * 100.0, "%")
}

/// Tunes a program, confirms the answer and keeps both. Whether the gain is in its interval, if there is a setting to use.
fn tuned(results: &mut Results, program: &'static Program) -> Result<Option<bool>> {
    // Nothing may be cold when the tuner begins.
    measure::run(program, program.tuned())?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let asked = Asked::of(program)?;
    let (used, best) = (asked.used(), asked.best_in_rounds());
    let is_used = used.is_some();
    let confirmed = used.or(best).map(|setting| confirm(program, setting)).transpose()?;
    kept::keep(program, &asked::version(program)?, &load, &asked, confirmed.as_ref())?;
    let Some(confirmed) = confirmed else {
        results.say(&format!("{}: {}; no setting to measure again", program.name, asked.kind()));
        return Ok(None);
    };
    let setting = &confirmed.setting;
    results.say(&format!("{}: {}: {}", program.name, asked.kind(), setting.command));
    results.show(&format!("{}, gain as tuned", program.name), setting.gain * 100.0, "%")?;
    results.show(&format!("{}, gain of new pairs", program.name), confirmed.gain() * 100.0, "%")?;
    Ok(is_used.then(|| confirmed.is_within()))
}

fn confirm(program: &Program, setting: asked::Setting) -> Result<Confirmed> {
    let one = || measure::run(program, program.tuned());
    let pairs = pairs(PAIRS, one, || measure::run(program, &setting.command))?;
    Ok(Confirmed::new(setting.clone(), &pairs, program.metric.is_rate()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use programs::Metric;
    use std::collections::BTreeSet;

    #[test]
    fn programs_are_found_by_their_names() {
        let names: BTreeSet<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        assert_eq!(names.len(), 20);
        let found = chosen(&["xz".to_owned(), "go".to_owned()]).unwrap();
        assert_eq!(found.iter().map(|program| program.name).collect::<Vec<_>>(), ["xz", "go"]);
        let error = chosen(&["zx".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no program 'zx' to tune; there are: postgresql, "), "{error}");
    }

    #[test]
    fn a_rate_is_the_last_number_behind_its_text() {
        let rate = Metric::Rate("SET:");
        assert_eq!(
            rate.read("SET: rps=12.0\rSET: 99.5 requests\nSET:   1234.5 requests per second, p50=1"),
            Some(1234.5)
        );
        assert_eq!(rate.read("GET: 5"), None);
        assert_eq!(rate.expression().as_deref(), Some("SET: *([0-9.]+)"));
    }
}
