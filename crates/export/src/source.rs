//! The recording that is exported.

use numakit_recording::{Batch, Header, OpenError, Reader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A recording that is read batch by batch, and again from its start if a format needs that.
#[derive(Debug)]
pub struct ExportSource {
    header: Arc<Header>,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    File { path: PathBuf, reader: Box<Reader> },
    InMemory { batches: Arc<[Batch]>, consumed: bool },
}

impl ExportSource {
    /// Opens a recording.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let reader = Box::new(Reader::open(path)?);
        let header = Arc::new(reader.header().clone());
        Ok(Self { header, rows: Rows::File { path: path.to_owned(), reader } })
    }

    /// Rows in memory.
    pub fn in_memory(header: Header, batches: Vec<Batch>) -> Self {
        Self { header: Arc::new(header), rows: Rows::InMemory { batches: batches.into(), consumed: false } }
    }

    /// The description of the recording.
    pub fn header(&self) -> Arc<Header> {
        Arc::clone(&self.header)
    }

    /// Passes on the rows that were not read yet.
    pub fn each<E>(&mut self, mut take: impl FnMut(&Batch) -> Result<(), E>) -> Result<(), E> {
        match &mut self.rows {
            Rows::InMemory { batches, consumed } => {
                let rest: &[Batch] = if std::mem::replace(consumed, true) { &[] } else { batches };
                rest.iter().try_for_each(take)
            }
            Rows::File { reader, .. } => {
                while let Some(batch) = reader.next_batch() {
                    take(&batch)?;
                }
                Ok(())
            }
        }
    }

    /// The same recording from its start.
    pub fn reopen(&self) -> Result<Self, OpenError> {
        match &self.rows {
            Rows::File { path, .. } => Self::open(path),
            Rows::InMemory { batches, .. } => {
                let rows = Rows::InMemory { batches: Arc::clone(batches), consumed: false };
                Ok(Self { header: self.header(), rows })
            }
        }
    }

    /// What was lost and why, after everything was read; `None` if nothing was.
    pub fn damage(&self) -> Option<&str> {
        match &self.rows {
            Rows::File { reader, .. } => reader.damage(),
            Rows::InMemory { .. } => None,
        }
    }
}
