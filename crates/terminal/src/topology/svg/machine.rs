//! Packages, nodes, caches, cores and PUs as boxes.

use super::drawing::{BOLD, Drawing, TITLE, framed, grid, paragraph, stack, strip, text_line, text_width};
use super::overlay::{Overlay, SIDE};
use crate::topology::outline::{Item, OutlinePart, Private, outline};
use crate::topology::phrases as say;
use numakit_model::topology::{Core, Node};
use numakit_model::{CpuSet, Topology};

/// Up to this many PUs, each shows its number.
const NUMBERED: usize = 320;
/// Up to this many PUs, each is drawn; beyond that, only cores are.
const DRAWN: usize = 1024;
/// Beyond this many cores, only their number is shown.
const COUNTED: usize = 8192;

const GAP: f64 = 8.0;
const SHAPE: f64 = 1.9;

struct Painter<'a> {
    t: &'a Topology,
    overlay: &'a Overlay,
    private: Private<'a>,
}

pub fn draw(t: &Topology, overlay: &Overlay) -> Drawing {
    let painter = Painter { t, overlay, private: Private::of(t) };
    let parts = outline(t);
    let mut whole = painter.inside(&parts, SHAPE);
    if !t.offline.is_empty() {
        whole = stack(vec![whole, painter.offline()], GAP);
    }
    whole
}

/// What the colours of PUs mean, if they differ.
pub fn legend(t: &Topology, overlay: &Overlay) -> Option<Drawing> {
    let mut entries = vec![("pu", "allowed")];
    if !t.not_allowed().is_empty() {
        entries.push(("shut", "not allowed"));
    }
    if !t.offline.is_empty() {
        entries.push(("off", "offline"));
    }
    if !overlay.is_empty() {
        return Some(overlay.explanation(&entries[1..]));
    }
    if entries.len() == 1 {
        return None;
    }
    let mut out = Drawing::new(0.0, 16.0);
    for (class, words) in entries {
        out.rect(out.width, 1.0, 14.0, 14.0, class);
        let label = text_line(words, 11.0, "note");
        out.put(out.width + 19.0, 1.0, &label);
        out.width += label.width + 40.0;
    }
    Some(out)
}

impl<'a> Painter<'a> {
    /// Cores, parts with CPUs and parts without, below each other.
    fn inside(&self, items: &[Item<'a>], shape: f64) -> Drawing {
        let (cores, others): (Vec<&Item<'a>>, Vec<&Item<'a>>) =
            items.iter().partition(|item| matches!(item.part, OutlinePart::Core(_)));
        let (far, near): (Vec<&Item<'a>>, Vec<&Item<'a>>) =
            others.into_iter().partition(|i| i.cpus.is_empty());
        let mut rows = Vec::new();
        if !cores.is_empty() {
            let cores: Vec<&Core> = cores.iter().filter_map(|item| core_of(item)).collect();
            rows.extend(self.cores(&cores));
        }
        for group in [near, far] {
            if !group.is_empty() {
                let pieces: Vec<Drawing> = group.into_iter().map(|item| self.part(item, shape)).collect();
                rows.push(grid(&pieces, GAP, shape));
            }
        }
        stack(rows, GAP)
    }

    fn part(&self, item: &Item<'a>, shape: f64) -> Drawing {
        // Nested boxes look better with alternating proportions.
        let content = self.inside(&item.inside, if shape > 1.5 { 1.3 } else { 1.9 });
        let plain = |name: String, class| framed(&name, &[], class, None, &content);
        match item.part {
            OutlinePart::Board(at) => plain(format!("board {at}"), "board"),
            OutlinePart::Drawer(at) => plain(format!("drawer {at}"), "board"),
            OutlinePart::Book(at) => plain(format!("book {at}"), "board"),
            OutlinePart::Package(package) => plain(say::package(package), "package"),
            OutlinePart::Die(at) => plain(format!("die {at}"), "die"),
            OutlinePart::Cluster => plain(String::new(), "die"),
            OutlinePart::Unit => plain("unit".to_owned(), "die"),
            OutlinePart::Cache(cache) => {
                let name = strip(&say::cache(cache), content.width, "cache");
                stack(vec![name, content], 4.0)
            }
            OutlinePart::Node(node) => self.node(node, &content),
            OutlinePart::Core(core) => self.core(core),
        }
    }

    fn node(&self, node: &Node, content: &Drawing) -> Drawing {
        let memory = match node.memory_kb {
            None => "memory unknown".to_owned(),
            Some(0) => "no memory".to_owned(),
            Some(kb) => say::memory(kb),
        };
        let mut notes = vec![memory];
        if node.cpus.is_empty() {
            notes.push("no CPUs".to_owned());
        }
        if node.implicit {
            notes.push("implicit".to_owned());
        }
        notes.extend(
            node.memory_side_caches.iter().map(|c| format!("memory-side cache {}", say::size(c.size))),
        );
        notes.extend(node.access.iter().find_map(say::performance));
        notes.extend(self.devices(node.os_index));
        let allowed = self.t.allowed_nodes.contains(node.os_index);
        if !allowed {
            notes.push("memory not allowed".to_owned());
        }
        let class = if node.cpus.is_empty() { "far" } else { "node" };
        let band = match node.memory_kb == Some(0) || !allowed {
            true => Some("shutmem"),
            false if node.cpus.is_empty() => None,
            false => Some("mem"),
        };
        let mut content = content.clone();
        if self.t.nodes.len() > 100 && content.height > 0.0 {
            // The same width for all boxes, whatever their number.
            content.width = content.width.max(text_width("node 100", TITLE) * BOLD);
        }
        framed(&format!("node {}", node.os_index), &notes, class, band, &content)
    }

    fn devices(&self, node: u32) -> Option<String> {
        let here = self.t.devices.iter().filter(|d| d.node == Some(node));
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for device in here {
            let class = if device.class.is_empty() { "device" } else { device.class.as_str() };
            match counts.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => counts.push((class, 1)),
            }
        }
        let words: Vec<String> = counts.iter().map(|(class, count)| format!("{count} {class}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Cores as boxes with their PUs, as small squares, or as a number, depending on how many there are.
    fn cores(&self, cores: &[&Core]) -> Vec<Drawing> {
        if self.t.cores.len() > COUNTED {
            return vec![text_line(&say::count(cores.len(), "core"), 10.5, "note")];
        }
        let mut kinds: Vec<u32> = cores.iter().map(|core| core.kind.unwrap_or(0)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of_kind = |kind: u32| {
            let pieces: Vec<Drawing> =
                cores.iter().filter(|c| c.kind.unwrap_or(0) == kind).map(|c| self.core(c)).collect();
            let (gap, shape) = if self.t.online.len() > DRAWN { (2.0, 3.0) } else { (4.0, 2.2) };
            grid(&pieces, gap, shape)
        };
        let mut rows = Vec::new();
        for kind in kinds.into_iter().rev() {
            if let Some(known) = self.t.kinds.get(kind as usize).filter(|_| cores[0].kind.is_some()) {
                rows.push(text_line(&known.name, 10.0, "note"));
            }
            rows.push(of_kind(kind));
        }
        let shown = self.t.online.len() <= NUMBERED;
        let caches = self.private.get(cores[0]);
        if shown && !caches.is_empty() && self.t.kinds.is_empty() {
            let mut names: Vec<String> = caches.iter().map(|cache| say::cache(cache)).collect();
            names.dedup();
            names[0] = format!("per core {}", names[0]);
            let width = rows.iter().map(|row| row.width).fold(110.0, f64::max);
            rows.push(paragraph(&names, 9.0, width));
        }
        vec![stack(rows, 4.0)]
    }

    fn core(&self, core: &Core) -> Drawing {
        let total = self.t.online.len();
        if total > DRAWN {
            let allowed = core.cpus.intersects(&self.t.allowed);
            if !self.overlay.is_empty() {
                return self.overlay.core(&core.cpus, 7.0, allowed);
            }
            let mut out = Drawing::new(7.0, 7.0);
            out.rect(0.0, 0.0, 7.0, 7.0, if allowed { "pu" } else { "shut" });
            return out;
        }
        let numbered = total <= NUMBERED;
        let side = match numbered {
            true if !self.overlay.is_empty() => SIDE,
            true => 24.0,
            false => 9.0,
        };
        let pus: Vec<Drawing> = core.cpus.iter().map(|cpu| self.pu(cpu, side, numbered)).collect();
        let inner = grid(&pus, 2.0, 2.0);
        let mut out = Drawing::new(inner.width + 6.0, inner.height + 6.0);
        out.rect(0.0, 0.0, out.width, out.height, "core");
        out.put(3.0, 3.0, &inner);
        out
    }

    fn pu(&self, cpu: u32, side: f64, numbered: bool) -> Drawing {
        if !self.overlay.is_empty() {
            return self.overlay.pu(cpu, side, numbered, self.t.allowed.contains(cpu));
        }
        let (class, number) =
            if self.t.allowed.contains(cpu) { ("pu", "c num") } else { ("shut", "c shutnum") };
        numbered_square(cpu, side, numbered, class, number)
    }

    fn offline(&self) -> Drawing {
        let few = self.t.offline.len() <= NUMBERED;
        let squares: Vec<Drawing> = if few {
            self.t.offline.iter().map(|cpu| numbered_square(cpu, 24.0, true, "off", "c shutnum")).collect()
        } else {
            Vec::new()
        };
        let list = limited(&self.t.offline);
        let name = format!("offline  {}", if few { String::new() } else { list });
        framed(name.trim_end(), &[], "off", None, &grid(&squares, 4.0, 30.0))
    }
}

fn core_of<'a>(item: &Item<'a>) -> Option<&'a Core> {
    match item.part {
        OutlinePart::Core(core) => Some(core),
        _ => None,
    }
}

fn numbered_square(cpu: u32, side: f64, numbered: bool, class: &str, number: &str) -> Drawing {
    let mut out = Drawing::new(side, side);
    out.rect(0.0, 0.0, side, side, class);
    if numbered {
        let size = if cpu > 99 { 10.0 } else { 12.0 };
        out.text(side / 2.0, side / 2.0 + size * 0.36, size, number, &cpu.to_string());
    }
    out
}

/// A list of CPUs of limited length.
fn limited(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    let cut: String = list.chars().take(60).collect();
    if cut.len() < list.len() { format!("{cut}...") } else { list }
}
