//! The JSON of the original NUMAscope. Its writer and its reader are in `numakit-recording`.

use crate::{ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues};
use numakit_recording::numascope::Writer;

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "numascope",
    help: "the JSON of the original NUMAscope",
    extension: "json",
    binary: false,
    judges: false,
    values: &[ExportedValues::Rates],
    write,
};

fn write(
    source: &mut ExportSource,
    _: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    let mut writer = Writer::new(to, &header)?;
    source.each(|batch| writer.batch(batch))?;
    writer.finish()?;
    Ok(Vec::new())
}
