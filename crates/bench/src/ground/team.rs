//! Threads that start at the same moment, each on its CPU with memory of its own.

use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::sampled::{self, MIN_SAMPLES};
use numakit_model::CpuSet;
use numakit_sys::loops::{Advice, Region, Vectors, write};
use numakit_sys::{clock, sched};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

/// Minimum memory of a thread, so that it works for some time between two readings of the clock.
const LEAST: u64 = 64 << 10;
/// Time for all threads to see when a round begins, in ns: for the first, and for each more.
const LEAD: u64 = 50_000;
const LEAD_EACH: u64 = 5_000;

/// What memory is filled with. Lines that are mostly zero are a sixth faster to write on some CPUs.
pub(crate) const BYTE: u8 = 0x5a;

/// Two pieces of memory of the same length.
pub(crate) struct Part {
    /// Read by copies.
    pub from: Region,
    /// Written by copies.
    pub to: Region,
}

/// A thread's CPU, and what it works on.
pub(crate) struct Seat<T> {
    pub cpu: u32,
    pub work: T,
}

impl Part {
    /// Memory of this many bytes together, on a node.
    pub fn on(ground: &Ground<'_>, node: u32, bytes: u64) -> Result<Self, Misplaced> {
        let one = || {
            let mut region = placed::memory(ground, node, (bytes / 2).max(LEAST), Advice::Huge)?;
            placed::beside(ground, node, || write(&mut region, BYTE, Vectors::widest()))?;
            Ok(region)
        };
        Ok(Self { from: one()?, to: one()? })
    }
}

/// How often threads repeat the same work: for this time, and at least this often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub least: usize,
    pub time: Duration,
}

impl Rounds {
    /// As many rounds as one value needs.
    pub fn of(ground: &Ground<'_>) -> Self {
        Self { least: MIN_SAMPLES, time: ground.time() }
    }
}

/// Lets a thread on each of these CPUs repeat the same work, and all of them begin each round at one moment. `prepare` is
/// not timed, and `pass` returns how much it has done. Returns what all threads together did for each nanosecond, round by
/// round; the reason if a thread cannot be bound.
pub(crate) fn rates<T: Send>(
    ground: &Ground<'_>,
    seats: &mut [Seat<T>],
    rounds: Rounds,
    prepare: impl Fn(&mut T) + Sync,
    pass: impl Fn(&mut T) -> usize + Sync,
) -> Result<Vec<f64>, Misplaced> {
    let round = Round::new(seats.len());
    let mut rates = std::thread::scope(|scope| {
        let join = |seat: &mut Seat<T>| round.join(seat, &prepare, &pass);
        let members: Vec<_> = seats.iter_mut().map(|seat| scope.spawn(move || join(seat))).collect();
        let rates = sampled::repeat_at_least(rounds.least, rounds.time, || {
            (!ground.is_stopped()).then(|| round.run_one())
        });
        round.end();
        members.into_iter().for_each(|member| _ = member.join());
        rates
    });
    // The first round finds page tables and caches as whatever ran before left them, so it does not count.
    if !rates.is_empty() {
        rates.remove(0);
    }
    round.refused.into_inner().ok().flatten().map_or(Ok(rates), Err)
}

/// The state of a round, which all members begin at one time.
struct Round {
    members: usize,
    gate: Barrier,
    over: AtomicBool,
    begin: AtomicU64,
    last: AtomicU64,
    done: AtomicU64,
    refused: Mutex<Option<Misplaced>>,
}

impl Round {
    /// For this number of members, and for the thread that times them.
    fn new(members: usize) -> Self {
        Self {
            members,
            gate: Barrier::new(members + 1),
            over: AtomicBool::new(false),
            begin: AtomicU64::new(0),
            last: AtomicU64::new(0),
            done: AtomicU64::new(0),
            refused: Mutex::new(None),
        }
    }

    /// Takes part as a member until the end. A member that cannot be bound takes part too, since the others wait for it.
    fn join<T>(&self, seat: &mut Seat<T>, prepare: impl Fn(&mut T), pass: impl Fn(&mut T) -> usize) {
        if let Err(error) = sched::set_affinity(&CpuSet::range(seat.cpu, seat.cpu))
            && let Ok(mut refused) = self.refused.lock()
        {
            *refused = Some(Misplaced(format!("a thread cannot be bound to CPU {}: {error}", seat.cpu)));
        }
        loop {
            self.gate.wait();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            prepare(&mut seat.work);
            self.gate.wait();
            while !self.has_begun() {
                std::hint::spin_loop();
            }
            let done = pass(&mut seat.work);
            self.last.fetch_max(clock::monotonic(), Ordering::Relaxed);
            self.done.fetch_add(done as u64, Ordering::Relaxed);
            self.gate.wait();
        }
    }

    /// Whether the time of the beginning is known and has come.
    fn has_begun(&self) -> bool {
        let begin = self.begin.load(Ordering::Acquire);
        begin != 0 && clock::monotonic() >= begin
    }

    /// How much was done for each nanosecond of one round.
    fn run_one(&self) -> f64 {
        self.done.store(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        self.begin.store(0, Ordering::Relaxed);
        // The members meet here three times: before they prepare, before they look for the beginning, and when they have
        // ended.
        self.gate.wait();
        self.gate.wait();
        let begin = clock::monotonic() + LEAD + LEAD_EACH * self.members as u64;
        self.begin.store(begin, Ordering::Release);
        self.gate.wait();
        let time = self.last.load(Ordering::Relaxed).saturating_sub(begin).max(1);
        self.done.load(Ordering::Relaxed) as f64 / time as f64
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.gate.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn every_thread_prepares_and_passes_in_every_round() {
        on_this_machine(|ground| {
            let node = ground.memories[0];
            let seat = |&cpu: &u32| Seat { cpu, work: (0, Part::on(ground, node, 1 << 17).unwrap()) };
            let mut seats: Vec<_> = ground.places[0].cpus.iter().map(seat).collect();
            let pass = |work: &mut (u32, Part)| write(&mut work.1.to, 7, Vectors::widest());
            let rates = rates(ground, &mut seats, Rounds::of(ground), |work| work.0 += 1, pass).unwrap();
            assert!(rates.len() >= 4 && rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
            let sevens = f64::from_ne_bytes([7; 8]);
            for seat in &seats {
                assert_eq!(seat.work.0 as usize, rates.len() + 1);
                assert!(seat.work.1.to.doubles().iter().all(|value| *value == sevens));
            }
            seats[0].cpu = 9999;
            assert!(
                super::rates(ground, &mut seats, Rounds::of(ground), |_| (), |_| 1)
                    .unwrap_err()
                    .0
                    .contains("CPU 9999")
            );
        });
    }
}
