//! Samples of an own child by ptrace, for programs that no library can be preloaded into where performance events are
//! refused. One thread starts the program and makes all calls; it stops threads that are running, and only those, for
//! as long as it takes to read their registers.

mod threads;
mod tracing;

use crate::landing::Landing;
use crate::method::{Losses, Method, MethodError, MethodEvent, MethodKind};
use crate::sample::{Sample, SampleSettings};
use numakit_sys::command::Running;
use numakit_sys::ptrace::TracedEnd;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Samples that wait for the observer at most; at 199 Hz those of 20 s of CPU time.
const ROOM: usize = 4096;

/// The method. Dropping it lets the program run on untraced.
#[derive(Debug)]
pub struct PtraceMethod {
    shared: Arc<Shared>,
    tracer: Option<JoinHandle<()>>,
    landing: Landing,
    taken: VecDeque<Noted>,
}

/// Between the tracer and the observer.
#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    stop: AtomicBool,
    failure: Mutex<Option<io::Error>>,
}

#[derive(Debug, Default)]
struct Queue {
    noted: VecDeque<Noted>,
    losses: Losses,
}

/// An event as the tracer notes it.
#[derive(Debug)]
enum Noted {
    Sample(Box<Sample>),
    Started { process: u32, thread: u32 },
    Executed { process: u32, time: u64 },
    Ended { process: u32, thread: u32 },
}

/// Nothing in here is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn note(&self, noted: Noted) {
        let mut queue = lock(&self.queue);
        if queue.noted.len() < ROOM {
            queue.noted.push_back(noted);
        } else if matches!(noted, Noted::Sample(_)) {
            queue.losses.overflowed += 1;
        }
    }

    fn lose(&self, count: impl FnOnce(&mut Losses)) {
        count(&mut lock(&self.queue).losses);
    }
}

impl PtraceMethod {
    /// Starts a program by `start` and samples it with all its descendants. Its end is announced as that of any child.
    pub fn for_command(
        settings: &SampleSettings,
        landing: Landing,
        start: impl FnOnce() -> io::Result<Running> + Send + 'static,
    ) -> Result<(Self, Running), MethodError> {
        let shared = Arc::new(Shared::default());
        let (started, running) = sync_channel(1);
        let (to_thread, settings) = (Arc::clone(&shared), *settings);
        let run = move || trace(&settings, &to_thread, start, &started);
        let tracer = std::thread::Builder::new().name("tracer".to_owned()).spawn(run);
        let tracer = Some(tracer.map_err(MethodError::Ptrace)?);
        let method = Self { shared, tracer, landing, taken: VecDeque::new() };
        let ended = || MethodError::Ptrace(io::Error::other("the tracing thread ended"));
        let running = running.recv().map_err(|_| ended())??;
        Ok((method, running))
    }
}

/// The thread of the tracer.
fn trace(
    settings: &SampleSettings,
    shared: &Shared,
    start: impl FnOnce() -> io::Result<Running>,
    started: &SyncSender<Result<Running, MethodError>>,
) {
    let tracing = match tracing::Tracing::new(settings) {
        Ok(tracing) => tracing,
        Err(error) => {
            let _ = started.send(Err(MethodError::Ptrace(error)));
            return;
        }
    };
    let mut running = match start() {
        Ok(running) => running,
        Err(error) => {
            let _ = started.send(Err(MethodError::Start(error)));
            return;
        }
    };
    let (end, child) = (Arc::new(TracedEnd::default()), running.id());
    let seized = tracing.seize(child, shared);
    if seized.is_ok() {
        running.reaped_by(Arc::clone(&end));
    }
    let _ = started.send(Ok(running));
    let result = match seized {
        Ok(mut tracing) => tracing.run(shared, child, &end),
        // The program has ended already, and is waited for like any other child.
        Err(error) if error.raw_os_error().is_some() && has_ended(child) => Ok(()),
        Err(error) => Err(error),
    };
    end.detach();
    if let Err(error) = result {
        *lock(&shared.failure) = Some(error);
    }
}

fn has_ended(process: u32) -> bool {
    let root = numakit_sys::SysRoot::host();
    numakit_sys::proc::TaskDir::of(&root, process).stat().map_or(true, |stat| stat.exited)
}

impl Method for PtraceMethod {
    fn kind(&self) -> MethodKind {
        MethodKind::Ptrace
    }

    fn drain(&mut self, take: &mut dyn FnMut(MethodEvent<'_>)) -> Result<u64, MethodError> {
        std::mem::swap(&mut self.taken, &mut lock(&self.shared.queue).noted);
        let mut count = 0;
        for noted in self.taken.drain(..) {
            take(match &noted {
                Noted::Sample(sample) => {
                    count += 1;
                    MethodEvent::Sample(sample)
                }
                Noted::Started { process, thread } => {
                    MethodEvent::Started { process: *process, thread: *thread }
                }
                Noted::Executed { process, time } => MethodEvent::Executed { process: *process, time: *time },
                Noted::Ended { process, thread } => MethodEvent::Ended { process: *process, thread: *thread },
            });
        }
        match lock(&self.shared.failure).take() {
            Some(error) => Err(MethodError::Ptrace(error)),
            None => Ok(count),
        }
    }

    fn losses(&self) -> Losses {
        lock(&self.shared.queue).losses
    }

    fn landing(&self) -> Landing {
        self.landing
    }
}

impl Drop for PtraceMethod {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(tracer) = self.tracer.take() {
            let _ = tracer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_room_are_counted() {
        let shared = Shared::default();
        for _ in 0..ROOM + 3 {
            shared.note(Noted::Sample(Box::default()));
        }
        shared.note(Noted::Executed { process: 1, time: 2 });
        let queue = lock(&shared.queue);
        assert_eq!((queue.noted.len(), queue.losses.overflowed), (ROOM, 3));
    }
}
