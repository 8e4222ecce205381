//! Encodes protocol buffers: <https://protobuf.dev/programming-guides/encoding/>.

/// A message that is being built. Fields are in the order in which they are added.
#[derive(Debug, Default)]
pub struct ProtobufMessage(Vec<u8>);

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;

impl ProtobufMessage {
    /// `uint32`, `uint64`, `bool` or an enumeration.
    pub fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// `int64`.
    pub fn signed(&mut self, field: u64, value: i64) -> &mut Self {
        self.number(field, value as u64)
    }

    /// `double`.
    pub fn double(&mut self, field: u64, value: f64) -> &mut Self {
        self.tag(field, EIGHT_BYTES);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// `string`.
    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message within the message.
    pub fn message(&mut self, field: u64, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) -> &mut Self {
        self.0.clear();
        self
    }

    /// The encoded bytes.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn tag(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_defined() {
        let mut inner = ProtobufMessage::default();
        inner.number(1, 150).text(2, "testing");
        assert_eq!(inner.encoded(), b"\x08\x96\x01\x12\x07testing");
        let mut outer = ProtobufMessage::default();
        outer.message(3, &inner).double(44, 1.0);
        assert_eq!(outer.encoded(), b"\x1a\x0c\x08\x96\x01\x12\x07testing\xe1\x02\0\0\0\0\0\0\xf0\x3f");
        assert_eq!(outer.clear().signed(1, -1).encoded(), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    }
}
