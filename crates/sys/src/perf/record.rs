//! The records of performance events: values from bytes. The kernel describes their layout in `perf_event.h`.

use crate::registers::UserRegisters;
use perf_event_open_sys::bindings as kernel;

/// What a sample contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLayout {
    /// `sample_type` of the event.
    pub fields: u64,
    /// `sample_regs_user` of the event.
    pub registers: u64,
}

impl SampleLayout {
    /// The fields that [`PerfRecords`] reads. A sample that has other fields is not parsed.
    pub const KNOWN: u64 = (kernel::PERF_SAMPLE_IDENTIFIER
        | kernel::PERF_SAMPLE_IP
        | kernel::PERF_SAMPLE_TID
        | kernel::PERF_SAMPLE_TIME
        | kernel::PERF_SAMPLE_ADDR
        | kernel::PERF_SAMPLE_CPU
        | kernel::PERF_SAMPLE_PERIOD
        | kernel::PERF_SAMPLE_REGS_USER
        | kernel::PERF_SAMPLE_STACK_USER
        | kernel::PERF_SAMPLE_WEIGHT
        | kernel::PERF_SAMPLE_WEIGHT_STRUCT
        | kernel::PERF_SAMPLE_DATA_SRC) as u64;

    fn has(&self, field: kernel::perf_event_sample_format) -> bool {
        self.fields & field as u64 != 0
    }
}

/// A sample as the kernel wrote it. A field that the event does not have is 0 or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawSample<'a> {
    /// The event, as the kernel numbers it.
    pub id: u64,
    /// The address of the interrupted instruction, of the kernel or of the program.
    pub ip: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// When, on the clock of the event.
    pub time: u64,
    /// The data address that the event is about.
    pub address: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// Events since the last sample.
    pub period: u64,
    /// The registers in user mode; none for a thread of the kernel or a 32-bit program.
    pub registers: Option<UserRegisters>,
    /// The memory above the stack pointer.
    pub stack: &'a [u8],
    /// The latency of the access, in the unit of the processor.
    pub latency: Option<u64>,
    /// The source of the data, as `perf_mem_data_src` encodes it.
    pub source: Option<u64>,
    /// Whether the kernel was interrupted, and not the program.
    pub in_kernel: bool,
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a record is looked at once; most are samples, and none is boxed"
)]
pub enum PerfRecord<'a> {
    /// A sample.
    Sample(RawSample<'a>),
    /// This many records did not fit into the ring.
    Lost(u64),
    /// The kernel stopped the event for the rest of a tick, because its interrupts took too long.
    Throttled,
    /// A thread has a new name; `executed` if that is because it executed a program.
    Named {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
        /// Whether it executed a program.
        executed: bool,
        /// When, on the clock of the event.
        time: u64,
    },
    /// A thread started.
    Forked {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
        /// The process that created the new one; for a new thread, its own process.
        parent: u32,
    },
    /// A thread ended.
    Exited {
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
    },
    /// A process mapped code.
    Mapped {
        /// The process.
        process: u32,
        /// The first address.
        start: u64,
        /// Bytes.
        length: u64,
    },
    /// A record of another kind, or a malformed one.
    Other(u32),
}

/// Bytes of the header of a record: type, misc, size.
const HEADER: usize = 8;

/// The records in a sequence of bytes. It ends where the bytes do not contain a whole record.
#[derive(Debug, Clone)]
pub struct PerfRecords<'a> {
    bytes: &'a [u8],
    layout: SampleLayout,
}

impl<'a> PerfRecords<'a> {
    /// The records of events with this layout.
    pub fn new(bytes: &'a [u8], layout: SampleLayout) -> Self {
        Self { bytes, layout }
    }

    /// Bytes that are left.
    pub fn rest(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> Iterator for PerfRecords<'a> {
    type Item = PerfRecord<'a>;

    fn next(&mut self) -> Option<PerfRecord<'a>> {
        let mut fields = Fields(self.bytes);
        let kind = fields.half()?;
        let word = fields.half()?;
        let (misc, size) = halves(word);
        let size = usize::from(size);
        if size < HEADER || size > self.bytes.len() {
            return None;
        }
        let (record, rest) = self.bytes.split_at(size);
        self.bytes = rest;
        let body = Fields(&record[HEADER..]);
        Some(parse(kind, misc, body, self.layout).unwrap_or(PerfRecord::Other(kind)))
    }
}

/// The two halves of a word, in the order of memory.
fn halves(word: u32) -> (u16, u16) {
    let [a, b, c, d] = word.to_ne_bytes();
    (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]))
}

fn parse(kind: u32, misc: u16, mut body: Fields<'_>, layout: SampleLayout) -> Option<PerfRecord<'_>> {
    Some(match kind {
        kernel::PERF_RECORD_SAMPLE => PerfRecord::Sample(sample(misc, body, layout)?),
        // The number of the event comes first.
        kernel::PERF_RECORD_LOST => PerfRecord::Lost({
            body.word()?;
            body.word()?
        }),
        kernel::PERF_RECORD_LOST_SAMPLES => PerfRecord::Lost(body.word()?),
        kernel::PERF_RECORD_THROTTLE => PerfRecord::Throttled,
        kernel::PERF_RECORD_COMM => PerfRecord::Named {
            time: body.written(layout)?,
            process: body.half()?,
            thread: body.half()?,
            executed: u32::from(misc) & kernel::PERF_RECORD_MISC_COMM_EXEC != 0,
        },
        kernel::PERF_RECORD_FORK | kernel::PERF_RECORD_EXIT => {
            let (process, parent, thread) = (body.half()?, body.half()?, body.half()?);
            if kind == kernel::PERF_RECORD_FORK {
                PerfRecord::Forked { process, thread, parent }
            } else {
                PerfRecord::Exited { process, thread }
            }
        }
        kernel::PERF_RECORD_MMAP | kernel::PERF_RECORD_MMAP2 => {
            let process = body.half()?;
            body.half()?;
            PerfRecord::Mapped { process, start: body.word()?, length: body.word()? }
        }
        other => PerfRecord::Other(other),
    })
}

/// The fields in the order in which the kernel writes them.
fn sample<'a>(misc: u16, mut body: Fields<'a>, layout: SampleLayout) -> Option<RawSample<'a>> {
    if layout.fields & !SampleLayout::KNOWN != 0 {
        return None;
    }
    let mode = u32::from(misc) & kernel::PERF_RECORD_MISC_CPUMODE_MASK;
    let mut raw = RawSample { in_kernel: mode == kernel::PERF_RECORD_MISC_KERNEL, ..RawSample::default() };
    if layout.has(kernel::PERF_SAMPLE_IDENTIFIER) {
        raw.id = body.word()?;
    }
    if layout.has(kernel::PERF_SAMPLE_IP) {
        raw.ip = body.word()?;
    }
    if layout.has(kernel::PERF_SAMPLE_TID) {
        (raw.process, raw.thread) = (body.half()?, body.half()?);
    }
    if layout.has(kernel::PERF_SAMPLE_TIME) {
        raw.time = body.word()?;
    }
    if layout.has(kernel::PERF_SAMPLE_ADDR) {
        raw.address = Some(body.word()?);
    }
    if layout.has(kernel::PERF_SAMPLE_CPU) {
        raw.cpu = Some(body.half()?);
        body.half()?;
    }
    if layout.has(kernel::PERF_SAMPLE_PERIOD) {
        raw.period = body.word()?;
    }
    if layout.has(kernel::PERF_SAMPLE_REGS_USER) {
        raw.registers = body.registers(layout.registers)?;
    }
    if layout.has(kernel::PERF_SAMPLE_STACK_USER) {
        raw.stack = body.stack()?;
    }
    if layout.has(kernel::PERF_SAMPLE_WEIGHT) {
        raw.latency = Some(body.word()?);
    } else if layout.has(kernel::PERF_SAMPLE_WEIGHT_STRUCT) {
        // The lower half is the latency of the memory access.
        raw.latency = Some(body.word()? & u64::from(u32::MAX));
    }
    if layout.has(kernel::PERF_SAMPLE_DATA_SRC) {
        raw.source = Some(body.word()?);
    }
    Some(raw)
}

/// Takes fields from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }

    fn half(&mut self) -> Option<u32> {
        let (half, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*half))
    }

    /// When a record that is no sample was written: some fields of samples are at its end.
    fn written(&self, layout: SampleLayout) -> Option<u64> {
        let behind = [kernel::PERF_SAMPLE_CPU, kernel::PERF_SAMPLE_IDENTIFIER];
        let words = 1 + behind.into_iter().filter(|field| layout.has(*field)).count();
        let at = self.0.len().checked_sub(words * size_of::<u64>())?;
        layout.has(kernel::PERF_SAMPLE_TIME).then(|| Fields(&self.0[at..]).word())?
    }

    /// The registers of a sample. The inner `None` means that the sample has no registers, as its ABI says.
    fn registers(&mut self, mask: u64) -> Option<Option<UserRegisters>> {
        let abi = self.word()?;
        if abi == u64::from(kernel::PERF_SAMPLE_REGS_ABI_NONE) {
            return Some(None);
        }
        let (values, rest) = self.0.split_at_checked(mask.count_ones() as usize * size_of::<u64>())?;
        self.0 = rest;
        let values = values.as_chunks().0.iter().map(|value| u64::from_ne_bytes(*value));
        let is_whole = abi == u64::from(kernel::PERF_SAMPLE_REGS_ABI_64);
        Some(is_whole.then(|| UserRegisters::of_perf(mask, values)))
    }

    fn stack(&mut self) -> Option<&'a [u8]> {
        let room = usize::try_from(self.word()?).ok()?;
        if room == 0 {
            return Some(&[]);
        }
        let (bytes, rest) = self.0.split_at_checked(room)?;
        self.0 = rest;
        // The kernel says how many of them it could read.
        let filled = usize::try_from(self.word()?).ok()?;
        bytes.get(..filled)
    }
}

#[cfg(test)]
mod tests;
