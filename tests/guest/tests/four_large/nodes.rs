//! What numa says of a real Linux on several nodes while something happens there.

use super::recording::Recording;
use numakit_guest::programs::figure;
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use std::time::Duration;

/// Pages of 40 MiB and of 100 MiB.
const HELD: u64 = 10_240;
const TOUCHED: u64 = 25_600;

pub fn guest() -> Result<Guest, Failure> {
    let pid = |file: &str| {
        format!(
            "until grep -q pages_on_node {file}; do usleep 50000; done; pid=$(sed -n 's/^pid //p' {file}); "
        )
    };
    let hold = "firsttouch 1 40 3 bind --hold 600 > held & ".to_owned()
        + &pid("held")
        + "numa top --once -p $pid; numa record -i 100ms -e 'task.*' --pid $pid -o held.arrows & \
           until numa ctl status | grep -qE '([3-9]|[0-9]{2})[0-9] samples'; do usleep 50000; done; \
           numa ctl stop; wait $!; kill $pid; wait";
    // Larger than what is asked page by page.
    let spread = "numa run -c 4 --memory interleave:0-3 -- firsttouch 0 240 3 default --hold 600 > spread & "
        .to_owned()
        + &pid("spread")
        + "numa top --once -i 10ms -p $pid --json; numa top --once -i 10ms -p $pid; \
           numa top --affinity $pid; numa top --totals; \
           filtered numa top --once -i 10ms -p $pid --json; kill $pid; wait";
    let pools = "echo 24 > /proc/sys/vm/nr_hugepages; pools 40 --hold 600 > pools & ".to_owned()
        + &pid("pools")
        + "numa top --once -i 10ms -p $pid; numa stat -i 1s -n 8 --csv -e task.huge_pages -p $pid; \
           kill $pid; wait; echo 0 > /proc/sys/vm/nr_hugepages";
    let offline = "sleep 1; echo 0 > /sys/devices/system/cpu/cpu5/online; sleep 1; \
                   echo 1 > /sys/devices/system/cpu/cpu5/online; sleep 1";
    let record = |name: &str, interval: &str, events: &str, command: &str| {
        format!("numa record -i {interval} -e '{events}' -o {name}.arrows -- {command}")
    };
    Ok(Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("firsttouch")?.unwrap())
        .program(&programs::compiled("exhaust")?.unwrap())
        .program(&programs::compiled("filtered")?.unwrap())
        .program(&programs::compiled("pools")?.unwrap())
        // So that a page is a page.
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step("touch", &["sh", "-c", &record("touch", "100ms", "node.*", "firsttouch 2 100 0 bind")])
        .step("hold", &["sh", "-c", &hold])
        .step("spread", &["sh", "-c", &spread])
        .step("pools", &["sh", "-c", &pools])
        .step(
            "offline",
            &[
                "sh",
                "-c",
                &record(
                    "offline",
                    "10ms",
                    "cpu.*,vmstat.*,node.*,perf.*,self.*",
                    &format!("sh -c '{offline}'"),
                ),
            ],
        )
        .step("show", &["numa", "show", "offline.arrows"])
        .step("full", &["sh", "-c", &super::leave(1, 250)])
        .step("exhaust", &["sh", "-c", &record("exhaust", "100ms", "node.*", "exhaust 1 300")]))
}

fn part() -> Option<Part> {
    super::LATER.part("nodes")
}

/// A recording of a step that succeeded; nothing where the test is skipped.
fn recorded(step: &str) -> Option<Recording> {
    let boot = part()?;
    boot[step].succeeded();
    let name = if step == "hold" { "held" } else { step };
    Some(Recording::read(&boot.out.join(format!("{name}.arrows"))))
}

#[test]
fn counters_move_on_the_node_whose_memory_is_touched() {
    let Some(touch) = recorded("touch") else { return };
    let grown = |metric: &str, node: u32| touch.grown(&format!("node.{metric}@node{node}"), 64);
    for node in 0..4 {
        let (hit, other) = (grown("numa_hit", node), grown("numa_other", node));
        println!("node {node}: {hit} hits, {other} of them for CPUs of other nodes");
        if node == 2 {
            assert!((TOUCHED..TOUCHED * 11 / 10).contains(&hit), "{hit}");
            assert!((TOUCHED..TOUCHED * 11 / 10).contains(&other), "{other}");
        } else {
            assert!(other < TOUCHED / 10 && hit < TOUCHED / 2, "node {node}: {hit} {other}");
        }
    }
}

#[test]
fn pages_of_a_process_are_where_the_kernel_says() {
    let Some(held) = recorded("hold") else { return };
    let boot = part().unwrap();
    let told = std::fs::read_to_string(boot.out.join("held")).unwrap();
    assert_eq!(figure(&told, "pages_on_node 1"), Some(HELD as f64), "{told}");
    let page = boot["hold"].succeeded();
    println!("{told}{page}");
    let total = page.lines().find(|line| line.trim_start().starts_with("Total")).unwrap();
    let mib: Vec<f64> = total.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [first, second, third, fourth, ..] = mib[..] else { panic!("{total}") };
    // What is not those pages is the program and its libraries.
    assert!((40.0..43.0).contains(&second) && first + third + fourth < 10.0, "{total}");
    let pages: Vec<u64> = held.series("task.anonymous@node1").into_iter().flatten().collect();
    assert!(
        !pages.is_empty() && pages.iter().all(|bytes| (HELD * 4096..HELD * 4096 * 21 / 20).contains(bytes)),
        "{pages:?}"
    );
}

#[test]
fn the_nodes_of_a_large_process_are_estimated_within_the_stated_error() {
    let Some(boot) = part() else { return };
    let told = std::fs::read_to_string(boot.out.join("spread")).unwrap();
    let page = boot["spread"].succeeded();
    println!("{told}{page}");
    let mut jsons = page.lines().filter(|line| line.starts_with('{'));
    let mut error_of_next = || {
        let json: serde_json::Value = serde_json::from_str(jsons.next().unwrap()).unwrap();
        let process = &json["processes"][0];
        let error = process["error"].as_f64().unwrap();
        for node in 0..4 {
            let truth = figure(&told, &format!("pages_on_node {node}")).unwrap() * 4096.0;
            let found = process["memory"]["anonymous"][node].as_f64().unwrap();
            // The program has a little more than those pages.
            let slack = 300_000.0;
            assert!(
                (found - truth).abs() < 4.0 * error + slack,
                "node {node}: {found} is not {truth} +- {error}"
            );
        }
        error
    };
    // 0.5 % of 240 MiB at most.
    let error = error_of_next();
    assert!((1.0..0.006 * 240e6 * 1.05).contains(&error), "{error}");
    // Without move_pages, as in a container: from numa_maps, exactly.
    assert_eq!(error_of_next(), 0.0);
    assert!(page.contains("with a standard error of at most"), "{page}");
    let text: String = page.lines().filter(|line| !line.starts_with('{')).collect();
    assert!(text.contains("Memory policy not read: "), "{page}");
    assert!(page.lines().any(|line| line.starts_with("all ")), "{page}");
}

#[test]
fn memory_from_the_pools_of_huge_pages_is_told_apart() {
    let Some(boot) = part() else { return };
    let page = boot["pools"].succeeded();
    println!("{page}");
    let huge = page.lines().find(|line| line.trim_start().starts_with("Huge")).unwrap();
    assert_eq!(huge.split_whitespace().last(), Some("40.0"), "{page}");
    let last = page.trim_end().lines().last().unwrap();
    // Which pages are huge is known since Linux 6.7; before that, why not.
    let counted = last.rsplit(',').next() == Some("41943040");
    assert!(counted || page.contains("a kernel before 6.7"), "{page}");
}

/// Whether values are there, absent and there again, and for how many samples they were absent.
fn gap(values: &[Option<u64>]) -> Option<usize> {
    let first = values.iter().position(Option::is_none)?;
    let length = values[first..].iter().take_while(|value| value.is_none()).count();
    let rest = &values[first + length..];
    (first > 0 && !rest.is_empty() && rest.iter().all(Option::is_some)).then_some(length)
}

#[test]
fn a_cpu_that_goes_and_comes_back_costs_its_own_series_only() {
    let Some(offline) = recorded("offline") else { return };
    let mut gaps = 0;
    for name in offline.names("") {
        // The sample at the end comes sooner than the kernel's tick of 10 ms that `cpu` waits for.
        let mut values = offline.series(name);
        values.pop();
        if name.ends_with("@cpu5") {
            // A second at 10 ms, of which a busy host leaves less than a third.
            let length = gap(&values);
            assert!(length.is_some_and(|length| length >= 10), "{name}: {length:?} of {}", values.len());
            gaps += 1;
        } else {
            // The events of a node are those of its CPUs: the first tick, and that in which one goes or comes back, may have no sum.
            let allowed = if name.starts_with("perf.") && name.ends_with("@node2") { 3 } else { 0 };
            let absent = values.iter().filter(|value| value.is_none()).count();
            assert!(absent <= allowed, "{name}: {absent} of {} are absent", values.len());
        }
    }
    assert!(gaps >= 8, "{gaps} series of CPU 5");
    let lost = offline.series("self.lost").into_iter().flatten().max().unwrap();
    let ticks = offline.length() / 10_000_000 + 1;
    let rows = offline.times.len() as u64;
    println!("{ticks} ticks, {rows} rows, {lost} lost");
    // The first sample may have begun late. So may the last tick, in whose place the sample at the end is.
    assert!(ticks.abs_diff(rows + lost) <= 10, "{ticks} ticks, {rows} rows, {lost} lost");
    for text in ["numakit:absent cpu: CPU 5 is offline", "numakit:back cpu"] {
        assert!(offline.labels.iter().any(|label| label == text), "{:?}", offline.labels);
    }
    let report = part().unwrap()["show"].succeeded();
    assert!(report.contains("CPU 5 is offline"), "{report}");
}

#[test]
fn memory_that_is_exhausted_shows_as_misses_and_foreign_allocations() {
    let Some(exhaust) = recorded("exhaust") else { return };
    let told = part().unwrap()["exhaust"].succeeded();
    let elsewhere = figure(&told, "pages_elsewhere").unwrap() as u64;
    let grown = |metric: &str, node: u32| exhaust.grown(&format!("node.{metric}@node{node}"), 64);
    let foreign = grown("numa_foreign", 1);
    let missed: u64 = [0, 2, 3].iter().map(|node| grown("numa_miss", *node)).sum();
    println!("{elsewhere} pages elsewhere, {foreign} foreign on node 1, {missed} missed on others");
    let right = |count: u64| (elsewhere..elsewhere * 11 / 10 + 100).contains(&count);
    assert!(elsewhere > 5000 && right(foreign) && right(missed), "{elsewhere} {foreign} {missed}");
    assert!(grown("numa_miss", 1) < elsewhere / 10);
    assert!([0, 2, 3].iter().all(|node| grown("numa_foreign", *node) < elsewhere / 10));
}
