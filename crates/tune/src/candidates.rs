//! Settings that may make any program faster, for a machine: what is tried where nothing is known of the program.
//!
//! Three races, of which each knows the winners of the one before: [`placements`], [`around`] the best two of these, and the
//! [`products`] of what won there.

mod options;

pub use options::{TuneNeed, TuneOption, TuneSetting};

use serde::{Deserialize, Serialize};

/// What of a machine decides which settings there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedMachine {
    /// Nodes that have cores and memory.
    pub nodes: u32,
    /// Cores that a program may get.
    pub cores: u32,
    /// Cores that share a last-level cache.
    pub cores_per_cache: u32,
    /// Hardware threads (PUs) of a core.
    pub threads_per_core: u32,
    /// Whether the program may use OpenMP.
    pub has_openmp: bool,
    /// Files of other allocators that are installed, as the loader finds them.
    pub allocators: Vec<String>,
    /// Settings of the machine that may be changed: files, and values that they have not.
    pub settings: Vec<(String, String)>,
}

impl TunedMachine {
    /// Numbers of cores to try, and whether they are on several nodes: all (`None`), half of them, those of a node, those of a cache.
    fn cores(&self) -> Vec<(Option<u32>, bool)> {
        let node = self.cores / self.nodes.max(1);
        let mut counts = vec![(None, self.nodes > 1)];
        for count in [self.cores / 2, node, self.cores_per_cache] {
            let is_new = !counts.iter().any(|(other, _)| *other == Some(count));
            if (1..self.cores).contains(&count) && is_new {
                counts.push((Some(count), count > node));
            }
        }
        counts
    }
}

/// Cores, placement and memory, each with each, the most promising first: the fewest options, and of as many those with more cores. The
/// program as it is, which is the default of every race, is not among them.
pub fn placements(machine: &TunedMachine) -> Vec<TuneSetting> {
    let several = machine.nodes > 1;
    let mut settings = Vec::new();
    for (cores, is_wide) in machine.cores() {
        for placement in [None, Some(TuneOption::Scatter), Some(TuneOption::Unbound)] {
            // As many cores as a node has are on several nodes if they are scattered.
            let is_scattered = placement == Some(TuneOption::Scatter);
            if is_scattered && !several {
                continue;
            }
            for memory in [None, Some(TuneOption::Interleave), Some(TuneOption::Weighted)] {
                if memory.is_some() && !(is_wide || several && is_scattered) {
                    continue;
                }
                let options = [cores.map(TuneOption::Cores), placement.clone(), memory];
                settings.push(TuneSetting::placed(options.into_iter().flatten().collect()));
            }
        }
    }
    settings.sort_by_key(|setting| setting.options().len());
    settings
}

/// One more option for each of these settings, which are the best of those before. Settings that come of several are there once.
pub fn around(machine: &TunedMachine, best: &[TuneSetting]) -> Vec<TuneSetting> {
    let mut more = vec![
        TuneOption::HugePages,
        TuneOption::NoHugePages,
        TuneOption::Allocator("uma".to_owned()),
        TuneOption::Allocator("numa".to_owned()),
    ];
    more.extend(machine.allocators.iter().cloned().map(TuneOption::Preload));
    if machine.has_openmp {
        more.extend([TuneOption::ThreadsWaitAsleep, TuneOption::DynamicLoops, TuneOption::AdaptiveLoops]);
    }
    if machine.threads_per_core > 1 {
        more.push(TuneOption::ThreadsPerCore(machine.threads_per_core));
    }
    let of_machine = |(file, value): &(String, String)| TuneOption::Machine(file.clone(), value.clone());
    more.extend(machine.settings.iter().map(of_machine));
    let mut settings: Vec<TuneSetting> = Vec::new();
    for option in &more {
        for setting in best {
            let with = setting.with(option);
            settings.extend(with.filter(|with| !settings.contains(with)));
        }
    }
    settings
}

/// What won [`around`] a setting, together: all of it, then any two. Options of one kind exclude each other; the better one is first.
pub fn products(base: &TuneSetting, winners: &[TuneSetting]) -> Vec<TuneSetting> {
    let won: Vec<&TuneOption> = winners.iter().filter_map(|winner| winner.beyond(base)).collect();
    let mut settings: Vec<TuneSetting> = Vec::new();
    let add = |setting: TuneSetting, settings: &mut Vec<TuneSetting>| {
        let is_product = setting.options().len() >= base.options().len() + 2;
        if is_product && !settings.contains(&setting) {
            settings.push(setting);
        }
    };
    let all = won.iter().fold(base.clone(), |setting, option| setting.with(option).unwrap_or(setting));
    add(all, &mut settings);
    for (at, one) in won.iter().enumerate() {
        for other in &won[at + 1..] {
            let both = base.with(one).and_then(|with| with.with(other));
            both.into_iter().for_each(|both| add(both, &mut settings));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(nodes: u32, cores: u32, cores_per_cache: u32, threads_per_core: u32) -> TunedMachine {
        let (allocators, settings) = (Vec::new(), Vec::new());
        TunedMachine {
            nodes,
            cores,
            cores_per_cache,
            threads_per_core,
            has_openmp: true,
            allocators,
            settings,
        }
    }

    fn words(settings: &[TuneSetting]) -> Vec<String> {
        settings.iter().map(|setting| setting.words().join(" ")).collect()
    }

    #[test]
    fn a_machine_of_one_node_has_neither_scattering_nor_interleaving() {
        let found = words(&placements(&machine(1, 8, 8, 2)));
        assert_eq!(found, ["", "--no-library", "-c 4", "-c 4 --no-library"]);
        assert_eq!(words(&placements(&machine(1, 1, 1, 1))), ["", "--no-library"]);
    }

    #[test]
    fn a_machine_of_nodes_has_all_of_them_and_the_simplest_first() {
        let found = words(&placements(&machine(4, 64, 8, 2)));
        assert_eq!(found[..3], ["", "--memory interleave", "--memory weighted"]);
        for wanted in
            ["-c 32 --memory interleave", "-c 16", "-c 8", "-c 16 --policy scatter --memory weighted"]
        {
            assert!(found.contains(&wanted.to_owned()), "{wanted}: {found:#?}");
        }
        // Memory is not interleaved on one node.
        assert!(!found.contains(&"-c 16 --memory interleave".to_owned()), "{found:#?}");
        let distinct: std::collections::BTreeSet<&String> = found.iter().collect();
        assert_eq!((distinct.len(), found.len()), (28, 28), "{found:#?}");
    }

    #[test]
    fn one_option_more_for_each_of_the_best() {
        let mut machine = machine(2, 16, 8, 2);
        machine.allocators = vec!["libjemalloc.so.2".into()];
        let half = TuneSetting::placed(vec![TuneOption::Cores(8)]);
        let found = around(&machine, &[half.clone(), TuneSetting::default()]);
        // Hardware threads are those of cores that numa gives: not without it.
        assert_eq!(found.len(), 2 * 8 + 1, "{:#?}", words(&found));
        assert_eq!(found[0].words(), ["-c", "8", "--thp", "on"]);
        assert_eq!(found[1].words(), ["--no-library", "--thp", "on"]);
        let preloaded = found.iter().find(|setting| !setting.environment().is_empty()).unwrap();
        assert_eq!(preloaded.environment(), [("LD_PRELOAD", "libjemalloc.so.2")]);
        assert!(found.iter().all(|setting| setting.rank() > 0));
    }

    #[test]
    fn threads_are_unbound_once() {
        let preloaded = TuneSetting::default().with(&TuneOption::Preload("libmimalloc.so.2".into())).unwrap();
        let unbound = preloaded.with(&TuneOption::Unbound).unwrap();
        assert_eq!(unbound.words(), ["--no-library"]);
        assert_eq!(unbound.with(&TuneOption::Unbound), None);
        assert_eq!(preloaded.with(&TuneOption::HugePages).unwrap().words(), ["--no-library", "--thp", "on"]);
    }

    #[test]
    fn products_have_one_option_of_each_kind() {
        let base = TuneSetting::placed(vec![TuneOption::Interleave]);
        let with = |option| base.with(&option).unwrap();
        let won = [
            with(TuneOption::Allocator("numa".into())),
            with(TuneOption::HugePages),
            with(TuneOption::Allocator("uma".into())),
        ];
        let found = words(&products(&base, &won));
        let begin = "--memory interleave";
        assert_eq!(
            found,
            [format!("{begin} --alloc numa --thp on"), format!("{begin} --thp on --alloc uma")]
        );
        assert_eq!(products(&base, &won[..1]), []);
        assert_eq!(products(&base, &[]), []);
    }
}
