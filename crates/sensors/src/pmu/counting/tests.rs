use super::*;
use crate::testing::root;
use numakit_model::Topology;
use numakit_sys::root::PATIENCE;
use numakit_testing::counters::Script;
use numakit_testing::until;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const UNCORE: u32 = 17;
const CPUS: [&str; 2] = ["0-3", "4-7"];

fn hardware(code: u64) -> PerfEvent {
    PerfEvent::new(UNCORE, code)
}

const SWITCHES: PerfEvent = PerfEvent { pmu: PerfEvent::SOFTWARE, config: [3, 0, 0, 0] };

/// A machine with packages of four CPUs, and its script.
struct Bench {
    script: Script,
    topology: Topology,
    root: SysRoot,
}

impl Bench {
    fn new(packages: usize) -> Self {
        let script = Script::new();
        script.pmu(UNCORE, 4, "0,4").rates(|cpu, e| 1000 * e.config[0] + u64::from(cpu));
        let cpus: Vec<CpuSet> = CPUS[..packages].iter().map(|c| CpuSet::parse_list(c).unwrap()).collect();
        let online = cpus.iter().fold(CpuSet::new(), |all, c| all.or(c));
        let package = |cpus: &CpuSet| Package { os_index: None, cpus: cpus.clone() };
        let topology = Topology {
            allowed: online.clone(),
            online,
            packages: cpus.iter().map(package).collect(),
            ..Topology::default()
        };
        let files = [
            ("/proc/sys/kernel/perf_event_paranoid", "2\n"),
            ("/proc/self/status", "CapEff:\t0000000000000000\n"),
        ];
        Self { root: root(&files).with_counters(Arc::new(script.clone())), script, topology }
    }

    fn counting(&self) -> Counting {
        let mut counting = Counting::new("uncore", &Scene::new(&self.root, &self.topology)).unwrap();
        let device = Pmu {
            name: "uncore_imc_2".to_owned(),
            kind: UNCORE,
            core: false,
            cpus: CpuSet::new(),
            formats: super::super::Formats::default(),
            events: BTreeMap::new(),
        };
        counting.describe(&device);
        counting
    }

    /// A sensor of one series for each list of requests, named `a`, `b`, ...
    fn sensor(&self, series: &[&[(u32, PerfEvent)]]) -> Reading {
        let mut counting = self.counting();
        for (name, requests) in ('a'..).zip(series) {
            let parts = requests.iter().map(|&(cpu, event)| (CounterRequest { cpu, event }, Factor::ONE));
            counting.add(named(&name.to_string()), parts.collect());
        }
        self.reading(counting)
    }

    fn reading(&self, counting: Counting) -> Reading {
        Reading { sensor: counting.finish(), script: self.script.clone(), woke: 0 }
    }
}

fn named(name: &str) -> Series {
    let metric = metric(&format!("uncore.{name}"), Unit::Count, Kind::COUNTER, Scope::Machine, "It.", "here");
    Series::new(&Arc::new(metric), Instance::Machine)
}

/// A sensor that is read like by the sampler.
struct Reading {
    sensor: Box<dyn Sensor>,
    script: Script,
    woke: u64,
}

impl Reading {
    /// Lets time pass and reads.
    fn after(&mut self, ns: u64) -> Vec<Option<u64>> {
        self.script.advance(ns);
        self.woke += ns;
        let mut out = vec![None; self.sensor.series().len()];
        self.sensor.read(&Tick { due: self.woke, woke: self.woke, lost: 0 }, &mut out);
        out
    }

    fn failure(&self) -> String {
        self.sensor.failure().unwrap_or_default()
    }
}

#[test]
fn a_series_is_the_sum_of_its_counts_each_with_its_factor() {
    let bench = Bench::new(1);
    let mut counting = bench.counting();
    let part = |code, times, over| (CounterRequest { cpu: 0, event: hardware(code) }, Factor { times, over });
    counting.add(named("data"), vec![part(9, 64, 9), part(1, 1, 2)]);
    counting.add(named("void"), vec![part(9, 1, 0)]);
    counting.add(named("none"), Vec::new());
    let mut reading = bench.reading(counting);
    assert_eq!(reading.after(0), [None; 4], "nothing was counted yet");
    assert_eq!(reading.after(SECOND), [Some(64_000 + 500), None, None, Some(100)]);
    assert_eq!(reading.after(SECOND), [Some(2 * 64_500), None, None, Some(100)]);
    let names: Vec<String> = reading.sensor.series().iter().map(Series::name).collect();
    assert_eq!(names, ["uncore.data", "uncore.void", "uncore.none", "uncore.running"]);
    assert_eq!(reading.sensor.failure(), None);
}

#[test]
fn events_are_grouped_by_cpu_and_pmu_and_opened_once() {
    let bench = Bench::new(1);
    let tracepoint = PerfEvent::new(PerfEvent::TRACEPOINT, 300);
    let all: Vec<(u32, PerfEvent)> = (0..6).map(|code| (0, hardware(code))).collect();
    let mut reading =
        bench.sensor(&[&all, &all[..2], &[(0, SWITCHES), (0, tracepoint), (1, SWITCHES)], &[(0, SWITCHES)]]);
    assert_eq!(bench.script.opens(), 0, "nothing is opened before the first read");
    assert_eq!(reading.sensor.files(), 9);
    reading.after(0);
    let groups =
        [((0, PerfEvent::SOFTWARE), vec![2]), ((0, UNCORE), vec![4, 2]), ((1, PerfEvent::SOFTWARE), vec![1])];
    assert_eq!(bench.script.open_groups(), groups);
    assert_eq!(reading.after(SECOND)[2], Some(3000 + 300_000 + 3001));
    assert_eq!(bench.script.opens(), 4);
}

#[test]
fn series_that_are_not_selected_are_not_opened_and_totals_survive() {
    let bench = Bench::new(2);
    let mut reading =
        bench.sensor(&[&[(0, hardware(1)), (4, hardware(1))], &[(0, hardware(2))], &[(0, SWITCHES)]]);
    reading.sensor.keep(&|s| s.name() != "uncore.b");
    reading.after(0);
    assert_eq!(bench.script.open_groups().len(), 3);
    assert_eq!(reading.after(SECOND), [Some(2004), Some(3000), Some(100)]);
    reading.sensor.keep(&|s| s.name() == "uncore.a");
    assert_eq!(reading.sensor.files(), 2);
    reading.after(0);
    assert_eq!(bench.script.open_groups().len(), 2);
    assert_eq!(reading.after(SECOND), [Some(4008)]);
}

#[test]
fn multiplexed_events_are_scaled_and_reported() {
    let bench = Bench::new(1);
    let all: Vec<(u32, PerfEvent)> = (1..=12).map(|code| (0, hardware(code))).collect();
    let series: Vec<&[(u32, PerfEvent)]> = all.chunks(1).collect();
    let mut reading = bench.sensor(&series);
    reading.after(0);
    for second in 1..=3 {
        let values = reading.after(SECOND);
        for (at, value) in values[..12].iter().enumerate() {
            let exact = (at as u64 + 1) * 1000 * second;
            assert!(value.unwrap().abs_diff(exact) <= 12, "{value:?} instead of {exact}");
        }
        assert!((32..=34).contains(&values[12].unwrap()), "{:?}", values[12]);
    }
    assert_eq!(reading.sensor.failure(), None);
}

#[test]
fn an_event_without_a_counter_has_no_value() {
    let bench = Bench::new(1);
    let all: Vec<(u32, PerfEvent)> = (1..=8).map(|code| (0, hardware(code))).collect();
    let mut reading = bench.sensor(&[&all[..4], &all[4..], &all]);
    reading.after(0);
    // Groups alternate every 4 ms: after 1 ms the second one has not counted.
    let early = reading.after(SECOND / 1000);
    assert!(early[0].is_some() != early[1].is_some(), "{early:?}");
    assert_eq!(early[2..], [None, Some(0)]);
    let later = reading.after(SECOND);
    let whole: u64 = (1..=8).map(|code| code * 1001).sum();
    assert!(later[2].unwrap().abs_diff(whole) < whole / 50, "{later:?}");
}

#[test]
fn a_cpu_that_goes_offline_and_comes_back_leaves_no_jump() {
    let bench = Bench::new(1);
    let tracepoint = PerfEvent::new(PerfEvent::TRACEPOINT, 5);
    let mut reading = bench.sensor(&[&[(1, SWITCHES)], &[(2, SWITCHES), (2, tracepoint)], &[(3, SWITCHES)]]);
    reading.after(0);
    assert_eq!(reading.after(SECOND), [Some(3001), Some(8004), Some(3003)]);
    // The group on CPU 2 is split; the single event on CPU 1 stops counting.
    bench.script.offline(1);
    bench.script.offline(2);
    assert_eq!(reading.after(SECOND), [None, None, Some(6006)]);
    assert_eq!(reading.failure(), "CPU 1-2 is offline");
    bench.script.online(1);
    bench.script.online(2);
    for _ in 1..PATIENCE {
        assert_eq!(reading.after(SECOND)[..2], [None, None]);
    }
    // Opened again; nothing has been counted yet.
    assert_eq!(reading.after(SECOND)[..2], [None, None]);
    assert_eq!(reading.failure(), "");
    assert_eq!(reading.after(SECOND)[..2], [Some(6002), Some(16_008)]);
}

#[test]
fn a_cpu_that_was_offline_for_a_moment_is_opened_again_at_once() {
    let bench = Bench::new(1);
    let mut reading = bench.sensor(&[&[(1, SWITCHES)]]);
    reading.after(0);
    reading.after(SECOND);
    bench.script.offline(1);
    bench.script.online(1);
    assert_eq!(reading.after(SECOND), [None]);
    assert_eq!(reading.failure(), "counters on CPU 1 had stopped and were opened again");
    assert_eq!(reading.after(SECOND), [Some(6002)]);
    assert_eq!(reading.failure(), "");
}

#[test]
fn a_removed_pmu_is_named() {
    let bench = Bench::new(1);
    let mut reading = bench.sensor(&[&[(0, hardware(1)), (0, hardware(2))], &[(0, SWITCHES)]]);
    reading.after(0);
    reading.after(SECOND);
    bench.script.remove(UNCORE);
    assert_eq!(reading.after(SECOND), [None, Some(6000), None]);
    assert_eq!(reading.failure(), "PMU uncore_imc_2 is gone");
    bench.script.restore(UNCORE);
    for _ in 0..PATIENCE {
        reading.after(SECOND);
    }
    assert_eq!(reading.after(SECOND)[0], Some(6000));
    assert_eq!(reading.failure(), "");
}

#[test]
fn a_refused_event_does_not_affect_others() {
    let bench = Bench::new(1);
    bench.script.refuse(hardware(2), Errno::Busy);
    let mut reading = bench.sensor(&[&[(0, hardware(1))], &[(0, hardware(2))], &[(0, hardware(3))]]);
    reading.after(0);
    assert_eq!(bench.script.open_groups(), [((0, UNCORE), vec![1, 1])]);
    assert_eq!(reading.after(SECOND), [Some(1000), None, Some(3000), Some(100)]);
    assert!(reading.failure().starts_with("PMU of type 17 is used by something else; end what uses it"));
}

#[test]
fn missing_permission_is_reported_as_by_the_probe() {
    let bench = Bench::new(1);
    bench.script.paranoid(2, false);
    let mut reading = bench.sensor(&[&[(0, SWITCHES)]]);
    assert_eq!(reading.after(0), [None]);
    let scene = Scene::new(&bench.root, &bench.topology);
    let why = privilege::try_event(&scene, &Privilege::read(&bench.root), 0, &SWITCHES).unwrap_err();
    assert_eq!(reading.failure(), format!("{}; {}", why.seen, why.fix));
    assert_eq!(why.seen, "kernel.perf_event_paranoid is 2 and this process lacks CAP_PERFMON");
}

#[test]
fn each_package_has_its_own_reader() {
    let bench = Bench::new(2);
    let packages = CPUS.map(|cpus| CpuSet::parse_list(cpus).unwrap());
    bench.script.costs(&packages, (10, 1000));
    let mut reading = bench.sensor(&[&[(0, hardware(1)), (4, hardware(1)), (5, SWITCHES)]]);
    reading.after(0);
    for second in 1..=20 {
        assert_eq!(reading.after(SECOND)[0], Some((1000 + 1004 + 3005) * second));
    }
    assert_eq!((bench.script.reads(), bench.script.spent()), (63, 630), "all from the same package");
    // Without packages one thread reads everything.
    let without_packages = Bench { topology: Topology::default(), ..Bench::new(2) };
    without_packages.script.costs(&packages, (10, 1000));
    let mut reading = without_packages.sensor(&[&[(0, hardware(1)), (4, hardware(1))]]);
    reading.after(0);
    assert_eq!(reading.after(SECOND)[0], Some(2004));
    assert_eq!(without_packages.script.spent(), 2 * 1010);
}

#[test]
fn a_package_whose_reader_is_late_is_left_out() {
    let bench = Bench::new(2);
    let mut reading =
        bench.sensor(&[&[(0, hardware(1))], &[(4, hardware(1))], &[(0, hardware(1)), (4, hardware(1))]]);
    reading.after(0);
    assert_eq!(reading.after(SECOND)[..3], [Some(1000), Some(1004), Some(2004)]);
    // From here on, a group on package 1 takes longer than the maximum wait.
    bench.script.slow(4, LONGEST_READ.as_nanos() as u64 + SECOND / 2);
    assert_eq!(reading.after(SECOND)[..3], [Some(2000), None, None]);
    assert_eq!(reading.failure(), "reading counters took longer than 1 s");
    bench.script.slow(4, 0);
    until!(
        {
            reading.after(0);
            reading.failure().is_empty()
        },
        "the reader is back"
    );
    assert_eq!(reading.after(SECOND)[..3], [Some(3000), Some(3012), Some(6012)]);
    assert_eq!(reading.failure(), "");
}

#[test]
fn the_cost_limits_the_rate() {
    let bench = Bench::new(1);
    let few = bench.sensor(&[&[(0, SWITCHES), (1, SWITCHES)]]);
    assert_eq!(few.sensor.period(), Duration::ZERO);
    let cpus: Vec<(u32, PerfEvent)> = (0..256).map(|cpu| (cpu, SWITCHES)).collect();
    assert_eq!(bench.sensor(&[&cpus]).sensor.period(), Duration::from_micros(256 * 8 * 20));
    let boxes: Vec<(u32, PerfEvent)> = (0..500).map(|code| (0, hardware(code))).collect();
    assert_eq!(bench.sensor(&[&boxes]).sensor.period(), Duration::from_micros(125 * 2 * 20));
}

#[test]
fn a_capture_has_no_counters() {
    let root = root(&[]);
    let why = Counting::new("uncore", &Scene::new(&root, &Topology::default())).unwrap_err();
    assert!(why.to_string().contains("capture"), "{why}");
}

proptest! {
    /// Whatever happens to CPUs and PMUs, and however long nothing is read: values never decrease.
    #[test]
    fn values_never_go_back(steps in proptest::collection::vec((0u8..6, 0u64..50_000_000), 1..60)) {
        let bench = Bench::new(1);
        let all: Vec<(u32, PerfEvent)> = (1..=6).map(|code| (0, hardware(code))).collect();
        let mut reading = bench.sensor(&[&all, &all[..1], &[(1, SWITCHES)]]);
        let mut last = [0; 3];
        for (step, ns) in steps {
            match step {
                0 => bench.script.offline(0),
                1 => bench.script.online(0),
                2 => bench.script.remove(UNCORE),
                3 => bench.script.restore(UNCORE),
                _ => {}
            }
            let values = reading.after(ns);
            for (last, value) in last.iter_mut().zip(&values) {
                if let Some(value) = value {
                    prop_assert!(value >= last);
                    *last = *value;
                }
            }
        }
    }
}
