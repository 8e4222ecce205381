use super::*;

const SECOND: u64 = 1_000_000_000;
const UNCORE: u32 = 17;
const OTHER: u32 = 18;

fn hardware(code: u64) -> PerfEvent {
    PerfEvent::new(UNCORE, code)
}

fn refused(script: &Script, cpu: u32, event: PerfEvent) -> Option<Errno> {
    script.open(cpu, &[event]).err().and_then(|e| Errno::of(&e))
}

fn taken(script: &Script, events: &[PerfEvent]) -> usize {
    script.open(0, events).unwrap().1
}

#[test]
fn a_group_is_as_large_as_its_pmu_and_of_one_pmu() {
    let script = Script::new();
    script.pmu(UNCORE, 4, "0").pmu(OTHER, 4, "0");
    let six: Vec<PerfEvent> = (0..6).map(hardware).collect();
    assert_eq!(taken(&script, &six), 4);
    assert_eq!(taken(&script, &[six[0], PerfEvent::new(OTHER, 0)]), 1);
    let software = PerfEvent::new(PerfEvent::SOFTWARE, 2);
    assert_eq!(taken(&script, &[six[0], software, six[1], six[2], six[3], six[4]]), 5);
    assert_eq!(taken(&script, &[software, PerfEvent::new(PerfEvent::TRACEPOINT, 300), six[0]]), 3);
    script.refuse(six[1], Errno::Invalid);
    assert_eq!(taken(&script, &six), 1);
}

#[test]
fn opening_fails_as_in_the_kernel() {
    let script = Script::new();
    script.pmu(UNCORE, 4, "0,4");
    assert_eq!(refused(&script, 0, PerfEvent::new(99, 0)), Some(Errno::NoSuchPmu));
    assert_eq!(refused(&script, 1, hardware(0)), Some(Errno::Invalid));
    script.offline(4);
    assert_eq!(refused(&script, 4, hardware(0)), Some(Errno::NoDevice));
    script.refuse(hardware(7), Errno::Busy);
    assert_eq!(refused(&script, 0, hardware(7)), Some(Errno::Busy));
    assert_eq!(refused(&script, 0, hardware(0)), None);
}

#[test]
fn without_the_capability_the_paranoid_level_decides() {
    let script = Script::new();
    let (cpu, tracepoint) =
        (PerfEvent::new(PerfEvent::SOFTWARE, 2), PerfEvent::new(PerfEvent::TRACEPOINT, 300));
    for (level, permitted) in [(-1, true), (0, true), (1, false), (4, false)] {
        script.paranoid(level, false);
        assert_eq!(refused(&script, 0, cpu).is_none(), permitted, "{level}");
        assert_eq!(refused(&script, 0, tracepoint).is_none(), permitted, "{level}");
        script.paranoid(level, true);
        assert_eq!(refused(&script, 0, cpu).or(refused(&script, 0, tracepoint)), None, "{level}");
    }
}

#[test]
fn groups_beyond_the_counters_are_multiplexed() {
    let script = Script::new();
    script.pmu(UNCORE, 4, "0").rates(|_, _| 1_000_000);
    let events: Vec<PerfEvent> = (0..3).map(hardware).collect();
    let mut groups: Vec<_> = (0..3).map(|_| script.open(0, &events).unwrap().0).collect();
    let mut counts = [0; 3];
    assert_eq!(groups[0].read(&mut counts).unwrap(), Times::default());
    script.advance(3 * SECOND);
    for group in &mut groups {
        let times = group.read(&mut counts).unwrap();
        assert_eq!(times.enabled, 3 * SECOND);
        assert!(times.running.abs_diff(SECOND) <= multiplexing::INTERVAL, "{times:?}");
        assert_eq!(counts, [times.running / 1000; 3]);
    }
    groups.truncate(1);
    script.advance(SECOND);
    let before = groups[0].read(&mut counts).unwrap();
    script.advance(SECOND);
    assert_eq!(groups[0].read(&mut counts).unwrap().running, before.running + SECOND);
    assert_eq!(script.open_groups(), [((0, UNCORE), vec![3])]);
}

#[test]
fn groups_of_an_offline_cpu_fail() {
    let script = Script::new();
    script.pmu(UNCORE, 4, "");
    let mut counts = [0; 2];
    let (mut pair, _) = script.open(3, &[hardware(0), hardware(1)]).unwrap();
    let (mut single, _) = script.open(3, &[hardware(2)]).unwrap();
    let (mut elsewhere, _) = script.open(1, &[hardware(2)]).unwrap();
    script.advance(SECOND);
    script.offline(3);
    script.advance(SECOND);
    assert!(pair.read(&mut counts).is_err());
    assert_eq!(single.read(&mut counts).unwrap().enabled, SECOND);
    assert_eq!(elsewhere.read(&mut counts).unwrap().enabled, 2 * SECOND);
    script.online(3);
    script.advance(SECOND);
    assert!(pair.read(&mut counts).is_err());
    assert_eq!(single.read(&mut counts).unwrap().enabled, SECOND);
    assert_eq!(refused(&script, 3, hardware(0)), None);
}

#[test]
fn reads_of_a_removed_pmu_fail() {
    let script = Script::new();
    script.pmu(UNCORE, 4, "0");
    let (mut group, _) = script.open(0, &[hardware(0)]).unwrap();
    script.remove(UNCORE);
    assert!(group.read(&mut [0]).is_err());
    assert_eq!(refused(&script, 0, hardware(0)), Some(Errno::NoSuchPmu));
    script.restore(UNCORE);
    assert_eq!(refused(&script, 0, hardware(0)), None);
}

#[test]
fn a_read_from_another_package_costs_more() {
    let script = Script::new();
    let packages = [CpuSet::range(0, 1), CpuSet::range(2, 3)];
    script.pmu(UNCORE, 4, "0,2").costs(&packages, (10, 70));
    let mut groups = [0, 2].map(|cpu| script.open(cpu, &[hardware(0)]).unwrap().0);
    let mut spent = || {
        let before = script.spent();
        groups
            .iter_mut()
            .map(|g| (g.read(&mut [0]).unwrap(), script.spent()).1)
            .map(|s| s - before)
            .collect::<Vec<_>>()
    };
    assert_eq!(spent(), [10, 80]);
    script.pin_to(&packages[1]).unwrap();
    assert_eq!(spent(), [70, 80]);
    script.pin_to(&packages[0]).unwrap();
    assert_eq!(script.reads(), 4);
}
