use super::*;
use crate::shared_ring::layout::{ENDS, HEADER_WORDS, WRITING};
use crate::shared_ring::{GRACE, slots_at};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::thread;

/// What the library does, in Rust.
struct Producer<'a>(&'a SampleRing);

impl Producer<'_> {
    fn claim(&self) -> Option<u64> {
        let words = &self.0.ring.words;
        let is_full = |head: u64| head.wrapping_sub(words[header::TAIL].load(Acquire)) >= self.0.ring.slots;
        let claimed = words[header::HEAD]
            .fetch_update(Release, Relaxed, |head| (!is_full(head)).then_some(head.wrapping_add(1)));
        claimed.inspect_err(|_| _ = words[header::LOST].fetch_add(1, Relaxed)).ok()
    }

    fn slot(&self, position: u64) -> &[AtomicU64] {
        let at = slots_at() + (position & (self.0.ring.slots - 1)) as usize * SLOT_WORDS;
        &self.0.ring.words[at..at + SLOT_WORDS]
    }

    fn begin(&self, position: u64, thread: u32, number: u64) {
        let slot = self.slot(position);
        slot[0].store((position + 1) | WRITING, Relaxed);
        fence(Release);
        for (word, value) in slot.iter().zip(sample(thread, number)).skip(1) {
            word.store(value, Relaxed);
        }
    }

    fn end(&self, position: u64) {
        self.slot(position)[0].store(position + 1, Release);
    }

    fn write(&self, thread: u32, number: u64) -> bool {
        let Some(position) = self.claim() else { return false };
        self.begin(position, thread, number);
        self.end(position);
        true
    }
}

/// The words of a sample; all of its registers are its number.
fn sample(thread: u32, number: u64) -> [u64; SLOT_WORDS] {
    let mut words = [number; SLOT_WORDS];
    words[1] = 1 | u64::from(thread) << 32;
    words[2] = number;
    words[3] = 5_000_000;
    words[4] = 3;
    words[5] = 2 | 1 << 32 | 3 << 48;
    words[11] = STACK_BYTES as u64 | 3_000 << 32;
    words
}

fn drained(ring: &mut SampleRing, now: u64) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    ring.drain_at(now, &mut |sample| all.push((sample.thread, sample.ip)));
    all
}

#[test]
fn samples_come_out_as_they_went_in() {
    let mut ring = SampleRing::create(4).unwrap();
    assert!(Producer(&ring).write(7, 99));
    let mut seen = Vec::new();
    assert_eq!(ring.drain(&mut |sample| seen.push(sample.clone())), 1);
    let sample = &seen[0];
    assert_eq!((sample.process, sample.thread, sample.time, sample.ip), (1, 7, 99, 99));
    assert_eq!((sample.cpu, sample.overruns, sample.faults), (Some(3), 0, Some(2)));
    assert_eq!((sample.cpu_time, sample.kernel_time), (Some(5_000_000), 3_000_000));
    assert_eq!(sample.gs_base, Some(99));
    assert_eq!((sample.general, sample.stack().len()), ([99; GENERAL], STACK_BYTES));
    assert_eq!(sample.stack()[..16], [99, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(ring.drain(&mut |_| panic!("it is taken twice")), 0);
}

#[test]
fn a_full_ring_loses_samples_and_counts_them() {
    let mut ring = SampleRing::create(8).unwrap();
    let written = (0..20).filter(|number| Producer(&ring).write(1, *number)).count();
    assert_eq!((written, ring.losses().full), (8, 12));
    assert_eq!(drained(&mut ring, 0), (0..8).map(|number| (1, number)).collect::<Vec<_>>());
    assert!(Producer(&ring).write(1, 50));
    assert_eq!(drained(&mut ring, 0), [(1, 50)]);
}

#[test]
fn a_thread_that_is_killed_while_it_writes_costs_one_sample() {
    let mut ring = SampleRing::create(8).unwrap();
    let first = Producer(&ring).claim().unwrap();
    Producer(&ring).begin(first, 1, 1);
    // Those behind it do not wait for it.
    for number in 0..3 {
        assert!(Producer(&ring).write(2, number));
    }
    assert_eq!(drained(&mut ring, 0).len(), 3);
    assert_eq!((drained(&mut ring, GRACE).len(), ring.losses().unfinished), (0, 0));
    assert_eq!((drained(&mut ring, 2 * GRACE).len(), ring.losses().unfinished), (0, 1));
    for _ in 0..5 {
        assert_eq!((0..100).filter(|number| Producer(&ring).write(2, *number)).count(), 8);
        assert_eq!(drained(&mut ring, 2 * GRACE).len(), 8);
    }
}

#[test]
fn a_slow_thread_s_sample_comes_later() {
    let mut ring = SampleRing::create(8).unwrap();
    let first = Producer(&ring).claim().unwrap();
    Producer(&ring).begin(first, 1, 1);
    assert!(Producer(&ring).write(2, 2));
    assert_eq!(drained(&mut ring, 0), [(2, 2)]);
    Producer(&ring).end(first);
    assert_eq!(drained(&mut ring, 1), [(1, 1)]);
    assert_eq!(ring.losses(), RingLosses::default());
}

#[test]
fn threads_write_at_the_same_time() {
    const THREADS: u32 = 4;
    let each = numakit_skips::rounds(2_000, 20_000) as u64;
    let mut ring = SampleRing::create(64).unwrap();
    // A second view of the same memory, as another process has it.
    let view = SampleRing {
        ring: SharedRing { words: ring.ring.words.view().unwrap(), unfinished: Vec::new(), ..ring.ring },
    };
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    let mut count = 0;
    thread::scope(|scope| {
        let writers: Vec<_> = (1..=THREADS)
            .map(|thread| {
                let view = &view;
                scope.spawn(move || (1..=each).filter(|number| Producer(view).write(thread, *number)).count())
            })
            .collect();
        let mut written = 0;
        let mut running = writers;
        loop {
            let is_last = running.iter().all(thread::ScopedJoinHandle::is_finished);
            count += ring.drain_at(0, &mut |sample| {
                assert!(sample.general.iter().all(|value| *value == sample.ip), "a sample is mixed");
                assert!(last.insert(sample.thread, sample.ip) < Some(sample.ip), "samples are not in order");
            });
            if is_last {
                break;
            }
        }
        for writer in running.drain(..) {
            written += writer.join().unwrap();
        }
        assert_eq!(count, written);
    });
    assert_eq!(count as u64 + ring.losses().full, u64::from(THREADS) * each);
    assert_eq!(ring.losses().damaged + ring.losses().unfinished + ring.losses().resets, 0);
}

#[test]
fn the_size_of_the_file_cannot_be_changed() {
    let ring = SampleRing::create(2).unwrap();
    assert!([0, 1 << 30].iter().all(|&size| ring.ring.words.resize(size).is_err()));
}

#[test]
fn processes_are_reported_until_they_have_ended() {
    let mut ring = SampleRing::create(2).unwrap();
    let set = |ring: &SampleRing, number: usize, values: [u64; 8]| {
        let at = HEADER_WORDS + number * ENTRY_WORDS;
        for (word, value) in ring.ring.words[at..].iter().zip(values) {
            word.store(value, Relaxed);
        }
    };
    let own = u64::from(std::process::id());
    set(&ring, 0, [own, 3, 1, 50, 2, 0, 2, 11]);
    set(&ring, 100, [own | ENDS, 1, 0, 7, 0, 4096, 0, 12]);
    let all = ring.processes();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].process, all[0].is_ended, all[0].state), (own as u32, false, SamplingState::Filtered));
    assert_eq!((all[0].threads, all[0].threads_without_timer, all[0].samples, all[0].lost), (3, 1, 50, 2));
    assert!(all[1].is_ended && all[1].chain.unwrap().begin == 4096);
    assert_eq!(ring.processes().len(), 1);
}

#[test]
fn a_wait_ends_when_it_is_asked_or_at_its_time() {
    let mut ring = SampleRing::create(2).unwrap();
    ring.drain(&mut |_| {});
    ring.wait(clock::monotonic() + 1_000_000);
    ring.ring.words.half(header::WANTED).fetch_add(1, Release);
    // Two minutes: the test would not end.
    ring.wait(clock::monotonic() + 120_000_000_000);
}

proptest! {
    #[test]
    fn any_words_are_a_sample_or_refused(words in prop::collection::vec(any::<u64>(), SLOT_WORDS)) {
        let words: [u64; SLOT_WORDS] = words.try_into().unwrap();
        if let Some(sample) = RingSample::parse(&words) {
            prop_assert!(sample.stack().len() <= STACK_BYTES);
        }
    }

    #[test]
    fn nothing_in_the_ring_stops_the_reader(writes in prop::collection::vec((0usize..6000, any::<u64>()), 1..200)) {
        let mut ring = SampleRing::create(4).unwrap();
        for (at, value) in writes {
            let value = if value % 3 == 0 { value % 16 } else { value };
            ring.ring.words[at % ring.ring.words.len()].store(value, Relaxed);
            prop_assert!(drained(&mut ring, at as u64).len() <= 8);
            prop_assert!(ring.ring.unfinished.len() <= 8);
            ring.processes();
        }
        // It works again afterwards.
        ring.ring.words[header::HEAD].store(0, Relaxed);
        drained(&mut ring, u64::MAX - 1);
        drained(&mut ring, u64::MAX);
        let numbers: BTreeSet<u64> = (0..4).collect();
        for number in &numbers {
            prop_assert!(Producer(&ring).write(1, *number));
        }
        let seen: BTreeSet<u64> = drained(&mut ring, u64::MAX).into_iter().map(|(_, number)| number).collect();
        prop_assert_eq!(seen, numbers);
    }
}
