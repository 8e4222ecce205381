//! Colours and characters of the screen: what the terminal and the locale allow.

use ratatui::style::{Color, Modifier, Style};

/// What the screen may use. Without colours, attributes such as bold remain; without Unicode, all text is ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub color: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

/// Loads from idle to busy.
const RAMP: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Tenths.
const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
/// Backgrounds that neighbouring nodes of a bar have.
const NODES: [Color; 6] = [Color::Blue, Color::Yellow, Color::Magenta, Color::Cyan, Color::Red, Color::Green];

impl Theme {
    /// What is important.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Headings of columns.
    pub fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::UNDERLINED)
    }

    /// What is secondary.
    pub fn faint(self) -> Style {
        if self.color { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    /// The selected line.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A verdict: whether something is wrong.
    pub fn verdict(self, is_wrong: bool) -> Style {
        self.strong().patch(self.fg(if is_wrong { Color::Red } else { Color::Green }))
    }

    /// A share that is good when it is small, in percent.
    pub fn amount(self, percent: f64) -> Style {
        self.fg(match percent {
            ..60.0 => Color::Green,
            ..85.0 => Color::Yellow,
            _ => Color::Red,
        })
    }

    /// The part of a node in a bar.
    pub fn node(self, at: usize) -> Style {
        if self.color { Style::new().fg(Color::Black).bg(NODES[at % NODES.len()]) } else { Style::new() }
    }

    /// The load of a CPU: one character.
    pub fn load(self, percent: Option<f64>) -> &'static str {
        let step = |steps: usize, percent: f64| {
            let part = percent / 100.0 * steps as f64;
            part.clamp(0.0, (steps - 1) as f64)
        };
        match percent {
            None => "-",
            // Whatever is not idle is seen.
            Some(percent) if self.unicode => RAMP[step(RAMP.len(), percent + 2.0).floor() as usize],
            Some(percent) => DIGITS[step(DIGITS.len(), percent).floor() as usize],
        }
    }

    /// What loads look like, for the help.
    pub fn load_legend(self) -> String {
        let steps: String = if self.unicode { RAMP.concat() } else { DIGITS.concat() };
        format!("'{steps}' from idle to busy")
    }

    /// What was cut off.
    pub fn ellipsis(self) -> char {
        if self.unicode { '…' } else { '~' }
    }

    /// Marks the sort key.
    pub fn descending(self) -> &'static str {
        if self.unicode { "▼" } else { "v" }
    }

    /// The same for the other direction.
    pub fn ascending(self) -> &'static str {
        if self.unicode { "▲" } else { "^" }
    }

    fn fg(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }
}

/// The character of a node in a bar: its last digit, then letters.
pub fn node_letter(node: u32) -> char {
    char::from_digit(node % 36, 36).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_load_is_not_an_idle_one() {
        for unicode in [false, true] {
            let theme = Theme { color: false, unicode };
            assert_eq!(theme.load(None), "-");
            assert_ne!(theme.load(Some(0.0)), "-");
            assert_ne!(theme.load(Some(0.0)), theme.load(Some(100.0)));
        }
        let ascii = Theme { color: false, unicode: false };
        assert_eq!([0.0, 49.9, 100.0, 140.0].map(|load| ascii.load(Some(load))), ["0", "4", "9", "9"]);
        let unicode = Theme { color: true, unicode: true };
        assert_eq!([0.0, 10.0, 100.0].map(|load| unicode.load(Some(load))), [" ", "▁", "█"]);
        assert_eq!([0, 9, 10, 35, 36].map(node_letter), ['0', '9', 'a', 'z', '0']);
    }
}
