//! Pieces of a drawing, which are stacked and arranged in grids.

use std::fmt::Write;

/// Margin around the page.
pub const MARGIN: f64 = 16.0;
/// Padding inside a box.
pub const PADDING: f64 = 8.0;
/// Font size of the name of a box.
pub const TITLE: f64 = 13.0;
/// Ratio of the width of bold letters to that of others.
pub const BOLD: f64 = 1.1;

/// A piece whose origin is its top left corner.
#[derive(Debug, Clone, Default)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    body: String,
}

impl Drawing {
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let round = if width > 30.0 { 5.0 } else { 2.0 };
        self.add(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{round}\" class=\"{class}\"/>\n",
            short(x),
            short(y),
            short(width),
            short(height)
        ));
    }

    /// An area with square corners and its own colour.
    pub fn area(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        self.add(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"/>\n",
            short(x),
            short(y),
            short(width),
            short(height)
        ));
    }

    pub fn text(&mut self, x: f64, y: f64, size: f64, class: &str, text: &str) {
        self.add(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" class=\"{class}\">{}</text>\n",
            short(x),
            short(y),
            short(size),
            escape(text)
        ));
    }

    /// Puts another piece on this one.
    pub fn put(&mut self, x: f64, y: f64, piece: &Drawing) {
        self.body += &piece.at(x, y);
    }

    /// The piece at a position.
    pub fn at(&self, x: f64, y: f64) -> String {
        if self.body.is_empty() {
            return String::new();
        }
        format!("<g transform=\"translate({} {})\">\n{}</g>\n", short(x), short(y), self.body)
    }

    fn add(&mut self, part: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(part);
    }
}

/// A coordinate to one decimal.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Estimated width of a text.
pub fn text_width(text: &str, size: f64) -> f64 {
    let narrow = |c: char| "iljtfr.,:-|() ".contains(c);
    text.chars().map(|c| if narrow(c) { 0.4 } else { 0.65 }).sum::<f64>() * size
}

pub fn text_line(text: &str, size: f64, class: &str) -> Drawing {
    let mut line =
        Drawing::new(text_width(text, size) * if class == "title" { BOLD } else { 1.0 }, size * 1.25);
    line.text(0.0, size, size, class, text);
    line
}

/// Pieces below each other.
pub fn stack(pieces: Vec<Drawing>, gap: f64) -> Drawing {
    let width = pieces.iter().map(|p| p.width).fold(0.0, f64::max);
    let mut out = Drawing::new(width, 0.0);
    for (at, piece) in pieces.iter().enumerate() {
        let y = out.height + if at > 0 { gap } else { 0.0 };
        out.put(0.0, y, piece);
        out.height = y + piece.height;
    }
    out
}

/// Pieces in rows, in as many columns as bring the whole nearest to this proportion.
pub fn grid(pieces: &[Drawing], gap: f64, proportion: f64) -> Drawing {
    // With very many pieces, only plausible numbers of columns are tried.
    let max = pieces.len().min(64.max(4 * pieces.len().isqrt()));
    let layouts = (1..=max).map(|columns| measure(pieces, gap, columns));
    // Holes in the last row cost more than a slightly wrong proportion.
    let holes =
        |columns: usize| (columns - 1 - (pieces.len() + columns - 1) % columns) as f64 / columns as f64;
    let off =
        |(columns, w, h): &(usize, f64, f64)| (w / h.max(1.0) / proportion).ln().abs() + holes(*columns);
    let best = layouts.min_by(|a, b| off(a).total_cmp(&off(b)));
    let Some((columns, width, height)) = best else { return Drawing::default() };
    let mut out = Drawing::new(width, height);
    let mut y = 0.0;
    for row in pieces.chunks(columns) {
        let mut x = 0.0;
        for (at, piece) in row.iter().enumerate() {
            out.put(x, y, piece);
            x += column_width(pieces, columns, at) + gap;
        }
        y += row.iter().map(|p| p.height).fold(0.0, f64::max) + gap;
    }
    out
}

fn measure(pieces: &[Drawing], gap: f64, columns: usize) -> (usize, f64, f64) {
    let width: f64 = (0..columns).map(|at| column_width(pieces, columns, at)).sum();
    let rows: Vec<f64> =
        pieces.chunks(columns).map(|row| row.iter().map(|p| p.height).fold(0.0, f64::max)).collect();
    let gaps = |count: usize| gap * count.saturating_sub(1) as f64;
    (columns, width + gaps(columns), rows.iter().sum::<f64>() + gaps(rows.len()))
}

fn column_width(pieces: &[Drawing], columns: usize, column: usize) -> f64 {
    pieces.iter().skip(column).step_by(columns).map(|p| p.width).fold(0.0, f64::max)
}

/// A box with a heading: a name in bold, and notes in lines below it.
pub fn framed(name: &str, notes: &[String], class: &str, band: Option<&str>, content: &Drawing) -> Drawing {
    let heading: f64 = if name.is_empty() { 0.0 } else { TITLE + 5.0 };
    let notes_height = notes.len() as f64 * 13.0;
    let widest =
        notes.iter().map(|note| text_width(note, 10.5)).fold(text_width(name, TITLE) * BOLD, f64::max);
    let inner = content.width.max(widest);
    let below = if content.height > 0.0 { content.height + PADDING } else { 0.0 };
    let top = heading + notes_height;
    let mut out =
        Drawing::new(inner + 2.0 * PADDING, PADDING + top + below + if below > 0.0 { 0.0 } else { 2.0 });
    out.rect(0.0, 0.0, out.width, out.height, class);
    if let Some(band) = band {
        out.rect(1.0, 1.0, out.width - 2.0, top + 4.0, band);
    }
    if !name.is_empty() {
        out.text(PADDING, TITLE + 3.0, TITLE, "name", name);
    }
    for (at, note) in notes.iter().enumerate() {
        out.text(PADDING, heading + 11.0 + at as f64 * 13.0, 10.5, "note", note);
    }
    out.put(PADDING + (inner - content.width) / 2.0, PADDING + top, content);
    out
}

/// Words in lines of at most this width; a longer word has its own line.
pub fn paragraph(words: &[String], size: f64, width: f64) -> Drawing {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) < width => {
                *line += &format!(", {word}")
            }
            _ => lines.push(word.clone()),
        }
    }
    stack(lines.iter().map(|line| text_line(line, size, "note")).collect(), 1.0)
}

/// A low box with its name in the middle, as wide as the piece below it.
pub fn strip(text: &str, width: f64, class: &str) -> Drawing {
    let width = width.max(text_width(text, 10.0) + 8.0);
    let mut out = Drawing::new(width, 17.0);
    out.rect(0.0, 0.0, width, 17.0, class);
    out.text(width / 2.0, 12.0, 10.0, "c", text);
    out
}
