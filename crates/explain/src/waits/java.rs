//! Waits of Java threads: to the kernel all of them are futexes of the machine, and dumps of its threads tell them apart.

use super::WaitKind;
use super::answer::SeenTime;
use super::targets::WaitTarget;
use super::watch::{SeenWait, WaitWatch};
use crate::java::waits::{JavaPlace, JavaWaits};
use crate::threads::ThreadAccounts;
use std::collections::BTreeMap;

/// Begins of the names of threads in which the machine does its own work. These always wait, so that they are no reason to ask.
const OWN_THREADS: [&str; 14] = [
    "GC Thread",
    "G1 ",
    "ZGC",
    "VM ",
    "C1 Comp",
    "C2 Comp",
    "Signal Dispatch",
    "Finalizer",
    "Reference Handl",
    "Common-Cleaner",
    "Service Thread",
    "Monitor Deflati",
    "Sweeper thread",
    "Notification Th",
];

/// Whether threads wait for each other by this wait.
pub(super) fn is_of_threads(wait: &SeenWait) -> bool {
    wait.kind.is_for_threads()
        && wait.kind != WaitKind::Thread
        && matches!(wait.target, WaitTarget::Futex { .. })
}

impl WaitWatch {
    /// Whether any thread of a process, beside those of the machine itself, waits for others now.
    pub(crate) fn has_java_waiters(&self, process: u32, accounts: &ThreadAccounts) -> bool {
        self.threads.iter().any(|((pid, tid), thread)| {
            *pid == process
                && thread.waits.and_then(|place| self.waits.get(place)).is_some_and(is_of_threads)
                && accounts
                    .name(*pid, *tid)
                    .is_some_and(|name| !OWN_THREADS.iter().any(|own| name.starts_with(own)))
        })
    }
}

/// Times of threads by process and number.
type Times = BTreeMap<(u32, u32), SeenTime>;

/// Divides the time of threads at a futex by what dumps say of them. What is left belongs to threads that no dump saw waiting.
pub(super) fn divide(threads: Times, told: &JavaWaits) -> (BTreeMap<JavaPlace, Times>, Times) {
    let (mut of_java, mut left) = (BTreeMap::<JavaPlace, Times>::new(), Times::new());
    for (thread, seen) in threads {
        let all: u64 = told.of_thread(thread.1).map(|(_, count)| u64::from(count)).sum();
        if all == 0 {
            left.insert(thread, seen);
            continue;
        }
        // The parts add up: each is the difference of two sums.
        let mut before = 0;
        for (place, count) in told.of_thread(thread.1) {
            let after = before + u64::from(count);
            let part = |whole: u64| {
                let until = |count: u64| u128::from(whole) * u128::from(count) / u128::from(all);
                (until(after) - until(before)) as u64
            };
            let part = SeenTime { time: part(seen.time), looks: part(seen.looks) };
            of_java.entry(place).or_default().insert(thread, part);
            before = after;
        }
    }
    (of_java, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java::dump;
    use std::collections::HashMap;

    #[test]
    fn the_time_of_a_thread_is_divided_among_what_it_was_seen_to_wait_for() {
        let waiting = |class: &str| {
            format!("\"a\" nid=7 x\n\tat A.f(A.java:1)\n\t- waiting to lock <0x1> (a {class})\n")
        };
        let mut told = JavaWaits::default();
        for class in ["A", "B", "A"] {
            told.note(&dump::threads(&waiting(class)), &HashMap::new());
        }
        let seen = SeenTime { time: 1000, looks: 10 };
        let (of_java, left) = divide(Times::from([((1, 7), seen), ((1, 8), seen)]), &told);
        assert_eq!(left.keys().collect::<Vec<_>>(), [&(1, 8)]);
        let parts: Vec<(Option<String>, u64, u64)> = of_java
            .iter()
            .map(|(place, threads)| (told.named(*place).1, threads[&(1, 7)].time, threads[&(1, 7)].looks))
            .collect();
        let of = |class: &str| Some(format!("Java monitor of class {class}"));
        assert_eq!(parts, [(of("A"), 666, 6), (of("B"), 334, 4)]);
    }
}
