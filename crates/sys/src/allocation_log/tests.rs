use super::*;
use crate::shared_ring::slots_at;
use proptest::prelude::*;
use std::sync::atomic::Ordering::Release;

/// The words of a record: kind, function and number of frames in the sixth.
fn record(kind: u64, function: u64, frames: u64) -> [u64; LOG_SLOT_WORDS] {
    let mut words = [0; LOG_SLOT_WORDS];
    words[1] = 7 | 8 << 32;
    words[2..6].copy_from_slice(&[1000, 0x10_0000, 4096, 64]);
    words[6] = 3 | kind << 32 | function << 40 | frames << 48;
    words[7..10].copy_from_slice(&[0x7000, 0x7100, 12]);
    words[10..13].copy_from_slice(&[0x401_000, 0x402_000, 0x403_000]);
    words[26] = 0x0807_0605_0403_0201;
    words[27] = 0x0c0b_0a09;
    words
}

fn event(kind: u64) -> AllocationEvent {
    AllocationRecord::parse(&record(kind, 1, 1)).unwrap().event
}

fn write(log: &AllocationLog, words: &[u64; LOG_SLOT_WORDS]) {
    let head = log.ring.words[header::HEAD].load(Relaxed);
    let at = slots_at() + (head % log.ring.slots) as usize * LOG_SLOT_WORDS;
    for (to, from) in log.ring.words[at..].iter().zip(words).skip(1) {
        to.store(*from, Relaxed);
    }
    log.ring.words[at].store(head + 1, Release);
    log.ring.words[header::HEAD].store(head + 1, Release);
}

#[test]
fn a_record_comes_out_as_it_went_in() {
    let mut log = AllocationLog::create(4, LogThreshold::default()).unwrap();
    write(&log, &record(5, 3, 3));
    let mut all = Vec::new();
    assert_eq!(log.drain(&mut |record| all.push(record.clone())), 1);
    let seen = &all[0];
    assert_eq!((seen.process, seen.thread, seen.time, seen.cpu), (7, 8, 1000, Some(3)));
    let (address, size) = (0x10_0000, 4096);
    assert_eq!(
        seen.event,
        AllocationEvent::Allocated { address, size, alignment: Some(64), is_sample: false }
    );
    let call = seen.call.unwrap();
    assert_eq!((call.function, call.function.name()), (AllocationFunction::Realloc, "realloc"));
    assert_eq!((call.stack_pointer, call.frame_pointer), (0x7000, 0x7100));
    assert_eq!(call.frames(), [0x401_000, 0x402_000, 0x403_000]);
    assert_eq!(call.stack(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(log.drain(&mut |_| panic!("it is taken twice")), 0);
}

#[test]
fn each_kind_is_an_event() {
    let (address, size) = (0x10_0000, 4096);
    assert_eq!(event(1), AllocationEvent::ProcessBegan { parent: 64, sites: Some(BlockSites::new(address)) });
    assert_eq!(event(2), AllocationEvent::ProcessForked { parent: 64 });
    let stack = Some((address, address + size));
    assert_eq!(event(3), AllocationEvent::ThreadBegan { stack, base: 64, function: Some(0x401_000) });
    assert_eq!(event(4), AllocationEvent::ThreadEnded);
    assert_eq!(event(6), AllocationEvent::Allocated { address, size, alignment: Some(64), is_sample: true });
    assert_eq!(event(7), AllocationEvent::Freed { address });
    assert_eq!(event(8), AllocationEvent::Kept { address });
    assert_eq!(event(9), AllocationEvent::Mapped { address, size, protection: 64, flags: 0 });
    assert_eq!(event(10), AllocationEvent::Unmapped { address, size });
    assert_eq!(event(11), AllocationEvent::StillMapped { address, size });
}

#[test]
fn what_the_library_cannot_write_is_damaged() {
    let mut log = AllocationLog::create(64, LogThreshold::default()).unwrap();
    let with = |at: usize, value: u64| {
        let mut words = record(5, 1, 1);
        words[at] = value;
        words
    };
    let wrong = [
        record(0, 1, 1),
        record(12, 1, 1),
        record(5, 0, 1),
        record(5, 13, 1),
        record(5, 1, 0),
        record(5, 1, 17),
        with(1, 0),
        with(2, u64::MAX),
        with(3, u64::MAX),
        with(9, PIECE_BYTES as u64 + 1),
    ];
    wrong.iter().for_each(|words| write(&log, words));
    assert_eq!(log.drain(&mut |record| panic!("{record:?}")), 0);
    assert_eq!(log.losses().damaged, wrong.len() as u64);
}

#[test]
fn a_sampled_block_represents_others() {
    let threshold = LogThreshold { least: 65_536, period: 524_288, first: 0 };
    let of = |size| threshold.blocks_of_a_sample(size);
    // One in 8,192 blocks of 64 bytes, and all that are logged anyway.
    assert!((of(64) - 8192.5).abs() < 0.1, "{}", of(64));
    assert!((of(32_768) - 16.5).abs() < 0.1, "{}", of(32_768));
    assert_eq!((of(65_536), of(0)), (1.0, 1.0));
    assert_eq!(LogThreshold { least: 65_536, period: 0, first: 0 }.blocks_of_a_sample(64), 1.0);
}

proptest! {
    #[test]
    fn any_words_are_a_record_or_refused(
        words in prop::collection::vec(any::<u64>(), LOG_SLOT_WORDS),
        small in prop::collection::vec(0u64..20, 10),
        shape in (0u64..14, 0u64..14, 0u64..20),
    ) {
        let mut words: [u64; LOG_SLOT_WORDS] = words.try_into().unwrap();
        for round in 0..2 {
            if let Some(record) = AllocationRecord::parse(&words) {
                prop_assert!(record.process != 0 && record.thread != 0);
                let calls = record.call.iter().all(|call| {
                    (1..=CALL_FRAMES).contains(&call.frames().len()) && call.stack().len() <= PIECE_BYTES
                });
                prop_assert!(calls);
            }
            // Nearly a record.
            words[..10].copy_from_slice(&small);
            words[1] = (1 + small[1]) | ((round + 1) << 32);
            words[6] = small[6] | shape.0 << 32 | shape.1 << 40 | shape.2 << 48;
        }
    }

    #[test]
    fn more_blocks_are_represented_by_smaller_ones(size in 1u64..65_535, period in 1u64..1 << 40) {
        let threshold = LogThreshold { least: 65_536, period, first: 0 };
        let of = |size| threshold.blocks_of_a_sample(size);
        prop_assert!(of(size).is_finite() && of(size) >= 1.0 && of(size) >= of(size + 1));
    }

    #[test]
    fn nothing_in_the_log_stops_the_reader(writes in prop::collection::vec((0usize..6000, any::<u64>()), 1..200)) {
        let mut log = AllocationLog::create(4, LogThreshold::default()).unwrap();
        for (at, value) in writes {
            log.overwrite(at, if value % 3 == 0 { value % 16 } else { value });
            let mut count = 0;
            log.drain_at(at as u64, &mut |_| count += 1);
            prop_assert!(count <= 8);
            log.processes();
        }
    }
}
