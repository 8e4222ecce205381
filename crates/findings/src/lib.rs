//! What recordings and samples show, judged in one place: the report, the page and the terminal word and draw it.
//!
//! [`rules`] is the table of all rules. A rule judges rows of a recording ([`Case`]), an object that samples saw
//! ([`ObjectCase`]), waits for a CPU ([`WaitCase`]), or waits for other threads ([`ThreadCase`]); all give a [`Finding`]. Rows are
//! read once ([`Tally`]), and the sums of the selected phase ([`Facts`]) answer formulas.
//!
//! [`Tally`]: tally::Tally
//! [`Facts`]: facts::Facts
//! [`Case`]: case::Case
//! [`ObjectCase`]: objects::ObjectCase
//! [`WaitCase`]: waits::WaitCase
//! [`ThreadCase`]: thread_waits::ThreadCase
//! [`Finding`]: finding::Finding

pub mod activity;
mod blocks;
mod bottlenecks;
mod case;
pub mod comparison;
mod course;
mod criteria;
mod cure;
pub mod explained;
mod facts;
mod fault_time;
pub mod finding;
mod guide;
mod headline;
mod histogram;
pub mod json;
mod limits;
mod locality;
mod movers;
pub mod next;
mod objects;
mod onset;
mod profile;
pub mod range;
mod ranks;
pub mod report;
mod rules;
pub mod series;
pub mod shown_kind;
mod spread;
mod summary;
mod tally;
mod thread_waits;
mod traffic;
mod trend;
mod waits;

pub use case::lowered;
pub use guide::{criteria_guide, findings_guide, objects_guide, shares_guide};
pub use headline::cost_words;
pub use profile::Profile;

use course::Watching;
use numakit_formulas::{Catalog, Index};
use numakit_recording::{Batch, Header};
use report::Report;
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
    let index = series::index(header);
    let tally = tallied(header, &index, batches, phase, formulas)?;
    Ok(summary::report(header, &index, &tally, phase, formulas))
}

/// Analyses the rows of a recording, or of one phase, for [`comparison::compare`].
pub fn profile(
    header: &Header,
    batches: impl IntoIterator<Item = Batch>,
    phase: Option<&str>,
    formulas: &Catalog,
) -> Result<Profile, UnknownPhase> {
    let index = series::index(header);
    let tally = tallied(header, &index, batches, phase, formulas)?;
    Ok(summary::profile(header, &index, &tally, phase, formulas))
}

fn tallied(
    header: &Header,
    index: &Index<'_>,
    batches: impl IntoIterator<Item = Batch>,
    phase: Option<&str>,
    formulas: &Catalog,
) -> Result<Tally, UnknownPhase> {
    let watching = Watching::new(header, index, formulas);
    let mut tally = Tally::new(header, phase, bottlenecks::watched(&watching), rules::watched(&watching));
    batches.into_iter().for_each(|batch| tally.batch(&batch));
    if let Some(name) = phase
        && !tally.phases.iter().skip(1).any(|p| p.name == name)
    {
        let phases = tally.phases.iter().skip(1).map(|p| p.name.clone()).collect();
        return Err(UnknownPhase { name: name.to_owned(), phases });
    }
    Ok(tally)
}
