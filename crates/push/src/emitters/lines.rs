//! Line protocol, as `numa export --to influx` writes it.

use data_encoding::BASE64;
use numakit_export::{ExportError, ExportOptions, ExportSource, ExportedValues, format, influx_tag};
use numakit_recording::{Batch, Header};
use std::fmt::Write;
use std::io;
use std::sync::Arc;

/// Times are in ns.
pub const QUERY: &[(&str, &str)] = &[("precision", "ns")];

/// Lines with raw values.
pub fn encode(header: &Arc<Header>, batch: Batch, _: &[Option<u64>]) -> Result<Vec<u8>, ExportError> {
    let mut lines = Vec::new();
    if let Some(format) = format("influx") {
        let mut source = ExportSource::in_memory(Header::clone(header), vec![batch]);
        (format.write)(&mut source, ExportOptions { values: ExportedValues::Raw, all: true }, &mut lines)?;
    }
    Ok(lines)
}

/// The measurement of labels.
pub const LABELS: &str = "label";
/// The measurement of descriptions.
pub const DESCRIPTION: &str = "numa_recording";
/// Characters of a field; servers take at most 64 KiB.
const PART: usize = 32 << 10;
/// Parts of a description that are read.
const MAX_PARTS: usize = 1000;
/// Bytes of a description that are read.
const MAX_DESCRIPTION: usize = 64 << 20;

/// The description of a recording as a line: compressed, in fields `part0`, `part1`, ...
pub fn describe(header: &Header) -> Vec<u8> {
    let Ok(packed) = header.packed().and_then(|packed| zstd::bulk::compress(&packed, 3)) else {
        return Vec::new();
    };
    let text = BASE64.encode(&packed);
    let host = match header.host.as_str() {
        "" => String::new(),
        host => format!(",host={}", influx_tag(host)),
    };
    let mut line = format!("{DESCRIPTION}{host} ");
    for (number, part) in text.as_bytes().chunks(PART).enumerate() {
        let sign = if number > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(line, "{sign}{}=\"{}\"", part_name(number), String::from_utf8_lossy(part));
    }
    let _ = writeln!(line, " {}", header.started);
    line.into_bytes()
}

fn part_name(number: usize) -> String {
    format!("part{number}")
}

/// The description from the fields of such a line.
pub fn described<'a>(field: impl Fn(&str) -> Option<&'a str>) -> io::Result<Header> {
    let text: String = (0..MAX_PARTS).map_while(|number| field(&part_name(number))).collect();
    let packed = BASE64.decode(text.as_bytes()).map_err(io::Error::other)?;
    Header::unpacked(&zstd::bulk::decompress(&packed, MAX_DESCRIPTION)?)
}
