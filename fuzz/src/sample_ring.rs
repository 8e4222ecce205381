//! Samples that observed programs write, or overwrite.

use numakit_sys::sample_ring::{RingSample, SLOT_WORDS, STACK_BYTES, SampleRing};

/// The words of one slot.
pub fn slot(input: &[u8]) -> bool {
    let mut words = [0; SLOT_WORDS];
    for (word, bytes) in words.iter_mut().zip(input.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let Some(sample) = RingSample::parse(&words) else { return false };
    assert!(sample.stack().len() <= STACK_BYTES && sample.thread != 0);
    true
}

/// A ring into which a program writes anything: ten bytes are a place and a value. The reader drains in between.
pub fn ring(input: &[u8]) -> bool {
    let Ok(mut ring) = SampleRing::create(4) else { return false };
    let mut drained = false;
    for write in input.chunks_exact(10).take(1000) {
        let (place, value) = write.split_at(2);
        let (Ok(place), Ok(value)) = (place.try_into(), value.try_into()) else { return false };
        ring.overwrite(u16::from_le_bytes(place).into(), u64::from_le_bytes(value));
        let mut count = 0;
        ring.drain(&mut |_| count += 1);
        assert!(count <= 8, "{count}");
        drained |= count > 0;
        ring.processes();
    }
    drained
}
