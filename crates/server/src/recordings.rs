//! Recordings as sources.

use crate::hub::Hub;
use crate::layout::Layout;
use crate::wire::{FromServer, Ns, SourceInfo, SourceKind};
use numakit_derived::Catalog;
use numakit_history::{Recorded, Show, Shown, Source};
use numakit_model::label::Event;
use numakit_recording::{Header, OpenError, Rates};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why a file is not shown.
#[derive(Debug, Error)]
pub enum CannotShow {
    /// It is no recording.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has no rows.
    #[error("{0} has no samples; record some with 'numa record'")]
    Empty(String),
    /// There is no room for it.
    #[error("{0}")]
    Full(String),
}

/// Rows of a recording as live ones are: rates, and formulas over them.
struct Rows {
    layout: Layout,
    rates: Rates,
    row: Vec<Option<f64>>,
    formulas: Arc<Catalog>,
}

impl Rows {
    fn new(header: &Header, formulas: &Arc<Catalog>) -> Self {
        let layout = Layout::new(header, formulas);
        Self { layout, rates: Rates::new(&header.series), row: Vec::new(), formulas: Arc::clone(formulas) }
    }
}

impl Shown for Rows {
    fn series(&self) -> usize {
        self.layout.series()
    }

    fn row(&mut self, time_ns: u64, raw: &[Option<u64>]) -> &[Option<f64>] {
        self.layout.row(self.rates.push(time_ns, raw), &mut self.row);
        &self.row
    }

    fn label(&mut self, text: &str) {
        if let Some(Event::Paused | Event::Resumed) = Event::parse(text) {
            self.rates.forget();
        }
    }

    fn identity(&self) -> String {
        let mut text = self.layout.names().join(" ");
        for formula in self.formulas.all() {
            let _ = write!(text, "\n{} {} {}", formula.name, formula.quantity, formula.expr);
        }
        text
    }
}

/// Opens a recording and adds it as a source called `name`. What was lost of it is told to
/// everybody.
pub fn open(hub: &Hub, path: &Path, name: &str, formulas: &Arc<Catalog>) -> Result<u32, CannotShow> {
    let for_rows = Arc::clone(formulas);
    let show: Show = Arc::new(move |header| Box::new(Rows::new(header, &for_rows)));
    let recorded = Recorded::open(path, hub.budget, show)?;
    let (_, last) = recorded.span().ok_or_else(|| CannotShow::Empty(name.to_owned()))?;
    let damage = recorded.damage().map(|why| format!("{name} is not whole: {why}"));
    let layout = Layout::new(recorded.header(), formulas);
    let info = layout.info(SourceKind::Recording, name, recorded.header());
    let info = SourceInfo { ended_ns: Some(Ns(last)), ..info };
    let id = hub.add(info, layout.names().to_vec(), Arc::new(recorded)).map_err(CannotShow::Full)?;
    if let Some(text) = damage {
        hub.tell(&FromServer::Notice { text });
    }
    Ok(id)
}
