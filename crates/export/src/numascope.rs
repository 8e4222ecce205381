//! The JSON of the original NUMAscope. Its writer is beside its reader, in `numakit-recording`.

use crate::{ExportError, Format, Options, Output, Source, Values};
use numakit_recording::numascope::Writer;

/// Line of the table of formats.
pub const FORMAT: Format = Format {
    name: "numascope",
    help: "the JSON of the original NUMAscope",
    extension: "json",
    binary: false,
    values: &[Values::Rates],
    write,
};

fn write(source: &mut Source, _: Options, to: Output<'_>) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    let mut writer = Writer::new(to, &header)?;
    source.each(|batch| writer.batch(batch))?;
    writer.finish()?;
    Ok(Vec::new())
}
