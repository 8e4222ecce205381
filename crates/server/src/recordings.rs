//! Recordings as sources.

use crate::client_request_error::ClientRequestError;
use crate::comparer::{HeaderAddition, RecordedRows};
use crate::examiner::Examiner;
use crate::hub::Hub;
use crate::layout::SeriesLayout;
use crate::rows::RecordingRows;
use crate::source::ShownSource;
use crate::wire::{Ns, RangeFindings, SourceInfo, SourceKind};
use numakit_findings::Profile;
use numakit_formulas::Catalog;
use numakit_history::{PartlyRead, RecordedHistory, RowViewMaker, Source};
use numakit_recording::OpenError;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why a recording cannot be shown.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no rows.
    #[error("{0} has no samples; record some with 'numa record'")]
    Empty(String),
    /// There are too many sources.
    #[error(transparent)]
    Full(#[from] ClientRequestError),
}

/// A recording as a source without a number.
pub struct OpenedRecording {
    /// Its description.
    pub info: SourceInfo,
    /// Names of its series.
    pub names: Vec<String>,
    /// Its samples.
    pub data: Arc<dyn Source>,
    /// Finds what is wrong in a range.
    pub examiner: Examiner,
    /// Its rows, which are read again to compare it.
    pub rows: Option<RecordedRows>,
    /// The message about damage, if any.
    pub damage: Option<String>,
}

impl OpenedRecording {
    /// What is found in all of it, as `numa show` says it.
    pub fn findings(&self, complete: HeaderAddition) -> RangeFindings {
        let rows = self.rows.as_ref().map(|rows| (rows, complete));
        self.examiner.examine_rows(self.data.as_ref(), rows, (0, u64::MAX))
    }

    /// What is compared with another recording: from its rows, or from the means of its history.
    pub fn profile(&self, complete: HeaderAddition) -> Result<Profile, ClientRequestError> {
        match &self.rows {
            Some(rows) => rows.profile(complete),
            None => Ok(self.examiner.profile(self.data.as_ref(), 0, u64::MAX)),
        }
    }
}

/// Opens a recording called `name`, with at most `budget` bytes of memory.
pub fn read(
    path: &Path,
    name: &str,
    budget: usize,
    formulas: &Arc<Catalog>,
) -> Result<OpenedRecording, RecordingError> {
    describe(RecordedHistory::open(path, budget, shown_with(formulas))?, name, formulas)
}

/// A recording that is being opened.
pub struct PartlyOpened<'a> {
    reading: &'a PartlyRead<'a>,
    name: &'a str,
    formulas: &'a Arc<Catalog>,
}

impl PartlyOpened<'_> {
    /// How much was read; without a fraction, as 100 is the whole.
    pub fn percent(&self) -> u8 {
        (self.reading.share * 100.0) as u8
    }

    /// The recording as far as it was read; none before there is a sample, and where that cannot be shown.
    pub fn so_far(&self) -> Option<OpenedRecording> {
        let mut opened = describe(self.reading.so_far()?, self.name, self.formulas).ok()?;
        opened.info.read_percent = Some(self.percent());
        Some(opened)
    }
}

/// Like [`read`]. `progress` receives how much was read; if it breaks, the result is `None`.
pub fn read_while(
    path: &Path,
    name: &str,
    budget: usize,
    formulas: &Arc<Catalog>,
    progress: &mut dyn FnMut(&PartlyOpened<'_>) -> ControlFlow<()>,
) -> Result<Option<OpenedRecording>, RecordingError> {
    let recorded = RecordedHistory::open_while(path, budget, shown_with(formulas), &mut |reading| {
        progress(&PartlyOpened { reading: &reading, name, formulas })
    })?;
    recorded.map(|recorded| describe(recorded, name, formulas)).transpose()
}

fn shown_with(formulas: &Arc<Catalog>) -> RowViewMaker {
    let formulas = Arc::clone(formulas);
    Arc::new(move |header| Box::new(RecordingRows::new(header, &formulas)))
}

fn describe(
    recorded: RecordedHistory,
    name: &str,
    formulas: &Arc<Catalog>,
) -> Result<OpenedRecording, RecordingError> {
    let ends = recorded.ends().ok_or_else(|| RecordingError::Empty(name.to_owned()))?;
    let damage = recorded.damage().map(|why| format!("{name} is damaged: {why}"));
    let layout = SeriesLayout::new(recorded.header(), formulas);
    let info = layout.info(SourceKind::Recording, name, recorded.header());
    let info = SourceInfo { ended_ns: Some(Ns(ends)), ..info };
    let examiner = Examiner::new(recorded.header(), &layout, formulas);
    let rows = Some(RecordedRows::new(recorded.path(), formulas));
    let (names, data) = (layout.names().to_vec(), Arc::new(recorded));
    Ok(OpenedRecording { info, names, data, examiner, rows, damage })
}

/// Adds a recording as a source, or puts it in place of the source with this number, a part of it. All clients get a message
/// if it is damaged.
pub fn put(hub: &Hub, part: Option<u32>, opened: OpenedRecording) -> Result<u32, RecordingError> {
    let OpenedRecording { info, names, data, examiner, rows, damage } = opened;
    let shown = ShownSource { rows, ..ShownSource::new(info, names, data, examiner) };
    let id = match part {
        Some(id) => hub.replace(id, shown),
        None => hub.add(shown),
    }?;
    if let Some(text) = damage {
        hub.add_notice(text);
    }
    Ok(id)
}

/// Opens a recording that a client sent and adds it as a source called `name`; an error if it would take the number of one
/// that is being opened, also if that began meanwhile.
pub fn open_sent(hub: &Hub, path: &Path, name: &str, formulas: &Arc<Catalog>) -> Result<u32, RecordingError> {
    let opened = read(path, name, hub.budget, formulas)?;
    hub.check_opened()?;
    put(hub, None, opened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use numakit_findings::analyse;
    use numakit_recording::{Header, Reader, Recorder, read_ahead};
    use numakit_testing::until;

    #[test]
    fn all_of_a_recording_has_the_findings_of_its_rows() {
        let folder = std::env::temp_dir().join(format!("numakit-rows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.arrows");
        let machine = numakit_topology::synthetic::parse("core:2").unwrap();
        let header = Header { topology: Some(machine), ..testing::header(&["cpu.procs_running"]) };
        let recorder = Recorder::create(&file, &header, false).unwrap();
        // Samples come at uneven times, so that means over buckets of equal length are others.
        let mut time = 0;
        for row in 1..=1000_u64 {
            time += 1_000_000 * (1 + row % 97);
            until!({
                recorder.ring().push(time, 0, &[Some(5 + row * row % 61)]);
                recorder.ring().take_dropped() == 0
            });
        }
        recorder.finish().unwrap();
        let formulas = Arc::new(Catalog::built_in().clone());
        let mut reader = Reader::open(&file).unwrap();
        let header = reader.header().clone();
        let report = read_ahead(&mut reader, |rows| analyse(&header, rows, None, &formulas)).unwrap();
        let opened = read(&file, "a", 64 << 20, &formulas).unwrap();
        let says =
            |found: &RangeFindings| found.problems.iter().map(|one| one.says.clone()).collect::<Vec<_>>();
        let of_rows: Vec<String> = report.findings.problems.into_iter().map(|one| one.says).collect();
        assert!(!of_rows.is_empty());
        assert_eq!(says(&opened.findings(|_| ())), of_rows);
        let of_means = opened.examiner.examine(opened.data.as_ref(), 0, u64::MAX);
        assert_ne!(says(&of_means), of_rows, "the test has no uneven samples");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
