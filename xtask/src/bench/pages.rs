//! What memory costs that is written once, by where it comes from: the reason to keep it.

use super::floor;
use super::results::Results;
use crate::process;
use anyhow::{Context, Result};

const KINDS: [&str; 2] = ["small", "huge"];
const STATES: [(&str, &str); 4] = [
    ("fresh", "fresh from the kernel"),
    ("dropped", "after MADV_DONTNEED"),
    ("offered", "after MADV_FREE"),
    ("kept", "kept"),
];

pub fn run(results: &mut Results) -> Result<()> {
    for kind in KINDS {
        let text = process::read(floor::program("pages")?.arg(kind))?;
        let value = |name: String| -> Result<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '));
            Ok(line.with_context(|| format!("no {name} in {text:?}"))?.parse()?)
        };
        for (name, state) in STATES {
            let (time, faults) = (value(format!("{name}_ns"))?, value(format!("{name}_faults"))?);
            results.show(&format!("{kind} pages, {state}"), time, "ns per 4 KiB")?;
            results.show(&format!("{kind} pages, {state}: page faults"), faults, "per 4 KiB")?;
        }
        let kept = value("kept_ns".into())?;
        results.at_least(
            &format!("{kind} pages, fresh over kept"),
            value("fresh_ns".into())? / kept,
            "x",
            2.0,
        )?;
    }
    Ok(())
}
