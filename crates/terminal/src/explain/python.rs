//! What programs of Python did, in terms of Python.

use super::{named, percent};
use numakit_explain::python::{PythonTime, ScriptFunction, UnreadPython};
use std::fmt::Write;

/// Functions with a smaller part of the looks are left out.
const MIN_SHARE: f64 = 0.01;
/// With fewer looks, shares say little.
const FEW: u64 = 50;

/// The functions in which threads were, at most `rows`.
pub fn table(python: &PythonTime, rows: usize) -> String {
    let is_much = |function: &&ScriptFunction| python.shares(function)[1] >= MIN_SHARE;
    let shown: Vec<&ScriptFunction> = python.functions.iter().filter(is_much).take(rows).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut out = "\n   SELF%    ALL%  PYTHON FUNCTION\n".to_owned();
    for function in shown {
        let [own, all] = python.shares(function).map(|share| 100.0 * share);
        // Writing to a string cannot fail.
        _ = writeln!(out, " {own:7.1} {all:7.1}  {}", named(&function.name));
    }
    out
}

/// How many looks there were, and what they did not see.
pub fn notes(python: &PythonTime, seconds: f64) -> String {
    let PythonTime { looks, outside, failed, cost, .. } = *python;
    let mut out = String::new();
    if looks + failed > 0 {
        let cost = cost as f64 / 1e9 / seconds.max(1e-9) * 100.0;
        let few = if looks < FEW { ", too few for exact shares" } else { "" };
        _ = write!(
            out,
            "functions of Python are those at {looks} looks at threads that ran{few}, which took {cost:.2} % of a CPU"
        );
        if outside > 0 {
            _ = write!(
                out,
                "; {} found no function of Python",
                percent(outside as f64 / looks.max(1) as f64)
            );
        }
        if failed > 0 {
            _ = write!(out, "; {failed} more failed, since functions changed meanwhile");
        }
        out.push('\n');
    }
    for (why, processes) in &python.unread {
        let of = if *processes == 1 { "a process" } else { &format!("{processes} processes") };
        _ = writeln!(out, "functions of Python of {of} have no names: {}", reason(*why));
    }
    out
}

/// Why, and what gives names.
fn reason(why: UnreadPython) -> String {
    match why {
        UnreadPython::Memory => "this user may not read its memory; run the program by numa explain COMMAND, observe \
                                 it as root, or allow it by sysctl kernel.yama.ptrace_scope=0 where that is not 0"
            .to_owned(),
        UnreadPython::Symbols => "its interpreter has no symbol _PyRuntime or no version in its name; use one that is not \
                                  stripped of its dynamic symbols, or Python 3.12 or later with PYTHONPERFSUPPORT=1"
            .to_owned(),
        UnreadPython::Version(version) => format!(
            "Python {version} is not known, 3.8 to 3.13 are; where it is 3.12 or later, run it with PYTHONPERFSUPPORT=1, \
             and the functions have names in call chains"
        ),
        UnreadPython::FreeThreaded => {
            "it is a build without the GIL; run it with PYTHONPERFSUPPORT=1, and functions have names in call chains"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_explain::code::CodeName;
    use numakit_explain::python::PythonVersion;

    fn function(name: &str, line: u32, own: u64, all: u64) -> ScriptFunction {
        let name = CodeName {
            function: Some(name.to_owned()),
            module: "app.py".to_owned(),
            file: Some("/srv/app.py".to_owned()),
            line: Some(line),
        };
        ScriptFunction { name, own, all, ..ScriptFunction::default() }
    }

    #[test]
    fn functions_have_their_own_looks_and_those_of_what_they_call() {
        let functions =
            vec![function("lookup", 20, 60, 60), function("main", 30, 0, 99), function("f", 9, 0, 0)];
        let python =
            PythonTime { looks: 100, outside: 1, cost: 4_000_000, functions, ..PythonTime::default() };
        let expected = "\n   SELF%    ALL%  PYTHON FUNCTION\n    60.0    60.0  /srv/app.py:20 (lookup)\n     0.0    99.0  \
                        /srv/app.py:30 (main)\n";
        assert_eq!(table(&python, 10), expected);
        // Looks stand for the time since those before.
        let mut timed = PythonTime { time: 1000, ..python.clone() };
        (timed.functions[0].own_time, timed.functions[0].all_time) = (100, 200);
        assert!(
            table(&timed, 1).contains("    10.0    20.0  /srv/app.py:20 (lookup)"),
            "{}",
            table(&timed, 1)
        );
        assert_eq!(table(&python, 1).lines().count(), 3);
        assert_eq!(table(&PythonTime::default(), 10), "");
        let said = "functions of Python are those at 100 looks at threads that ran, which took 0.20 % of a CPU; 1.0 % found no \
                    function of Python\n";
        assert_eq!(notes(&python, 2.0), said);
        assert!(
            notes(&PythonTime { looks: 3, failed: 2, ..python }, 2.0).contains("too few for exact shares")
        );
    }

    #[test]
    fn functions_without_names_have_a_reason_and_a_way() {
        let version = UnreadPython::Version(PythonVersion { major: 3, minor: 7 });
        let unread = vec![
            (UnreadPython::Memory, 1),
            (version, 3),
            (UnreadPython::Symbols, 1),
            (UnreadPython::FreeThreaded, 2),
        ];
        let said = notes(&PythonTime { unread, ..PythonTime::default() }, 1.0);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].contains("a process have") || lines[0].contains("of a process"), "{said}");
        assert!(
            lines[1].starts_with("functions of Python of 3 processes have no names: Python 3.7 is not known")
        );
        assert!(lines[3].contains("PYTHONPERFSUPPORT=1"));
    }
}
