//! Rounds of one work with all allocators in turn, so that other load affects all equally.

use super::allocators::Allocator;
use super::works::Work;
use crate::bench::statistics::median;
use crate::process::Figures;
use anyhow::{Result, bail};
use std::path::Path;

const ROUNDS: usize = 3;

/// What a work took with each allocator.
#[derive(Debug)]
pub struct Row {
    pub work: Work,
    /// In the order of the allocators, the base first; of one that failed, why.
    runs: Vec<Result<Vec<Figures>, String>>,
}

impl Row {
    /// Does a work with all allocators. It must succeed with the base.
    pub fn measure(work: Work, measure: &Path, allocators: &[Allocator]) -> Result<Self> {
        let mut runs: Vec<Result<Vec<Figures>, String>> = vec![Ok(Vec::new()); allocators.len()];
        for round in 0..ROUNDS {
            for turn in 0..allocators.len() {
                // Another one begins each round.
                let index = (turn + round) % allocators.len();
                let Ok(done) = &mut runs[index] else { continue };
                match Figures::of(&mut work.measured(measure, &allocators[index].library)) {
                    Ok(figures) => done.push(figures),
                    Err(error) if index == 0 => return Err(error),
                    Err(error) => runs[index] = Err(format!("{error:#}")),
                }
            }
        }
        Ok(Self { work, runs })
    }

    /// The median of what the program printed under a name.
    pub fn value(&self, allocator: usize, figure: &str) -> Result<f64> {
        let values: Result<Vec<f64>> = self.runs(allocator)?.iter().map(|run| run.get(figure)).collect();
        Ok(median(values?))
    }

    /// The same as a ratio to the base in the same round.
    pub fn ratio(&self, allocator: usize, figure: &str) -> Result<f64> {
        let pairs = self.runs(allocator)?.iter().zip(self.runs(0)?);
        let ratios: Result<Vec<f64>> =
            pairs.map(|(run, base)| Ok(run.get(figure)? / base.get(figure)?)).collect();
        Ok(median(ratios?))
    }

    /// Why an allocator failed, if it did.
    pub fn failure(&self, allocator: usize) -> Option<&str> {
        self.runs[allocator].as_ref().err().map(String::as_str)
    }

    fn runs(&self, allocator: usize) -> Result<&[Figures]> {
        match &self.runs[allocator] {
            Ok(runs) => Ok(runs),
            Err(error) => bail!("{}: {error}", self.work.title()),
        }
    }
}

/// The geometric mean; of none, none.
pub fn geomean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    Some(sum / values.len() as f64).filter(|_| !values.is_empty()).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geomean_is_the_root_of_the_product() {
        assert!((geomean(&[0.5, 2.0, 8.0]).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(geomean(&[]), None);
    }
}
