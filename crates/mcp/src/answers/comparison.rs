//! Two recordings compared.

use super::{bounded, value};
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_findings::comparison::compare;
use numakit_findings::{Profile, profile};
use numakit_formulas::Catalog;
use numakit_recording::{Batch, read_ahead};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// As many differences or findings as one answer has of each kind.
const MAX_ENTRIES: usize = 25;

/// What is compared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comparison {
    /// path of recording A
    before: String,
    /// path of recording B
    after: String,
    /// only this phase: from its label to the next; 'command' is the program's
    phase: Option<String>,
}

pub(crate) fn of_two(directory: &SharedDirectory, asked: &Comparison) -> Result<Value, ToolError> {
    let read = |name: &str| -> Result<Profile, ToolError> {
        let mut reader = directory.recording(name)?;
        let header = reader.header().clone();
        let phase = asked.phase.as_deref();
        let profile =
            |batches: &mut dyn Iterator<Item = Batch>| profile(&header, batches, phase, Catalog::built_in());
        Ok(read_ahead(&mut reader, profile)?)
    };
    let mut comparison = value(&compare(&read(&asked.before)?, &read(&asked.after)?));
    for part in ["program", "machine", "gone", "new", "kept"] {
        let list = comparison[part].as_array_mut().map(std::mem::take).unwrap_or_default();
        comparison[part] = bounded(list, MAX_ENTRIES);
    }
    Ok(comparison)
}
