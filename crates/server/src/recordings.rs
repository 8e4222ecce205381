//! Recordings as sources.

use crate::asked::AskError;
use crate::hub::Hub;
use crate::layout::SeriesLayout;
use crate::rows::RecordingRows;
use crate::wire::{FromServer, Ns, SourceInfo, SourceKind};
use numakit_derived::Catalog;
use numakit_history::{RecordedHistory, RowViewMaker, Source};
use numakit_recording::OpenError;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why a file is not shown.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// It is no recording.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no rows.
    #[error("{0} has no samples; record some with 'numa record'")]
    Empty(String),
    /// There is no room for it.
    #[error(transparent)]
    Full(#[from] AskError),
}

/// A recording as a source, before a number is given to it.
pub struct Opened {
    /// What a page is told of it.
    pub info: SourceInfo,
    /// Names of its series.
    pub names: Vec<String>,
    /// Its samples.
    pub data: Arc<dyn Source>,
    /// What was lost of it.
    pub damage: Option<String>,
}

/// Reads a recording that will be called `name`, in so many bytes of memory.
pub fn read(
    path: &Path,
    name: &str,
    budget: usize,
    formulas: &Arc<Catalog>,
) -> Result<Opened, RecordingError> {
    let for_rows = Arc::clone(formulas);
    let show: RowViewMaker = Arc::new(move |header| Box::new(RecordingRows::new(header, &for_rows)));
    let recorded = RecordedHistory::open(path, budget, show)?;
    let (_, last) = recorded.span().ok_or_else(|| RecordingError::Empty(name.to_owned()))?;
    let damage = recorded.damage().map(|why| format!("{name} is damaged: {why}"));
    let layout = SeriesLayout::new(recorded.header(), formulas);
    let info = layout.info(SourceKind::Recording, name, recorded.header());
    let info = SourceInfo { ended_ns: Some(Ns(last)), ..info };
    Ok(Opened { info, names: layout.names().to_vec(), data: Arc::new(recorded), damage })
}

/// Opens a recording and adds it as a source called `name`. What was lost of it is told to
/// everybody.
pub fn open(hub: &Hub, path: &Path, name: &str, formulas: &Arc<Catalog>) -> Result<u32, RecordingError> {
    let Opened { info, names, data, damage } = read(path, name, hub.budget, formulas)?;
    let id = hub.add(info, names, data)?;
    if let Some(text) = damage {
        hub.tell(&FromServer::Notice { text });
    }
    Ok(id)
}
