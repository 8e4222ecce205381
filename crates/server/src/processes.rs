//! Who looks at the processes of the machine: they are measured in a thread of its own, which exists only while
//! a client looks.

use crate::queue::Queue;
use crate::wire::{FromServer, ProcessList};
use numakit_model::{CpuSet, Unavailable};
use numakit_sys::sched;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Measures the processes since the call before. It should end soon after its argument returns false.
pub type ProcessMeter = Box<dyn FnMut(&dyn Fn() -> bool) -> ProcessList + Send>;
/// Begins to measure, or says why that is impossible.
pub type ProcessSurveyor = Box<dyn Fn() -> Result<ProcessMeter, Unavailable> + Send + Sync>;

/// Who has no processes to show.
const NOT_LIVE: &str =
    "Processes are shown by 'numa live' only: a recording has the observed program, not others.";

/// How often the processes are measured.
const PERIOD: Duration = Duration::from_secs(2);
/// The time to the first measurement.
const FIRST: Duration = Duration::from_millis(500);
/// Maximum time to read the memory of processes in each period.
const READING: Duration = Duration::from_millis(200);
/// A measurement that takes longer is followed by a pause of this many times its length.
const PAUSES: u32 = 9;

/// The clients that look at the processes.
#[derive(Default)]
pub struct ProcessWatch {
    surveyor: Option<ProcessSurveyor>,
    cpus: CpuSet,
    lookers: Mutex<Lookers>,
    changed: Condvar,
}

#[derive(Default)]
struct Lookers {
    queues: Vec<Arc<Queue>>,
    /// Whether the thread exists.
    running: bool,
}

impl ProcessWatch {
    /// Measured by this, in a thread on these CPUs (empty: any).
    pub fn new(surveyor: ProcessSurveyor, cpus: CpuSet) -> Self {
        Self { surveyor: Some(surveyor), cpus, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Lookers> {
        self.lookers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client begins to look.
    pub fn look(self: &Arc<Self>, queue: &Arc<Queue>) {
        if self.surveyor.is_none() {
            return send(queue, absent(NOT_LIVE));
        }
        let mut lookers = self.lock();
        if !lookers.queues.iter().any(|one| Arc::ptr_eq(one, queue)) {
            lookers.queues.push(Arc::clone(queue));
        }
        if lookers.running {
            return;
        }
        let watch = Arc::clone(self);
        match std::thread::Builder::new().name("processes".into()).spawn(move || watch.run()) {
            Ok(_) => lookers.running = true,
            Err(error) => send(queue, absent(&format!("cannot start a thread: {error}"))),
        }
    }

    /// A client looks no more.
    pub fn leave(&self, queue: &Arc<Queue>) {
        self.lock().queues.retain(|one| !Arc::ptr_eq(one, queue));
        self.changed.notify_all();
    }

    /// Measures until nobody looks.
    fn run(&self) {
        if !self.cpus.is_empty() {
            // Without this it is only slower: farther from its memory.
            let _ = sched::set_affinity(&self.cpus);
        }
        let Some(surveyor) = &self.surveyor else { return };
        let mut meter = match surveyor() {
            Ok(meter) => meter,
            Err(why) => return self.end(&why.to_string()),
        };
        let mut pause = FIRST;
        while self.wait(pause) {
            let begun = Instant::now();
            let list = meter(&|| begun.elapsed() < READING);
            let text = FromServer::Processes { list: Box::new(list) }.text();
            // A client that has not read the last ones gets none.
            let queues = self.lock().queues.clone();
            queues.iter().filter(|queue| !queue.has_texts()).for_each(|queue| queue.text(text.clone()));
            let took = begun.elapsed();
            pause = PERIOD.saturating_sub(took).max(took.saturating_mul(PAUSES));
        }
    }

    /// Waits; false, and the thread counts as ended, as soon as nobody looks.
    fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut lookers = self.lock();
        loop {
            lookers.queues.retain(|queue| !queue.closed());
            if lookers.queues.is_empty() {
                lookers.running = false;
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            lookers = self.changed.wait_timeout(lookers, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells everybody why there are no processes, and ends.
    fn end(&self, why: &str) {
        let mut lookers = self.lock();
        lookers.queues.drain(..).for_each(|queue| send(&queue, absent(why)));
        lookers.running = false;
    }
}

fn absent(why: &str) -> ProcessList {
    ProcessList { why: Some(why.to_owned()), ..ProcessList::default() }
}

fn send(queue: &Queue, list: ProcessList) {
    queue.text(FromServer::Processes { list: Box::new(list) }.text());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Outgoing;
    use numakit_model::Fix;
    use numakit_testing::until;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A watch that counts how often it began, and how often its meters were dropped.
    fn watch(began: &Arc<AtomicUsize>, ended: &Arc<AtomicUsize>) -> Arc<ProcessWatch> {
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let (began, ended) = (Arc::clone(began), Arc::clone(ended));
        let surveyor: ProcessSurveyor = Box::new(move || {
            began.fetch_add(1, Ordering::Relaxed);
            let counted = Counted(Arc::clone(&ended));
            Ok(Box::new(move |time| {
                let _ = &counted;
                ProcessList { seconds: if time() { 1.0 } else { 0.0 }, ..ProcessList::default() }
            }))
        });
        Arc::new(ProcessWatch::new(surveyor, CpuSet::new()))
    }

    fn text(queue: &Queue) -> Option<String> {
        queue.has_texts().then(|| match queue.take() {
            Some(Outgoing::Text(text)) => text,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn processes_are_measured_only_while_somebody_looks() {
        let [began, ended] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let watch = watch(&began, &ended);
        let [one, two] = [(); 2].map(|()| Arc::new(Queue::default()));
        assert_eq!(began.load(Ordering::Relaxed), 0);
        watch.look(&one);
        watch.look(&two);
        watch.look(&one);
        until!(one.has_texts() && two.has_texts());
        assert!(text(&one).unwrap().starts_with(r#"{"type":"processes","list":{"time_ns":0,"seconds":1.0"#));
        watch.leave(&one);
        two.close("gone");
        watch.leave(&Arc::new(Queue::default()));
        until!(ended.load(Ordering::Relaxed) == 1);
        assert_eq!(began.load(Ordering::Relaxed), 1, "one thread for both");
        watch.look(&one);
        until!(one.has_texts());
        watch.leave(&one);
        until!(ended.load(Ordering::Relaxed) == 2);
    }

    fn no_files() -> Unavailable {
        Unavailable::new("processes", "no /proc", Fix::command("mount -t proc proc /proc"))
    }

    #[test]
    fn without_processes_the_client_learns_why() {
        let queue = Arc::new(Queue::default());
        Arc::new(ProcessWatch::default()).look(&queue);
        assert!(text(&queue).unwrap().contains("'numa live' only"));
        let watch = ProcessWatch::new(Box::new(|| Err(no_files())), CpuSet::new());
        let watch = Arc::new(watch);
        watch.look(&queue);
        until!(queue.has_texts());
        assert!(text(&queue).unwrap().contains("no /proc"));
    }
}
