//! The machine as a drawing: its parts as nested boxes, and its distances as a heat map.

mod drawing;
mod heat;
mod machine;
mod overlay;

use super::phrases as say;
use drawing::{Drawing, MARGIN, grid, stack, text_line};
use numakit_model::Topology;
pub use overlay::{Overlay, PuOverlay};

/// Ratio of width to height, for slides.
const PAGE: f64 = 1.5;

/// A complete SVG file.
pub fn svg(t: &Topology) -> String {
    svg_with(t, &Overlay::default())
}

/// A complete SVG file with an overlay of threads.
pub fn svg_with(t: &Topology, overlay: &Overlay) -> String {
    let page = drawn(t, overlay);
    framed(
        &page,
        t,
        "xmlns=\"http://www.w3.org/2000/svg\"",
        &format!("<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"),
    )
}

/// The drawing as a part of a page, in this class, without colours: [`svg_style`] has them.
pub fn svg_in_page(t: &Topology, class: &str) -> String {
    framed(&drawn(t, &Overlay::default()), t, &format!("class=\"{class}\""), "")
}

/// The colours of a drawing within elements of this class.
pub fn svg_style(class: &str) -> String {
    let rules = STYLE.split_inclusive('}').map(str::trim).filter(|rule| !rule.is_empty());
    rules.map(|rule| format!(".{class} {rule}\n")).collect()
}

fn framed(page: &Drawing, t: &Topology, attributes: &str, ground: &str) -> String {
    let (width, height) = (page.width + 2.0 * MARGIN, page.height + 2.0 * MARGIN);
    let body = page.at(MARGIN, MARGIN);
    format!(
        "<svg {attributes} width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n{ground}{body}</svg>\n",
        drawing::escape(&say::summary(t))
    )
}

/// All parts below each other, without a margin.
fn drawn(t: &Topology, overlay: &Overlay) -> Drawing {
    let mut parts = vec![text_line(&say::summary(t), 20.0, "title")];
    // The origin is not shown for this machine; others have a name or a description.
    if t.origin != "sysfs" {
        let origin: String = t.origin.chars().take(100).collect();
        parts.push(text_line(&origin, 12.0, "note"));
    }
    let machine =
        stack([machine::draw(t, overlay)].into_iter().chain(machine::legend(t, overlay)).collect(), 10.0);
    let distances = t.distances.as_ref().filter(|d| d.nodes.len() > 1).map(heat::draw);
    let main: Vec<_> = [machine].into_iter().chain(distances).collect();
    parts.push(grid(&main, 24.0, PAGE));
    stack(parts, 10.0)
}

/// Colours by class; the drawing itself names only classes.
const STYLE: &str = "
text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2933}
.title{font-weight:bold}.name{font-weight:bold}.note{fill:#52606d}.c{text-anchor:middle}.r{text-anchor:end}
rect{stroke-width:1}
.board{fill:#f1f3f5;stroke:#868e96}.package{fill:#e7edf6;stroke:#5b7db1}.die{fill:#f3f6fb;stroke:#8ea6cc}
.node{fill:#fff;stroke:#3d8361}.mem{fill:#d3eadd;stroke:none}.far{fill:#e3f4f4;stroke:#2b8a8a}
.cache{fill:#fdf0d5;stroke:#d9a441}.core{fill:#f4f6f8;stroke:#b8c4d0}.pu{fill:#3f6fb5;stroke:none}
.num{fill:#fff}.shut{fill:#ced4da;stroke:none}.shutnum{fill:#5f6b76}.off{fill:#fff;stroke:#adb5bd;stroke-dasharray:3 2}
.shutmem{fill:#e1e5e9;stroke:none}.light{fill:#fff}.b{font-weight:bold}
.idle{fill:#fff;stroke:#b8c4d0}.held{fill:#dbe4f0;stroke:#9fb3cc}
";
