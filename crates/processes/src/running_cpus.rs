//! Moves the threads that observe off the CPUs on which the observed program runs, while there are others.
//!
//! A real-time thread runs where it ran last, also if a program is there and other CPUs are idle. Each sample then stops the
//! program for as long as it takes to read it.

use numakit_model::CpuSet;
use numakit_sys::sched;
use std::sync::Mutex;

/// The CPUs on which observed threads were running when they were scanned last.
#[derive(Debug, Default)]
pub struct RunningCpus(Mutex<CpuSet>);

impl RunningCpus {
    /// Notes those of a scan.
    pub fn set(&self, cpus: &CpuSet) {
        if let Ok(mut noted) = self.0.lock() {
            noted.clone_from(cpus);
        }
    }

    /// Moves the calling thread to another CPU if the program runs on this one, and its mask has one where it does not. The mask
    /// is as before when this returns: a thread with a mask of its own would count as bound, and others would avoid its CPUs.
    /// This does not wait, and where binding is refused, the thread stays.
    pub fn leave(&self) {
        let Some(here) = sched::current_cpu() else { return };
        let Ok(running) = self.0.try_lock() else { return };
        if !running.contains(here) {
            return;
        }
        let Ok(permitted) = sched::affinity() else { return };
        let free = permitted.minus(&running);
        // Released before the system calls.
        drop(running);
        if !free.is_empty() && sched::set_affinity(&free).is_ok() {
            // It fails only if the cpuset has changed meanwhile, and then the kernel has set another mask.
            let _ = sched::set_affinity(&permitted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_mask_and_stays_where_it_is_bound() {
        let before = sched::affinity().unwrap();
        let running = RunningCpus::default();
        running.set(&before);
        running.leave();
        assert_eq!(sched::affinity().unwrap(), before);
        for cpu in before.iter() {
            let one: CpuSet = std::iter::once(cpu).collect();
            running.set(&one);
            running.leave();
            assert_eq!(sched::affinity().unwrap(), before, "CPU {cpu}");
            sched::set_affinity(&one).unwrap();
            running.leave();
            assert_eq!((sched::current_cpu(), sched::affinity().unwrap()), (Some(cpu), one));
            sched::set_affinity(&before).unwrap();
        }
    }

    #[test]
    fn a_real_time_thread_leaves_the_cpu_of_the_program() {
        let before = sched::affinity().unwrap();
        // Only these stay where they are.
        if before.len() < 2 || !sched::may_use_realtime() {
            return numakit_skips::MACHINE.skip("one CPU, or no real-time priority");
        }
        let moved = std::thread::spawn(move || {
            sched::set_realtime().unwrap();
            let here = sched::current_cpu().unwrap();
            let running = RunningCpus::default();
            running.set(&std::iter::once(here).collect());
            running.leave();
            (here, sched::current_cpu().unwrap())
        });
        let (from, to) = moved.join().unwrap();
        assert_ne!(from, to);
    }
}
