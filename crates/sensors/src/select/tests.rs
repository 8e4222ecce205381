use super::*;
use crate::Scene;
use crate::testing::{nodes, root};
use numakit_model::Topology;

fn probe_with(extra: &[(&str, &str)], topology: &Topology) -> Probe {
    let node = "/sys/devices/system/node";
    let mut files: Vec<(String, &str)> = vec![
        (
            "/proc/vmstat".into(),
            "nr_free_pages 1\nnuma_hit 2\npgpgin 3\npgfault 4\npgmajfault 5\nnuma_hint_faults 1\n",
        ),
        ("/proc/stat".into(), "cpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nctxt 1\n"),
    ];
    for n in [0, 1] {
        files.push((format!("{node}/node{n}/numastat"), "numa_hit 2\n"));
        files.push((format!("{node}/node{n}/meminfo"), "Node 0 MemFree: 2 kB\n"));
    }
    files.extend(extra.iter().map(|(p, t)| ((*p).to_owned(), *t)));
    Probe::new(&Scene::new(&root(&files.iter().map(|(p, t)| (p.as_str(), *t)).collect::<Vec<_>>()), topology))
}

fn probe() -> Probe {
    probe_with(&[], &nodes(&[0, 1]))
}

fn select(items: &str) -> Result<Vec<String>, SelectError> {
    let sensors = probe().select(&items.parse()?)?;
    Ok(sensors.iter().flat_map(|s| s.series()).map(Series::name).collect())
}

fn selected(items: &str) -> Vec<String> {
    select(items).unwrap_or_else(|e| panic!("{items}: {e}"))
}

fn error(items: &str) -> String {
    select(items).err().unwrap_or_else(|| panic!("{items} is no error")).to_string()
}

#[test]
fn full_names_come_first() {
    assert_eq!(selected("node.MemFree@node1"), ["node.MemFree@node1"]);
    assert_eq!(selected("node.MemFree"), ["node.MemFree@node0", "node.MemFree@node1"]);
    assert_eq!(selected("node").len(), 4);
    assert_eq!(selected("vmstat"), selected("vmstat*"));
    assert_eq!(selected("vmstat").len(), 6);
    assert_eq!(selected("*@node0"), ["node.numa_hit@node0", "node.MemFree@node0"]);
    assert_eq!(selected("cpu.[iu]*@cpu1").len(), 4);
    assert_eq!(selected("*").len(), probe().series().count());
}

#[test]
fn bare_names_mean_the_machine_and_only_then_the_rest() {
    assert_eq!(selected("pgfault"), ["vmstat.pgfault"]);
    assert_eq!(selected("numa_hit"), ["vmstat.numa_hit"]);
    assert_eq!(selected("numa_hit@node*"), ["node.numa_hit@node0", "node.numa_hit@node1"]);
    assert_eq!(selected("MemFree").len(), 2);
    assert_eq!(selected("pg*fault"), ["vmstat.pgfault", "vmstat.pgmajfault"]);
    assert_eq!(selected("nr_*"), ["vmstat.nr_free_pages"]);
}

#[test]
fn items_add_up_and_exclusions_win() {
    assert_eq!(selected("pgfault, numa_hit,pgfault"), ["vmstat.numa_hit", "vmstat.pgfault"]);
    assert_eq!(selected("!pgmajfault,pg*"), ["vmstat.pgpgin", "vmstat.pgfault"]);
    let all = selected("vmstat,node,cpu,self");
    let without_nodes: Vec<String> = all.iter().filter(|n| !n.starts_with("node.")).cloned().collect();
    assert_eq!(selected("!node"), without_nodes);
}

#[test]
fn the_default_is_everything_that_is_there() {
    let sensors = probe().select(&Selection::default()).unwrap();
    assert_eq!(sensors.iter().map(|s| s.series().len()).sum::<usize>(), probe().series().count());
}

#[test]
fn a_selection_that_names_its_sensors_needs_no_other() {
    let sensors = |text: &str| {
        let entries = text.parse::<Selection>().unwrap().sensors();
        entries.map(|found| found.iter().map(|e| e.name).collect::<Vec<_>>())
    };
    assert_eq!(sensors("vmstat*"), Some(vec!["vmstat"]));
    assert_eq!(sensors("node.MemFree@node0,cpu"), Some(vec!["node", "cpu"]));
    assert_eq!(sensors("p*,!perf"), Some(vec!["pressure", "perf"]));
    for any in ["pgfault", "*@node0", "vmstat.pgfault,numa_*", "!node", "nodes", "vmstats.x"] {
        assert!(sensors(any).is_none_or(|s| s.len() == SENSORS.len()), "{any}");
    }
}

#[test]
fn sensors_of_which_nothing_is_wanted_are_dropped() {
    let sensors = probe().select(&"pgfault,MemFree@node1".parse().unwrap()).unwrap();
    assert_eq!(sensors.len(), 2);
    assert_eq!(sensors.iter().map(|s| s.files()).sum::<usize>(), 2);
}

#[test]
fn unknown_items_name_the_nearest() {
    assert_eq!(
        error("pgfalt"),
        "unknown event 'pgfalt'; nearest: pgfault, pgmajfault; 'numa list' shows all"
    );
    assert!(error("vmstat.pgfalt").contains("nearest: vmstat.pgfault"));
    assert_eq!(error("zzzzzzzzzzzzzzzzz"), "unknown event 'zzzzzzzzzzzzzzzzz'; 'numa list' shows all");
    assert!(error("pgfalt*").contains("pgfault"));
    assert!(error("pgfault,!pgmajfalt").contains("unknown event 'pgmajfalt'"));
    assert!(error("node.MemFree@node7").contains("nearest: node.MemFree"));
}

#[test]
fn items_that_cannot_be_had_say_why() {
    assert!(
        error("pressure")
            .contains("unavailable here: pressure stall information: /proc/pressure/cpu: no such file")
    );
    assert!(error("pressure.io_some").contains("psi=1"));
    assert!(error("cpu.forks").contains("/proc/stat of this kernel does not have it"));
    assert!(error("thp_split").contains("vmstat.thp_split: /proc/vmstat does not show it"));
    let off = probe_with(&[("/proc/sys/kernel/numa_balancing", "0")], &nodes(&[0]));
    let result = off.select(&"numa_hint_faults".parse().unwrap()).err().unwrap().to_string();
    assert!(
        result.ends_with("/proc/sys/kernel/numa_balancing is 0; sysctl kernel.numa_balancing=1"),
        "{result}"
    );
    // What is not there need not be left out, but saying so is no error.
    assert_eq!(selected("pgfault,!pressure"), ["vmstat.pgfault"]);
}

#[test]
fn what_is_to_be_had_of_a_selection_is_told_from_the_rest() {
    let had = |items: &str| {
        let selection = items.parse().unwrap_or_else(|e| panic!("{items}: {e}"));
        let told = |why: Vec<SelectError>| why.iter().map(ToString::to_string).collect::<Vec<_>>();
        probe().available(&selection).map(|(had, gone)| (had.to_string(), told(gone)))
    };
    let Ok((items, gone)) = had("pgfault,n2RdBlkXSent,pgfalt,numa_hit,!node,!nothing") else { panic!() };
    assert_eq!(items, "pgfault,numa_hit,!node");
    assert!(gone.len() == 2 && gone[0].contains("'n2RdBlkXSent' is unavailable here: "), "{gone:?}");
    assert!(gone[1].contains("nearest: pgfault"), "{gone:?}");
    assert!(had("pgfalt,n2RdBlkXSent").is_err_and(|why| why.to_string().contains("pgfalt")));
    assert_eq!(had("!node"), Ok(("!node".into(), Vec::new())));
}

#[test]
fn empty_items_and_empty_results_are_errors() {
    for text in ["", ",", "pgfault,", "!", "a,!"] {
        assert!(matches!(text.parse::<Selection>(), Err(SelectError::Empty(_))), "{text:?}");
    }
    assert_eq!(error("pgfault,!vmstat"), "the events 'pgfault,!vmstat' exclude everything; exclude less");
}

#[test]
fn a_selection_prints_as_it_is_read() {
    let selection: Selection = "!c, a ,b*".parse().unwrap();
    assert_eq!(selection.to_string(), "a,b*,!c");
    assert_eq!(selection.to_string().parse(), Ok(selection));
}
