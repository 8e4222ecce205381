//! The recording that is exported.

use numakit_formulas::Catalog;
use numakit_recording::{Batch, Header, OpenError, Reader, read_ahead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A recording that is read batch by batch, and again from its start if a format needs that.
#[derive(Debug)]
pub struct ExportSource {
    header: Arc<Header>,
    formulas: Option<Arc<Catalog>>,
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
        Ok(Self { header, formulas: None, rows: Rows::File { path: path.to_owned(), reader } })
    }

    /// Rows in memory.
    pub fn in_memory(header: Header, batches: Vec<Batch>) -> Self {
        let rows = Rows::InMemory { batches: batches.into(), consumed: false };
        Self { header: Arc::new(header), formulas: None, rows }
    }

    /// The description of the recording.
    pub fn header(&self) -> Arc<Header> {
        Arc::clone(&self.header)
    }

    /// The same, to add what is known besides.
    pub fn header_mut(&mut self) -> &mut Header {
        Arc::make_mut(&mut self.header)
    }

    /// The formulas of judgements: the built-in ones, unless others were set.
    pub fn formulas(&self) -> Arc<Catalog> {
        self.formulas.clone().unwrap_or_else(|| Arc::new(Catalog::built_in().clone()))
    }

    /// Sets the formulas of judgements.
    pub fn set_formulas(&mut self, formulas: Catalog) {
        self.formulas = Some(Arc::new(formulas));
    }

    /// What `with` makes of the rows that were not read yet.
    pub fn batches<T>(&mut self, with: impl FnOnce(&mut dyn Iterator<Item = Batch>) -> T) -> T {
        match &mut self.rows {
            Rows::InMemory { batches, consumed } => {
                let rest: &[Batch] = if std::mem::replace(consumed, true) { &[] } else { batches };
                with(&mut rest.iter().cloned())
            }
            Rows::File { reader, .. } => read_ahead(reader, with),
        }
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
            Rows::File { path, .. } => {
                let opened = Self::open(path)?;
                Ok(Self { header: self.header(), formulas: self.formulas.clone(), ..opened })
            }
            Rows::InMemory { batches, .. } => {
                let rows = Rows::InMemory { batches: Arc::clone(batches), consumed: false };
                Ok(Self { header: self.header(), formulas: self.formulas.clone(), rows })
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
