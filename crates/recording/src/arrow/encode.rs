//! Encodes rows of the ring as a record batch.

use super::seal::{self, Place};
use super::{Head, copy};
use crate::columns::FIXED;
use crate::ring::{Pending, RingEntry, Row};
use arrow_ipc::{
    BodyCompressionArgs, BodyCompressionMethod, Buffer, CompressionType, FieldNode, MessageHeader,
    RecordBatchArgs,
};
use flatbuffers::FlatBufferBuilder;
use std::io;

/// The level of zstd: pyarrow's own default, and the fastest that keeps the size.
pub(crate) const LEVEL: i32 = 1;

/// Columns that are gathered in one pass over the rows: one cache line of each row.
const BLOCK: usize = 8;

/// One batch in this number has a copy of the schema, beginning with the first.
const COPY_PERIOD: u64 = 50;

/// Builds batches; it reuses its buffers.
pub(crate) struct Encoder {
    columns: usize,
    /// The stream that the batches belong to, and the copy of its schema.
    sealed: Option<(u32, Vec<u8>)>,
    batches: u64,
    compressor: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

struct Layout {
    nodes: Vec<FieldNode>,
    buffers: Vec<Buffer>,
    body: Vec<u8>,
}

impl Encoder {
    /// For batches of that schema.
    pub fn new(head: &Head) -> io::Result<Self> {
        let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
        // So that damage within a buffer is detected.
        compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(true))?;
        let sealed = match head.stream {
            Some(stream) => Some((stream, copy::of_schema(&head.message)?)),
            None => None,
        };
        let columns = head.header.series.len();
        Ok(Self { columns, sealed, batches: 0, compressor, raw: Vec::new(), packed: Vec::new() })
    }

    /// The pending entries as a framed message, without removing them from the ring.
    pub fn batch(&mut self, pending: &Pending<'_>) -> io::Result<Vec<u8>> {
        let (rows, labels) = pending.before();
        self.batch_at(pending, Place { rows, labels })
    }

    /// The same at another position of the recording.
    pub fn batch_at(&mut self, pending: &Pending<'_>, place: Place) -> io::Result<Vec<u8>> {
        let count = pending.len();
        let fields = self.columns + FIXED.len();
        let mut layout = Layout {
            nodes: Vec::with_capacity(fields),
            buffers: Vec::with_capacity(fields * 2 + 1),
            body: Vec::new(),
        };
        self.times(pending, &mut layout)?;
        self.labels(pending, &mut layout)?;
        let rows: Vec<Option<Row<'_>>> = pending
            .entries()
            .map(|entry| match entry {
                RingEntry::Row(row) => Some(row),
                RingEntry::Label { .. } => None,
            })
            .collect();
        let mut block: [Vec<u64>; BLOCK] = Default::default();
        let mut valid: [Vec<u8>; BLOCK] = Default::default();
        for first in (0..self.columns).step_by(BLOCK) {
            let width = BLOCK.min(self.columns - first);
            for column in 0..width {
                block[column].clear();
                valid[column].clear();
                valid[column].resize(count.div_ceil(8), 0);
            }
            for (index, row) in rows.iter().enumerate() {
                for column in 0..width {
                    let value = row.as_ref().and_then(|r| r.value(first + column));
                    valid[column][index / 8] |= u8::from(value.is_some()) << (index % 8);
                    // An absent value repeats the one before, which compresses to nothing.
                    let filler = block[column].last().copied().unwrap_or(0);
                    block[column].push(value.unwrap_or(filler));
                }
            }
            for column in 0..width {
                self.column(count, &block[column], &valid[column], &mut layout)?;
            }
        }
        if let Some((_, copy)) = self.sealed.as_ref().filter(|_| self.batches.is_multiple_of(COPY_PERIOD)) {
            layout.body.extend_from_slice(copy);
        }
        self.batches += 1;
        let seal = self.sealed.as_ref().map(|(stream, _)| (place, *stream));
        Ok(finish(count, &layout, seal))
    }

    fn times(&mut self, pending: &Pending<'_>, layout: &mut Layout) -> io::Result<()> {
        let count = pending.len();
        let (mut time, mut took) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for entry in pending.entries() {
            match entry {
                RingEntry::Row(row) => {
                    time.push(row.time());
                    took.push(row.took());
                }
                RingEntry::Label { time: at, .. } => {
                    time.push(at);
                    took.push(0);
                }
            }
        }
        self.column(count, &time, &[], layout)?;
        self.column(count, &took, &[], layout)
    }

    fn labels(&mut self, pending: &Pending<'_>, layout: &mut Layout) -> io::Result<()> {
        let count = pending.len();
        let mut valid = vec![0u8; count.div_ceil(8)];
        let mut text = String::new();
        let mut offsets = vec![0u32];
        for (index, entry) in pending.entries().enumerate() {
            if let RingEntry::Label { index: label, .. } = entry {
                valid[index / 8] |= 1 << (index % 8);
                text.push_str(&pending.label_text(label));
            }
            offsets.push(text.len() as u32);
        }
        let nulls = count - pending.labels();
        layout.nodes.push(FieldNode::new(count as i64, nulls as i64));
        self.buffer(if nulls == 0 { &[] } else { &valid }, layout)?;
        let bytes: Vec<u8> = offsets.iter().flat_map(|o| o.to_le_bytes()).collect();
        self.buffer(&bytes, layout)?;
        self.buffer(text.as_bytes(), layout)
    }

    /// A column of 64-bit values; an empty bitmap means that all are valid.
    fn column(&mut self, count: usize, values: &[u64], valid: &[u8], layout: &mut Layout) -> io::Result<()> {
        let set: usize = valid.iter().map(|b| b.count_ones() as usize).sum();
        let nulls = if valid.is_empty() { 0 } else { count - set };
        layout.nodes.push(FieldNode::new(count as i64, nulls as i64));
        self.buffer(if nulls == 0 { &[] } else { valid }, layout)?;
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        values.iter().for_each(|v| raw.extend_from_slice(&v.to_le_bytes()));
        let result = self.buffer(&raw, layout);
        self.raw = raw;
        result
    }

    /// Compresses a buffer into the body: its length, then the compressed bytes; or -1 and the plain
    /// bytes if they are not longer.
    fn buffer(&mut self, plain: &[u8], layout: &mut Layout) -> io::Result<()> {
        let start = layout.body.len();
        if !plain.is_empty() {
            self.packed.resize(zstd::zstd_safe::compress_bound(plain.len()), 0);
            let packed = self.compressor.compress_to_buffer(plain, &mut self.packed[..])?;
            if packed < plain.len() {
                layout.body.extend_from_slice(&(plain.len() as i64).to_le_bytes());
                layout.body.extend_from_slice(&self.packed[..packed]);
            } else {
                layout.body.extend_from_slice(&(-1i64).to_le_bytes());
                layout.body.extend_from_slice(plain);
            }
        }
        layout.buffers.push(Buffer::new(start as i64, (layout.body.len() - start) as i64));
        layout.body.resize(layout.body.len().next_multiple_of(8), 0);
        Ok(())
    }
}

fn finish(count: usize, layout: &Layout, seal: Option<(Place, u32)>) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::with_capacity(layout.nodes.len() * 48 + 256);
    let nodes = Some(builder.create_vector(&layout.nodes));
    let buffers = Some(builder.create_vector(&layout.buffers));
    let compression = Some(arrow_ipc::BodyCompression::create(
        &mut builder,
        &BodyCompressionArgs { codec: CompressionType::ZSTD, method: BodyCompressionMethod::BUFFER },
    ));
    let batch = arrow_ipc::RecordBatch::create(
        &mut builder,
        &RecordBatchArgs { length: count as i64, nodes, buffers, compression, variadicBufferCounts: None },
    );
    seal::finish(builder, (MessageHeader::RecordBatch, batch.as_union_value()), &layout.body, seal)
}
