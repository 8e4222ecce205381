use super::*;
use crate::clock;
use crate::perf::Errno;

/// Spins for a time of CPU.
fn spin(ns: u64) {
    let end = clock::thread_cpu() + ns;
    while clock::thread_cpu() < end {}
}

fn open(request: &SamplingRequest<'_>) -> Option<SampledRings> {
    match SampledRings::open(request) {
        Ok(rings) => Some(rings),
        Err(SamplingError::Open(error)) if Errno::of(&error) == Some(Errno::Denied) => {
            numakit_skips::PRIVILEGES.skip(format_args!("perf_event_open is refused here: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

const EVERY_MS: SampledEvent = SampledEvent {
    event: PerfEvent { pmu: PerfEvent::SOFTWARE, config: [0; 4] },
    period: 1_000_000,
    precise: 0,
    has_addresses: false,
};

#[test]
fn measuring_the_calling_thread_is_sampled_by_its_cpu_time() {
    assert_eq!(EVERY_MS, SampledEvent::cpu_clock(1_000_000));
    let request = SamplingRequest {
        events: &[EVERY_MS],
        tasks: SampledTasks::Caller,
        content: SampleContent::Registers { stack: 256 },
        pages: 64,
    };
    let Some(mut rings) = open(&request) else { return };
    let start = clock::monotonic();
    spin(50_000_000);
    let end = clock::monotonic();
    let (mut count, mut with_stack) = (0, 0);
    rings.drain(&mut |record, event| {
        let PerfRecord::Sample(sample) = record else { return };
        assert_eq!((event, sample.period, sample.process), (Some(0), 1_000_000, std::process::id()));
        assert!((start..=end).contains(&sample.time));
        assert!(sample.cpu.is_some() && sample.address.is_none() && sample.latency.is_none());
        let registers = sample.registers.unwrap();
        with_stack += u32::from(sample.stack.len() == 256 && registers.stack_pointer() != 0);
        count += 1;
    });
    // A virtual machine that is stopped for a while takes fewer samples, but not more.
    assert!((10..=60).contains(&count) && with_stack > 0, "{count} {with_stack}");
}

#[test]
fn measuring_what_does_not_fit_into_the_ring_is_counted() {
    let event = SampledEvent::cpu_clock(100_000);
    let request = SamplingRequest {
        events: &[event],
        tasks: SampledTasks::Caller,
        content: SampleContent::Registers { stack: 512 },
        pages: 1,
    };
    let Some(mut rings) = open(&request) else { return };
    assert_eq!(rings.ring_size() as u64, crate::sched::page_size());
    spin(20_000_000);
    let (mut taken, mut lost) = (0, 0);
    for _ in 0..2 {
        rings.drain(&mut |record, _| match record {
            PerfRecord::Sample(_) => taken += 1,
            PerfRecord::Lost(count) => lost += count,
            _ => {}
        });
        // The kernel says what it lost before the next sample.
        spin(2_000_000);
    }
    assert!(taken > 3 && lost > 10, "{taken} {lost}");
}

#[test]
fn events_that_share_a_ring_are_distinguished() {
    let events = [EVERY_MS, SampledEvent::page_faults(1)];
    let request = SamplingRequest {
        events: &events,
        tasks: SampledTasks::Caller,
        content: SampleContent::Registers { stack: 0 },
        pages: 64,
    };
    let Some(mut rings) = open(&request) else { return };
    // The C library always maps a block of this size anew: it never gives memory that was touched before.
    let touched = std::hint::black_box(vec![1u8; 40 << 20]);
    spin(5_000_000);
    let mut counts = [0, 0];
    rings.drain(&mut |record, event| {
        if let (PerfRecord::Sample(_), Some(event)) = (record, event) {
            counts[event] += 1;
        }
    });
    assert_eq!(touched.len(), 40 << 20);
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    assert!(rings.started().is_empty());
}

#[test]
fn a_thread_that_has_ended_is_nothing_to_sample() {
    let cpus = crate::sched::affinity().unwrap();
    let request = SamplingRequest {
        events: &[EVERY_MS],
        tasks: SampledTasks::Threads(&[u32::MAX >> 2], &cpus),
        content: SampleContent::Registers { stack: 0 },
        pages: 1,
    };
    assert!(matches!(SampledRings::open(&request), Err(SamplingError::Nothing | SamplingError::Open(_))));
}
