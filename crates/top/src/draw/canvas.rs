//! Text and meters in a buffer.

use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Span;

/// A buffer with the characters that the terminal has.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme }
    }

    pub(super) fn theme(&self) -> Theme {
        self.theme
    }

    /// Text in at most `width` columns; what is longer is cut, and marked. Returns the columns that it takes.
    pub(super) fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let plain;
        let mut text = text;
        if !self.theme.unicode && !text.is_ascii() {
            plain = text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect::<String>();
            text = &plain;
        }
        if Span::raw(text).width() <= usize::from(width) {
            return self.buffer.set_stringn(x, y, text, usize::from(width), style).0 - x;
        }
        let Some(fitting) = width.checked_sub(1) else { return 0 };
        let (end, _) = self.buffer.set_stringn(x, y, text, usize::from(fitting), style);
        let mark = self.theme.ellipsis().to_string();
        self.buffer.set_stringn(end, y, mark, 1, style);
        width
    }

    /// Text at the right end of `width` columns.
    pub(super) fn right(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        let length = u16::try_from(Span::raw(text).width()).unwrap_or(width).min(width);
        self.text(x + width - length, y, length, text, style);
    }

    /// A meter in brackets: `[||||      45 %]`. Each part is a share of the whole, from 0 to 1, with its character.
    pub(super) fn meter(
        &mut self,
        x: u16,
        y: u16,
        width: u16,
        parts: &[(f64, char)],
        style: Style,
        text: &str,
    ) {
        let inner = width.saturating_sub(2);
        if inner == 0 {
            return;
        }
        self.text(x, y, 1, "[", self.theme.strong());
        self.text(x + 1 + inner, y, 1, "]", self.theme.strong());
        let mut from = 0.0;
        for (share, letter) in parts {
            let to = (from + share * f64::from(inner)).min(f64::from(inner));
            let (first, end) = (from.round() as u16, to.round() as u16);
            let bar: String = std::iter::repeat_n(*letter, usize::from(end.saturating_sub(first))).collect();
            self.text(x + 1 + first, y, inner - first, &bar, style);
            from = to;
        }
        self.right(x + 1, y, inner, text, self.theme.strong());
    }

    /// A style for a whole line.
    pub(super) fn paint(&mut self, area: ratatui::layout::Rect, style: Style) {
        self.buffer.set_style(area, style);
    }
}

/// Words in lines of at most `width` columns; a longer word is cut.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let length = Span::raw(word).width();
        if let Some(line) = lines.last_mut() {
            let used = Span::raw(line.as_str()).width();
            if used == 0 {
                line.push_str(word);
                continue;
            }
            if used + 1 + length <= width {
                line.push(' ');
                line.push_str(word);
                continue;
            }
        }
        lines.push(word.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    fn line(unicode: bool, draw: impl FnOnce(&mut Canvas<'_>)) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
        draw(&mut Canvas::new(&mut buffer, Theme { color: false, unicode }));
        buffer.content().iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn meters_have_their_shares_and_their_text() {
        let meter = |parts: &[(f64, char)], text: &str| {
            line(false, |canvas| canvas.meter(0, 0, 20, parts, Style::new(), text))
        };
        assert_eq!(meter(&[(0.5, '|')], "50 %"), "[|||||||||     50 %]");
        assert_eq!(meter(&[(0.5, '|'), (0.25, ':')], "9G"), "[|||||||||:::::  9G]");
        assert_eq!(meter(&[], "-"), "[                 -]");
        assert_eq!(meter(&[(9.0, '|')], ""), "[||||||||||||||||||]");
    }

    #[test]
    fn what_is_cut_is_marked_and_ascii_stays_ascii() {
        let text =
            |unicode, words: &str| line(unicode, |canvas| _ = canvas.text(0, 0, 6, words, Style::new()));
        assert_eq!(text(false, "é: many").trim_end(), "?: ma~");
        assert_eq!(text(true, "é: many").trim_end(), "é: ma…");
        assert_eq!(text(true, "exact!").trim_end(), "exact!");
    }

    #[test]
    fn words_are_not_broken() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
