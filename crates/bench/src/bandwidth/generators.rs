//! Traffic that other cores make while one core measures.

use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::ground::team::{BYTE, Seat};
use numakit_model::CpuSet;
use numakit_sys::loops::{Advice, Mix, Region, TrafficGauge, Vectors, traffic, write};
use numakit_sys::{sched, ticks};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// The time between two looks at whether all have begun.
const LOOK: Duration = Duration::from_millis(1);
/// The least memory of a thread.
const LEAST: u64 = 64 << 10;

/// Threads that read and write memory of a node.
pub(crate) struct Generators {
    seats: Vec<Seat<Region>>,
    ticks_per_ns: f64,
}

/// How fast all generators together are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// As fast as they can.
    Full,
    /// GB/s of all.
    At(f64),
}

impl Generators {
    /// Makes generators on these CPUs, which together use this many bytes of a node's memory; an error if there are no CPUs.
    pub fn on(ground: &Ground<'_>, cpus: &[u32], node: u32, bytes: u64) -> Result<Self, Misplaced> {
        if cpus.is_empty() {
            return Err(Misplaced(
                "the core that measures is the only one that may be used, and none is left to make traffic"
                    .to_owned(),
            ));
        }
        if let Some(why) = ground.lacks(node, bytes) {
            return Err(Misplaced(why));
        }
        let share = (bytes / cpus.len() as u64).max(LEAST);
        let seat = |&cpu: &u32| {
            let mut work = placed::memory(ground, node, share, Advice::Huge)?;
            placed::beside(ground, node, || write(&mut work, BYTE, Vectors::widest()))?;
            Ok(Seat { cpu, work })
        };
        let seats = cpus.iter().map(seat).collect::<Result<_, _>>()?;
        Ok(Self { seats, ticks_per_ns: (1u64 << 32) as f64 / ticks::ns_per_tick().max(1) as f64 })
    }

    /// Does something on a CPU while they make traffic, and can see how much.
    pub fn around<T: Send>(
        &mut self,
        mix: Mix,
        pace: Pace,
        cpu: u32,
        work: impl FnOnce(&Gauges) -> T + Send,
    ) -> Result<T, Misplaced> {
        let pause = match pace {
            Pace::Full => 0.0,
            Pace::At(rate) => self.ticks_per_ns * self.seats.len() as f64 / rate.max(f64::MIN_POSITIVE),
        };
        let gauges = Gauges(self.seats.iter().map(|_| TrafficGauge::default()).collect());
        let (end, refused) = (AtomicBool::new(false), Mutex::new(None));
        let done = std::thread::scope(|scope| {
            let start = |(seat, gauge)| {
                let (seat, end, refused): (&mut Seat<Region>, _, _) = (seat, &end, &refused);
                scope.spawn(move || match sched::set_affinity(&CpuSet::range(seat.cpu, seat.cpu)) {
                    Ok(()) => traffic(&mut seat.work, mix, pause, gauge, end),
                    Err(error) => refuse(refused, seat.cpu, &error),
                })
            };
            let threads: Vec<_> = self.seats.iter_mut().zip(&gauges.0).map(start).collect();
            // A thread that has ended was refused or has failed: it moves nothing any more.
            let is_waiting = || gauges.0.iter().any(|gauge| gauge.moved() == 0);
            while is_waiting() && !threads.iter().any(ScopedJoinHandle::is_finished) {
                std::thread::sleep(LOOK);
            }
            let done = placed::on_cpu(cpu, || work(&gauges));
            end.store(true, Ordering::Relaxed);
            done
        });
        refused.into_inner().ok().flatten().map_or(done, Err)
    }
}

/// How many bytes each generator has moved so far.
#[derive(Default)]
pub(crate) struct Gauges(Vec<TrafficGauge>);

impl Gauges {
    /// Bytes that all generators have moved so far.
    pub fn moved(&self) -> u64 {
        self.0.iter().map(TrafficGauge::moved).sum()
    }
}

fn refuse(refused: &Mutex<Option<Misplaced>>, cpu: u32, error: &std::io::Error) {
    if let Ok(mut refused) = refused.lock() {
        *refused = Some(Misplaced(format!("a thread cannot be bound to CPU {cpu}: {error}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn traffic_flows_while_the_work_is_done() {
        on_this_machine(|ground| {
            let (node, cpu) = (ground.memories[0], ground.places[0].cpus[0]);
            let mut generators = Generators::on(ground, &[cpu], node, 1 << 17).unwrap();
            for mix in Mix::ALL {
                let work = |gauges: &Gauges| (sched::affinity().unwrap(), gauges.moved());
                let (on, moved) = generators.around(mix, Pace::Full, cpu, work).unwrap();
                assert_eq!((on, moved > 0), (CpuSet::range(cpu, cpu), true), "{mix:?}");
            }
            let rest = |gauges: &Gauges| {
                let before = gauges.moved();
                std::thread::sleep(20 * LOOK);
                gauges.moved() - before
            };
            // 1 MB/s for 20 ms or more: a few chunks.
            let moved = generators.around(Mix::All, Pace::At(1e-3), cpu, rest).unwrap();
            assert!(moved < 1 << 20, "{moved} bytes");
        });
    }

    #[test]
    fn without_cores_or_memory_there_is_a_reason() {
        on_this_machine(|ground| {
            let (node, cpu) = (ground.memories[0], ground.places[0].cpus[0]);
            let why = |cpus: &[u32], bytes| Generators::on(ground, cpus, node, bytes).err().unwrap().0;
            assert!(why(&[], 1 << 17).contains("only one"));
            assert!(why(&[cpu], 1 << 50).contains("--size"));
            let mut absent = Generators::on(ground, &[9999], node, 1 << 17).unwrap();
            assert!(absent.around(Mix::Reads, Pace::Full, cpu, |_| ()).unwrap_err().0.contains("CPU 9999"));
        });
    }
}
