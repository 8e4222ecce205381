//! The files in which runtimes that compile while they run say what they compiled: `/tmp/perf-PID.map`, lines of
//! `START SIZE NAME` with hexadecimal numbers.

use std::collections::BTreeMap;

/// Functions by their address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerfMap {
    functions: BTreeMap<u64, (u64, String)>,
}

impl PerfMap {
    /// Parses the file. Of functions at one address the last counts: code is replaced. Malformed lines are skipped;
    /// the last line may be incomplete.
    pub fn parse(text: &str) -> Self {
        let function = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (start, size) = (number()?, number()?);
            let name = words.next()?.trim();
            (!name.is_empty()).then(|| (start, (size, name.to_owned())))
        };
        Self { functions: text.lines().filter_map(function).collect() }
    }

    /// The function that contains an address.
    pub fn function(&self, address: u64) -> Option<&str> {
        let (start, (size, name)) = self.functions.range(..=address).next_back()?;
        (address - start < *size).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_have_the_function_that_was_compiled_last() {
        let map = PerfMap::parse("1000 20 old\n1000 10 new one\n0x2000 0x8 other\nbad\n3000 zz x\n4000 8");
        assert_eq!(map.function(0x1000), Some("new one"));
        assert_eq!((map.function(0x100f), map.function(0x1010)), (Some("new one"), None));
        assert_eq!(
            (map.function(0x2007), map.function(0x4000), map.function(0)),
            (Some("other"), None, None)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,200}", address in any::<u64>()) {
            PerfMap::parse(&text).function(address);
        }
    }
}
