//! A recording to be exported.

use numakit_recording::{Batch, Header, OpenError, Reader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A recording that is read batch by batch, and again from its start where a format asks for it.
#[derive(Debug)]
pub struct ExportSource {
    header: Arc<Header>,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    File { path: PathBuf, reader: Box<Reader> },
    Held { batches: Arc<[Batch]>, taken: bool },
}

impl ExportSource {
    /// Opens a recording.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let reader = Box::new(Reader::open(path)?);
        let header = Arc::new(reader.header().clone());
        Ok(Self { header, rows: Rows::File { path: path.to_owned(), reader } })
    }

    /// Rows in memory.
    pub fn held(header: Header, batches: Vec<Batch>) -> Self {
        Self { header: Arc::new(header), rows: Rows::Held { batches: batches.into(), taken: false } }
    }

    /// What the recording says of itself.
    pub fn header(&self) -> Arc<Header> {
        Arc::clone(&self.header)
    }

    /// Hands over the rows that were not read yet.
    pub fn each<E>(&mut self, mut take: impl FnMut(&Batch) -> Result<(), E>) -> Result<(), E> {
        match &mut self.rows {
            Rows::Held { batches, taken } => {
                let rest: &[Batch] = if std::mem::replace(taken, true) { &[] } else { batches };
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
    pub fn again(&self) -> Result<Self, OpenError> {
        match &self.rows {
            Rows::File { path, .. } => Self::open(path),
            Rows::Held { batches, .. } => {
                let rows = Rows::Held { batches: Arc::clone(batches), taken: false };
                Ok(Self { header: self.header(), rows })
            }
        }
    }

    /// What was lost and why, once all was read; `None` when nothing was.
    pub fn damage(&self) -> Option<&str> {
        match &self.rows {
            Rows::File { reader, .. } => reader.damage(),
            Rows::Held { .. } => None,
        }
    }
}
