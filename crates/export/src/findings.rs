//! What is wrong in a recording, as `numa show --json` has it.

use crate::{ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues};
use numakit_findings::analyse;
use numakit_findings::json::{self, ReportedFindings};

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "findings",
    help: "what is wrong, its cost and what to do, as JSON: a part of that of 'numa show --json'",
    extension: "findings.json",
    binary: false,
    judges: true,
    values: &[ExportedValues::Rates],
    write,
};

fn write(
    source: &mut ExportSource,
    _: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let (header, formulas) = (source.header(), source.formulas());
    let mut report = source.batches(|batches| analyse(&header, batches, None, &formulas))?;
    report.losses.damage = source.damage().map(str::to_owned);
    json::write(&ReportedFindings::of(&report), to)?;
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch, series};
    use numakit_formulas::Catalog;
    use numakit_model::Kind;
    use numakit_recording::Header;

    #[test]
    fn they_are_those_of_the_report_with_the_same_formulas() {
        let header = Header {
            series: series(&[("a.x", Kind::Gauge)]),
            host: "one".into(),
            page_size: 4096,
            ..Header::default()
        };
        let rows: Vec<_> = (1..200).map(|n| batch(&[(n * 100_000_000, &[Some(n)])])).collect();
        let mut source = ExportSource::in_memory(header.clone(), rows.clone());
        source.header_mut().host = "another".into();
        source.set_formulas(Catalog::built_in().clone());
        let mut out = Vec::new();
        write(&mut source, ExportOptions { values: ExportedValues::Rates, all: false }, &mut out).unwrap();
        let header = Header { host: "another".into(), ..header };
        let report = analyse(&header, rows, None, Catalog::built_in()).unwrap();
        let mut expected = Vec::new();
        json::write(&ReportedFindings::of(&report), &mut expected).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected).unwrap());
        assert_eq!((report.recording.host.as_str(), report.recording.samples), ("another", 199));
    }
}
