//! All formulas by name: ours, and those that a user adds or replaces.

mod check;

pub(crate) use check::{MAX_DEPTH, agree, mismatch, multiplied, of_number};

use crate::definitions;
use crate::dimension::Quantity;
use crate::expression::Expr;
use numakit_model::{Kind, Unit, suggest};
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;
use thiserror::Error;

/// Longest file of formulas.
pub const MAX_BYTES: usize = 1 << 20;

const OURS: &str = include_str!("../data/formulas.txt");
/// How our own file is called in messages.
const BUILT_IN: &str = "built in";

/// Unit and kind of a metric by its name; `None` where nobody knows it.
pub type MetricLookup<'a> = &'a dyn Fn(&str) -> Option<(Unit, Kind)>;

/// A figure with its formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// What it is called.
    pub name: String,
    /// What it gives.
    pub quantity: Quantity,
    /// What it tells, in a sentence or two; empty where the file says nothing.
    pub help: String,
    /// How it is computed.
    pub expr: Expr,
    /// The file that it comes from; [`Formula::is_ours`] for those that numakit brings.
    pub origin: String,
    /// Its line there.
    pub line: usize,
    /// The file with the formula of the same name that this one replaces.
    pub replaces: Option<String>,
}

impl Formula {
    /// Whether it comes with numakit.
    pub fn is_ours(&self) -> bool {
        self.origin == BUILT_IN
    }
}

/// A file of formulas cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}, line {line}: {message}")]
pub struct FormulaError {
    /// The file.
    pub origin: String,
    /// The line.
    pub line: usize,
    /// What is wrong there, and what to do.
    pub message: String,
}

/// Formulas whose names are all known, without circles.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    formulas: Vec<Formula>,
    by_name: HashMap<String, usize>,
}

impl Catalog {
    /// The formulas that come with numakit.
    pub fn ours() -> &'static Self {
        static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
            let mut catalog = Catalog::default();
            // A test makes sure that our own file is right.
            let _ = catalog.add(OURS, BUILT_IN, &|_| None);
            catalog
        });
        &CATALOG
    }

    /// Adds the formulas of a text; those of a name that is there already replace it. `origin`
    /// is how the file is called. Nothing is added when something is wrong.
    pub fn add(&mut self, text: &str, origin: &str, known: MetricLookup<'_>) -> Result<(), FormulaError> {
        let mut next = self.clone();
        let mut lines: HashMap<String, usize> = HashMap::new();
        for mut formula in definitions::read(text, origin)? {
            if let Some(line) = lines.insert(formula.name.clone(), formula.line) {
                let message = format!("{} is defined in line {line} already; leave one out", formula.name);
                return Err(FormulaError { origin: origin.to_owned(), line: formula.line, message });
            }
            match next.by_name.get(&formula.name) {
                Some(&at) => {
                    formula.replaces = Some(next.formulas[at].origin.clone());
                    next.formulas[at] = formula;
                }
                None => {
                    next.by_name.insert(formula.name.clone(), next.formulas.len());
                    next.formulas.push(formula);
                }
            }
        }
        check::check(&next, known)?;
        *self = next;
        Ok(())
    }

    /// Looks at units again, with what is known now.
    pub fn check(&self, known: MetricLookup<'_>) -> Result<(), FormulaError> {
        check::check(self, known)
    }

    /// The formula of that name.
    pub fn get(&self, name: &str) -> Option<&Formula> {
        self.by_name.get(name).map(|&at| &self.formulas[at])
    }

    /// Every formula, in the order in which they were defined.
    pub fn all(&self) -> &[Formula] {
        &self.formulas
    }

    /// Names that are like this one.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        suggest::nearest(name, self.formulas.iter().map(|f| f.name.as_str()), 3)
    }

    /// Every metric and fact that a formula and those that it uses name, each once.
    pub fn names<'a>(&'a self, formula: &'a Formula) -> Vec<&'a str> {
        let (mut names, mut seen, mut todo) = (Vec::new(), BTreeSet::new(), vec![formula]);
        while let Some(formula) = todo.pop() {
            for name in formula.expr.names().into_iter().filter(|n| seen.insert(n.to_owned())) {
                match self.get(name) {
                    Some(inner) => todo.push(inner),
                    None => names.push(name),
                }
            }
        }
        names
    }
}

#[cfg(test)]
mod tests;
