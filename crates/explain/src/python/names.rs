//! Numbers for functions of Python with their lines, which stand in call chains beside addresses of code.

use crate::code::CodeName;
use std::collections::HashMap;

/// No code has an address that begins so: neither programs nor the kernel can.
const FIRST: u64 = 0xe000_0000_0000_0000;
/// Maximum number of names; later ones are all the last.
const MAX_NAMES: usize = 1 << 18;

/// Whether this is the number of a function of Python, and no address of code.
pub(crate) fn is_script(call: u64) -> bool {
    call >= FIRST
}

/// The functions that were seen.
#[derive(Debug, Default)]
pub struct ScriptNames {
    names: Vec<CodeName>,
    numbers: HashMap<CodeName, u64>,
}

impl ScriptNames {
    /// The number of a function at a line.
    pub fn number(&mut self, name: CodeName) -> u64 {
        if let Some(known) = self.numbers.get(&name) {
            return *known;
        }
        if self.names.len() >= MAX_NAMES {
            return self.names.len() as u64 * 2 - 1 + FIRST;
        }
        // Chains name their outer functions by the byte before an address to return to, so that two numbers are one name.
        let number = FIRST + self.names.len() as u64 * 2 + 1;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The function with a number, or with the one before it; `None` for an address of code.
    pub fn of(&self, number: u64) -> Option<&CodeName> {
        let place = number.checked_sub(FIRST)? / 2;
        self.names.get(usize::try_from(place).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_the_one_before_are_a_function() {
        let name = |line| CodeName { line: Some(line), ..CodeName::default() };
        let mut names = ScriptNames::default();
        let numbers: Vec<u64> = [3, 4, 3].into_iter().map(|line| names.number(name(line))).collect();
        assert_eq!(numbers[0], numbers[2]);
        for (number, line) in [(numbers[0], 3), (numbers[0] - 1, 3), (numbers[1], 4), (numbers[1] - 1, 4)] {
            assert_eq!(names.of(number), Some(&name(line)));
        }
        assert!(is_script(numbers[0]) && !is_script(0x7f00_0000_0000));
        assert_eq!((names.of(0x7f00_0000_0000), names.of(u64::MAX)), (None, None));
    }
}
