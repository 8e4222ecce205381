//! Two recordings compared.

use super::{bounded, value};
use crate::arguments::Arguments;
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_analysis::comparison::compare;
use numakit_analysis::{Profile, profile};
use numakit_derived::Catalog;
use numakit_recording::{Batch, read_ahead};
use serde_json::Value;

/// As many differences or findings as one answer has of each kind.
const MAX_ENTRIES: usize = 25;

pub(crate) fn of_two(directory: &SharedDirectory, arguments: &Arguments) -> Result<Value, ToolError> {
    let read = |name: &str| -> Result<Profile, ToolError> {
        let mut reader = directory.recording(arguments.text(name).unwrap_or_default())?;
        let header = reader.header().clone();
        let phase = arguments.text("phase");
        let profile =
            |batches: &mut dyn Iterator<Item = Batch>| profile(&header, batches, phase, Catalog::built_in());
        Ok(read_ahead(&mut reader, profile)?)
    };
    let mut comparison = value(&compare(&read("before")?, &read("after")?));
    for part in ["program", "machine", "gone", "new", "kept"] {
        let list = comparison[part].as_array_mut().map(std::mem::take).unwrap_or_default();
        comparison[part] = bounded(list, MAX_ENTRIES);
    }
    Ok(comparison)
}
