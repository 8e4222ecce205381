//! The loop of the tracing thread.

use super::threads::{Due, TracedThreads};
use super::{Noted, Shared};
use crate::sample::{Sample, SampleSettings};
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::tree;
use numakit_sys::ptrace::{Stop, Ticks, TracedEnd, Tracer};
use numakit_sys::{SysRoot, clock, remote, sched};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Everything that the tracing thread has.
#[derive(Debug)]
pub struct Tracing {
    tracer: Tracer,
    root: SysRoot,
    threads: TracedThreads,
    period: u64,
    stack: Vec<u8>,
    next_tick: u64,
    due: Vec<u32>,
    /// The CPU that this thread is bound to, so far.
    at: Option<u32>,
    /// The child whose end somebody waits for, and where its end is noted.
    child: Option<(u32, Arc<TracedEnd>)>,
}

impl Tracing {
    /// Makes the tracer of the calling thread.
    pub fn new(settings: &SampleSettings) -> io::Result<Self> {
        Ok(Self {
            tracer: Tracer::new()?,
            root: SysRoot::host(),
            threads: TracedThreads::default(),
            period: settings.period(),
            stack: vec![0; settings.stack_bytes() as usize],
            next_tick: 0,
            due: Vec::new(),
            at: None,
            child: None,
        })
    }

    /// Traces a child that has just started, and the threads and processes that it has started meanwhile.
    pub fn seize(mut self, child: u32, shared: &Shared) -> io::Result<Self> {
        self.tracer.seize(child)?;
        self.know(child, shared);
        let threads = TaskDir::of(&self.root, child).thread_count().unwrap_or(1);
        let others = TaskDir::of(&self.root, child).threads().unwrap_or_default();
        for task in others.into_iter().chain(tree::listed_children(&self.root, child, threads)) {
            // Seizing fails for a task that is already traced because its creator is, and for one that has ended.
            if task != child && self.tracer.seize(task).is_ok() {
                self.know(task, shared);
            }
        }
        Ok(self)
    }

    fn know(&mut self, thread: u32, shared: &Shared) {
        if self.threads.add(&self.root, thread)
            && let Some(known) = self.threads.get(thread)
        {
            shared.note(Noted::Started { process: known.process, thread });
        }
    }

    /// Traces until all threads have ended or the method is closed. Notes the end of the child as soon as it is known.
    pub fn run(&mut self, shared: &Shared, child: u32, end: &Arc<TracedEnd>) -> io::Result<()> {
        self.child = Some((child, Arc::clone(end)));
        match self.trace(shared) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn trace(&mut self, shared: &Shared) -> io::Result<()> {
        let _ticks = Ticks::every(Duration::from_nanos(self.period))?;
        while !shared.stop.load(Ordering::Acquire) {
            if let Some((thread, stop)) = self.tracer.next(true)? {
                self.handle(thread, stop, shared);
            }
            let now = clock::monotonic();
            if now >= self.next_tick {
                self.next_tick = now + self.period * 9 / 10;
                self.interrupt_running(shared)?;
            }
        }
        Ok(())
    }

    /// Interrupts each thread from the CPU that the thread runs on: that CPU then only changes from the thread to this one
    /// and back. If this thread ran on another CPU, the thread's CPU would fall asleep while the thread is stopped, and
    /// waking it takes many times longer.
    fn interrupt_running(&mut self, shared: &Shared) -> io::Result<()> {
        let mut due = std::mem::take(&mut self.due);
        self.threads.due(&self.root, self.period, &mut due);
        for &thread in &due {
            let cpu = self.threads.get(thread).and_then(|known| known.pending.as_ref()?.cpu);
            self.go_to(cpu);
            match self.tracer.interrupt(thread) {
                Ok(()) => self.await_stop(thread, shared)?,
                Err(_) => self.threads.get(thread).into_iter().for_each(|known| known.done(false)),
            }
        }
        self.due = due;
        Ok(())
    }

    /// Runs on this CPU from now on. Where that is not permitted, stops take longer.
    fn go_to(&mut self, cpu: Option<u32>) {
        if let Some(cpu) = cpu.filter(|cpu| self.at != Some(*cpu))
            && sched::set_affinity(&std::iter::once(cpu).collect()).is_ok()
        {
            self.at = Some(cpu);
        }
    }

    /// Handles stops until an interrupted thread has stopped. If that takes longer than a tick, its stop is handled with the
    /// next ones.
    fn await_stop(&mut self, thread: u32, shared: &Shared) -> io::Result<()> {
        while self.threads.get(thread).is_some_and(|known| known.pending.is_some()) {
            match self.tracer.next(true)? {
                Some((stopped, stop)) => self.handle(stopped, stop, shared),
                None => break,
            }
        }
        Ok(())
    }

    /// Handles a stop, and lets the thread run on as it would without a tracer. Errors mean that the thread was killed
    /// meanwhile.
    fn handle(&mut self, thread: u32, stop: Stop, shared: &Shared) {
        match stop {
            Stop::Interrupted => {
                self.know(thread, shared);
                if let Some(due) = self.threads.get(thread).and_then(|known| known.pending) {
                    self.sample(thread, due, shared);
                }
                _ = self.tracer.resume(thread, 0);
            }
            Stop::Signal(signal) => _ = self.tracer.resume(thread, signal),
            Stop::Group => _ = self.tracer.leave_stopped(thread),
            Stop::Created(created) => {
                self.know(created, shared);
                _ = self.tracer.resume(thread, 0);
            }
            Stop::Executed(former) => {
                self.threads.executed(&self.root, thread, former);
                shared.note(Noted::Executed { process: thread, time: clock::monotonic() });
                _ = self.tracer.resume(thread, 0);
            }
            Stop::Ended(status) => {
                if let Some((_, end)) = self.child.as_ref().filter(|(child, _)| *child == thread) {
                    end.set(status);
                }
                if let Some(process) = self.threads.remove(thread) {
                    shared.note(Noted::Ended { process, thread });
                }
            }
        }
    }

    fn sample(&mut self, thread: u32, due: Due, shared: &Shared) {
        let time = clock::monotonic();
        let found = self.tracer.registers(thread);
        // Only a thread that was interrupted in a system call needs a repair; each look at a stopped thread takes some of
        // its time.
        if found.as_ref().is_ok_and(|found| found.is_none_or(|found| found.in_call)) {
            _ = self.tracer.repair_call(thread);
        }
        let Some(known) = self.threads.get(thread) else { return };
        let Ok(Some(found)) = found else {
            shared.lose(|losses| losses.without_registers += 1);
            return known.done(true);
        };
        let mut sample = Sample {
            process: known.process,
            thread,
            time,
            cpu: due.cpu,
            weight: due.weight,
            registers: found.registers,
            in_kernel: found.in_call,
            faults: due.faults,
            ..Sample::default()
        };
        let pointer = found.registers.stack_pointer();
        let length = remote::read(known.process, pointer, &mut self.stack).unwrap_or(0);
        sample.stack.set(pointer, &self.stack[..length]);
        known.done(true);
        shared.note(Noted::Sample(Box::new(sample)));
    }
}
