//! The packets of a trace.

use super::protobuf::ProtobufMessage;
use crate::ExportOutput;
use std::io;

/// The only sequence of packets in the trace.
pub const SEQUENCE: u64 = 1;
/// UTC, by its number among the builtin clocks of Perfetto.
pub const REALTIME: u64 = 1;

// Fields of Trace and TracePacket.
const PACKET: u64 = 1;
const CLOCK_SNAPSHOT: u64 = 6;
pub const TIMESTAMP: u64 = 8;
pub const TRUSTED_PACKET_SEQUENCE_ID: u64 = 10;
pub const TRACK_EVENT: u64 = 11;
pub const TIMESTAMP_CLOCK_ID: u64 = 58;
const TRACK_DESCRIPTOR: u64 = 60;

/// Writes packets.
pub struct Packets<'a> {
    to: ExportOutput<'a>,
    packet: ProtobufMessage,
    framed: ProtobufMessage,
}

impl<'a> Packets<'a> {
    pub fn new(to: ExportOutput<'a>) -> Self {
        Self { to, packet: ProtobufMessage::default(), framed: ProtobufMessage::default() }
    }

    /// Declares that times of the trace are UTC. Must come before everything with a time.
    pub fn clock(&mut self, now: u64) -> io::Result<()> {
        let mut clock = ProtobufMessage::default();
        clock.number(1, REALTIME).number(2, now);
        let mut snapshot = ProtobufMessage::default();
        snapshot.message(1, &clock).number(2, REALTIME);
        self.packet(Some(now), CLOCK_SNAPSHOT, &snapshot)
    }

    /// A `TrackDescriptor`.
    pub fn track(&mut self, descriptor: &ProtobufMessage) -> io::Result<()> {
        self.packet(None, TRACK_DESCRIPTOR, descriptor)
    }

    /// A `TrackEvent`.
    pub fn event(&mut self, time: u64, event: &ProtobufMessage) -> io::Result<()> {
        self.packet(Some(time), TRACK_EVENT, event)
    }

    /// Flushes the output.
    pub fn finish(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn packet(&mut self, time: Option<u64>, field: u64, content: &ProtobufMessage) -> io::Result<()> {
        self.packet.clear().number(TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
        if let Some(time) = time {
            self.packet.number(TIMESTAMP, time).number(TIMESTAMP_CLOCK_ID, REALTIME);
        }
        self.packet.message(field, content);
        self.framed.clear().message(PACKET, &self.packet);
        self.to.write_all(self.framed.encoded())
    }
}
