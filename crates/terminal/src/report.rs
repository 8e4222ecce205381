//! The page of `numa report`: what a recording says, as a value with two views.

mod advice;
mod analysis;
mod criteria;
mod guide;
mod histogram;
mod locality;
mod movers;
mod onset;
mod page;
mod sufferers;
mod tally;
mod value;

pub use guide::{guide, harms_guide};
pub use page::{page, page_within};
pub use value::*;

use crate::columns::index;
use numakit_derived::Catalog;
use numakit_recording::{Batch, Header};
use sufferers::watched;
use tally::Tally;
use thiserror::Error;

/// The recording has no phase of that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the recording has no phase '{asked}'; {}", have(.phases))]
pub struct UnknownPhase {
    /// What was asked for.
    pub asked: String,
    /// The phases that it has.
    pub phases: Vec<String>,
}

fn have(phases: &[String]) -> String {
    if phases.is_empty() {
        return "it has no labels at all: leave --phase out, and label the next one with 'numa ctl label TEXT'".into();
    }
    let quoted: Vec<String> = phases.iter().map(|p| format!("'{p}'")).collect();
    format!("give one of {}", quoted.join(", "))
}

/// What the rows of a recording say; of one phase only, if one is named. It keeps no rows.
pub fn analyse(
    header: &Header,
    batches: impl IntoIterator<Item = Batch>,
    phase: Option<&str>,
    formulas: &Catalog,
) -> Result<Report, UnknownPhase> {
    let index = index(header);
    let mut tally = Tally::new(header, phase, watched(header, &index, formulas));
    batches.into_iter().for_each(|batch| tally.batch(&batch));
    if let Some(asked) = phase
        && !tally.phases.iter().skip(1).any(|p| p.name == asked)
    {
        let phases = tally.phases.iter().skip(1).map(|p| p.name.clone()).collect();
        return Err(UnknownPhase { asked: asked.to_owned(), phases });
    }
    let mut report = analysis::report(header, &index, &tally, phase, formulas);
    report.advice = advice::advice(&report);
    Ok(report)
}
