//! The series of a header as a page sees them: metrics with their instances, then formulas with
//! theirs.

use crate::wire::{AbsentInfo, FormulaInfo, MetricInfo, Ns, SourceInfo, SourceKind};
use numakit_findings::series;
use numakit_formulas::{BoundFormula, Catalog, Formula, Index};
use numakit_model::{Instance, Metric};
use numakit_recording::Header;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The order of a source's series, and how their values are computed from a row.
#[derive(Debug)]
pub struct SeriesLayout {
    metrics: Vec<MetricInfo>,
    formulas: Vec<FormulaInfo>,
    /// The column of the header of each measured series.
    order: Vec<usize>,
    bound: Vec<BoundFormula>,
    names: Vec<String>,
}

/// The links and interconnect cards that have series, of which findings tell. Of CPUs and processes there may be thousands.
fn links_and_cards(header: &Header) -> BTreeSet<Instance> {
    let is_one = |place: &Instance| matches!(place, Instance::Link(..) | Instance::Device(_));
    header.series.iter().map(|series| series.instance).filter(is_one).collect()
}

impl SeriesLayout {
    /// For rows with this header.
    pub fn new(header: &Header, formulas: &Catalog) -> Self {
        let mut layout = Self {
            metrics: Vec::new(),
            formulas: Vec::new(),
            order: Vec::with_capacity(header.series.len()),
            bound: Vec::new(),
            names: Vec::new(),
        };
        layout.measured(header);
        let index = series::index(header);
        let nodes = header.topology.iter().flat_map(|t| t.nodes.iter().map(|n| Instance::Node(n.os_index)));
        let own = std::iter::once(Instance::Machine).chain(nodes);
        let places: Vec<Instance> = own.chain(links_and_cards(header)).collect();
        formulas.all().iter().for_each(|formula| layout.computed(&index, formulas, formula, &places));
        layout
    }

    /// Groups the series by metric: in a header, instances of a metric need not be adjacent.
    fn measured(&mut self, header: &Header) {
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut columns: Vec<Vec<usize>> = Vec::new();
        for (column, series) in header.series.iter().enumerate() {
            let at = *by_name.entry(&series.metric.name).or_insert_with(|| {
                self.metrics.push(metric(&series.metric));
                columns.push(Vec::new());
                columns.len() - 1
            });
            self.metrics[at].instances.push(place(series.instance));
            columns[at].push(column);
        }
        self.order = columns.concat();
        self.names = self.order.iter().map(|column| header.series[*column].name()).collect();
    }

    fn computed(&mut self, index: &Index<'_>, catalog: &Catalog, formula: &Formula, places: &[Instance]) {
        let mut instances = Vec::new();
        for &at in places {
            let Ok(bound) = index.bind(catalog, formula, at) else { continue };
            // Constants of the machine are not series.
            if bound.columns().next().is_none() {
                continue;
            }
            self.bound.push(bound);
            self.names.push(format!("{}{at}", formula.name));
            instances.push(place(at));
        }
        if !instances.is_empty() {
            let (name, help) = (formula.name.clone(), formula.help.clone());
            self.formulas.push(FormulaInfo { name, help, unit: formula.quantity.to_string(), instances });
        }
    }

    /// Number of series.
    pub fn series(&self) -> usize {
        self.order.len() + self.bound.len()
    }

    /// Their names, as column titles.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The column of the header of each measured series.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The formulas that follow them.
    pub fn bound(&self) -> &[BoundFormula] {
        &self.bound
    }

    /// Computes a row: `rates` has a value for each column of the header.
    pub fn row(&self, rates: &[Option<f64>], out: &mut Vec<Option<f64>>) {
        out.clear();
        out.extend(self.order.iter().map(|column| rates.get(*column).copied().flatten()));
        out.extend(self.bound.iter().map(|bound| bound.value(rates)));
    }

    /// The description of the source for pages; the hub sets its `id`.
    pub fn info(&self, kind: SourceKind, name: &str, header: &Header) -> SourceInfo {
        let absent = header.absent.iter().map(|a| AbsentInfo {
            name: a.name.clone(),
            missing: a.why.missing.clone(),
            seen: a.why.seen.clone(),
            fix: a.why.fix.to_string(),
        });
        SourceInfo {
            id: 0,
            kind,
            name: name.to_owned(),
            host: header.host.clone(),
            kernel: header.kernel.clone(),
            command: header.command.clone(),
            program: header.program.clone(),
            started_ns: Ns(header.started),
            utc_offset_minutes: header.utc_offset,
            ended_ns: None,
            read_percent: None,
            interval_ns: header.interval,
            page_size: header.page_size,
            topology: serde_json::to_value(&header.topology).unwrap_or_default(),
            metrics: self.metrics.clone(),
            formulas: self.formulas.clone(),
            absent: absent.collect(),
        }
    }
}

fn place(instance: Instance) -> String {
    instance.to_string().trim_start_matches('@').to_owned()
}

fn metric(metric: &Metric) -> MetricInfo {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    MetricInfo {
        name: metric.name.clone(),
        sensor: metric.sensor().to_owned(),
        unit: metric.unit.name().to_owned(),
        kind: metric.kind.name().to_owned(),
        scope: metric.scope.name().to_owned(),
        help: metric.help.clone(),
        source: metric.source.clone(),
        resolution_ns: nanos(metric.resolution),
        maximum: metric.maximum,
        instances: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::header;

    #[test]
    fn series_are_numbered_by_metric_and_instance() {
        let header = header(&["a.x@node0", "a.y@node0", "a.x@node1", "a.y@node1", "b.z"]);
        let layout = SeriesLayout::new(&header, &Catalog::default());
        assert_eq!(layout.names(), ["a.x@node0", "a.x@node1", "a.y@node0", "a.y@node1", "b.z"]);
        let info = layout.info(SourceKind::Live, "here", &header);
        assert_eq!(info.metrics[0].instances, ["node0", "node1"]);
        assert_eq!(info.metrics[2].instances, [""]);
        let mut row = Vec::new();
        layout.row(&[Some(0.0), Some(1.0), Some(2.0), None, Some(4.0)], &mut row);
        assert_eq!(row, [Some(0.0), Some(2.0), Some(1.0), None, Some(4.0)]);
    }

    #[test]
    fn formulas_that_can_be_computed_follow() {
        let header = header(&["a.x@node0", "a.x@node1"]);
        let mut catalog = Catalog::default();
        let text = "twice: count = 2 * a.x\nnever: count = 2 * a.none\n";
        if let Err(error) = catalog.add(text, "test", &|_| None) {
            panic!("{error}");
        }
        let layout = SeriesLayout::new(&header, &catalog);
        assert_eq!(layout.names()[2..], ["twice"]);
        let mut row = Vec::new();
        layout.row(&[Some(1.0), Some(2.0)], &mut row);
        assert_eq!(row, [Some(1.0), Some(2.0), Some(6.0)]);
    }

    #[test]
    fn formulas_are_also_of_links_and_cards() {
        let header = header(&["a.x@card0", "a.x@card1", "a.x@link0.1", "a.x@cpu3"]);
        let mut catalog = Catalog::default();
        if let Err(error) = catalog.add("twice: count = 2 * a.x\n", "test", &|_| None) {
            panic!("{error}");
        }
        let layout = SeriesLayout::new(&header, &catalog);
        let computed = |name: &&String| name.starts_with("twice@");
        let names: Vec<&String> = layout.names().iter().filter(computed).collect();
        assert_eq!(names, ["twice@link0.1", "twice@card0", "twice@card1"]);
    }
}
