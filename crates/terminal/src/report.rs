//! The page of `numa report`: what a recording shows, as a value that is printed as text or JSON.

mod advice;
mod analysis;
mod bottlenecks;
mod criteria;
mod guide;
mod histogram;
mod locality;
mod movers;
mod onset;
mod page;
mod tally;
mod value;

pub use guide::{guide, rules_guide};
pub use page::{page, page_within};
pub use value::*;

use crate::columns::index;
use bottlenecks::watched;
use numakit_derived::Catalog;
use numakit_recording::{Batch, Header};
use tally::Tally;
use thiserror::Error;

/// The recording has no phase of that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the recording has no phase '{name}'; {}", fix(.phases))]
pub struct UnknownPhase {
    /// The name that was given.
    pub name: String,
    /// The phases that it has.
    pub phases: Vec<String>,
}

fn fix(phases: &[String]) -> String {
    if phases.is_empty() {
        return "it has no labels: omit --phase, and label the next one with 'numa ctl label TEXT'".into();
    }
    let quoted: Vec<String> = phases.iter().map(|p| format!("'{p}'")).collect();
    format!("use one of {}", quoted.join(", "))
}

/// Analyses the rows of a recording, or of one phase. It keeps no rows.
pub fn analyse(
    header: &Header,
    batches: impl IntoIterator<Item = Batch>,
    phase: Option<&str>,
    formulas: &Catalog,
) -> Result<Report, UnknownPhase> {
    let index = index(header);
    let mut tally = Tally::new(header, phase, watched(header, &index, formulas));
    batches.into_iter().for_each(|batch| tally.batch(&batch));
    if let Some(name) = phase
        && !tally.phases.iter().skip(1).any(|p| p.name == name)
    {
        let phases = tally.phases.iter().skip(1).map(|p| p.name.clone()).collect();
        return Err(UnknownPhase { name: name.to_owned(), phases });
    }
    let mut report = analysis::report(header, &index, &tally, phase, formulas);
    report.advice = advice::advice(&report);
    Ok(report)
}
