//! Keeps the threads that observe off the CPUs on which the observed program runs, while there are others.
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
}

/// Where the calling thread runs: off these CPUs, if its own mask has others.
#[derive(Debug, Default)]
pub struct Aside {
    /// The mask that it had at first; `None` before it was read.
    permitted: Option<CpuSet>,
    chosen: CpuSet,
}

impl Aside {
    /// Moves the calling thread if need be. It does not wait, and where binding is refused, the thread stays as it is.
    pub fn step(&mut self, running: &RunningCpus) {
        let Ok(running) = running.0.try_lock() else { return };
        if self.permitted.is_none() {
            self.permitted = sched::affinity().ok();
            self.chosen = self.permitted.clone().unwrap_or_default();
        }
        let Some(permitted) = &self.permitted else { return };
        let best = choose(permitted, &running);
        if best != self.chosen && sched::set_affinity(&best).is_ok() {
            self.chosen = best;
        }
    }
}

/// The CPUs without the program, or all if it runs on each of them.
fn choose(permitted: &CpuSet, running: &CpuSet) -> CpuSet {
    let free = permitted.minus(running);
    if free.is_empty() { permitted.clone() } else { free }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_the_cpus_of_the_program_while_there_are_others() {
        let set = |list: &str| CpuSet::parse_list(list).unwrap();
        for (permitted, running, chosen) in [
            ("0-3", "1", "0,2-3"),
            ("0-1", "0-1", "0-1"),
            ("2", "2", "2"),
            ("0-3", "7", "0-3"),
            ("0-1", "", "0-1"),
        ] {
            assert_eq!(choose(&set(permitted), &set(running)), set(chosen), "{permitted} {running}");
        }
    }

    #[test]
    fn a_thread_goes_aside_and_comes_back() {
        let before = sched::affinity().unwrap();
        let (mut aside, running) = (Aside::default(), RunningCpus::default());
        let first: CpuSet = before.iter().take(1).collect();
        running.set(&first);
        aside.step(&running);
        let rest = before.minus(&first);
        assert_eq!(sched::affinity().unwrap(), if rest.is_empty() { before.clone() } else { rest });
        running.set(&before);
        aside.step(&running);
        assert_eq!(sched::affinity().unwrap(), before);
    }
}
