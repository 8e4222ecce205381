//! A formula at one place: steps over the values of a row.

mod compile;

pub(crate) use compile::bind;

use crate::catalog::MAX_DEPTH;

/// A formula at one place, ready for rows. Evaluation does not allocate.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundFormula {
    steps: Vec<Step>,
    /// Columns of the row, each with its factor to base units.
    terms: Vec<(usize, f64)>,
}

/// An absent value is NaN, and so is all that is computed from it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Number(f64),
    /// The sum of the measured values of these terms: an offline node or CPU adds nothing.
    Sum(usize, usize),
    Mean(usize, usize),
    /// 0 if the top of the stack is absent.
    OrZero,
    /// This and the following take two numbers from the top of the stack.
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
    Share,
}

/// The largest stack that steps need.
const STACK: usize = MAX_DEPTH + 4;

impl BoundFormula {
    /// The sum of columns, each multiplied by its factor.
    pub fn sum(terms: Vec<(usize, f64)>) -> Self {
        Self { steps: vec![Step::Sum(0, terms.len())], terms }
    }

    /// The value for a row, in base units; `None` if a value that it needs was not measured,
    /// and for a division by zero.
    pub fn value(&self, values: &[Option<f64>]) -> Option<f64> {
        let mut stack = [0.0f64; STACK];
        let mut top = 0usize;
        for step in &self.steps {
            let pushed = match *step {
                Step::Number(value) => value,
                Step::Sum(from, to) => self.total(from, to, values).0,
                Step::Mean(from, to) => {
                    let (sum, measured) = self.total(from, to, values);
                    sum / measured as f64
                }
                Step::OrZero => {
                    top = top.checked_sub(1)?;
                    let value = *stack.get(top)?;
                    if value.is_nan() { 0.0 } else { value }
                }
                operation => {
                    top = top.checked_sub(2)?;
                    apply(operation, *stack.get(top)?, *stack.get(top + 1)?)
                }
            };
            *stack.get_mut(top)? = if pushed.is_finite() { pushed } else { f64::NAN };
            top += 1;
        }
        Some(stack[0]).filter(|value| value.is_finite())
    }

    /// The sum of the measured values, and their number.
    fn total(&self, from: usize, to: usize, values: &[Option<f64>]) -> (f64, usize) {
        let (mut sum, mut measured) = (0.0, 0);
        for &(at, factor) in self.terms.get(from..to).unwrap_or_default() {
            if let Some(value) = values.get(at).copied().flatten() {
                sum += value * factor;
                measured += 1;
            }
        }
        (if measured == 0 { f64::NAN } else { sum }, measured)
    }

    /// The columns of the row that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.terms.iter().map(|(at, _)| *at)
    }
}

fn apply(operation: Step, a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    match operation {
        Step::Add => a + b,
        Step::Subtract => a - b,
        Step::Multiply => a * b,
        Step::Divide => a / b,
        Step::Min => a.min(b),
        Step::Max => a.max(b),
        Step::Share if b > 0.0 => (100.0 * (a / b)).clamp(0.0, 100.0),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests;
