//! Splits received bytes into lines of bounded length.

use numakit_model::label::MAX_BYTES;

/// Collects bytes until a line is complete. Of a line that is too long, one byte more than the maximum
/// is kept, so that it is detected; the rest is never mistaken for another line.
#[derive(Debug, Default)]
pub struct LineBuffer {
    part: Vec<u8>,
}

impl LineBuffer {
    /// Adds bytes and passes on the lines that they complete, without line ends.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.keep(&bytes[..end]);
            line(&self.part);
            self.part.clear();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// Whether there is a line without an end.
    pub fn has_partial(&self) -> bool {
        !self.part.is_empty()
    }

    /// Passes on a last line without an end.
    pub fn flush(&mut self, mut line: impl FnMut(&[u8])) {
        if self.has_partial() {
            line(&self.part);
            self.part.clear();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (MAX_BYTES + 1).saturating_sub(self.part.len());
        self.part.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<usize> {
        let mut all = Vec::new();
        let mut lines = LineBuffer::default();
        for piece in pieces {
            lines.push(piece, |l| all.push(l.len()));
        }
        lines.flush(|l| all.push(l.len()));
        all
    }

    #[test]
    fn pieces_become_lines() {
        assert_eq!(lines(&[b"ab\ncd", b"ef\n", b"\n", b"g"]), [2, 4, 0, 1]);
    }

    #[test]
    fn a_long_line_stays_one_line_and_small() {
        let long = vec![b'x'; 1 << 20];
        assert_eq!(lines(&[b"a\n", &long, &long, b"y\nstop\n"]), [1, MAX_BYTES + 1, 4]);
    }
}
