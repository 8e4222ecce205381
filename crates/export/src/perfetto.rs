//! A Perfetto trace: a counter track per series, labels as instant events.
//!
//! The numbers of fields are those of `perfetto/trace/perfetto_trace.proto`; a test reads the output
//! with the official definition. A counter track is a step function, so a value that
//! repeats the one before is left out, except the last one. A rate is at the start of
//! its interval.

mod packets;
mod protobuf;
mod tracks;

use crate::{
    ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues, Number, Numbers,
};
use numakit_recording::{Batch, Header};
use packets::Packets;
use protobuf::ProtobufMessage;
use std::io;

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "perfetto",
    help: "a trace for ui.perfetto.dev: a counter track per series, counters as rates",
    extension: "pftrace",
    binary: true,
    judges: false,
    values: &[ExportedValues::Rates, ExportedValues::Raw],
    write,
};

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    let mut packets = Packets::new(to);
    packets.clock(header.started)?;
    for descriptor in tracks::descriptors(&header, options.values) {
        packets.track(&descriptor)?;
    }
    let mut trace = Trace::new(&header, options.values, packets);
    source.each(|batch| trace.batch(batch))?;
    trace.finish()?;
    Ok(Vec::new())
}

struct Trace<'a> {
    packets: Packets<'a>,
    numbers: Numbers,
    /// The current value of each track.
    current: Vec<Option<TrackValue>>,
    event: ProtobufMessage,
}

#[derive(Clone, Copy)]
struct TrackValue {
    number: Number,
    at: u64,
    /// The last time with this number.
    until: u64,
}

impl<'a> Trace<'a> {
    fn new(header: &Header, values: ExportedValues, packets: Packets<'a>) -> Self {
        Self {
            packets,
            numbers: Numbers::new(&header.series, values),
            current: vec![None; header.series.len()],
            event: ProtobufMessage::default(),
        }
    }

    fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        for row in 0..batch.len() {
            let time = batch.time[row];
            if let Some(text) = &batch.label[row] {
                tracks::instant(&mut self.event, text);
                self.packets.event(time, &self.event)?;
                continue;
            }
            self.numbers.row(batch, row);
            for series in 0..self.current.len() {
                if let Some(number) = self.numbers.latest(series) {
                    self.value(series, number, time)?;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, series: usize, number: Number, time: u64) -> io::Result<()> {
        if let Some(current) = &mut self.current[series]
            && current.number == number
        {
            current.until = time;
            return Ok(());
        }
        let at = self.numbers.began(series).unwrap_or(time);
        self.current[series] = Some(TrackValue { number, at, until: time });
        self.counter(series, number, at)
    }

    /// Extends every track to its last measurement.
    fn finish(mut self) -> io::Result<()> {
        for series in 0..self.current.len() {
            if let Some(TrackValue { number, at, until }) = self.current[series]
                && until > at
            {
                self.counter(series, number, until)?;
            }
        }
        self.packets.finish()
    }

    fn counter(&mut self, series: usize, number: Number, time: u64) -> io::Result<()> {
        tracks::counter(&mut self.event, series, number);
        self.packets.event(time, &self.event)
    }
}

#[cfg(test)]
mod tests;
