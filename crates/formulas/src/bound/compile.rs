//! Compiles a formula to steps for one place.

use super::{BoundFormula, Step};
use crate::catalog::{Catalog, Formula, agree, mismatch, multiplied, of_number};
use crate::dimension::Dimension;
use crate::expression::{Expr, Function};
use crate::index::Index;
use crate::machine::Fact;
use crate::missing::{Missing, MissingInput, MissingReason};
use numakit_model::Instance;
use std::collections::HashSet;

/// The formula at that place, or what it lacks there.
pub(crate) fn bind(
    index: &Index<'_>,
    catalog: &Catalog,
    formula: &Formula,
    place: Instance,
) -> Result<BoundFormula, Missing> {
    let mut compiler =
        Compiler { index, catalog, place, bound: BoundFormula { steps: Vec::new(), terms: Vec::new() } };
    compiler.formula(formula)?;
    Ok(compiler.bound)
}

struct Compiler<'a> {
    index: &'a Index<'a>,
    catalog: &'a Catalog,
    place: Instance,
    bound: BoundFormula,
}

/// The dimension of the compiled part; `None` fits any.
type Compiled = Result<Option<Dimension>, Missing>;

impl Compiler<'_> {
    fn formula(&mut self, formula: &Formula) -> Compiled {
        let found = match &formula.expr {
            Expr::First(parts) => self.first(parts, Some(formula))?,
            whole => self.declared(whole, formula)?,
        };
        Ok(found.map(|_| formula.quantity.dimension()))
    }

    /// An expression that must have the dimension that its formula declares.
    fn declared(&mut self, expr: &Expr, formula: &Formula) -> Compiled {
        let found = self.expr(expr)?;
        match found.filter(|d| !formula.quantity.accepts(*d)) {
            None => Ok(Some(formula.quantity.dimension())),
            Some(wrong) if wrong.has_pages() => Err(Missing::one(&formula.name, MissingReason::NoPageSize)),
            Some(wrong) => {
                let words = format!("it gives {wrong} here, but says {}", formula.quantity);
                Err(Missing::one(&formula.name, MissingReason::Mismatch(words)))
            }
        }
    }

    fn expr(&mut self, expr: &Expr) -> Compiled {
        match expr {
            Expr::Number(value, unit) => {
                let page_size = self.index.page_size();
                let factor = unit.map_or(1.0, |unit| unit.factor(page_size));
                self.bound.steps.push(Step::Number(value * factor));
                Ok(of_number(*value, *unit, page_size > 0))
            }
            Expr::Name(name) => self.name(name),
            Expr::OrZero(name) => {
                let (step, found) = match self.attempt(|this| this.name(name)) {
                    Ok(found) => (Step::OrZero, found),
                    Err(_) => (Step::Number(0.0), None),
                };
                self.bound.steps.push(step);
                Ok(found)
            }
            Expr::Mean(name) => self.series(name, Step::Mean),
            Expr::Sum(terms) => self.sum(expr, terms),
            Expr::Product(factors) => self.product(factors),
            Expr::First(parts) => self.first(parts, None),
            Expr::Call(function, arguments) => {
                let (a, b) = (self.expr(&arguments[0])?, self.expr(&arguments[1])?);
                let joined = self.joined(expr, a.map(|a| (a, &arguments[0])), b, &arguments[1])?;
                let (step, found) = match function {
                    Function::Min => (Step::Min, joined.map(|(d, _)| d)),
                    Function::Max => (Step::Max, joined.map(|(d, _)| d)),
                    Function::Share => (Step::Share, Some(Dimension::NUMBER)),
                };
                self.bound.steps.push(step);
                Ok(found)
            }
        }
    }

    fn sum(&mut self, whole: &Expr, terms: &[(bool, Expr)]) -> Compiled {
        let mut joined = None;
        for (at, (minus, term)) in terms.iter().enumerate() {
            if at == 0 && *minus {
                self.bound.steps.push(Step::Number(0.0));
            }
            let found = self.expr(term)?;
            joined = self.joined(whole, joined, found, term)?;
            if at > 0 || *minus {
                self.bound.steps.push(if *minus { Step::Subtract } else { Step::Add });
            }
        }
        Ok(joined.map(|(dimension, _)| dimension))
    }

    fn product(&mut self, factors: &[(bool, Expr)]) -> Compiled {
        let mut product = Some(Dimension::NUMBER);
        for (at, (divide, factor)) in factors.iter().enumerate() {
            product = multiplied(product, self.expr(factor)?, *divide);
            if at > 0 {
                self.bound.steps.push(if *divide { Step::Divide } else { Step::Multiply });
            }
        }
        Ok(product)
    }

    /// The first part that can be computed here. Each part of a formula must have its dimension.
    fn first(&mut self, parts: &[Expr], of: Option<&Formula>) -> Compiled {
        let mut inputs = Vec::new();
        for part in parts {
            let attempt = |this: &mut Self| match of {
                Some(formula) => this.declared(part, formula),
                None => this.expr(part),
            };
            match self.attempt(attempt) {
                Ok(found) => return Ok(found),
                Err(missing) => inputs.extend(missing.inputs),
            }
        }
        let mut names = HashSet::new();
        inputs.retain(|input: &MissingInput| names.insert(input.name.clone()));
        Err(Missing { inputs })
    }

    /// Removes its steps again when it fails.
    fn attempt(&mut self, compile: impl FnOnce(&mut Self) -> Compiled) -> Compiled {
        let (steps, terms) = (self.bound.steps.len(), self.bound.terms.len());
        let result = compile(self);
        if result.is_err() {
            self.bound.steps.truncate(steps);
            self.bound.terms.truncate(terms);
        }
        result
    }

    fn name(&mut self, name: &str) -> Compiled {
        if let Some(formula) = self.catalog.get(name) {
            return self.formula(formula);
        }
        if let Some(fact) = Fact::named(name) {
            let value = self.index.topology().and_then(|t| fact.value(t, self.place));
            let value = value.ok_or_else(|| Missing::one(name, MissingReason::Unknown))?;
            self.bound.steps.push(Step::Number(value));
            return Ok(Some(fact.dimension()));
        }
        self.series(name, Step::Sum)
    }

    /// All series of a metric at the place, in base units.
    fn series(&mut self, name: &str, step: fn(usize, usize) -> Step) -> Compiled {
        let (index, from) = (self.index, self.bound.terms.len());
        let mut dimension = None;
        for at in index.find(name, self.place) {
            let metric = &index.series()[at].metric;
            let known = index.page_size() > 0;
            let found = Dimension::of(metric.unit, metric.kind, known);
            if *dimension.get_or_insert(found) != found {
                let words = "its series have different units here".to_owned();
                return Err(Missing::one(name, MissingReason::Mismatch(words)));
            }
            let bytes = metric.unit.bytes(index.page_size().max(1)).map(|b| b as f64);
            let factor = metric.unit.seconds().or(bytes).unwrap_or(1.0);
            self.bound.terms.push((at, factor));
        }
        let why = if index.has(name) { MissingReason::NotAt(self.place) } else { MissingReason::NoSeries };
        let found = dimension.ok_or_else(|| Missing::one(name, why))?;
        self.bound.steps.push(step(from, self.bound.terms.len()));
        Ok(Some(found))
    }

    /// Two parts of an expression that must have the same dimension.
    fn joined<'e>(
        &self,
        whole: &Expr,
        first: Option<(Dimension, &'e Expr)>,
        second: Option<Dimension>,
        part: &'e Expr,
    ) -> Result<Option<(Dimension, &'e Expr)>, Missing> {
        match (first, second) {
            (None, found) => Ok(found.map(|dimension| (dimension, part))),
            (joined, None) => Ok(joined),
            (Some((a, other)), Some(b)) if agree(whole, a, b) => Ok(Some((a, other))),
            (Some((a, _)), Some(b)) if a.has_pages() || b.has_pages() => {
                Err(Missing::one(&part.to_string(), MissingReason::NoPageSize))
            }
            (Some((a, other)), Some(b)) => {
                let words = mismatch(whole, (other, a), (part, b));
                Err(Missing::one(&part.to_string(), MissingReason::Mismatch(words)))
            }
        }
    }
}
