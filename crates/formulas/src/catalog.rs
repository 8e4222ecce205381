//! All formulas by name: the built-in ones, and those that a user adds or replaces.

mod check;

pub(crate) use check::{MAX_DEPTH, agree, mismatch, multiplied, of_number};

use crate::definitions;
use crate::dimension::Quantity;
use crate::expression::Expr;
use numakit_model::{Kind, Unit, suggest};
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;
use thiserror::Error;

/// Largest file of formulas.
pub const MAX_BYTES: usize = 1 << 20;

const FORMULAS: &str = include_str!("../data/formulas.txt");
/// The origin of built-in formulas in messages.
const BUILT_IN: &str = "built in";

/// Unit and kind of a metric by its name; `None` if unknown.
pub type MetricLookup<'a> = &'a dyn Fn(&str) -> Option<(Unit, Kind)>;

/// A derived metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// Its name.
    pub name: String,
    /// The quantity that it declares.
    pub quantity: Quantity,
    /// Its description; empty if the file has none.
    pub help: String,
    /// How it is computed.
    pub expr: Expr,
    /// The file that it comes from; see [`Formula::is_built_in`].
    pub origin: String,
    /// Its line there.
    pub line: usize,
    /// The file with the formula of the same name that this one replaces.
    pub replaces: Option<String>,
}

impl Formula {
    /// Whether it comes with numakit.
    pub fn is_built_in(&self) -> bool {
        self.origin == BUILT_IN
    }
}

/// Why a file of formulas cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin}, line {line}: {message}")]
pub struct FormulaError {
    /// The file.
    pub origin: String,
    /// The line.
    pub line: usize,
    /// What is wrong there, and the fix.
    pub message: String,
}

/// Formulas whose names are all known, and which do not need themselves.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    formulas: Vec<Formula>,
    by_name: HashMap<String, usize>,
}

impl Catalog {
    /// The formulas that come with numakit.
    pub fn built_in() -> &'static Self {
        static CATALOG: LazyLock<Catalog> = LazyLock::new(|| {
            let mut catalog = Catalog::default();
            // A test checks the built-in file.
            let _ = catalog.add(FORMULAS, BUILT_IN, &|_| None);
            catalog
        });
        &CATALOG
    }

    /// Adds the formulas of a text, which replace those of the same name. `origin` is the name
    /// of the file. If there is an error, nothing is added.
    pub fn add(&mut self, text: &str, origin: &str, known: MetricLookup<'_>) -> Result<(), FormulaError> {
        let mut next = self.clone();
        let mut lines: HashMap<String, usize> = HashMap::new();
        for mut formula in definitions::read(text, origin)? {
            if let Some(line) = lines.insert(formula.name.clone(), formula.line) {
                let message = format!("{} is already defined in line {line}; remove one", formula.name);
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

    /// Checks units again, with the metrics that are known now.
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

    /// Names that are similar to this one.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        suggest::nearest(name, self.formulas.iter().map(|f| f.name.as_str()), 3)
    }

    /// The metrics and facts that a formula needs, directly or through other formulas, each once.
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
