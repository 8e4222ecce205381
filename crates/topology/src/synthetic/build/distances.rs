//! The distances between the nodes of a description.

use super::{Result, Shape};
use crate::json::MAX_NODES;
use crate::synthetic::DescriptionError;
use crate::synthetic::grammar::SyntheticPart;
use numakit_model::topology::{Distances, Node};

impl Shape<'_> {
    /// The distances; none where the facts of a machine have none.
    pub(super) fn distances(&self, nodes: &[Node]) -> Result<Option<Distances>> {
        let numbers: Vec<u32> = nodes.iter().map(|node| node.os_index).collect();
        let rows = match &self.description.facts {
            Some(facts) if !facts.distances.is_empty() => facts.distances.clone(),
            Some(_) if self.description.distances.is_none() => return Ok(None),
            _ => self.distances_of_levels(nodes)?,
        };
        Distances::new(numbers, rows)
            .map(Some)
            .map_err(|why| DescriptionError::new(0, why.to_string(), "make the machine smaller"))
    }

    fn distances_of_levels(&self, nodes: &[Node]) -> Result<Vec<Vec<u32>>> {
        if nodes.len() > MAX_NODES {
            let at = self.description.far.last().map_or(0, |far| far.at);
            let fix = format!("make it at most {MAX_NODES} nodes");
            return Err(DescriptionError::new(at, "too many nodes", fix));
        }
        let near = self.total(SyntheticPart::Node).unwrap_or(1);
        let steps = self.steps(near)?;
        let far = self.far_nodes(near);
        let base =
            |a: usize, b: usize| steps.iter().find(|(span, _)| a / span == b / span).map_or(10, |s| s.1);
        let home = |at: usize| far.get(at.wrapping_sub(near)).map_or((at, at, 0), |f| *f);
        let value = |a: usize, b: usize| {
            if a == b {
                return steps[0].1;
            }
            let ((a_first, a_last, a_added), (b_first, b_last, b_added)) = (home(a), home(b));
            base(a_first.min(b_first), a_last.max(b_last)).saturating_add(a_added + b_added).min(255)
        };
        Ok((0..nodes.len()).map(|a| (0..nodes.len()).map(|b| value(a, b)).collect()).collect())
    }

    /// Each distance with the number of consecutive nodes that it applies to: 1 for the node itself,
    /// then the parts that have several nodes, from the inside out, and the machine last.
    fn steps(&self, near: usize) -> Result<Vec<(usize, u32)>> {
        let outside = self.levels.iter().take_while(|(part, ..)| *part != SyntheticPart::Node);
        let mut spans: Vec<usize> = outside.map(|(.., total)| near / total).chain([near]).collect();
        spans.retain(|&span| span > 1);
        spans.sort_unstable();
        spans.dedup();
        let boards = self.total(SyntheticPart::Board).unwrap_or(1) > 1;
        let (at, values) = match &self.description.distances {
            Some((at, values)) => (*at, values.clone()),
            None => match (spans.len(), boards) {
                (0, _) => (0, vec![10]),
                (_, false) => (0, vec![10, 20]),
                (1, true) => (0, vec![10, 100]),
                (_, true) => (0, vec![10, 20, 100]),
            },
        };
        if values.len() > spans.len() + 1 {
            let max = spans.len() + 1;
            let fix = format!("give at most {max}: local first, the whole machine last");
            let problem = format!("{} distances are more than this machine's {max} steps", values.len());
            return Err(DescriptionError::new(at, problem, fix));
        }
        let lacking = spans.len() + 1 - values.len();
        // Parts without a value have that of the next outer part.
        let value = |step: usize| values[(step + 1).saturating_sub(lacking).max(1).min(values.len() - 1)];
        let outer = spans.iter().enumerate().map(|(step, &span)| (span, value(step)));
        Ok(std::iter::once((1, values[0])).chain(outer).collect())
    }

    /// For each node without CPUs, the first and last node of its package, and the number that is added to its distance.
    /// These nodes are spread evenly over the packages.
    fn far_nodes(&self, near: usize) -> Vec<(usize, usize, u32)> {
        let packages = self.total(SyntheticPart::Package).unwrap_or(1);
        let one = |at: usize, count: usize, added: u32| {
            let package = at * packages / count;
            let first = package * near / packages;
            let last = ((package + 1) * near).div_ceil(packages) - 1;
            (first, last.max(first), added)
        };
        let groups = self.description.far.iter();
        groups.flat_map(|f| (0..f.count as usize).map(move |at| one(at, f.count as usize, f.added))).collect()
    }
}
