//! Traffic of other cores while one measures.

use crate::ground::Ground;
use crate::placed::{self, Misplaced};
use crate::team::{BYTE, Seat};
use numakit_model::CpuSet;
use numakit_sys::kernels::{Advice, Mix, Region, TrafficGauge, Vectors, traffic, write};
use numakit_sys::{clock, sched, ticks};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at how much has moved.
const LOOK: Duration = Duration::from_millis(10);
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
    /// On these CPUs, with this many bytes of a node's memory together; an error if there are no CPUs.
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

    /// Does something on a CPU while they make traffic. Also returns the GB/s that moved meanwhile, by parts of the time.
    pub fn around<T: Send>(
        &mut self,
        mix: Mix,
        pace: Pace,
        cpu: u32,
        work: impl FnOnce() -> T + Send,
    ) -> Result<(T, Vec<f64>), Misplaced> {
        let pause = match pace {
            Pace::Full => 0.0,
            Pace::At(rate) => self.ticks_per_ns * self.seats.len() as f64 / rate.max(f64::MIN_POSITIVE),
        };
        let gauges: Vec<TrafficGauge> = self.seats.iter().map(|_| TrafficGauge::default()).collect();
        let (end, refused) = (AtomicBool::new(false), Mutex::new(None));
        let done = std::thread::scope(|scope| {
            for (seat, gauge) in self.seats.iter_mut().zip(&gauges) {
                let (end, refused) = (&end, &refused);
                scope.spawn(move || match sched::set_affinity(&CpuSet::range(seat.cpu, seat.cpu)) {
                    Ok(()) => traffic(&mut seat.work, mix, pause, gauge, end),
                    Err(error) => refuse(refused, seat.cpu, &error),
                });
            }
            while gauges.iter().any(|gauge| gauge.moved() == 0) && !is_refused(&refused) {
                std::thread::sleep(LOOK / 10);
            }
            let worker = scope.spawn(|| placed::on_cpu(cpu, work));
            let rates = rates(&gauges, || worker.is_finished());
            let done = worker.join();
            end.store(true, Ordering::Relaxed);
            match done {
                Ok(done) => done.map(|done| (done, rates)),
                Err(_) => Err(Misplaced(format!("the thread on CPU {cpu} failed"))),
            }
        });
        refused.into_inner().ok().flatten().map_or(done, Err)
    }
}

fn refuse(refused: &Mutex<Option<Misplaced>>, cpu: u32, error: &std::io::Error) {
    if let Ok(mut refused) = refused.lock() {
        *refused = Some(Misplaced(format!("a thread cannot be bound to CPU {cpu}: {error}")));
    }
}

fn is_refused(refused: &Mutex<Option<Misplaced>>) -> bool {
    refused.lock().is_ok_and(|refused| refused.is_some())
}

/// Bytes for each ns, look by look until the end; at least one.
fn rates(gauges: &[TrafficGauge], is_over: impl Fn() -> bool) -> Vec<f64> {
    let now = || (clock::monotonic(), gauges.iter().map(TrafficGauge::moved).sum::<u64>());
    let (mut rates, mut before) = (Vec::new(), now());
    while !is_over() || rates.is_empty() {
        // Short measurements end soon; long ones are not disturbed often.
        std::thread::sleep(if rates.is_empty() { LOOK / 10 } else { LOOK });
        let after = now();
        rates.push((after.1 - before.1) as f64 / (after.0 - before.0).max(1) as f64);
        before = after;
    }
    // The work began and ended within the first and the last part.
    if rates.len() > 3 { rates[1..rates.len() - 1].to_vec() } else { rates }
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
            let here = || sched::affinity().unwrap();
            for mix in Mix::ALL {
                let (on, rates) = generators.around(mix, Pace::Full, cpu, here).unwrap();
                assert_eq!(on, CpuSet::range(cpu, cpu));
                assert!(!rates.is_empty() && rates.iter().all(|rate| *rate >= 0.0), "{rates:?}");
            }
            let slow = Pace::At(1e-3);
            let (_, rates) = generators.around(Mix::All, slow, cpu, || std::thread::sleep(2 * LOOK)).unwrap();
            assert!(rates.iter().all(|rate| *rate < 0.1), "{rates:?}");
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
            assert!(absent.around(Mix::Reads, Pace::Full, cpu, || ()).unwrap_err().0.contains("CPU 9999"));
        });
    }
}
