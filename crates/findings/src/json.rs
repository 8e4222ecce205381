//! The JSON of reports, comparisons and findings: an object, indented, with a line end.

use crate::finding::Findings;
use crate::report::{LossSummary, RecordingSummary, Report};
use serde::Serialize;
use std::io::{self, Write};

/// The part of a report that is exported: what was found, in which recording, and what is missing there. Its keys are those
/// of the whole report.
#[derive(Debug, Serialize)]
pub struct ReportedFindings<'a> {
    /// What is wrong, what it costs, and what to do.
    pub findings: &'a Findings,
    /// What was recorded and how.
    pub recording: &'a RecordingSummary,
    /// What is missing in the recording.
    pub losses: &'a LossSummary,
}

impl<'a> ReportedFindings<'a> {
    /// The exported part of a report.
    pub fn of(report: &'a Report) -> Self {
        Self { findings: &report.findings, recording: &report.recording, losses: &report.losses }
    }
}

/// Writes a report, a comparison or findings.
pub fn write<T: Serialize>(value: &T, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, value)?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_formulas::Catalog;
    use numakit_recording::Header;
    use serde_json::Value;

    #[test]
    fn what_is_exported_is_a_part_of_the_report() {
        let report = crate::analyse(&Header::default(), [], None, Catalog::built_in()).unwrap();
        let text = |written: Vec<u8>| String::from_utf8(written).unwrap();
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        write(&report, &mut whole).unwrap();
        write(&ReportedFindings::of(&report), &mut part).unwrap();
        let (whole, part) = (text(whole), text(part));
        assert!(part.ends_with("}\n") && whole.ends_with("}\n"), "{part}");
        let [whole, part] = [&whole, &part].map(|text| serde_json::from_str::<Value>(text).unwrap());
        let keys: Vec<&String> = part.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["findings", "losses", "recording"]);
        keys.iter().for_each(|key| assert_eq!(part[key.as_str()], whole[key.as_str()], "{key}"));
        assert!(part["findings"]["headline"]["verdict"].is_string());
    }
}
