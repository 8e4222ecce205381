//! Records of allocations that observed programs write, or overwrite.

use numakit_sys::allocation_log::{
    AllocationLog, AllocationRecord, CALL_FRAMES, LOG_SLOT_WORDS, LogThreshold, PIECE_BYTES,
};

/// The words of one slot.
pub fn slot(input: &[u8]) -> bool {
    let mut words = [0; LOG_SLOT_WORDS];
    for (word, bytes) in words.iter_mut().zip(input.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let Some(record) = AllocationRecord::parse(&words) else { return false };
    assert!(record.process != 0 && record.thread != 0);
    if let Some(call) = record.call {
        assert!((1..=CALL_FRAMES).contains(&call.frames().len()) && call.stack().len() <= PIECE_BYTES);
    }
    true
}

/// A log into which a program writes anything: ten bytes are a place and a value. The reader drains in between.
pub fn log(input: &[u8]) -> bool {
    let Ok(mut log) = AllocationLog::create(4, LogThreshold::default()) else { return false };
    let mut drained = false;
    for write in input.chunks_exact(10).take(1000) {
        let (place, value) = write.split_at(2);
        let (Ok(place), Ok(value)) = (place.try_into(), value.try_into()) else { return false };
        log.overwrite(u16::from_le_bytes(place).into(), u64::from_le_bytes(value));
        let mut count = 0;
        log.drain(&mut |_| count += 1);
        assert!(count <= 8, "{count}");
        drained |= count > 0;
        log.processes();
    }
    drained
}
