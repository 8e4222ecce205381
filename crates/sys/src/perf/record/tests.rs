use super::*;
use crate::registers::{PERF_MASK, STACK_POINTER};

const ALL: SampleLayout = SampleLayout {
    fields: SampleLayout::KNOWN & !(kernel::PERF_SAMPLE_WEIGHT_STRUCT as u64),
    registers: PERF_MASK,
};

/// A record with this body.
fn record(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
    let size = (HEADER + size_of_val(body)) as u16;
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    body.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
    bytes
}

fn pair(first: u32, second: u32) -> u64 {
    let [a, b] = [first.to_ne_bytes(), second.to_ne_bytes()];
    u64::from_ne_bytes([a, b].concat().try_into().unwrap())
}

/// The fields of a sample before its registers: number, ip, thread, time, address, CPU, period.
fn front() -> Vec<u64> {
    vec![77, 0x40_1000, pair(5, 6), 123_456, 0x7f00_0000_1238, pair(3, 0), 5_000_000]
}

fn samples(bytes: &[u8], layout: SampleLayout) -> Vec<PerfRecord<'_>> {
    PerfRecords::new(bytes, layout).collect()
}

#[test]
fn a_sample_with_every_field_is_read() {
    let mut body = front();
    body.push(u64::from(kernel::PERF_SAMPLE_REGS_ABI_64));
    body.extend(100..100 + u64::from(PERF_MASK.count_ones()));
    // 24 bytes of stack, of which 16 could be read.
    body.extend([24, 1, 2, 3, 16]);
    // A latency and a source, as processors with precise events write them.
    body.extend([231, 0x68_0100]);
    let bytes = record(kernel::PERF_RECORD_SAMPLE, kernel::PERF_RECORD_MISC_USER as u16, &body);
    let [PerfRecord::Sample(sample)] = samples(&bytes, ALL)[..] else { panic!() };
    assert_eq!((sample.id, sample.ip, sample.process, sample.thread), (77, 0x40_1000, 5, 6));
    assert_eq!((sample.time, sample.cpu, sample.period), (123_456, Some(3), 5_000_000));
    assert_eq!((sample.address, sample.latency), (Some(0x7f00_0000_1238), Some(231)));
    assert_eq!((sample.source, sample.in_kernel), (Some(0x68_0100), false));
    let registers = sample.registers.unwrap();
    assert_eq!(registers.general[STACK_POINTER], if cfg!(target_arch = "x86_64") { 107 } else { 131 });
    assert_eq!(sample.stack, [1u64.to_ne_bytes(), 2u64.to_ne_bytes()].concat());
}

#[test]
fn a_weight_in_three_parts_is_a_latency() {
    let layout = SampleLayout { fields: kernel::PERF_SAMPLE_WEIGHT_STRUCT.into(), registers: 0 };
    let bytes = record(kernel::PERF_RECORD_SAMPLE, 1, &[0x0002_0003_0000_0190]);
    let [PerfRecord::Sample(sample)] = samples(&bytes, layout)[..] else { panic!() };
    assert_eq!((sample.latency, sample.in_kernel), (Some(400), true));
}

#[test]
fn threads_of_the_kernel_and_32_bit_programs_have_no_registers() {
    let layout = SampleLayout { fields: kernel::PERF_SAMPLE_REGS_USER.into(), registers: PERF_MASK };
    let none = record(kernel::PERF_RECORD_SAMPLE, 2, &[kernel::PERF_SAMPLE_REGS_ABI_NONE.into()]);
    let mut short = vec![u64::from(kernel::PERF_SAMPLE_REGS_ABI_32)];
    short.extend(vec![7; PERF_MASK.count_ones() as usize]);
    let short = record(kernel::PERF_RECORD_SAMPLE, 2, &short);
    for bytes in [none, short] {
        let [PerfRecord::Sample(sample)] = samples(&bytes, layout)[..] else { panic!() };
        assert_eq!(sample.registers, None);
    }
}

#[test]
fn other_records_say_what_happened() {
    let executed = (kernel::PERF_RECORD_MISC_COMM_EXEC | 2) as u16;
    let mut bytes = record(kernel::PERF_RECORD_LOST, 0, &[77, 12]);
    bytes.extend(record(kernel::PERF_RECORD_LOST_SAMPLES, 0, &[3]));
    bytes.extend(record(kernel::PERF_RECORD_THROTTLE, 0, &[1, 77, 77]));
    bytes.extend(record(kernel::PERF_RECORD_FORK, 0, &[pair(5, 4), pair(7, 4), 9]));
    bytes.extend(record(kernel::PERF_RECORD_EXIT, 0, &[pair(5, 4), pair(7, 4), 9]));
    bytes.extend(record(kernel::PERF_RECORD_COMM, executed, &[pair(5, 5), 0x6873, pair(5, 5), 400, 3, 77]));
    bytes.extend(record(kernel::PERF_RECORD_MMAP2, 2, &[pair(5, 5), 0x1000, 0x2000, 0, 0, 0, 0, 0, 0]));
    bytes.extend(record(kernel::PERF_RECORD_AUX, 0, &[]));
    let expected = [
        PerfRecord::Lost(12),
        PerfRecord::Lost(3),
        PerfRecord::Throttled,
        PerfRecord::Forked { process: 5, thread: 7, parent: 4 },
        PerfRecord::Exited { process: 5, thread: 7 },
        PerfRecord::Named { process: 5, thread: 5, executed: true, time: 400 },
        PerfRecord::Mapped { process: 5, start: 0x1000, length: 0x2000 },
        PerfRecord::Other(kernel::PERF_RECORD_AUX),
    ];
    assert_eq!(samples(&bytes, ALL), expected);
}
