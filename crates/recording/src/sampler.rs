//! The sampler thread: the only one that reads sensors, and the only producer of
//! every ring. In its steady state it neither allocates nor locks.

use crate::ring::Ring;
use numakit_model::CpuSet;
use numakit_model::label::RecorderEvent;
use numakit_sensors::{Sensor, Tick};
use numakit_sys::clock::{self, Alarm};
use numakit_sys::sched;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Minimum interval. Not every sensor can be read so often.
pub const MIN_INTERVAL: Duration = Duration::from_micros(100);
/// Maximum interval.
pub const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// How the sampler thread is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Real-time where permitted, else normal.
    Auto,
    /// Like any other thread.
    Normal,
    /// Real-time, or an error.
    Realtime,
}

/// How to sample.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time between two samples.
    pub interval: Duration,
    /// The CPUs of the sampler; empty: all.
    pub cpus: CpuSet,
    /// Its scheduling.
    pub priority: Priority,
}

/// A command to a running sampler.
#[derive(Debug)]
pub enum Command {
    /// Write a label with this text.
    Label(String),
    /// Write a label for this event.
    Note(RecorderEvent),
    /// Take no samples until [`Command::Resume`].
    Pause,
    /// Take samples again.
    Resume,
    /// Change the interval.
    Interval(Duration),
    /// Switch the sensor of this name on or off.
    Switch(String, bool),
    /// Take one sample now, in addition to those of the interval.
    Sample,
    /// Write rows to this ring too.
    Attach(Arc<Ring>),
    /// Write no more rows to this ring, and close it.
    Detach(Arc<Ring>),
    /// Take no more samples and close all rings.
    Stop,
}

/// The state of a running sampler.
#[derive(Debug, Default)]
pub struct SamplerState {
    samples: AtomicU64,
    lost: AtomicU64,
    interval: AtomicU64,
    paused: AtomicBool,
    realtime: AtomicBool,
    sensors: Vec<(String, AtomicBool)>,
}

impl SamplerState {
    fn new(slots: &[Slot], interval: Duration) -> Self {
        let sensors = slots.iter().map(|s| (s.name.clone(), AtomicBool::new(true))).collect();
        Self { sensors, interval: nanos(interval).into(), ..Self::default() }
    }

    /// The sensors by name, and whether each is read.
    pub fn sensors(&self) -> impl Iterator<Item = (&str, bool)> {
        self.sensors.iter().map(|(name, on)| (name.as_str(), on.load(Ordering::Relaxed)))
    }

    /// Samples taken.
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Ticks that were missed.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The current interval.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval.load(Ordering::Relaxed))
    }

    /// Whether sampling is paused.
    pub fn paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Whether the thread got real-time priority.
    pub fn realtime(&self) -> bool {
        self.realtime.load(Ordering::Relaxed)
    }
}

/// A running sampler. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {
    alarm: Arc<Alarm>,
    commands: Sender<Command>,
    state: Arc<SamplerState>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling into these rings; the first sample is taken immediately.
    pub fn start(
        sensors: Vec<Box<dyn Sensor>>,
        settings: Settings,
        rings: Vec<Arc<Ring>>,
    ) -> io::Result<Self> {
        let (commands, inbox) = channel();
        let (ready, started) = channel();
        let alarm = Arc::new(Alarm::new());
        let mut slots: Vec<Slot> = Vec::with_capacity(sensors.len());
        for sensor in sensors {
            let first = slots.last().map_or(0, |slot| slot.columns.end);
            slots.push(Slot::new(sensor, first));
        }
        // Those without a clock last, in their order.
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_by_key(|&at| slots[at].sensor.clock_resolution().unwrap_or(Duration::MAX));
        let state = Arc::new(SamplerState::new(&slots, settings.interval));
        let mut run = Run {
            slots,
            order,
            outputs: rings.into_iter().map(Output::new).collect(),
            inbox,
            alarm: Arc::clone(&alarm),
            state: Arc::clone(&state),
            time: Time::now(),
            due: 0,
            lost: 0,
        };
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(move || {
            let realtime = configure_thread(&settings);
            run.state.realtime.store(matches!(realtime, Ok(true)), Ordering::Relaxed);
            let failed = realtime.is_err();
            let _ = ready.send(realtime.map(|_| ()));
            if !failed {
                run.run();
            }
            run.outputs.iter().for_each(|o| o.ring.close());
        })?;
        let sampler = Self { alarm, commands, state, thread: Some(thread) };
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the sampler did not start")))?;
        Ok(sampler)
    }

    /// Sends a command, which is executed before the next sample.
    pub fn send(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            self.alarm.ring();
        }
    }

    /// Its state.
    pub fn state(&self) -> &SamplerState {
        &self.state
    }

    /// Whether it still runs.
    pub fn running(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Takes no more samples, closes all rings and waits for the thread. Returns its last state.
    pub fn stop(mut self) -> Arc<SamplerState> {
        self.end();
        Arc::clone(&self.state)
    }

    fn end(&mut self) {
        self.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sets CPUs and scheduling of this thread; returns whether it is real-time.
fn configure_thread(settings: &Settings) -> io::Result<bool> {
    if !settings.cpus.is_empty() {
        sched::set_affinity(&settings.cpus)?;
    }
    sched::set_timer_slack()?;
    match settings.priority {
        Priority::Normal => Ok(false),
        Priority::Auto => Ok(sched::set_realtime().is_ok()),
        Priority::Realtime => sched::set_realtime().map(|()| true),
    }
}

fn nanos(interval: Duration) -> u64 {
    interval.clamp(MIN_INTERVAL, MAX_INTERVAL).as_nanos() as u64
}

/// The time of samples: UTC at the start plus the monotonic clock.
struct Time {
    offset: u64,
    step: i64,
    checked: u64,
}

impl Time {
    /// Smaller steps cannot be distinguished from a delay between reading two clocks.
    const STEP: u64 = 50_000_000;

    fn now() -> Self {
        let monotonic = clock::monotonic();
        Self { offset: clock::utc().saturating_sub(monotonic), step: 0, checked: monotonic }
    }

    fn utc(&self, monotonic: u64) -> u64 {
        self.offset + monotonic
    }

    /// By how much the wall clock was set since the last check; at most once a second.
    fn stepped(&mut self, monotonic: u64) -> Option<i64> {
        if monotonic < self.checked + 1_000_000_000 {
            return None;
        }
        self.checked = monotonic;
        let wall = clock::utc().wrapping_sub(clock::monotonic());
        let step = wall.wrapping_sub(self.offset) as i64;
        let change = step - self.step;
        if change.unsigned_abs() < Self::STEP {
            return None;
        }
        self.step = step;
        Some(change)
    }
}

/// A sensor and its part of the row.
struct Slot {
    sensor: Box<dyn Sensor>,
    name: String,
    columns: Range<usize>,
    on: bool,
    period: u64,
    next: u64,
    failing: bool,
    last_event: u64,
}

impl Slot {
    /// A sensor whose part of the row begins at a column.
    fn new(sensor: Box<dyn Sensor>, first: usize) -> Self {
        let period = u64::try_from(sensor.period().as_nanos()).unwrap_or(u64::MAX);
        let name = sensor.series().first().map_or("", |s| s.metric.sensor()).to_owned();
        let columns = first..first + sensor.series().len();
        Self { sensor, name, columns, on: true, period, next: 0, failing: false, last_event: 0 }
    }

    /// Switches it on or off. Returns the event for a label.
    fn switch(&mut self, on: bool) -> RecorderEvent {
        (self.on, self.next, self.failing) = (on, 0, false);
        if on {
            RecorderEvent::Back(self.name.clone())
        } else {
            RecorderEvent::Absent(format!("{}: switched off", self.name))
        }
    }

    /// The event when the sensor begins or stops failing; at most one a second.
    fn change(&mut self, now: u64) -> Option<RecorderEvent> {
        let failure = self.sensor.failure();
        if failure.is_some() == self.failing
            || (self.last_event != 0 && now < self.last_event + 1_000_000_000)
        {
            return None;
        }
        self.failing = failure.is_some();
        self.last_event = now;
        Some(match failure {
            Some(why) => RecorderEvent::Absent(format!("{}: {why}", self.name)),
            None => RecorderEvent::Back(self.name.clone()),
        })
    }
}

/// A ring, and the labels for which it has no room yet.
struct Output {
    ring: Arc<Ring>,
    late: Vec<(u64, String)>,
}

impl Output {
    /// Maximum number of labels that wait for room; more are dropped.
    const MAX_LATE: usize = 10_000;

    fn new(ring: Arc<Ring>) -> Self {
        Self { ring, late: Vec::new() }
    }

    fn label(&mut self, time: u64, text: &str) {
        self.catch_up();
        if (!self.late.is_empty() || !self.ring.push_label(time, text)) && self.late.len() < Self::MAX_LATE {
            self.late.push((time, text.to_owned()));
        }
    }

    fn catch_up(&mut self) {
        while let Some((time, text)) = self.late.first() {
            if !self.ring.push_label(*time, text) {
                break;
            }
            self.late.remove(0);
        }
    }

    fn row(&mut self, time: u64, took: u64, values: &[Option<u64>]) {
        if !self.late.is_empty() {
            self.catch_up();
        }
        let dropped = self.ring.take_dropped();
        if dropped > 0 {
            self.label(time, &RecorderEvent::Dropped(dropped).text());
        }
        self.ring.push(time, took, values);
    }
}

struct Run {
    slots: Vec<Slot>,
    /// In which order the slots are read.
    order: Vec<usize>,
    outputs: Vec<Output>,
    inbox: Receiver<Command>,
    alarm: Arc<Alarm>,
    state: Arc<SamplerState>,
    time: Time,
    /// When the next tick is.
    due: u64,
    lost: u64,
}

impl Run {
    fn run(&mut self) {
        let columns = self.slots.last().map_or(0, |slot| slot.columns.end);
        let mut values: Vec<Option<u64>> = vec![None; columns];
        self.due = clock::monotonic();
        loop {
            let until = if self.state.paused() { u64::MAX / 2 } else { self.due };
            if self.alarm.sleep_until(until) {
                let tick = Tick { due: self.due, woke: clock::monotonic(), lost: self.lost };
                self.sample(&tick, &mut values);
                self.due += self.state.interval.load(Ordering::Relaxed);
                self.pass_missed(clock::monotonic());
            } else if self.execute_commands(&mut values) {
                return;
            }
        }
    }

    fn sample(&mut self, tick: &Tick, values: &mut [Option<u64>]) {
        values.fill(None);
        let mut changed = None;
        for &at in &self.order {
            let slot = &mut self.slots[at];
            if !slot.on || tick.due < slot.next {
                continue;
            }
            slot.next = tick.due + slot.period;
            slot.sensor.read(tick, &mut values[slot.columns.clone()]);
            changed = changed.or_else(|| slot.change(tick.woke));
        }
        let end = clock::monotonic();
        if let Some(event) = changed {
            self.note(tick.woke, &event.text());
        }
        if let Some(step) = self.time.stepped(end) {
            self.note(tick.woke, &RecorderEvent::ClockStep(step).text());
        }
        let time = self.time.utc(tick.woke);
        for output in &mut self.outputs {
            output.row(time, end - tick.woke, values);
        }
        self.state.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Ticks whose whole interval has passed are lost: counted and labelled.
    fn pass_missed(&mut self, now: u64) {
        if self.state.paused() {
            return;
        }
        let interval = self.state.interval.load(Ordering::Relaxed);
        let missed = now.saturating_sub(self.due) / interval;
        if missed > 0 {
            self.due += missed * interval;
            self.lost += missed;
            self.state.lost.store(self.lost, Ordering::Relaxed);
            self.note(now, &RecorderEvent::Lost(missed).text());
        }
    }

    /// Whether the sampler is to stop.
    fn execute_commands(&mut self, values: &mut [Option<u64>]) -> bool {
        while let Ok(command) = self.inbox.try_recv() {
            let now = clock::monotonic();
            match command {
                Command::Label(text) => self.note(now, &text),
                Command::Note(event) => self.note(now, &event.text()),
                Command::Pause if !self.state.paused() => {
                    self.pass_missed(now);
                    self.state.paused.store(true, Ordering::Relaxed);
                    self.note(now, &RecorderEvent::Paused.text());
                }
                Command::Resume if self.state.paused() => {
                    self.state.paused.store(false, Ordering::Relaxed);
                    self.note(now, &RecorderEvent::Resumed.text());
                    self.due = now;
                }
                Command::Pause | Command::Resume => {}
                Command::Interval(interval) => {
                    self.pass_missed(now);
                    self.state.interval.store(nanos(interval), Ordering::Relaxed);
                    self.note(now, &RecorderEvent::Interval(nanos(interval)).text());
                    self.slots.iter_mut().for_each(|s| s.next = 0);
                    self.due = now;
                }
                Command::Switch(name, on) => self.switch(now, &name, on),
                Command::Sample => {
                    self.slots.iter_mut().for_each(|s| s.next = 0);
                    self.slots.iter_mut().filter(|s| s.on).for_each(|s| s.sensor.settle());
                    // The row is of the time at which its values are read.
                    let now = clock::monotonic();
                    self.pass_missed(now);
                    self.sample(&Tick { due: now, woke: now, lost: self.lost }, values);
                    // The next tick may have been due before that.
                    self.slots.iter_mut().for_each(|s| s.next = 0);
                }
                Command::Attach(ring) => self.outputs.push(Output::new(ring)),
                Command::Detach(ring) => {
                    self.outputs.retain(|o| !Arc::ptr_eq(&o.ring, &ring));
                    ring.close();
                }
                Command::Stop => {
                    self.pass_missed(now);
                    return true;
                }
            }
        }
        false
    }

    fn switch(&mut self, now: u64, name: &str, on: bool) {
        let state = Arc::clone(&self.state);
        for (at, (_, flag)) in state.sensors.iter().enumerate().filter(|(_, (n, _))| n == name) {
            if flag.swap(on, Ordering::Relaxed) != on {
                let event = self.slots[at].switch(on);
                self.note(now, &event.text());
            }
        }
    }

    fn note(&mut self, monotonic: u64, text: &str) {
        let time = self.time.utc(monotonic);
        self.outputs.iter_mut().for_each(|o| o.label(time, text));
    }
}

#[cfg(test)]
mod tests;
