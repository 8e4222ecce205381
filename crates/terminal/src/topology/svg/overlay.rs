//! Marks on the CPUs of a drawing: the threads that run there.

use super::drawing::{Drawing, text_line};
use super::grid;
use numakit_model::CpuSet;
use std::collections::BTreeMap;

/// Colours and labels of the PUs of a drawing. Without marks there is no overlay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// By CPU.
    pub marks: BTreeMap<u32, PuOverlay>,
    /// CPUs that are held without a mark.
    pub held: CpuSet,
    /// What the colours mean.
    pub legend: Vec<(&'static str, String)>,
}

/// The mark of a PU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PuOverlay {
    /// A CSS colour.
    pub colour: &'static str,
    /// A few characters; shown if they fit.
    pub label: String,
}

/// Side of a PU that can show a label.
pub const SIDE: f64 = 36.0;

impl Overlay {
    /// Whether there are no marks.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// A PU with its mark.
    pub(super) fn pu(&self, cpu: u32, side: f64, words: bool, allowed: bool) -> Drawing {
        let mut out = Drawing::new(side, side);
        let number = |out: &mut Drawing, class: &str| {
            if words {
                out.text(side / 2.0, side - 5.0, 8.5, class, &cpu.to_string());
            }
        };
        match self.marks.get(&cpu) {
            Some(mark) => {
                out.area(0.0, 0.0, side, side, mark.colour);
                if words {
                    let size = if mark.label.chars().count() > 5 { 8.0 } else { 11.0 };
                    out.text(side / 2.0, side / 2.0, size, "c num b", &mark.label);
                }
                number(&mut out, "c num");
            }
            None => {
                out.rect(0.0, 0.0, side, side, self.class(cpu, allowed));
                number(&mut out, "c shutnum");
            }
        }
        out
    }

    /// The class of a PU without a mark.
    fn class(&self, cpu: u32, allowed: bool) -> &'static str {
        match (allowed, self.held.contains(cpu)) {
            (false, _) => "shut",
            (true, true) => "held",
            (true, false) => "idle",
        }
    }

    /// A core that is too small to show its PUs.
    pub(super) fn core(&self, cpus: &CpuSet, side: f64, allowed: bool) -> Drawing {
        let mut out = Drawing::new(side, side);
        match cpus.iter().find_map(|cpu| self.marks.get(&cpu)) {
            Some(mark) => out.area(0.0, 0.0, side, side, mark.colour),
            None => out.rect(0.0, 0.0, side, side, self.class(cpus.first().unwrap_or(0), allowed)),
        }
        out
    }

    /// What the colours mean, in rows.
    pub(super) fn explanation(&self, others: &[(&str, &str)]) -> Drawing {
        let mut entries = Vec::new();
        let mut entry = |square: &dyn Fn(&mut Drawing), words: &str| {
            let label = text_line(words, 11.0, "note");
            let mut out = Drawing::new(label.width + 32.0, 16.0);
            square(&mut out);
            out.put(19.0, 1.0, &label);
            entries.push(out);
        };
        for (colour, words) in &self.legend {
            entry(&|out| out.area(0.0, 1.0, 14.0, 14.0, colour), words);
        }
        if !self.held.is_empty() {
            entry(&|out| out.rect(0.0, 1.0, 14.0, 14.0, "held"), "held, without a thread");
        }
        entry(&|out| out.rect(0.0, 1.0, 14.0, 14.0, "idle"), "not used");
        for (class, words) in others {
            entry(&|out| out.rect(0.0, 1.0, 14.0, 14.0, class), words);
        }
        grid(&entries, 6.0, 12.0)
    }
}
