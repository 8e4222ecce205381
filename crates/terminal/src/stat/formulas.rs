//! Columns of formulas that were chosen by name.

use super::{Figure, places, used};
use crate::columns::{Per, index, shown_as};
use crate::formulas::{Reason, reason};
use crate::table::ColumnHead;
use numakit_derived::{BoundFormula, Catalog, Formula, Index, Quantity};
use numakit_model::Instance;
use numakit_recording::Header;
use thiserror::Error;

/// A formula that cannot be shown.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum HiddenFormula {
    /// Nobody has defined it.
    #[error(
        "unknown formula '{0}'; {1}'numa list' shows all at its end, and metrics of sensors are chosen with -e"
    )]
    Unknown(String, String),
    /// Its series are not sampled here.
    #[error("'{name}' cannot be computed per {per} here: {why}")]
    Absent {
        /// The formula.
        name: String,
        /// What a line is.
        per: &'static str,
        /// What it needs, and why that is not there.
        why: Box<Reason>,
    },
}

/// Which series of the header these formulas need; an error for one that cannot be computed
/// at any of the places.
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
pub(super) fn figures(
    header: &Header,
    index: &Index<'_>,
    formulas: &Catalog,
    places: &[Instance],
    names: &[String],
) -> Result<Vec<Figure>, HiddenFormula> {
    let figure = |name: &String| {
        let formula = named(formulas, name)?;
        let quantity = shown_as(formula.quantity);
        let (group, heading) = (unit(formula.quantity).to_owned(), formula.name.clone());
        let width = quantity.width().max(heading.len());
        let bound = bound(header, index, formulas, places, formula)?;
        Ok(Figure { name: formula.name.clone(), head: ColumnHead { group, heading, width }, quantity, bound })
    };
    names.iter().map(figure).collect()
}

/// What stands over columns of that quantity.
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

/// At each place where it can be computed; at least at one.
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
