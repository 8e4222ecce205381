//! Derived metrics: values computed from series by formulas, which are text, checked and evaluated
//! over rows without allocation. The language is described in `docs/guide/formulas.md`.

mod bound;
mod catalog;
mod definitions;
mod dimension;
mod expression;
mod index;
mod lexer;
mod machine;
mod missing;
mod parser;

pub use bound::BoundFormula;
pub use catalog::{Catalog, Formula, FormulaError, MAX_BYTES, MetricLookup};
pub use dimension::{Dimension, Quantity};
pub use expression::Expr;
pub use index::Index;
pub use machine::{FACTS, Fact};
pub use missing::{Missing, MissingInput, MissingReason};
