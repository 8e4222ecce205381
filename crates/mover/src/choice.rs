//! Which pages move: those that a cure names, and those of which samples tell who uses them.

use crate::cured::cured_processes;
use crate::error::MoveError;
use crate::observed::MoveObservation;
use crate::pages::{elsewhere, hot_first, size};
use crate::parts::{MovablePart, PartPurpose, parts, whole};
use crate::record::PageRange;
use crate::report::{MoveReport, NotCured, PartMoved};
use crate::session::MoveSession;
use crate::shared_memory::{everywhere, place_of};
use crate::threads::{ThreadDecision, ThreadReason};
use numakit_sys::sched::page_size;
use std::collections::HashSet;

impl MoveSession<'_> {
    /// The pages of each part that are elsewhere, with its process; adds the parts to the report. `places` are those of the
    /// decisions among the observed threads.
    pub(crate) fn choose_pages(
        &self,
        observed: &MoveObservation,
        decided: &[ThreadDecision],
        places: &[u32],
        report: &mut MoveReport,
    ) -> Result<Vec<(u32, Vec<PageRange>)>, MoveError> {
        let mut input = observed.part_input(self.root, &self.processes(), decided, places)?;
        report.strangers = std::mem::take(&mut input.strangers);
        let mut found = self.of_cure(decided, report)?;
        let of_cure = found.clone();
        if let Some(node) = self.only_node(decided.iter()) {
            found.extend(whole(&input, node, &self.recent));
        } else if observed.is_enough() {
            let (by_samples, shared) = parts(&input, page_size(), &self.recent);
            report.shared = shared;
            found.extend(by_samples);
        }
        // Pages of stacks may also be in parts that samples tell.
        let (mut own, mut shared) = (HashSet::new(), HashSet::new());
        let mut of_parts = Vec::new();
        for part in found.into_iter().flat_map(|part| everywhere(&input.shared, part)) {
            let mut pages = elsewhere(part.process, &part.ranges, part.node)?;
            let first = part.ranges.first().map_or(0, |range| range.start);
            if let Some(place) = place_of(&input.shared, part.process, first) {
                pages.retain(|page| place.page(page.start).is_none_or(|page| shared.insert(page)));
            }
            pages.retain(|page| !own.contains(&(part.process, page.start)));
            match part.purpose {
                PartPurpose::OwnOf(_) => own.extend(pages.iter().map(|page| (part.process, page.start))),
                PartPurpose::UsedByNode | PartPurpose::OnlyNode => {
                    pages.retain(|page| !of_cure.iter().any(|of| has(of, part.process, page)))
                }
                PartPurpose::OfCure => {}
            }
            let pages = hot_first(pages, &part.hot);
            let elsewhere = pages.iter().map(size).sum();
            if elsewhere > 0 {
                of_parts.push((part.process, pages));
                report.parts.push(PartMoved { part, elsewhere, moved: 0 });
            }
        }
        Ok(of_parts)
    }

    /// The only node that was asked for, if all threads are to run there.
    pub(crate) fn only_node<'a>(&self, decided: impl Iterator<Item = &'a ThreadDecision>) -> Option<u32> {
        let asked = self.settings.request.nodes.as_ref()?.to_string();
        // A number with a sign counts from the first node that may be used.
        let node = asked.parse().ok().filter(|_| !asked.starts_with('+'))?;
        let mut movable = decided.filter(|thread| thread.reason != ThreadReason::StartsOthers).peekable();
        (movable.peek().is_some() && movable.all(|thread| thread.node == Some(node))).then_some(node)
    }

    /// The parts of the cure, if there is one.
    fn of_cure(
        &self,
        decided: &[ThreadDecision],
        report: &mut MoveReport,
    ) -> Result<Vec<MovablePart>, MoveError> {
        let Some(cure) = &self.settings.cure else { return Ok(Vec::new()) };
        let (mut not, mut found) = (NotCured::default(), Vec::new());
        for process in cured_processes(self.root, cure, &self.processes())? {
            let threads = process.threads(self.root, &self.topology, cure, decided);
            found.extend(process.parts(cure, &threads, &mut not));
        }
        not.at_start.extend(cure.environment.iter().map(|set| set.name.clone()));
        report.not_cured = Some(not);
        found.retain(|part| part.ranges.iter().all(|range| self.recent.may_move(part.process, range)));
        Ok(found)
    }
}

/// Whether a part of a process has the middle of a page.
fn has(part: &MovablePart, process: u32, page: &PageRange) -> bool {
    let middle = page.start + size(page) / 2;
    let at = part.ranges.partition_point(|range| range.end <= middle);
    part.process == process && part.ranges.get(at).is_some_and(|range| range.start <= middle)
}
