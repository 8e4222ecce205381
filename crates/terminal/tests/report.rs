//! Generated recordings and their reports.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod machines;

use machines::{MS, Machine};
use numakit_findings::analyse;
use numakit_findings::report::{Report, SeriesChange};
use numakit_formulas::Catalog;
use numakit_model::label::RecorderEvent;
use numakit_model::{Fix, Unavailable};
use numakit_recording::Batch;
use numakit_terminal::report::{PageStyle, page};

/// Everything, on a page of the usual width.
const ALL: PageStyle = PageStyle { color: false, terminal: None, all: true };

fn report(machine: &Machine, phase: Option<&str>) -> Report {
    analyse(&machine.header, machine.batches.clone(), phase, Catalog::built_in()).unwrap()
}

/// The rules of the problems that were found, the most important first.
fn rules(report: &Report) -> Vec<&'static str> {
    report.findings.problems.iter().map(|finding| finding.rule).collect()
}

fn close(value: Option<f64>, expected: f64) {
    let value = value.expect("measured");
    assert!((value - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{value} is not {expected}");
}

/// Compares with the page in tests/golden; `UPDATE=1` writes it.
fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} has changed; look at it and run again with UPDATE=1");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "wider than 100 characters:\n{text}");
}

/// Four nodes; in `compute`, most memory of node 2 is allocated by CPUs of other nodes,
/// because node 0 is full.
fn bad_node() -> Machine {
    let mut machine = Machine::new(4);
    machine.header.command = Some("./solver --threads 16".into());
    let why = Unavailable::new(
        "processor counters",
        "/proc/sys/kernel/perf_event_paranoid is 4",
        Fix::command("sysctl kernel.perf_event_paranoid=2"),
    );
    machine.absent(&["perf.cycles", "perf.instructions", "perf.remote_dram", "perf.local_dram"], &why);
    machine.sample();
    machine.event(RecorderEvent::CommandStarted("./solver --threads 16".into()));
    machine.label("warm up");
    for tick in 0..300 {
        if tick == 100 {
            machine.label("compute");
        }
        let compute = tick >= 100;
        for node in 0..4 {
            let (local, other) = if compute && node == 2 { (30, 170) } else { (100, 2) };
            machine.allocate(node, local, other, if compute && node == 2 { 160 } else { 0 });
            let free = machine.values[&format!("node.MemFree@node{node}")].unwrap();
            machine.set(
                &format!("node.MemFree@node{node}"),
                Some(free - if node == 0 { 100_000 } else { 10_000 }),
            );
            for cpu in 4 * node..4 * node + 4 {
                machine.add(&format!("cpu.{}@cpu{cpu}", if compute { "user" } else { "idle" }), 1);
            }
        }
        if compute {
            machine.add("node.numa_foreign@node0", 160);
        }
        machine.add("vmstat.pgfault", if compute { 400 } else { 20 });
        machine.add("vmstat.thp_fault_alloc", 1);
        machine.add("vmstat.thp_fault_fallback", u64::from(compute) * 3);
        machine.add("vmstat.numa_hint_faults", 10);
        machine.add("vmstat.numa_hint_faults_local", if compute { 4 } else { 10 });
        machine.add("pressure.memory_some", if compute { 300 } else { 0 });
        machine.sample();
    }
    machine.event(RecorderEvent::Lost(4));
    machine.event(RecorderEvent::CommandEnded(0));
    machine.sample();
    machine
}

#[test]
fn a_page_of_four_nodes_with_a_bad_one() {
    let machine = bad_node();
    golden("four-nodes", &page(&report(&machine, None), ALL));
    golden("four-nodes-warm-up", &page(&report(&machine, Some("warm up")), ALL));
}

#[test]
fn a_narrow_page_breaks_between_words() {
    let report = report(&bad_node(), None);
    for width in [30, 44, 60, 79] {
        let narrow = page(&report, PageStyle { terminal: Some(width), ..ALL });
        let commands: Vec<&str> = report
            .findings
            .problems
            .iter()
            .chain(&report.findings.remarks)
            .flat_map(|f| &f.remedy.commands)
            .map(String::as_str)
            .collect();
        for line in narrow.lines().filter(|line| !commands.contains(&line.trim_start_matches("Do ").trim())) {
            let words = line.trim_start().split(' ').count();
            assert!(line.chars().count() <= width || words == 1, "{width}: {line}");
        }
        // Nothing is left out: the words are those of the wide page.
        let words = |page: &str| {
            let mut words: Vec<String> = page.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words.dedup();
            words
        };
        let (wide, narrow) = (words(&page(&report, ALL)), words(&narrow));
        let bare = |word: &str| word.trim_end_matches([',', ':']).to_owned();
        let known: Vec<String> = narrow.iter().map(|word| bare(word)).collect();
        for word in wide.iter().filter(|word| *word != "verdict") {
            assert!(known.contains(&bare(word)), "{width}: '{word}' is missing");
        }
    }
    assert_eq!(page(&report, PageStyle { terminal: Some(200), ..ALL }), page(&report, ALL));
}

#[test]
fn a_page_of_one_node() {
    let mut machine = Machine::new(1);
    machine.header.command = Some("touch-memory 1G".into());
    machine.without(&["hint_faults", "pgmigrate"]);
    let why = Unavailable::new(
        "counters of automatic NUMA balancing",
        "/proc/vmstat has no numa_hint_faults, and there is no /proc/sys/kernel/numa_balancing",
        Fix::BuildOption("CONFIG_NUMA_BALANCING".into()),
    );
    machine.absent(&["vmstat.numa_hint_faults", "vmstat.numa_hint_faults_local"], &why);
    for tick in 0..200u64 {
        if tick == 50 {
            machine.event(RecorderEvent::CommandStarted("touch-memory 1G".into()));
        }
        if tick == 150 {
            machine.event(RecorderEvent::CommandEnded(139));
        }
        if (50..150).contains(&tick) {
            machine.allocate(0, 2622, 0, 0);
            machine.add("vmstat.pgfault", 2622);
            let free = machine.values["node.MemFree@node0"].unwrap();
            machine.set("node.MemFree@node0", Some(free - 10_488));
        }
        machine.add("cpu.idle@cpu0", 1);
        machine.sample();
    }
    golden("one-node", &page(&report(&machine, None), ALL));
}

#[test]
fn a_page_of_a_damaged_recording() {
    let mut machine = Machine::new(2);
    machine.sample();
    machine.event(RecorderEvent::ClockStep(-3_600_000_000_000));
    machine.event(RecorderEvent::Paused);
    machine.time += 2_000 * MS;
    machine.event(RecorderEvent::Resumed);
    machine.event(RecorderEvent::Interval(20 * MS));
    machine
        .event(RecorderEvent::Absent("node: /sys/devices/system/node/node1/numastat: no such file".into()));
    for _ in 0..3 {
        machine.allocate(0, 10, 1, 0);
        machine.sample();
    }
    machine.event(RecorderEvent::Dropped(7));
    machine.event(RecorderEvent::Lost(1));
    machine.sample();
    let mut report = report(&machine, None);
    report.losses.damage =
        Some("the last 812 of 40960 bytes could not be read: it ends within a batch".into());
    golden("damaged", &page(&report, ALL));
}

/// From 1 s on, most reads of the memory of node 2 are remote, and the link is full for a while.
fn far_memory() -> Machine {
    let mut machine = Machine::new(4).with_counters();
    machine.sample();
    for tick in 0..300u64 {
        let bad = tick >= 100;
        for node in 0..4 {
            let remote = if bad && node == 2 { 700_000 } else { 10_000 };
            machine.add(&format!("uncore.dram_read_remote@node{node}"), remote);
            machine.add(&format!("uncore.dram_read_local@node{node}"), 300_000);
            machine.add(&format!("uncore.dram_capacity@node{node}"), 400_000_000);
        }
        let busy = if (150..200).contains(&tick) { 900 } else { 100 };
        machine.add("uncore.link_busy_out@link0.1", busy);
        machine.add("uncore.link_data_out@link0.1", busy);
        machine.add("uncore.link_capacity_out@link0.1", 1000);
        // The threads on node 1 use memory of node 2.
        machine.add("access.near@node0", 5 * MS);
        machine.add(if bad { "access.far@node1" } else { "access.near@node1" }, 15 * MS);
        for node in 0..2 {
            machine.add(&format!("access.clusters@node{node}"), u64::from(tick % 10 == 0));
        }
        machine.sample();
    }
    machine
}

#[test]
fn bottlenecks_have_an_amount_and_a_start() {
    let machine = far_memory();
    let whole = report(&machine, None);
    let found: Vec<(&str, f64, Option<f64>)> =
        whole.bottlenecks.found.iter().map(|s| (s.who.as_str(), s.since_seconds, s.until_seconds)).collect();
    let near = |a: f64, b: f64| (a - b).abs() <= 0.11;
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].0 == "node 1" && near(found[0].1, 1.0) && found[0].2.is_none());
    assert!(found[1].0 == "node 2" && near(found[1].1, 1.0) && found[1].2.is_none());
    assert!(found[2].0 == "link 1 of package 0" && near(found[2].1, 1.5));
    assert!(near(found[2].2.unwrap(), 2.0), "{found:?}");
    let node = &whole.bottlenecks.found[1];
    close(
        Some(node.percent),
        100.0 * (100.0 * 10.0 + 200.0 * 700.0) / (300.0 * 300.0 + 100.0 * 10.0 + 200.0 * 700.0),
    );
    close(Some(node.peak_percent), 70.0);
    assert_eq!(rules(&whole)[0], "remote-use");
    golden("far-memory", &page(&whole, ALL));
}

/// The counters of processes change only when a walk of their memory ends: here once, at 2.7 s.
#[test]
fn a_single_value_covers_the_time_before_it() {
    let mut machine = Machine::new(2).with_counters();
    for tick in 0..400u64 {
        if tick == 270 {
            machine.add("access.near@node1", 400 * MS);
            machine.add("access.far@node1", 1_600 * MS);
        }
        machine.sample();
    }
    let whole = report(&machine, None);
    let [tasks] = &whole.bottlenecks.found[..] else { panic!("{:?}", whole.bottlenecks) };
    assert_eq!((tasks.percent, tasks.since_seconds, tasks.time_percent), (80.0, 0.0, 100.0));
    let text = page(&whole, ALL).replace("\n    ", " ");
    assert!(text.contains("peak 80.0 % at 2.7 s; since 0 s to the end, 100 % of the time"), "{text}");
}

/// The story of the seeds: all thread-local storage on node 0, where the main thread allocated it, and used from all nodes.
fn story(far: bool, precise: bool) -> Machine {
    let mut machine = Machine::new(4).with_counters();
    if !precise {
        machine = machine.with_pages_in_use();
    }
    for tick in 0..200u64 {
        // By allocation, the broken one is local and the repaired one is not.
        machine.allocate(0, if far { 1000 } else { 400 }, if far { 0 } else { 600 }, 0);
        for node in 0..4 {
            let is_far = far && node > 0;
            let (name, by) = match precise {
                true => (if is_far { "access.far" } else { "access.near" }, 8 * MS),
                false => (if is_far { "access.pages_far" } else { "access.pages_near" }, 3),
            };
            machine.add(&format!("{name}@node{node}"), by);
            if precise && tick % 5 == 0 {
                machine.add(&format!("access.clusters@node{node}"), 1);
            }
        }
        machine.sample();
    }
    machine
}

#[test]
fn locality_is_about_use_where_it_was_measured() {
    for precise in [true, false] {
        let broken = report(&story(true, precise), None);
        let (words, percent) = (broken.locality.basis.words(), broken.locality.verdict.percent);
        assert_eq!(words, if precise { "use" } else { "pages in use" });
        assert_eq!((broken.locality.verdict.word.as_str(), percent), ("mostly remote", Some(25.0)));
        assert_eq!(broken.locality.nodes[0].verdict.word, "local");
        assert_eq!(broken.locality.nodes[3].verdict.word, "mostly remote");
        let who: Vec<&str> = broken.bottlenecks.found.iter().map(|found| found.who.as_str()).collect();
        assert_eq!(who, ["node 1", "node 2", "node 3"]);
        let repaired = report(&story(false, precise), None);
        assert_eq!(repaired.locality.verdict.word, "local");
        assert!(repaired.bottlenecks.found.is_empty(), "{:?}", repaired.bottlenecks);
        let text = page(&broken, ALL);
        assert!(text.contains(&format!("Locality of {words}: mostly remote")), "{text}");
        assert_eq!(text.contains("between "), precise, "{text}");
        assert!(!text.contains("not which CPUs used it"), "{text}");
    }
}

#[test]
fn without_bottlenecks_the_highest_share_is_reported() {
    let mut calm = Machine::new(2).with_counters();
    for _ in 0..50 {
        calm.add("uncore.dram_read_local@node0", 97);
        calm.add("uncore.dram_read_remote@node0", 3);
        calm.sample();
    }
    let calm = report(&calm, None).bottlenecks;
    assert!(calm.found.is_empty());
    assert_eq!(calm.highest.as_deref(), Some("3.0 % of its accesses (node 0)"));
    let mut blind = bad_node();
    blind.without(&["local_node", "other_node", "hint_faults"]);
    let blind = report(&blind, None).bottlenecks;
    assert!(blind.found.is_empty() && blind.highest.is_none() && blind.unknown.is_some());
}

#[test]
fn numbers_of_the_bad_node_are_right() {
    let machine = bad_node();
    let whole = report(&machine, None);
    let node = &whole.locality.nodes[2];
    assert_eq!(
        (node.local, node.remote, node.miss),
        (Some(100.0 * 100.0 + 200.0 * 30.0), Some(200.0 + 200.0 * 170.0), Some(32_000.0))
    );
    close(node.verdict.percent, 100.0 * 16_000.0 / 50_200.0);
    assert_eq!(node.verdict.word, "mostly remote");
    assert_eq!(whole.locality.worst().unwrap().node, 2);
    assert!(node.signs[0].starts_with("took overflow"));
    assert!(whole.locality.nodes[0].signs[0].starts_with("overflowed"));
    assert_eq!(whole.locality.nodes[1].verdict.word, "local");
    let names: Vec<&str> = whole.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["command", "warm up", "compute"]);
    assert_eq!(whole.phases.iter().map(|p| p.samples).collect::<Vec<_>>(), [301, 100, 201]);
    assert_eq!(whole.phases[1].locality.nodes[2].verdict.word, "local");
    assert_eq!((whole.phases[1].worst_node, whole.phases[2].worst_node), (None, Some(2)));
    close(whole.phases[1].minor_faults_per_second, 2000.0);
    close(whole.phases[2].minor_faults_per_second, 200.0 * 400.0 / 2.01);
    assert_eq!((whole.losses.lost_ticks, whole.recording.exit_status), (4, Some(0)));
    close(Some(whole.losses.lost_percent), 100.0 * 4.0 / 306.0);
    let compute = report(&machine, Some("compute"));
    assert_eq!(compute.recording.covered_samples, 201);
    close(Some(compute.recording.covered_seconds), 2.01);
    close(compute.cpus[0].user_percent, 100.0);
    close(whole.cpus[1].user_percent, 100.0 * 200.0 / 300.0);
    assert_eq!(compute.faults.huge_pages.word, "mostly refused");
    close(compute.faults.huge_pages.percent, 25.0);
    assert_eq!(compute.pressure.memory.word, "moderate");
    assert_eq!(whole.memory[0].begin_bytes - whole.memory[0].least_bytes, 300.0 * 100_000.0 * 1024.0);
    close(whole.cost.cpu_seconds_per_sample, 50e-6);
    close(whole.cost.sampler_percent, 0.5);
    close(whole.cost.wakeup_max_seconds, 900e-6);
    let p50 = whole.cost.wakeup_p50_seconds.unwrap();
    assert!((p50 - 10e-6).abs() < 0.5e-6, "{p50}");
}

#[test]
fn findings_follow_from_the_data() {
    let machine = bad_node();
    let whole = report(&machine, None);
    for rule in ["remote-hint-faults", "full-node", "huge-pages-refused"] {
        assert!(rules(&whole).contains(&rule), "{rule}: {:?}", rules(&whole));
    }
    let lost = &whole.findings.remarks[0];
    assert_eq!(
        (lost.rule, lost.remedy.commands[0].as_str()),
        ("lost-ticks", "numa record -i 20ms ./solver --threads 16")
    );
    let calm = report(&machine, Some("warm up"));
    assert!(rules(&calm).is_empty(), "{:?}", calm.findings);
    let mut quiet = Machine::new(1);
    (0..50).for_each(|_| quiet.sample());
    let quiet = report(&quiet, None).findings;
    assert!(quiet.problems.is_empty() && quiet.headline.verdict.starts_with("Nothing is wrong"), "{quiet:?}");
}

#[test]
fn movers_do_not_include_the_sampler() {
    let whole = report(&bad_node(), None);
    let names: Vec<&str> = whole.movers.iter().map(|m| m.series.as_str()).collect();
    assert!(names.contains(&"vmstat.pgfault") && names.contains(&"node.other_node@node2"), "{names:?}");
    assert!(!names.iter().any(|n| n.starts_with("self.")));
    let alike: Vec<&String> = whole.movers.iter().flat_map(|m| &m.alike).collect();
    assert!(
        alike.iter().any(|n| *n == "node.numa_miss@node2" || *n == "node.numa_foreign@node0"),
        "{alike:?}"
    );
    assert!(!names.contains(&"vmstat.thp_fault_alloc"), "it is steady: {names:?}");
    assert!(names.len() <= 10);
    let free = whole.movers.iter().find(|m| m.series == "node.MemFree@node0").unwrap();
    assert!(matches!(free.change, SeriesChange::Level { unit: "bytes", begin, end, .. } if begin > end));
    let faults = whole.movers.iter().find(|m| m.series == "vmstat.pgfault").unwrap();
    let SeriesChange::Rate { quiet, peak, active_percent, .. } = faults.change else { panic!("a counter") };
    assert!((quiet / 2000.0 - 1.0).abs() < 0.06, "{quiet}");
    close(Some(peak), 40_000.0);
    close(Some(active_percent), 100.0);
}

#[test]
fn interleaved_memory_is_not_called_remote() {
    let mut machine = Machine::new(4);
    for _ in 0..100 {
        for node in 0..4 {
            machine.allocate(node, 25, 75, 0);
            machine.add(&format!("node.interleave_hit@node{node}"), 90);
        }
        machine.sample();
    }
    let report = report(&machine, None);
    assert_eq!(report.locality.verdict.word, "interleaved");
    assert!(report.locality.nodes.iter().all(|n| n.verdict.word == "interleaved"));
    assert!(report.locality.worst().is_none() && rules(&report).is_empty());
}

#[test]
fn a_missing_verdict_has_a_reason() {
    let verdict = |machine: &Machine| report(machine, None).locality.verdict;
    let mut few = Machine::new(2);
    few.sample();
    few.allocate(0, 999, 0, 0);
    few.sample();
    assert_eq!(verdict(&few).word, "cannot tell");
    assert_eq!(verdict(&few).because, "999 allocations, fewer than 1,000");
    few.allocate(0, 1, 0, 0);
    few.sample();
    assert_eq!(verdict(&few).word, "local");
    let mut off = Machine::new(2);
    off.without(&["local_node", "other_node", "numa_hit"]);
    let why = Unavailable::new(
        "counters of allocations by node",
        "/proc/sys/vm/numa_stat is 0",
        Fix::command("sysctl vm.numa_stat=1"),
    );
    off.absent(&["node.local_node", "node.other_node"], &why);
    (0..3).for_each(|_| off.sample());
    assert_eq!(verdict(&off).because, why.to_string());
    let untold = report(&off, None).findings.untold;
    assert!(
        untold
            .iter()
            .any(|u| u.what == "where memory is allocated" && u.why.contains("sysctl vm.numa_stat=1"))
    );
    let mut one = Machine::new(1);
    one.sample();
    one.allocate(0, 5000, 0, 0);
    one.sample();
    assert_eq!(verdict(&one).because, "the machine has one node, so all memory is local");
    let mut other = Machine::new(2);
    other.without(&["node."]);
    other.sample();
    assert!(verdict(&other).because.starts_with("not in the recording; record with -e "));
}

#[test]
fn empty_recordings_have_no_values() {
    let empty = Machine::new(2);
    let nothing = report(&empty, None);
    assert_eq!((nothing.recording.samples, nothing.recording.seconds), (0, 0.0));
    assert!(nothing.memory.is_empty() && nothing.movers.is_empty() && rules(&nothing).is_empty());
    page(&nothing, ALL);
    let mut one = Machine::new(2);
    one.allocate(0, 1 << 40, 0, 0);
    one.sample();
    let row = report(&one, None);
    assert_eq!(row.locality.verdict.word, "cannot tell", "one row has no difference");
    assert_eq!((row.faults.minor, row.faults.minor_per_second), (None, None));
    assert_eq!((row.memory.len(), row.cost.cpu_seconds_per_sample), (2, None));
    page(&row, PageStyle { color: true, ..ALL });
}

#[test]
fn a_pause_an_absence_and_a_step_back_add_nothing() {
    let mut machine = Machine::new(2);
    let fault = "vmstat.pgfault";
    machine.sample();
    machine.add(fault, 100);
    machine.sample();
    machine.event(RecorderEvent::Paused);
    machine.time += 5_000 * MS;
    machine.add(fault, 1_000_000);
    machine.event(RecorderEvent::Resumed);
    machine.sample();
    machine.add(fault, 10);
    machine.sample();
    let kept = machine.values[fault];
    machine.set(fault, None);
    machine.sample();
    machine.set(fault, kept.map(|v| v + 5));
    machine.sample();
    machine.set(fault, Some(3));
    machine.sample();
    machine.add(fault, 2);
    machine.sample();
    let report = report(&machine, None);
    assert_eq!(report.faults.minor, Some(100.0 + 10.0 + 5.0 + 2.0));
    close(Some(report.recording.covered_seconds), 0.06);
    close(report.faults.minor_per_second, 117.0 / 0.06);
    assert_eq!(report.losses.pauses, 1);
    close(Some(report.losses.paused_seconds), 5.0);
}

#[test]
fn repeated_labels_are_one_phase_and_an_unknown_phase_is_an_error() {
    let mut machine = Machine::new(2);
    machine.sample();
    for label in ["a", "b", "a", "", "ghost"] {
        if !label.is_empty() {
            machine.label(label);
        }
        if label != "ghost" {
            machine.add("vmstat.pgfault", 10);
            machine.sample();
        }
    }
    let whole = report(&machine, None);
    let phases: Vec<(&str, u64, u64)> =
        whole.phases.iter().map(|p| (p.name.as_str(), p.times, p.samples)).collect();
    assert_eq!(phases, [("a", 2, 3), ("b", 1, 1), ("ghost", 1, 0)]);
    assert_eq!(report(&machine, Some("a")).faults.minor, Some(30.0));
    assert_eq!(report(&machine, Some("ghost")).faults.minor, None);
    let error = analyse(&machine.header, machine.batches.clone(), Some("c"), Catalog::built_in())
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the recording has no phase 'c'; use one of 'a', 'b', 'ghost'");
    let none = analyse(&machine.header, Vec::<Batch>::new(), Some("c"), Catalog::built_in())
        .unwrap_err()
        .to_string();
    assert!(none.contains("it has no labels: omit --phase"), "{none}");
}

#[test]
fn many_labels_take_bounded_memory() {
    let mut machine = Machine::new(1);
    for n in 0..1000 {
        machine.label(&format!("step {n}"));
        machine.event(RecorderEvent::Absent("x".into()));
        machine.sample();
    }
    let report = report(&machine, None);
    assert_eq!((report.phases.len() as u64 + report.more_phases, report.phases.len()), (1000, 64));
    assert_eq!(report.losses.failures.len() as u64 + report.losses.more_notes, 1000);
    assert!(report.losses.failures.len() <= 20);
}

#[test]
fn a_recording_of_another_program_has_a_report() {
    let mut text = String::from(r#"[["NumaConnect2",2,0],["reads:0","reads:1","odd"]"#);
    for row in 0..50u64 {
        let burst = if row == 40 { 900_000 } else { 100 };
        text.push_str(&format!(",[{},{burst},100,-3]", 1_000_000 + row * 100_000));
    }
    let (header, batches, damage) =
        numakit_recording::numascope::read(format!("{text}]").as_bytes()).unwrap();
    assert_eq!(damage, None);
    let report = analyse(&header, batches, None, Catalog::built_in()).unwrap();
    assert_eq!(report.machine, None);
    assert_eq!((report.recording.samples, report.locality.verdict.word.as_str()), (50, "cannot tell"));
    assert_eq!(report.movers.len(), 1);
    assert_eq!(report.movers[0].series, "numaconnect2.reads@card0");
    assert!(
        matches!(report.movers[0].change, SeriesChange::Rate { peak, peak_at_seconds, .. } if peak == 900_000.0 && peak_at_seconds == 4.0)
    );
    assert!(page(&report, ALL).contains("\n\nMachine    not in the recording\n"));
}

/// The findings of the authors of NUMAscope: one card of several is the bottleneck, and a recording of
/// the kernel shows where memory was allocated.
#[test]
fn findings_in_recordings_of_the_original_are_reported() {
    let mut text = String::from("[[\"NumaConnect2\",3,200000000],[");
    let words = "% wait cycles for requests from SIU to RMPE";
    text.push_str(&format!("\"{words}:0\",\"{words}:1\",\"{words}:2\"]"));
    for row in 0..50u64 {
        text.push_str(&format!(",[{},5000000,194000000,20000]", 1_000_000 + row * 100_000));
    }
    let of = |text: String| {
        let (header, batches, _) = numakit_recording::numascope::read(text.as_bytes()).unwrap();
        analyse(&header, batches, None, Catalog::built_in()).unwrap()
    };
    let report = of(format!("{text}]"));
    let [card] = &report.bottlenecks.found[..] else { panic!("{:?}", report.bottlenecks) };
    assert_eq!((card.who.as_str(), card.time_percent), ("card1", 100.0));
    close(Some(card.percent), 97.0);

    let mut text =
        String::from("[[\"kernel VMstat\",1,0],[\"numa_local\",\"allocation from non-local node\"]");
    for row in 0..50u64 {
        text.push_str(&format!(",[{},15010,4990]", 1_000_000 + row * 100_000));
    }
    let locality = of(format!("{text}]")).locality.verdict;
    assert_eq!(locality.word, "mixed");
    assert_eq!(locality.events, Some(98_000.0), "of 49 tenths of a second");
    close(locality.percent, 75.05);
}

#[test]
fn json_has_the_same() {
    let json = serde_json::to_value(report(&bad_node(), None)).unwrap();
    assert_eq!(json["locality"]["nodes"][2]["verdict"]["word"], "mostly remote");
    assert_eq!(json["movers"][0]["kind"], "rate");
    assert_eq!(json["losses"]["damage"], serde_json::Value::Null);
    assert_eq!(json["phases"][2]["worst_node"], 2);
}

/// All rows in batches of `rows` rows.
fn rebatched(machine: &Machine, rows: usize) -> Vec<Batch> {
    let columns = machine.header.series.len();
    let mut values = vec![None; columns];
    let mut batches: Vec<Batch> = Vec::new();
    for (batch, row) in machine.batches.iter().flat_map(|b| (0..b.len()).map(move |row| (b, row))) {
        if batches.last().is_none_or(|b| b.len() >= rows) {
            batches.push(Batch::empty(columns));
        }
        let last = batches.last_mut().unwrap();
        match &batch.label[row] {
            Some(text) => last.push_label(batch.time[row], text.clone()),
            None => {
                batch.row(row, &mut values);
                last.push_sample(batch.time[row], batch.took[row], &values);
            }
        }
    }
    batches
}

#[test]
fn the_report_does_not_depend_on_batches() {
    let machine = bad_node();
    let expected = report(&machine, Some("compute"));
    for rows in [1, 100, 10_000] {
        assert_eq!(
            analyse(&machine.header, rebatched(&machine, rows), Some("compute"), Catalog::built_in())
                .unwrap(),
            expected
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// For any rows there is a page, without shares above 100 %.
    #[test]
    fn any_rows_have_a_page(rows in proptest::collection::vec((0u64..1 << 62, 0usize..14, 0u64..u64::MAX), 0..40)) {
        let machine = Machine::new(2);
        let mut batch = Batch::empty(machine.header.series.len());
        for (time, kind, value) in rows {
            let events = [
                RecorderEvent::Paused, RecorderEvent::Resumed, RecorderEvent::Lost(value), RecorderEvent::Dropped(value), RecorderEvent::Interval(value),
                RecorderEvent::ClockStep(value as i64), RecorderEvent::CommandStarted("x".into()), RecorderEvent::CommandEnded(value as i32),
            ];
            match events.get(kind) {
                Some(event) => batch.push_label(time, event.text()),
                None if kind == 8 => batch.push_label(time, format!("{}", value % 5)),
                None => {
                    let row: Vec<Option<u64>> = (0..machine.header.series.len() as u64)
                        .map(|at| (value.rotate_left(at as u32) % 5 > 0).then(|| value.rotate_right(at as u32)))
                        .collect();
                    batch.push_sample(time, value, &row);
                }
            }
        }
        let report = analyse(&machine.header, [batch], None, Catalog::built_in()).unwrap();
        proptest::prop_assert!(report.losses.lost_percent <= 100.0);
        proptest::prop_assert!(report.cpus.iter().all(|c| c.user_percent.is_none_or(|p| (0.0..=100.0).contains(&p))));
        proptest::prop_assert!(page(&report, ALL).contains("Locality of allocation"));
    }
}
