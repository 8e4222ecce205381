//! Looks at what an object is used or allocated for, by function of Python.

use crate::code::CodeName;
use crate::explained::CodeShare;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Functions that are kept.
const MAX_FUNCTIONS: usize = 5;

/// The functions of Python that looks found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptShares {
    /// The number of looks.
    pub looks: u64,
    /// The functions, each with the line at which most looks found it; those with most looks first.
    pub functions: Vec<CodeShare>,
}

impl ScriptShares {
    /// Counts looks, by the number of what each found.
    pub(crate) fn of<'a>(looks: &HashMap<u64, u64>, name: impl Fn(u64) -> Option<&'a CodeName>) -> Self {
        let mut functions: HashMap<CodeName, BTreeMap<Option<u32>, u64>> = HashMap::new();
        for (number, count) in looks {
            let Some(found) = name(*number) else { continue };
            let function = CodeName { line: None, ..found.clone() };
            *functions.entry(function).or_default().entry(found.line).or_default() += count;
        }
        let all: u64 = functions.values().flat_map(BTreeMap::values).sum();
        let share = |(name, lines): (CodeName, BTreeMap<Option<u32>, u64>)| {
            let share = lines.values().sum::<u64>() as f64 / all.max(1) as f64;
            let name = CodeName { line: most(&lines), ..name };
            CodeShare { name, share }
        };
        let mut functions: Vec<CodeShare> = functions.into_iter().map(share).collect();
        functions.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        functions.truncate(MAX_FUNCTIONS);
        Self { looks: all, functions }
    }

    /// Whether there was no look.
    pub fn is_empty(&self) -> bool {
        self.looks == 0
    }
}

/// The line that most looks found.
pub(crate) fn most(lines: &BTreeMap<Option<u32>, u64>) -> Option<u32> {
    lines.iter().max_by_key(|(_, count)| **count).and_then(|(line, _)| *line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_the_looks_of_its_lines() {
        let name = |function: &str, line| CodeName {
            function: Some(function.to_owned()),
            line: Some(line),
            ..CodeName::default()
        };
        let names = [name("build", 3), name("lookup", 8), name("lookup", 9)];
        let looks = HashMap::from([(0, 3), (1, 1), (2, 6), (7, 90)]);
        let found = ScriptShares::of(&looks, |number| names.get(number as usize));
        let functions: Vec<(CodeName, f64)> =
            found.functions.into_iter().map(|f| (f.name, f.share)).collect();
        assert_eq!((found.looks, functions), (10, vec![(name("lookup", 9), 0.7), (name("build", 3), 0.3)]));
        assert!(ScriptShares::of(&HashMap::new(), |_| None).is_empty());
    }
}
