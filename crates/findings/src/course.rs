//! A formula over time at one place: since when it is at or above a threshold, and how it developed.

use crate::onset::Onset;
use crate::trend::Trend;
use numakit_formulas::{BoundFormula, Catalog, Index};
use numakit_model::{Instance, Scope};
use numakit_recording::Header;

/// A formula that is followed over time, and the value from which on it counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// The formula that is evaluated.
    pub(crate) formula: &'static str,
    /// The formula's value counts if it is at least this.
    pub(crate) threshold: f64,
    /// The scopes for which the formula may be computed: the first one that can be computed is used.
    pub(crate) scopes: &'static [Scope],
    /// The value counts only while this formula gives at least this value.
    pub(crate) minimum: Option<(&'static str, f64)>,
}

/// A limit at one place, followed over time for a line of a table.
pub(crate) struct Watched<T: 'static> {
    /// The line of the table.
    pub(crate) line: &'static T,
    /// The formula of its limit.
    pub(crate) formula: &'static str,
    pub(crate) place: Instance,
    bound: BoundFormula,
    minimum: Option<(BoundFormula, f64)>,
    pub(crate) onset: Onset,
    pub(crate) trend: Trend,
}

// `derive` would demand that the line can be cloned too.
impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        let Self { line, formula, place, bound, minimum, onset, trend } = self;
        Self {
            line,
            formula,
            place: *place,
            bound: bound.clone(),
            minimum: minimum.clone(),
            onset: onset.clone(),
            trend: trend.clone(),
        }
    }
}

impl<T> Watched<T> {
    /// The columns that the formulas of this limit read.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.bound.columns().chain(self.minimum.iter().flat_map(|(bound, _)| bound.columns()))
    }

    /// The rates of the next slot of time.
    pub(crate) fn push(&mut self, time: u64, rates: &[Option<f64>]) {
        let Some(value) = self.bound.value(rates) else { return self.onset.start(time) };
        let enough =
            |(bound, minimum): &(BoundFormula, f64)| bound.value(rates).is_some_and(|v| v >= *minimum);
        let counts = self.minimum.as_ref().is_none_or(enough);
        let value = if counts { value } else { 0.0 };
        self.onset.push(time, value);
        self.trend.push(time, value);
    }

    /// The next value covers the time from here.
    pub(crate) fn start(&mut self, time: u64) {
        self.onset.start(time);
    }

    /// A gap in the samples.
    pub(crate) fn gap(&mut self) {
        self.onset.gap();
    }
}

/// Binds the limits of a table's lines to the places of a recording.
pub(crate) struct Watching<'a> {
    header: &'a Header,
    index: &'a Index<'a>,
    formulas: &'a Catalog,
}

impl<'a> Watching<'a> {
    pub(crate) fn new(header: &'a Header, index: &'a Index<'a>, formulas: &'a Catalog) -> Self {
        Self { header, index, formulas }
    }

    /// Whether a formula can be computed there.
    pub(crate) fn can(&self, name: &str, place: Instance) -> bool {
        self.bound(name, place).is_some()
    }

    fn bound(&self, name: &str, place: Instance) -> Option<BoundFormula> {
        self.index.bind(self.formulas, self.formulas.get(name)?, place).ok()
    }

    fn watched<T>(&self, line: &'static T, limit: &Limit, place: Instance) -> Option<Watched<T>> {
        let minimum = limit.minimum.and_then(|(name, minimum)| Some((self.bound(name, place)?, minimum)));
        let bound = self.bound(limit.formula, place)?;
        let (onset, trend) = (Onset::new(limit.threshold), Trend::default());
        Some(Watched { line, formula: limit.formula, place, bound, minimum, onset, trend })
    }

    /// A line at every place of the first of its limit's scopes that can be computed.
    pub(crate) fn all<T>(&self, line: &'static T, limit: &Limit) -> Vec<Watched<T>> {
        let of_scope = |scope: &Scope| -> Vec<Watched<T>> {
            let places = places(self.header, *scope).into_iter();
            places.filter_map(|place| self.watched(line, limit, place)).collect()
        };
        limit.scopes.iter().map(of_scope).find(|found| !found.is_empty()).unwrap_or_default()
    }
}

/// The instances of a scope in the header's series and topology.
pub(crate) fn places(header: &Header, scope: Scope) -> Vec<Instance> {
    if scope == Scope::Machine {
        return vec![Instance::Machine];
    }
    let mut places: Vec<Instance> =
        header.series.iter().map(|s| s.instance).filter(|i| i.scope() == scope).collect();
    if let (Scope::Node, Some(topology)) = (scope, &header.topology) {
        places.extend(topology.nodes.iter().map(|n| Instance::Node(n.os_index)));
    }
    places.sort_unstable();
    places.dedup();
    places
}
