//! The image of a flame graph: outer functions at the bottom, each as wide as its value, coloured by its parts.

use super::FlameGraph;
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
/// Above the graph: title and legend.
const HEAD: usize = 58;
/// Narrower frames are left out.
const NARROWEST: f64 = 0.3;
/// The width of a character of the text, in the image's unit.
const CHARACTER: f64 = 6.7;

/// A function within its callers.
#[derive(Debug, Default)]
struct Frame<'a> {
    values: Vec<u64>,
    inner: BTreeMap<&'a str, Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn add(&mut self, values: &[u64]) {
        self.values.resize(values.len(), 0);
        self.values.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    fn total(&self) -> u64 {
        self.values.iter().sum()
    }

    fn depth(&self) -> usize {
        1 + self.inner.values().map(Frame::depth).max().unwrap_or(0)
    }
}

/// The tree of all stacks.
fn tree(graph: &FlameGraph) -> Frame<'_> {
    let mut root = Frame::default();
    for stack in &graph.stacks {
        root.add(&stack.values);
        let mut at = &mut root;
        for name in stack.frames.iter().filter_map(|frame| graph.names.get(*frame as usize)) {
            at = at.inner.entry(name).or_default();
            at.add(&stack.values);
        }
    }
    root
}

/// The whole image.
pub fn image(graph: &FlameGraph) -> String {
    let root = tree(graph);
    let (total, depth) = (root.total(), root.depth());
    let height = HEAD + depth * ROW + 8;
    let mut to = String::new();
    let _ = writeln!(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" preserveAspectRatio=\"xMidYMin\" \
         font-family=\"ui-monospace, monospace\" font-size=\"11\">\n<title>{title}</title>\n<style>{style}</style>\n\
         <rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n<text class=\"head\" x=\"8\" y=\"20\">{title}: \
         {sum}</text>",
        title = escaped(&graph.title),
        style = style(graph.parts.len()),
        sum = graph.unit.text(total),
    );
    legend(graph, &root, &mut to);
    if total > 0 {
        let mut image = Image { graph, total, height, to: &mut to };
        image.frame("all", &root, 0.0, 0);
    } else {
        let _ = writeln!(to, "<text x=\"8\" y=\"{}\">There is nothing to show.</text>", HEAD + 12);
    }
    let _ = writeln!(to, "<script><![CDATA[{SCRIPT}]]></script>\n</svg>");
    to
}

/// Colours that are as far apart as they can be; dark ones for dark screens.
fn style(parts: usize) -> String {
    let mut style = String::from(
        ".back{fill:#fff}text{fill:#111;pointer-events:none}.head{font-size:14px}g.f{cursor:pointer}\
         g.f rect{stroke:#fff;stroke-width:.4}g.f:hover rect{stroke:#111;stroke-width:1}.outer{opacity:.5}",
    );
    let mut dark =
        String::from(".back{fill:#16181c}text{fill:#eee}g.f rect{stroke:#16181c}g.f:hover rect{stroke:#eee}");
    for part in 0..parts {
        let hue = (205.0 + 137.5 * part as f64) % 360.0;
        let _ = write!(style, ".p{part}{{fill:hsl({hue:.0},65%,74%)}}");
        let _ = write!(dark, ".p{part}{{fill:hsl({hue:.0},45%,34%)}}");
    }
    format!("{style}@media(prefers-color-scheme:dark){{{dark}}}")
}

fn legend(graph: &FlameGraph, root: &Frame<'_>, to: &mut String) {
    let mut x = 8.0;
    for (place, (part, value)) in graph.parts.iter().zip(&root.values).enumerate() {
        let share = 100.0 * *value as f64 / root.total().max(1) as f64;
        let text = format!("{part} {share:.1} %");
        // On a machine with many nodes the first ones have room.
        if x + CHARACTER * text.len() as f64 + 30.0 > WIDTH {
            let _ = writeln!(to, "<text x=\"{x:.0}\" y=\"44\">…</text>");
            break;
        }
        let _ = writeln!(
            to,
            "<rect class=\"p{place}\" x=\"{x:.0}\" y=\"34\" width=\"12\" height=\"12\"/><text x=\"{:.0}\" y=\"44\">{}</text>",
            x + 17.0,
            escaped(&text)
        );
        x += CHARACTER * text.len() as f64 + 36.0;
    }
}

struct Image<'a> {
    graph: &'a FlameGraph,
    total: u64,
    height: usize,
    to: &'a mut String,
}

impl Image<'_> {
    fn width(&self, value: u64) -> f64 {
        WIDTH * value as f64 / self.total as f64
    }

    /// Draws a function and all that it calls.
    fn frame(&mut self, name: &str, frame: &Frame<'_>, x: f64, level: usize) {
        let width = self.width(frame.total());
        if width < NARROWEST {
            return;
        }
        let y = self.height - 4 - (level + 1) * ROW;
        let title = self.title(name, frame);
        let _ = write!(
            self.to,
            "<g class=\"f\" data-x=\"{x:.2}\" data-w=\"{width:.2}\" data-l=\"{level}\"><title>{}</title>",
            escaped(&title)
        );
        let mut at = x;
        for (part, value) in frame.values.iter().enumerate().filter(|(_, value)| **value > 0) {
            let width = self.width(*value);
            let _ = write!(
                self.to,
                "<rect class=\"p{part}\" x=\"{at:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\"/>",
                ROW - 1
            );
            at += width;
        }
        let shown = shortened(name, width);
        let _ = writeln!(
            self.to,
            "<text x=\"{:.2}\" y=\"{}\" data-n=\"{}\">{}</text></g>",
            x + 3.0,
            y + 12,
            escaped(name),
            escaped(&shown)
        );
        let mut at = x;
        for (name, inner) in &frame.inner {
            self.frame(name, inner, at, level + 1);
            at += self.width(inner.total());
        }
    }

    fn title(&self, name: &str, frame: &Frame<'_>) -> String {
        let share = 100.0 * frame.total() as f64 / self.total as f64;
        let mut title = format!("{name}: {} ({share:.1} %)", self.graph.unit.text(frame.total()));
        let parts = self.graph.parts.iter().zip(&frame.values).filter(|(_, value)| **value > 0);
        for (part, value) in parts {
            let _ = write!(title, "\n{part}: {}", self.graph.unit.text(*value));
        }
        title
    }
}

/// As much of the name as has room in this width.
fn shortened(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    match name.chars().count() {
        _ if room < 3 => String::new(),
        length if length <= room => name.to_owned(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no other control characters.
            control if control.is_control() && control != '\n' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A click on a function makes it as wide as the image; a click on an outer one goes back.
const SCRIPT: &str = include_str!("zoom.js");
