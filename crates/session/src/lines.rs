//! Lines out of pieces as they come in, of bounded length.

use numakit_model::label::MAX_BYTES;

/// Collects bytes until a line is whole. Of a line that is too long only so much is kept
/// that it is known to be too long; the rest of it is never taken for another line.
#[derive(Debug, Default)]
pub struct LineBuffer {
    part: Vec<u8>,
}

impl LineBuffer {
    /// Takes more bytes and hands out the lines that they complete, without their ends.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.keep(&bytes[..end]);
            line(&self.part);
            self.part.clear();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// Whether a line has begun and not ended.
    pub fn partial(&self) -> bool {
        !self.part.is_empty()
    }

    /// Takes what there is of the last line as a whole one: its writer sent no end.
    pub fn flush(&mut self, mut line: impl FnMut(&[u8])) {
        if self.partial() {
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
