use super::*;
use crate::ring::RingEntry;
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_testing::until;
use std::sync::Mutex;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Counts its reads; fails while `failing` is set.
struct Counting {
    series: Vec<Series>,
    period: Duration,
    reads: u64,
    failing: Arc<AtomicBool>,
    ticks: Arc<Mutex<Vec<Tick>>>,
}

fn counting(period: Duration) -> Counting {
    let metric = Metric {
        name: "test.reads".into(),
        unit: Unit::Count,
        kind: Kind::COUNTER,
        scope: Scope::Machine,
        help: String::new(),
        source: String::new(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    };
    let series = vec![Series::new(&Arc::new(metric), Instance::Machine)];
    Counting { series, period, reads: 0, failing: Arc::default(), ticks: Arc::default() }
}

impl Sensor for Counting {
    fn series(&self) -> &[Series] {
        &self.series
    }
    fn keep(&mut self, _: &dyn Fn(&Series) -> bool) {}
    fn period(&self) -> Duration {
        self.period
    }
    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        self.reads += 1;
        self.ticks.lock().unwrap().push(*tick);
        if !self.failing.load(Ordering::Relaxed) {
            out[0] = Some(self.reads);
        }
    }
    fn failure(&self) -> Option<String> {
        self.failing.load(Ordering::Relaxed).then(|| "set to fail".into())
    }
}

#[test]
fn a_sensor_that_is_switched_off_is_not_read() {
    let ring = Arc::new(Ring::in_memory(1, 4096).unwrap());
    let sensor = counting(Duration::ZERO);
    let ticks = Arc::clone(&sensor.ticks);
    let sampler =
        Sampler::start(vec![Box::new(sensor)], settings(Duration::from_millis(1)), vec![Arc::clone(&ring)])
            .unwrap();
    until!(sampler.state().samples() > 5);
    sampler.send(Command::Switch("other".into(), false));
    sampler.send(Command::Switch("test".into(), false));
    sampler.send(Command::Switch("test".into(), false));
    until!(sampler.state().sensors().all(|(_, on)| !on));
    let reads = ticks.lock().unwrap().len();
    let samples = sampler.state().samples();
    until!(sampler.state().samples() > samples + 5);
    assert_eq!(ticks.lock().unwrap().len(), reads);
    sampler.send(Command::Switch("test".into(), true));
    until!(ticks.lock().unwrap().len() > reads + 3);
    drop(sampler);
    let (rows, labels) = drain(&ring);
    let first_off = rows.iter().position(Option::is_none).unwrap();
    let back = first_off + rows[first_off..].iter().position(Option::is_some).unwrap();
    assert!(back - first_off >= 5 && rows[back..].iter().all(Option::is_some), "{rows:?}");
    let events: Vec<&String> = labels.iter().filter(|l| !l.contains("lost")).collect();
    assert_eq!(events, ["numakit:absent test: switched off", "numakit:back test"]);
}

fn settings(interval: Duration) -> Settings {
    Settings { interval, cpus: CpuSet::new(), priority: Priority::Normal }
}

fn drain(ring: &Ring) -> (Vec<Option<u64>>, Vec<String>) {
    let pending = ring.pending(usize::MAX >> 1);
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for entry in pending.entries() {
        match entry {
            RingEntry::Row(row) => rows.push(row.value(0)),
            RingEntry::Label { index, .. } => labels.push(pending.label_text(index)),
        }
    }
    pending.release();
    (rows, labels)
}

#[test]
fn ticks_are_on_a_grid_from_the_start() {
    let sensor = counting(Duration::ZERO);
    let ticks = Arc::clone(&sensor.ticks);
    let ring = Arc::new(Ring::in_memory(1, 1000).unwrap());
    let sampler =
        Sampler::start(vec![Box::new(sensor)], settings(Duration::from_millis(2)), vec![ring]).unwrap();
    until!(sampler.state().samples() >= 20);
    sampler.stop();
    let ticks = ticks.lock().unwrap();
    let first = ticks[0].due;
    for tick in ticks.iter() {
        assert_eq!((tick.due - first) % 2_000_000, 0, "no drift");
        assert!(tick.woke >= tick.due, "never early");
    }
    // Every tick of the grid was either taken or counted as lost.
    let last = ticks.last().unwrap();
    assert_eq!((last.due - first) / 2_000_000 + 1, ticks.len() as u64 + last.lost);
}

#[test]
fn ticks_that_are_missed_at_the_end_are_lost() {
    let slow = Slow(counting(Duration::ZERO));
    let ticks = Arc::clone(&slow.0.ticks);
    let ring = Arc::new(Ring::in_memory(1, 1000).unwrap());
    let sampler = Sampler::start(vec![Box::new(slow)], settings(MILLISECOND), vec![ring]).unwrap();
    until!(sampler.state().samples() >= 4);
    // Before its row, the sensor works for five intervals.
    sampler.send(Command::Sample);
    let state = sampler.stop();
    let ticks = ticks.lock().unwrap();
    let (first, end) = (ticks[0].due, ticks.last().unwrap());
    assert!(end.lost >= 4, "{end:?}");
    // The last row is on no tick: it is in the place of one whose interval it ended.
    let due = (end.woke - first) / 1_000_000 + 1;
    assert_eq!(due, ticks.len() as u64 + end.lost, "{ticks:?}");
    assert_eq!((state.samples(), state.lost() >= end.lost), (ticks.len() as u64, true));
}

#[test]
fn commands_take_effect_in_their_order_and_two_labels_stay_two() {
    let ring = Arc::new(Ring::in_memory(1, 10_000).unwrap());
    let sampler = Sampler::start(
        vec![Box::new(counting(Duration::ZERO))],
        settings(MAX_INTERVAL),
        vec![Arc::clone(&ring)],
    )
    .unwrap();
    until!(sampler.state().samples() == 1);
    for text in ["one", "two"] {
        sampler.send(Command::Label(text.into()));
    }
    sampler.send(Command::Pause);
    sampler.send(Command::Interval(MILLISECOND));
    until!(sampler.state().interval() == MILLISECOND);
    assert_eq!(sampler.state().samples(), 1, "paused");
    sampler.send(Command::Resume);
    until!(sampler.state().samples() >= 3);
    let second = Arc::new(Ring::in_memory(1, 10_000).unwrap());
    sampler.send(Command::Attach(Arc::clone(&second)));
    until!(second.pending_rows() >= 2);
    sampler.send(Command::Detach(Arc::clone(&second)));
    until!(!second.wait(usize::MAX >> 1, 0));
    sampler.stop();
    let (rows, labels) = drain(&ring);
    assert!(rows.len() >= 5);
    let own: Vec<&String> = labels.iter().filter(|l| !l.starts_with("numakit:lost")).collect();
    assert_eq!(own, ["one", "two", "numakit:pause", "numakit:interval 1000000ns", "numakit:resume"]);
}

#[test]
fn a_slow_sensor_is_read_at_its_own_period() {
    let ring = Arc::new(Ring::in_memory(2, 100_000).unwrap());
    let (slow, fast) = (counting(Duration::from_millis(10)), counting(Duration::ZERO));
    let (slow_ticks, fast_ticks) = (Arc::clone(&slow.ticks), Arc::clone(&fast.ticks));
    let sensors: Vec<Box<dyn Sensor>> = vec![Box::new(slow), Box::new(fast)];
    let sampler =
        Sampler::start(sensors, settings(Duration::from_millis(1)), vec![Arc::clone(&ring)]).unwrap();
    until!(sampler.state().samples() >= 50);
    sampler.stop();
    let (rows, _) = drain(&ring);
    assert_eq!(fast_ticks.lock().unwrap().len(), rows.len());
    let slow_ticks = slow_ticks.lock().unwrap();
    assert_eq!(slow_ticks.len(), rows.iter().filter(|v| v.is_some()).count());
    assert!(slow_ticks.len() >= 2 && rows[0].is_some());
    assert!(slow_ticks.windows(2).all(|w| w[1].due >= w[0].due + 10_000_000));
}

#[test]
fn a_failing_sensor_is_labelled_once_and_its_values_are_null() {
    let sensor = counting(Duration::ZERO);
    let failing = Arc::clone(&sensor.failing);
    let ring = Arc::new(Ring::in_memory(1, 100_000).unwrap());
    let sampler =
        Sampler::start(vec![Box::new(sensor)], settings(MILLISECOND), vec![Arc::clone(&ring)]).unwrap();
    until!(sampler.state().samples() >= 3);
    failing.store(true, Ordering::Relaxed);
    let at = sampler.state().samples();
    until!(sampler.state().samples() >= at + 10);
    sampler.stop();
    let (rows, labels) = drain(&ring);
    let events: Vec<&String> = labels.iter().filter(|l| l.starts_with("numakit:absent")).collect();
    assert_eq!(events, ["numakit:absent test: set to fail"]);
    assert!(rows.last().unwrap().is_none() && rows[0].is_some());
}

#[test]
fn a_clock_step_is_reported_once() {
    let mut time = Time::now();
    let now = clock::monotonic() + 2_000_000_000;
    assert_eq!(time.stepped(now), None);
    time.offset -= 3_600_000_000_000;
    let step = time.stepped(now + 2_000_000_000).unwrap();
    assert!((step - 3_600_000_000_000).unsigned_abs() < Time::STEP);
    assert_eq!(time.stepped(now + 4_000_000_000), None);
}

/// Its value is the CPU time of the thread that reads it.
struct OwnCpu(Counting);

impl Sensor for OwnCpu {
    fn series(&self) -> &[Series] {
        &self.0.series
    }
    fn keep(&mut self, _: &dyn Fn(&Series) -> bool) {}
    fn clock_resolution(&self) -> Option<Duration> {
        Some(Duration::from_nanos(1))
    }
    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        out[0] = Some(clock::thread_cpu());
    }
}

/// Each eighth read takes this CPU time, and so does what it does at the end of an observation.
struct Slow(Counting);

const READING: u64 = 5_000_000;

fn work() {
    let until = clock::thread_cpu() + READING;
    while clock::thread_cpu() < until {}
}

impl Sensor for Slow {
    fn series(&self) -> &[Series] {
        &self.0.series
    }
    fn keep(&mut self, _: &dyn Fn(&Series) -> bool) {}
    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        self.0.read(tick, out);
        if self.0.reads.is_multiple_of(8) {
            work();
        }
    }
    fn settle(&mut self) {
        work();
    }
}

#[test]
fn no_thread_uses_more_cpu_time_than_passes_between_two_rows() {
    let ring = Arc::new(Ring::in_memory(2, 10_000).unwrap());
    let sensors: Vec<Box<dyn Sensor>> =
        vec![Box::new(Slow(counting(Duration::ZERO))), Box::new(OwnCpu(counting(Duration::ZERO)))];
    let sampler = Sampler::start(sensors, settings(MILLISECOND), vec![Arc::clone(&ring)]).unwrap();
    until!(sampler.state().samples() >= 40);
    let samples = sampler.state().samples();
    sampler.send(Command::Sample);
    until!(sampler.state().samples() > samples);
    sampler.stop();
    let pending = ring.pending(usize::MAX >> 1);
    let mut rows = Vec::new();
    let mut values = [None; 2];
    for entry in pending.entries() {
        if let RingEntry::Row(sample) = entry {
            sample.values(&mut values);
            rows.push((sample.time(), values[1].unwrap()));
        }
    }
    pending.release();
    assert!(rows.len() >= 40);
    for pair in rows.windows(2) {
        let (passed, used) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        assert!(used <= passed + READING / 10, "{used} ns of CPU time in {passed} ns");
    }
}
