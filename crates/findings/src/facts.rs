//! The sums and rates of one phase, by formula and place.

use crate::course::places;
use crate::series::bind_metric;
use crate::tally::Phase;
use numakit_formulas::{BoundFormula, Catalog, Index, Missing};
use numakit_model::numbers::NumberStyle;
use numakit_model::{CpuSet, Instance, Kind, Scope, Topology};
use numakit_recording::Header;
use std::collections::BTreeSet;

/// The sums and rates of one phase, ready for formulas.
pub(crate) struct Facts<'a> {
    header: &'a Header,
    index: &'a Index<'a>,
    formulas: &'a Catalog,
    /// Increases of counters; a level has no increase.
    sums: Vec<Option<f64>>,
    /// Means over the time; of a counter, per second.
    rates: Vec<Option<f64>>,
    pub(crate) samples: u64,
    /// Time that the samples cover.
    pub(crate) seconds: f64,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(
        header: &'a Header,
        index: &'a Index<'a>,
        formulas: &'a Catalog,
        phase: &Phase,
    ) -> Self {
        let seconds = phase.covered as f64 / 1e9;
        let mut sums: Vec<Option<f64>> = phase.sums.iter().map(|s| s.map(|s| s as f64)).collect();
        let rates = sums.iter().map(|s| s.filter(|_| seconds > 0.0).map(|s| s / seconds)).collect();
        let levels = sums.iter_mut().zip(&header.series).filter(|(_, s)| s.metric.kind == Kind::Gauge);
        levels.for_each(|(sum, _)| *sum = None);
        Self { header, index, formulas, sums, rates, samples: phase.samples, seconds }
    }

    /// The formula of that name at a place; `None` where there is no such formula.
    fn bind(&self, name: &str, place: Instance) -> Option<Result<BoundFormula, Missing>> {
        Some(self.index.bind(self.formulas, self.formulas.get(name)?, place))
    }

    /// The total of a formula.
    pub(crate) fn sum(&self, name: &str, place: Instance) -> Option<f64> {
        self.bind(name, place)?.ok()?.value(&self.sums)
    }

    /// A formula per second, or a share.
    pub(crate) fn rate(&self, name: &str, place: Instance) -> Option<f64> {
        self.bind(name, place)?.ok()?.value(&self.rates)
    }

    /// The total of one metric.
    pub(crate) fn count(&self, metric: &str, place: Instance) -> Option<f64> {
        bind_metric(self.index, metric, NumberStyle::Count, place)?.value(&self.sums)
    }

    /// Why a formula cannot be computed at that place; `None` if it can.
    pub(crate) fn missing(&self, name: &str, place: Instance) -> Option<String> {
        let missing = self.bind(name, place)?.err()?;
        let names: Vec<&str> = self.formulas.get(name).map(|f| self.formulas.names(f)).unwrap_or_default();
        let covers = |absent: &str| names.iter().any(|n| *n == absent || n.split('.').next() == Some(absent));
        let why = self.header.absent.iter().find(|a| covers(&a.name)).map(|a| a.why.to_string());
        let first = missing.first().map_or("'vmstat*'", |input| input.name.as_str());
        Some(why.unwrap_or_else(|| format!("not in the recording; record with -e {first}")))
    }

    /// The mean of a level, or the rate of a counter per second, of the machine.
    pub(crate) fn mean(&self, metric: &str) -> Option<f64> {
        bind_metric(self.index, metric, NumberStyle::Count, Instance::Machine)?.value(&self.rates)
    }

    /// The mean of a level, or the rate of a counter per second, of one series, by its place in the header.
    pub(crate) fn mean_of(&self, series: usize) -> Option<f64> {
        *self.rates.get(series)?
    }

    /// Bytes of a small page, if known.
    pub(crate) fn page_size(&self) -> Option<f64> {
        Some(self.index.page_size() as f64).filter(|&size| size > 0.0)
    }

    /// The interval at the start, if known.
    pub(crate) fn interval(&self) -> Option<f64> {
        (self.header.interval > 0).then(|| self.header.interval as f64 / 1e9)
    }

    /// The interconnect cards that have series.
    pub(crate) fn devices(&self) -> impl Iterator<Item = u32> {
        let number = |place| if let Instance::Device(card) = place { Some(card) } else { None };
        let cards: BTreeSet<u32> = self.header.series.iter().filter_map(|s| number(s.instance)).collect();
        cards.into_iter()
    }

    /// How many series there are of one place.
    pub(crate) fn series_at(&self, place: Instance) -> usize {
        self.header.series.iter().filter(|series| series.instance == place).count()
    }

    /// The machine, if the recording has it.
    pub(crate) fn topology(&self) -> Option<&'a Topology> {
        self.header.topology.as_ref()
    }

    /// The places of a scope.
    pub(crate) fn places(&self, scope: Scope) -> Vec<Instance> {
        places(self.header, scope)
    }

    /// The observed command.
    pub(crate) fn command(&self) -> Option<&'a str> {
        self.header.command.as_deref()
    }

    /// The nodes that have series of their own.
    pub(crate) fn nodes(&self) -> Vec<u32> {
        node_numbers(self.header).iter().collect()
    }

    /// How many nodes the machine has, if known.
    pub(crate) fn node_count(&self) -> Option<usize> {
        match &self.header.topology {
            Some(topology) if !topology.nodes.is_empty() => Some(topology.nodes.len()),
            _ => Some(node_numbers(self.header).len()).filter(|&n| n > 0),
        }
    }
}

pub(crate) fn node_numbers(header: &Header) -> CpuSet {
    let node = |place| if let Instance::Node(node) = place { Some(node) } else { None };
    header.series.iter().filter_map(|s| node(s.instance)).collect()
}
