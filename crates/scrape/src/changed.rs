//! CPUs and nodes that went or came after serving began: values that have gone, and those that nobody adds up.

use crate::places::{ExposedPlace, ExposedPlaces};
use crate::setup::ExposedLine;
use crate::table::EXPOSED;
use numakit_model::{CpuSet, Fix, Unavailable};
use numakit_sys::SysRoot;

/// What the kernel says is online; `None` if it does not say.
#[derive(Debug, Clone, Default)]
pub struct OnlineNow {
    cpus: Option<CpuSet>,
    nodes: Option<CpuSet>,
}

impl OnlineNow {
    /// Reads two small files.
    pub fn read(root: &SysRoot) -> Self {
        let of = |what: &str| {
            let text = root.text(&format!("/sys/devices/system/{what}/online")).ok()?;
            CpuSet::parse_list(text.trim()).ok()
        };
        Self { cpus: of("cpu"), nodes: of("node") }
    }

    /// The CPUs of a place that are online.
    pub fn cpus_of(&self, place: &ExposedPlace) -> CpuSet {
        self.cpus.as_ref().map_or_else(|| place.cpus.clone(), |online| place.cpus.and(online))
    }

    /// What these lines had a value for when serving began and have none for now, then what has come since, each with the reason.
    pub fn changed(
        &self,
        places: &ExposedPlaces,
        lines: &[ExposedLine],
        sums: &[Option<u64>],
    ) -> Vec<(String, Unavailable)> {
        let gone = |metric: usize| {
            let lines = lines.iter().zip(sums).filter(|(line, _)| line.metric == metric);
            let mut missing = lines.filter(|(_, sum)| sum.is_none()).map(|(line, _)| line.place).peekable();
            missing.peek()?;
            let mut at: Vec<usize> = missing.flatten().collect();
            at.dedup();
            let at: Vec<&ExposedPlace> = at.into_iter().filter_map(|at| places.list.get(at)).collect();
            Some(self.gone(metric, places.label, &at))
        };
        let mut all: Vec<_> = (0..EXPOSED.len()).filter_map(gone).collect();
        let known = |of: fn(&ExposedPlace) -> &CpuSet| {
            places.list.iter().fold(CpuSet::new(), |all, place| all.or(of(place)))
        };
        for (word, online, known) in [
            ("CPUs", &self.cpus, known(|place| &place.cpus)),
            ("nodes", &self.nodes, known(|place| &place.nodes)),
        ] {
            let new = online.as_ref().map(|online| online.minus(&known)).filter(|new| !new.is_empty());
            all.extend(new.map(|new| {
                let what = format!("values of {word} {new}");
                let fix = Fix::Step("restart numa serve".to_owned());
                (what.clone(), Unavailable::new(what, "they came after numa serve was started", fix))
            }));
        }
        all
    }

    /// Why a metric has no value at these places.
    fn gone(&self, metric: usize, label: &str, places: &[&ExposedPlace]) -> (String, Unavailable) {
        let metric = &EXPOSED[metric];
        let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
        let what = match label.is_empty() || names.is_empty() {
            true => metric.sample_name(),
            false => format!("{} of {label} {}", metric.sample_name(), names.join(", ")),
        };
        let off = |of: fn(&ExposedPlace) -> &CpuSet, online: &Option<CpuSet>| {
            let all = places.iter().fold(CpuSet::new(), |all, place| all.or(of(place)));
            online.as_ref().map(|online| all.minus(online)).unwrap_or_default()
        };
        let (cpus, nodes) = (off(|place| &place.cpus, &self.cpus), off(|place| &place.nodes, &self.nodes));
        let is_of_cpus = metric.series().any(|series| series.starts_with("cpu."));
        let why = |seen: String, fix: Fix| Unavailable::new(what.clone(), seen, fix);
        let why = match (cpus.first().filter(|_| is_of_cpus), nodes.is_empty()) {
            (Some(first), _) => why(
                format!("CPUs {cpus} are offline"),
                Fix::command(format!("echo 1 | sudo tee /sys/devices/system/cpu/cpu{first}/online")),
            ),
            (None, false) => {
                why(format!("nodes {nodes} are offline"), Fix::Step("bring their memory online".to_owned()))
            }
            (None, true) => {
                why("the kernel shows it no more".to_owned(), Fix::Step("see its log".to_owned()))
            }
        };
        (what, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::ScrapeSetup;
    use numakit_sensors::Scene;
    use numakit_testing::sysfs;
    use numakit_topology::synthetic;

    /// What a machine tells whose CPUs and nodes are these now, with values for all but this node.
    fn told(cpus: &str, nodes: &str, missing: usize) -> (Vec<String>, Vec<usize>) {
        let mut topology = synthetic::parse("package:2 node:1 core:2").unwrap();
        let root = SysRoot::of_tree(sysfs::tree(&topology));
        numakit_topology::add_offline_cpus(&mut topology, &root);
        root.change(|tree| _ = tree.file("/proc/stat", "cpu  9 0\ncpu0 1 0\ncpu1 1 0\ncpu2 1 0\ncpu3 1 0\n"));
        let setup = ScrapeSetup::new(&Scene::new(&root, &topology), None).unwrap();
        root.change(|tree| {
            tree.file("/sys/devices/system/cpu/online", format!("{cpus}\n"));
            tree.file("/sys/devices/system/node/online", format!("{nodes}\n"));
        });
        let online = OnlineNow::read(&root);
        let sums: Vec<_> =
            setup.lines.iter().map(|line| (line.place != Some(missing)).then_some(1)).collect();
        let changed = online.changed(&setup.places, &setup.lines, &sums);
        let told = changed.iter().map(|(what, why)| format!("{what}: {}; {}", why.seen, why.fix)).collect();
        (told, setup.places.list.iter().map(|place| online.cpus_of(place).len()).collect())
    }

    #[test]
    fn values_that_have_gone_say_which_cpus_and_nodes_are_offline() {
        assert_eq!(told("0-3", "0-1", 9), (vec![], vec![2, 2]));
        let (all, cpus) = told("0-1", "0-1", 1);
        assert!(
            all.contains(
                &"numakit_node_cpu_seconds_total of node 1: CPUs 2-3 are offline; echo 1 | sudo tee \
                  /sys/devices/system/cpu/cpu2/online"
                    .to_owned()
            ),
            "{all:?}"
        );
        assert_eq!(cpus, [2, 0]);
        let (all, _) = told("0-1", "0", 1);
        assert!(
            all.iter()
                .any(|told| told.starts_with("numakit_node_memory_bytes of node 1: nodes 1 are offline")),
            "{all:?}"
        );
    }

    #[test]
    fn what_came_since_is_told() {
        let (all, cpus) = told("0-5", "0-2", 9);
        let expected = ["values of CPUs 4-5", "values of nodes 2"];
        assert_eq!(
            all,
            expected
                .map(|what| format!("{what}: they came after numa serve was started; restart numa serve"))
        );
        assert_eq!(cpus, [2, 2]);
    }
}
