//! The description of a recording as bytes, for other formats that keep it beside rows.

use crate::arrow::Head;
use crate::header::Header;
use std::io;

impl Header {
    /// The description as the first message of a recording.
    pub fn packed(&self) -> io::Result<Vec<u8>> {
        Head::new(self).map(|head| head.message).map_err(io::Error::other)
    }

    /// The description that [`Header::packed`] made; an error says what is wrong with the bytes.
    pub fn unpacked(bytes: &[u8]) -> io::Result<Self> {
        Head::of_bytes(bytes).map(|head| head.header).map_err(io::Error::other)
    }
}
