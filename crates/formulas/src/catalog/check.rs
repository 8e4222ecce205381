//! Checks formulas: names, cycles, size, units.

use super::{Catalog, Formula, FormulaError, MetricLookup};
use crate::dimension::{Dimension, Quantity};
use crate::expression::{Constant, Expr, Function};
use crate::machine::{FACTS, Fact, PREFIX};
use numakit_model::suggest::nearest;
use std::collections::HashMap;
use thiserror::Error;

/// Maximum depth of a formula with all that it uses, which bounds the stack of an evaluation.
pub(crate) const MAX_DEPTH: usize = 100;
/// Maximum number of parts of a formula with all that it uses.
const MAX_PARTS: usize = 10_000;

/// What is wrong with a formula.
#[derive(Debug, Error)]
pub(super) enum InvalidFormula {
    #[error("{path} needs {name}; a formula cannot need itself")]
    Cycle { path: String, name: String },
    #[error("formulas that use each other more than {MAX_DEPTH} deep; use fewer steps")]
    Deep,
    #[error(
        "too large with the formulas that it uses ({deep} deep, {parts} parts; {MAX_DEPTH} and {MAX_PARTS} are allowed)"
    )]
    Large { deep: usize, parts: usize },
    #[error("unknown fact '{name}'{}; see the guide 'formulas'", nearest_of(nearest))]
    Fact { name: String, nearest: Vec<String> },
    #[error(
        "unknown formula '{name}'{}; a metric has a dot in its name, as in node.MemFree",
        nearest_of(nearest)
    )]
    Formula { name: String, nearest: Vec<String> },
    #[error("it gives {found}, but says {says}; declare what it gives, or change the formula")]
    Quantity { found: Dimension, says: Quantity },
    #[error("{0}")]
    Mismatch(String),
}

fn nearest_of(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(", nearest: {}", names.join(", ")) }
}

/// The first mistake, if there is one.
pub(super) fn check(catalog: &Catalog, known: MetricLookup<'_>) -> Result<(), FormulaError> {
    let mut sizes = Sizes { catalog, done: HashMap::new(), path: Vec::new() };
    for formula in catalog.all() {
        let units = || of_formula(catalog, formula, known);
        if let Err(message) = sizes.formula(formula).and_then(|_| units()) {
            let message = format!("{}: {message}", formula.name);
            return Err(FormulaError { origin: formula.origin.clone(), line: formula.line, message });
        }
    }
    Ok(())
}

/// Depth and number of parts of formulas, each computed once.
struct Sizes<'a> {
    catalog: &'a Catalog,
    done: HashMap<&'a str, (usize, usize)>,
    /// The formulas that are being checked, each used by the one before.
    path: Vec<&'a str>,
}

impl<'a> Sizes<'a> {
    fn formula(&mut self, formula: &'a Formula) -> Result<(usize, usize), InvalidFormula> {
        if let Some(size) = self.done.get(formula.name.as_str()) {
            return Ok(*size);
        }
        if let Some(from) = self.path.iter().position(|name| *name == formula.name) {
            let path = self.path[from..].join(" needs ");
            return Err(InvalidFormula::Cycle { path, name: formula.name.clone() });
        }
        self.path.push(&formula.name);
        if self.path.len() > MAX_DEPTH {
            return Err(InvalidFormula::Deep);
        }
        let size = self.expr(&formula.expr)?;
        if size.0 > MAX_DEPTH || size.1 > MAX_PARTS {
            return Err(InvalidFormula::Large { deep: size.0, parts: size.1 });
        }
        self.path.pop();
        self.done.insert(&formula.name, size);
        Ok(size)
    }

    fn expr(&mut self, expr: &'a Expr) -> Result<(usize, usize), InvalidFormula> {
        let (mut depth, mut parts) = (0, 1usize);
        if let Expr::Name(name) | Expr::OrZero(name) | Expr::Mean(name) = expr {
            match self.catalog.get(name) {
                Some(inner) => (depth, parts) = self.formula(inner)?,
                None => resolves(self.catalog, name)?,
            }
        }
        for part in expr.parts() {
            let (below, more) = self.expr(part)?;
            depth = depth.max(below);
            parts = parts.saturating_add(more);
        }
        Ok((depth + 1, parts))
    }
}

/// Names without a dot are formulas, the rest metrics and facts.
fn resolves(catalog: &Catalog, name: &str) -> Result<(), InvalidFormula> {
    let (owned, name) = (|names: Vec<&str>| names.into_iter().map(str::to_owned).collect(), name.to_owned());
    if name.starts_with(PREFIX) && Fact::named(&name).is_none() {
        let facts = FACTS.iter().map(|f| f.name);
        let nearest = owned(nearest(&name, facts, 2));
        return Err(InvalidFormula::Fact { name, nearest });
    }
    if !name.contains('.') {
        let nearest = owned(catalog.nearest(&name));
        return Err(InvalidFormula::Formula { name, nearest });
    }
    Ok(())
}

fn of_formula(catalog: &Catalog, formula: &Formula, known: MetricLookup<'_>) -> Result<(), InvalidFormula> {
    let of_name = |name: &str| {
        if let Some(inner) = catalog.get(name) {
            return Some(inner.quantity.dimension());
        }
        if let Some(fact) = Fact::named(name) {
            return Some(fact.dimension());
        }
        known(name).map(|(unit, kind)| Dimension::of(unit, kind, true))
    };
    // Each alternative is a whole formula and is checked separately.
    let alternatives = match &formula.expr {
        Expr::First(parts) => parts.as_slice(),
        whole => std::slice::from_ref(whole),
    };
    for part in alternatives {
        let found = dimension(part, &of_name)?;
        if let Some(found) = found.filter(|d| !formula.quantity.accepts(*d)) {
            return Err(InvalidFormula::Quantity { found, says: formula.quantity });
        }
    }
    Ok(())
}

/// The dimension of an expression; `None` fits any.
fn dimension(
    expr: &Expr,
    of_name: &dyn Fn(&str) -> Option<Dimension>,
) -> Result<Option<Dimension>, InvalidFormula> {
    match expr {
        Expr::Number(value, unit) => Ok(of_number(*value, *unit, true)),
        Expr::Name(name) | Expr::OrZero(name) | Expr::Mean(name) => Ok(of_name(name)),
        Expr::Product(factors) => {
            let mut product = Some(Dimension::NUMBER);
            for (divide, factor) in factors {
                product = multiplied(product, dimension(factor, of_name)?, *divide);
            }
            Ok(product)
        }
        Expr::Sum(_) | Expr::First(_) | Expr::Call(..) => {
            let mut joined: Option<(Dimension, &Expr)> = None;
            for part in expr.parts() {
                let Some(found) = dimension(part, of_name)? else { continue };
                match joined {
                    None => joined = Some((found, part)),
                    Some((first, _)) if agree(expr, first, found) => {}
                    Some((first, other)) => {
                        return Err(InvalidFormula::Mismatch(mismatch(expr, (other, first), (part, found))));
                    }
                }
            }
            let joined = joined.map(|(dimension, _)| dimension);
            Ok(if matches!(expr, Expr::Call(Function::Share, _)) { Some(Dimension::NUMBER) } else { joined })
        }
    }
}

/// The dimension of a number; 0 fits any.
pub(crate) fn of_number(value: f64, unit: Option<Constant>, page_size_known: bool) -> Option<Dimension> {
    match unit {
        Some(unit) => Some(unit.dimension(page_size_known)),
        None => (value != 0.0).then_some(Dimension::NUMBER),
    }
}

/// The dimension of a product or quotient.
pub(crate) fn multiplied(a: Option<Dimension>, b: Option<Dimension>, divide: bool) -> Option<Dimension> {
    let (a, b) = (a?, b?);
    Some(if divide { a.over(b) } else { a.times(b) })
}

/// Whether two parts of an expression may be combined: alternatives may differ by
/// cycles, which some machines count where others count something else.
pub(crate) fn agree(whole: &Expr, a: Dimension, b: Dimension) -> bool {
    match whole {
        Expr::First(_) => a.without_cycles() == b.without_cycles(),
        _ => a == b,
    }
}

/// The message that two parts of an expression do not fit together.
pub(crate) fn mismatch(whole: &Expr, a: (&Expr, Dimension), b: (&Expr, Dimension)) -> String {
    let what = match whole {
        Expr::Sum(_) => "cannot be added or subtracted",
        Expr::First(_) => "cannot be alternatives",
        _ => "cannot be compared",
    };
    format!("{} is {} and {} is {}: these {what}; convert one with * or /", a.0, a.1, b.0, b.1)
}
