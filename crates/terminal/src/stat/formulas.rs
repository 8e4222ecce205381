//! Columns of formulas that were selected by name.

use super::{ValueColumn, places, used};
use crate::columns::{Per, index, number_style};
use crate::formulas::{Reason, reason};
use crate::table::ColumnHead;
use numakit_formulas::{BoundFormula, Catalog, Formula, Index, Quantity};
use numakit_model::Instance;
use numakit_recording::Header;
use thiserror::Error;

/// Why a formula cannot be shown.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum HiddenFormula {
    /// It is not defined.
    #[error(
        "unknown formula '{0}'; {1}'numa list' shows all formulas at its end; select metrics of sensors with -e"
    )]
    Unknown(String, String),
    /// Its series are not sampled here.
    #[error("'{name}' cannot be computed per {per} here: {why}")]
    Absent {
        /// The formula.
        name: String,
        /// What each line is about.
        per: &'static str,
        /// What it needs, and why that is missing.
        why: Box<Reason>,
    },
}

/// Which series of the header these formulas need; an error if one cannot be computed
/// for any of the instances.
pub fn needed_by(
    header: &Header,
    formulas: &Catalog,
    per: Per,
    names: &[String],
) -> Result<Vec<bool>, super::StatError> {
    let index = index(header);
    let places = places(&header.series, header.topology.as_ref(), per)?;
    let mut bounds = Vec::new();
    for name in names {
        let formula = named(formulas, name)?;
        bounds.extend(bound(header, &index, formulas, &places, formula)?.into_iter().flatten());
    }
    Ok(used(header.series.len(), bounds.iter()))
}

/// A column for each formula.
pub(super) fn columns(
    header: &Header,
    index: &Index<'_>,
    formulas: &Catalog,
    places: &[Instance],
    names: &[String],
) -> Result<Vec<ValueColumn>, HiddenFormula> {
    let column = |name: &String| {
        let formula = named(formulas, name)?;
        let quantity = number_style(formula.quantity);
        let (group, heading) = (unit(formula.quantity).to_owned(), formula.name.clone());
        let width = quantity.width().max(heading.len());
        let bound = bound(header, index, formulas, places, formula)?;
        Ok(ValueColumn {
            name: formula.name.clone(),
            head: ColumnHead { group, heading, width },
            quantity,
            bound,
        })
    };
    names.iter().map(column).collect()
}

/// The group heading of columns of that quantity.
fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Percent => "%",
        Quantity::PerSecond => "/s",
        Quantity::BytesPerSecond => "B/s",
        Quantity::Ratio => "",
        other => other.name(),
    }
}

fn named<'a>(formulas: &'a Catalog, name: &str) -> Result<&'a Formula, HiddenFormula> {
    formulas.get(name).ok_or_else(|| {
        let nearest = formulas.nearest(name);
        let nearest =
            if nearest.is_empty() { String::new() } else { format!("nearest: {}; ", nearest.join(", ")) };
        HiddenFormula::Unknown(name.to_owned(), nearest)
    })
}

/// The formula for each instance that has it; an error if none has.
fn bound(
    header: &Header,
    index: &Index<'_>,
    formulas: &Catalog,
    places: &[Instance],
    formula: &Formula,
) -> Result<Vec<Option<BoundFormula>>, HiddenFormula> {
    let tried: Vec<_> = places.iter().map(|&place| index.bind(formulas, formula, place)).collect();
    if tried.iter().all(Result::is_err)
        && let (Some(Err(missing)), Some(place)) = (tried.first(), places.first())
    {
        let absent = |name: &str| header.absent.iter().find(|a| a.name == name).map(|a| a.why.clone());
        return Err(HiddenFormula::Absent {
            name: formula.name.clone(),
            per: place.scope().name(),
            why: Box::new(reason(missing, &absent)),
        });
    }
    Ok(tried.into_iter().map(Result::ok).collect())
}
