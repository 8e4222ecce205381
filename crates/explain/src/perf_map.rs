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
            (!name.is_empty()).then(|| (start, (size, shown(name))))
        };
        Self { functions: text.lines().filter_map(function).collect() }
    }

    /// Adds the functions of a later map. What was compiled before and is replaced by now keeps its name where nothing else is.
    pub fn add(&mut self, later: Self) {
        self.functions.extend(later.functions);
    }

    /// The function that contains an address.
    pub fn function(&self, address: u64) -> Option<&str> {
        let (start, (size, name)) = self.functions.range(..=address).next_back()?;
        (address - start < *size).then_some(name)
    }
}

/// The kinds of functions that V8 writes in front of names, and its signs for how far a function is optimised: one function is
/// compiled several times.
const KINDS_OF_V8: [&str; 5] = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
const TIERS_OF_V8: [char; 4] = ['~', '^', '+', '*'];

/// The name as its programmer wrote it: of `void Mon.deposit(int)`, `Mon.deposit(int)`; of `JS:*hot /app/n.js:1:13`, `hot
/// /app/n.js:1:13`.
fn shown(name: &str) -> String {
    if let Some(script) = KINDS_OF_V8.iter().find_map(|kind| name.strip_prefix(kind)) {
        let function = script.trim_start_matches(TIERS_OF_V8);
        return if function.starts_with(' ') { format!("anonymous{function}") } else { function.to_owned() };
    }
    // A method of Java has its type in front, and its class with dots.
    let java = name.strip_suffix(')').and_then(|_| name.split_once('(')).and_then(|(before, arguments)| {
        let (of_type, method) = before.rsplit_once(' ')?;
        (!of_type.contains(' ') && method.contains('.')).then(|| format!("{method}({arguments}"))
    });
    java.unwrap_or_else(|| name.to_owned())
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

    #[test]
    fn names_are_those_of_the_source() {
        for (name, expected) in [
            ("void Mon.deposit(int)", "Mon.deposit(int)"),
            ("java.lang.Object a.B.c(int, long)", "a.B.c(int, long)"),
            ("JS:*hot /app/n.js:1:13", "hot /app/n.js:1:13"),
            ("LazyCompile:~hot /app/n.js:1:13", "hot /app/n.js:1:13"),
            ("JS:^ /app/n.js:3:5", "anonymous /app/n.js:3:5"),
            ("Builtin:ArrayMap", "Builtin:ArrayMap"),
            ("StubRoutines (1)", "StubRoutines (1)"),
            ("py::f:/a b.py", "py::f:/a b.py"),
            ("unsigned long f(int)", "unsigned long f(int)"),
        ] {
            assert_eq!(shown(name), expected);
        }
    }

    #[test]
    fn a_later_map_replaces_what_it_has() {
        let mut map = PerfMap::parse("1000 20 a\n2000 20 b");
        map.add(PerfMap::parse("2000 10 c\n3000 10 d"));
        let names = [0x1001, 0x2001, 0x2018, 0x3001].map(|at| map.function(at));
        assert_eq!(names, [Some("a"), Some("c"), None, Some("d")]);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,200}", address in any::<u64>()) {
            PerfMap::parse(&text).function(address);
        }
    }
}
