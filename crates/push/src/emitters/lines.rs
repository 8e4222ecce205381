//! Line protocol, as `numa export --to influx` writes it.

use numakit_export::{ExportError, ExportOptions, ExportSource, ExportedValues, format};
use numakit_recording::{Batch, Header};
use std::sync::Arc;

/// Times are in ns.
pub const QUERY: &[(&str, &str)] = &[("precision", "ns")];

/// Lines with raw values.
pub fn encode(header: &Arc<Header>, batch: Batch) -> Result<Vec<u8>, ExportError> {
    let mut lines = Vec::new();
    if let Some(format) = format("influx") {
        let mut source = ExportSource::in_memory(Header::clone(header), vec![batch]);
        (format.write)(&mut source, ExportOptions { values: ExportedValues::Raw, all: true }, &mut lines)?;
    }
    Ok(lines)
}
