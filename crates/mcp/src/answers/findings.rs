//! What is wrong in a recording.

use super::range::RowRange;
use super::{bounded, value};
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_findings::analyse;
use numakit_formulas::Catalog;
use numakit_recording::read_ahead;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// As many problems or remarks as one answer has.
const MAX_FINDINGS: usize = 30;

/// Of what findings are asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Findings {
    /// path of a recording, as list_recordings has it
    recording: String,
    /// begin here, in seconds since the recording began
    from_seconds: Option<f64>,
    /// end here, in seconds since the recording began
    to_seconds: Option<f64>,
    /// only this phase: from its label to the next; 'command' is the program's
    phase: Option<String>,
}

pub(crate) fn of_recording(directory: &SharedDirectory, asked: &Findings) -> Result<Value, ToolError> {
    let mut reader = directory.recording(&asked.recording)?;
    let header = reader.header().clone();
    let mut range = RowRange::new(asked.from_seconds, asked.to_seconds)?;
    let phase = asked.phase.as_deref();
    let report = read_ahead(&mut reader, |batches| {
        analyse(&header, batches.map(|batch| range.cut(batch)), phase, Catalog::built_in())
    });
    range.check()?;
    let report = report?;
    let found = |list: &[numakit_findings::finding::Finding]| {
        let without_course = |finding| {
            let mut finding = value(finding);
            // Pages draw the course; here it is many numbers that say little.
            let evidence = finding["evidence"].as_array_mut().into_iter().flatten();
            evidence.filter_map(Value::as_object_mut).for_each(|one| _ = one.remove("course"));
            finding
        };
        bounded(list.iter().map(without_course).collect(), MAX_FINDINGS)
    };
    let phases: Vec<&str> = report.phases.iter().map(|phase| phase.name.as_str()).collect();
    Ok(json!({
        "headline": value(&report.findings.headline),
        "problems": found(&report.findings.problems),
        "remarks": found(&report.findings.remarks),
        "untold": value(&report.findings.untold),
        "recording": value(&report.recording),
        "locality": value(&report.locality.verdict),
        "phases": phases,
        "damage": reader.damage(),
    }))
}
