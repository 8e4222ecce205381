//! Single series as figures, in the units that people read.

use crate::units::NumberStyle;
use numakit_derived::{BoundFormula, Index};
use numakit_model::{Instance, Unit};
use numakit_recording::Header;

/// The series of a header by name and place.
pub fn index(header: &Header) -> Index<'_> {
    let page_size = match (header.page_size, &header.topology) {
        (0, Some(topology)) => topology.page_size,
        (size, _) => size,
    };
    Index::new(&header.series, header.topology.as_ref(), page_size)
}

/// One series in that quantity; `None` where its unit does not fit.
pub fn single(index: &Index<'_>, at: usize, quantity: NumberStyle) -> Option<BoundFormula> {
    Some(BoundFormula::sum(vec![(at, factor(index, at, quantity)?)]))
}

/// All series of one metric at a place together.
pub fn together(
    index: &Index<'_>,
    name: &str,
    quantity: NumberStyle,
    place: Instance,
) -> Option<BoundFormula> {
    let found = index.find(name, place).into_iter();
    let terms: Vec<(usize, f64)> = found.filter_map(|at| Some((at, factor(index, at, quantity)?))).collect();
    (!terms.is_empty()).then(|| BoundFormula::sum(terms))
}

/// A value of one series in that quantity.
pub fn in_quantity(index: &Index<'_>, at: usize, quantity: NumberStyle, value: u64) -> Option<f64> {
    Some(value as f64 * factor(index, at, quantity)?)
}

fn factor(index: &Index<'_>, at: usize, quantity: NumberStyle) -> Option<f64> {
    let unit = index.series()[at].metric.unit;
    match quantity {
        NumberStyle::Bytes => unit.bytes(index.page_size()).filter(|&b| b > 0).map(|b| b as f64),
        NumberStyle::Seconds => unit.seconds(),
        // Time per time, unless it counts what is a share already.
        NumberStyle::Percent => Some(unit.seconds().map_or(1.0, |s| 100.0 * s)),
        NumberStyle::Rate if unit == Unit::Kibibytes => Some(1024.0),
        NumberStyle::Rate | NumberStyle::Count | NumberStyle::Ratio => Some(1.0),
    }
}
