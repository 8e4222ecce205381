//! The formulas at the end of `numa list`.

use super::Search;
use crate::formulas::{Reason, reason};
use numakit_formulas::{Catalog, Formula, Index};
use numakit_model::{Instance, Series, Topology, Unavailable};
use numakit_sensors::Probe;
use serde_json::{Value, json};
use std::collections::HashMap;

/// A formula, with the smallest scope that it can be computed for.
#[derive(Debug)]
pub(super) struct Row {
    formula: Formula,
    per: Option<&'static str>,
    why: Option<Reason>,
    /// The sensor that it needs is missing and has a line above.
    sensor_listed: bool,
}

/// Every formula that matches the pattern.
pub(super) fn rows(
    probe: &Probe,
    topology: &Topology,
    formulas: &Catalog,
    pattern: Option<&str>,
) -> Vec<Row> {
    let series: Vec<Series> = probe.series().cloned().collect();
    let index = Index::new(&series, Some(topology), topology.page_size);
    let missing: HashMap<String, &Unavailable> = probe.missing().collect();
    let absent = |name: &str| missing.get(name).map(|why| (*why).clone());
    let places = smallest_first(topology, &series);
    let search = pattern.map(Search::new);
    let matching =
        formulas.all().iter().filter(|f| search.as_ref().is_none_or(|s| s.fits([&f.name, &f.name], &f.help)));
    matching
        .map(|formula| {
            let can = |place: &&Instance| index.bind(formulas, formula, **place).is_ok();
            let per = places.iter().find(can).map(|place| place.scope().name());
            let why = match per {
                Some(_) => None,
                None => index.bind(formulas, formula, Instance::Machine).err().map(|m| reason(&m, &absent)),
            };
            let needs =
                |name: &str| why.as_ref().is_some_and(|w: &Reason| w.needs.starts_with(&format!("{name}.")));
            let sensor_listed =
                pattern.is_none() && probe.unavailable.iter().any(|(sensor, _)| needs(sensor.name));
            Row { formula: formula.clone(), per, why, sensor_listed }
        })
        .collect()
}

/// An instance of each scope.
fn smallest_first(topology: &Topology, series: &[Series]) -> Vec<Instance> {
    let card = series.iter().map(|s| s.instance).find(|place| matches!(place, Instance::Device(_)));
    let cpu = topology.online.first().map(Instance::Cpu);
    let node = topology.nodes.first().map(|n| Instance::Node(n.os_index));
    let package = topology.packages.first().map(|p| Instance::Package(p.os_index.unwrap_or(0)));
    [cpu, node, package, card, Some(Instance::Machine)].into_iter().flatten().collect()
}

impl Row {
    /// Whether the line of the missing sensor says enough: the formula only converts the unit of the
    /// sensor's metric of the same name.
    pub(super) fn is_redundant(&self) -> bool {
        let metric =
            |why: &Reason| why.needs.split_once('.').is_some_and(|(_, bare)| bare == self.formula.name);
        self.sensor_listed && self.why.as_ref().is_some_and(metric)
    }

    pub(super) fn cells(&self) -> [String; 5] {
        let formula = &self.formula;
        let mut help = formula.help.clone();
        if !formula.is_built_in() {
            let space = if help.is_empty() { "" } else { " " };
            help.push_str(&format!("{space}From {}.", formula.origin));
        }
        if let Some(replaced) = &formula.replaces {
            help.push_str(&format!(" Replaces the one that is {}.", shown(replaced)));
        }
        match &self.why {
            None => {}
            Some(why) if self.sensor_listed => {
                let sensor = why.needs.split('.').next().unwrap_or_default();
                help.push_str(&format!(" Unavailable: it needs {}; see {sensor}.* above", why.needs));
            }
            Some(why) => help.push_str(&format!(" Unavailable: {why}")),
        }
        let scope = self.per.unwrap_or("-").to_owned();
        [formula.name.clone(), formula.quantity.name().to_owned(), "formula".to_owned(), scope, help]
    }

    pub(super) fn json(&self) -> Value {
        let formula = &self.formula;
        json!({
            "name": formula.name,
            "unit": formula.quantity.name(),
            "formula": formula.expr.to_string(),
            "per": self.per,
            "help": formula.help,
            "origin": formula.origin,
            "replaces": formula.replaces,
            "available": self.per.is_some(),
            "why": self.why,
        })
    }
}

fn shown(origin: &str) -> String {
    if origin.contains('/') { format!("in {origin}") } else { origin.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::list::Listing;
    use numakit_formulas::Catalog;
    use numakit_model::topology::Node;
    use numakit_model::{CpuSet, Topology};
    use numakit_sensors::{Probe, Scene};
    use numakit_sys::SysRoot;
    use numakit_sys::root::FileTree;

    fn listing(formulas: &Catalog, pattern: Option<&str>) -> Listing {
        let mut tree = FileTree::new();
        tree.file("/proc/vmstat", "nr_free_pages 1\nnuma_local 2\nnuma_other 3\nnuma_hint_faults 4\n")
            .file("/sys/devices/system/node/node0/numastat", "local_node 1\nother_node 0\n");
        let node = Node { os_index: 0, cpus: CpuSet::range(0, 1), ..Node::default() };
        let topology = Topology { nodes: vec![node], online: CpuSet::range(0, 1), ..Topology::default() };
        let probe = Probe::new(&Scene::new(&SysRoot::of_tree(tree), &topology));
        Listing::of(&probe, pattern).with_formulas(&probe, &topology, formulas, pattern)
    }

    #[test]
    fn formulas_are_at_the_end_with_the_reasons() {
        let text = listing(Catalog::built_in(), None).table(None);
        let line =
            |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("locality ").contains("percent  formula  node "), "{text}");
        assert!(
            line("stall ").contains("Unavailable: it needs pressure.memory_some; see pressure.* above"),
            "{text}"
        );
        assert!(text.lines().last().unwrap().starts_with("ipc "));
        let one = listing(Catalog::built_in(), Some("link_util")).table(None);
        assert!(one.contains("it needs uncore.link_busy_out: ") && one.contains("(alternative: "), "{one}");
    }

    #[test]
    fn formulas_of_the_user_name_their_file() {
        let mut formulas = Catalog::built_in().clone();
        formulas
            .add("free: bytes = node.MemFree\nmine: percent = 100 * locality\n    Mine.", "/my.txt", &|_| {
                None
            })
            .unwrap();
        let text = listing(&formulas, None).table(None);
        assert!(text.contains("From /my.txt. Replaces the one that is built in."), "{text}");
        assert!(text.contains("Mine. From /my.txt.\n"), "{text}");
        let json = listing(&formulas, Some("mine")).json();
        let mine = &json["formulas"][0];
        assert_eq!((&mine["formula"], &mine["per"]), (&"100 * locality".into(), &"node".into()));
        assert!(!listing(&formulas, Some("mine")).is_empty());
    }
}
