//! Recordings as sources.

use crate::client_request_error::ClientRequestError;
use crate::examiner::Examiner;
use crate::hub::Hub;
use crate::layout::SeriesLayout;
use crate::rows::RecordingRows;
use crate::wire::{Ns, SourceInfo, SourceKind};
use numakit_derived::Catalog;
use numakit_history::{RecordedHistory, RowViewMaker, Source};
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
    /// The message about damage, if any.
    pub damage: Option<String>,
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

/// Like [`read`]. `progress` gets the share that was read; if it breaks, the result is `None`.
pub fn read_while(
    path: &Path,
    name: &str,
    budget: usize,
    formulas: &Arc<Catalog>,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Option<OpenedRecording>, RecordingError> {
    let recorded = RecordedHistory::open_while(path, budget, shown_with(formulas), progress)?;
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
    let (_, last) = recorded.span().ok_or_else(|| RecordingError::Empty(name.to_owned()))?;
    let damage = recorded.damage().map(|why| format!("{name} is damaged: {why}"));
    let layout = SeriesLayout::new(recorded.header(), formulas);
    let info = layout.info(SourceKind::Recording, name, recorded.header());
    let info = SourceInfo { ended_ns: Some(Ns(last)), ..info };
    let examiner = Examiner::new(recorded.header(), &layout, formulas);
    Ok(OpenedRecording { info, names: layout.names().to_vec(), data: Arc::new(recorded), examiner, damage })
}

/// Adds a recording as a source. All clients get a message if it is damaged.
pub fn add(hub: &Hub, opened: OpenedRecording) -> Result<u32, RecordingError> {
    let OpenedRecording { info, names, data, examiner, damage } = opened;
    let id = hub.add(info, names, data, examiner)?;
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
    add(hub, opened)
}
