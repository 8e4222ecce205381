//! The source lines of the functions with most time, with their text and the time of each: what `perf annotate` shows. The files
//! are those that the debug information of the observed programs names, which may name anything.

use crate::code::{CodeTime, PlaceTimes};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::RangeInclusive;

/// Functions whose lines are shown, those with most time first, and files of a function.
const MAX_FUNCTIONS: usize = 20;
const MAX_FILES: usize = 3;
/// Lines before and after one that has time.
const AROUND: u32 = 3;
/// Lines of a function in one file, and letters of a line.
const MAX_LINES: usize = 300;
const MAX_LETTERS: usize = 400;

/// Why a source file has no text.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Debug information names it from the folder of the compiler.
    #[error("its path is relative, and the folder in which it was compiled is not known")]
    Relative,
    /// Nothing was left to see the file by.
    #[error("its process had ended before it was looked at")]
    Ended,
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Its number, from 1 on.
    pub line: u32,
    /// What it says.
    pub text: String,
    /// The CPU time of the function in this line, in ns; 0 for lines around others that have time.
    pub time: u64,
}

/// The lines of a function in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnotatedSource {
    /// The function; what is inlined in it belongs to it.
    pub function: Option<String>,
    /// The program or library.
    pub module: String,
    /// The file, as debug information names it.
    pub file: String,
    /// The CPU time of the function in this file, in ns.
    pub time: u64,
    /// The lines with time and those around them, in order; numbers that follow each other have no gap.
    pub lines: Vec<SourceText>,
    /// Why there are none.
    pub why_not: Option<String>,
}

/// The annotated sources of these lines; `read` gives the text of a file, or why there is none.
pub fn annotate(
    source_lines: &[CodeTime],
    read: &mut dyn FnMut(&str) -> Result<String, SourceError>,
) -> Vec<AnnotatedSource> {
    let mut texts: HashMap<&str, Result<Vec<String>, SourceError>> = HashMap::new();
    let mut all = Vec::new();
    for ((function, module), files) in largest(source_lines) {
        for (file, times) in files {
            let text = texts.entry(file).or_insert_with(|| {
                read(file)
                    .map(|text| text.lines().map(|line| line.chars().take(MAX_LETTERS).collect()).collect())
            });
            let (lines, why_not) = match text {
                Ok(text) => lines(text, &times),
                Err(why) => (Vec::new(), Some(why.to_string())),
            };
            let (function, module) = (function.map(ToOwned::to_owned), module.to_owned());
            let time = time(&times);
            all.push(AnnotatedSource { function, module, file: file.to_owned(), time, lines, why_not });
        }
    }
    all
}

/// The time of lines by file.
type FileLines<'a> = BTreeMap<&'a str, BTreeMap<u32, u64>>;
/// A function with its module, and the time of its lines by file.
type FunctionLines<'a> = ((Option<&'a str>, &'a str), Vec<(&'a str, BTreeMap<u32, u64>)>);

/// The functions with most time, each with the files that have most of it.
fn largest(source_lines: &[CodeTime]) -> Vec<FunctionLines<'_>> {
    let mut functions: BTreeMap<(Option<&str>, &str), FileLines<'_>> = BTreeMap::new();
    for CodeTime { name, time } in source_lines {
        if let (Some(file), Some(line)) = (&name.file, name.line) {
            let files = functions.entry((name.function.as_deref(), &name.module)).or_default();
            *files.entry(file).or_default().entry(line).or_default() += PlaceTimes::total(time);
        }
    }
    let mut all: Vec<FunctionLines<'_>> =
        functions.into_iter().map(|(function, files)| (function, files_by_time(files))).collect();
    all.sort_by_key(|(_, files)| Reverse(files.iter().map(|(_, lines)| time(lines)).sum::<u64>()));
    all.truncate(MAX_FUNCTIONS);
    all
}

/// The files with most time in their lines.
fn files_by_time(files: FileLines<'_>) -> Vec<(&str, BTreeMap<u32, u64>)> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(file, lines)| (Reverse(time(lines)), *file));
    files.truncate(MAX_FILES);
    files
}

fn time(lines: &BTreeMap<u32, u64>) -> u64 {
    lines.values().sum()
}

/// The lines with time and those around them, as far as the file has them.
fn lines(text: &[String], times: &BTreeMap<u32, u64>) -> (Vec<SourceText>, Option<String>) {
    let around = |line: &u32| -> RangeInclusive<u32> {
        line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND)
    };
    let mut shown: BTreeMap<u32, SourceText> = BTreeMap::new();
    let mut by_time: Vec<(&u32, &u64)> = times.iter().collect();
    by_time.sort_by_key(|(line, time)| (Reverse(**time), **line));
    for (line, _) in by_time {
        for line in around(line) {
            if let Some(text) = text.get(line as usize - 1)
                && shown.len() < MAX_LINES
            {
                let time = times.get(&line).copied().unwrap_or(0);
                shown.entry(line).or_insert_with(|| SourceText { line, text: text.clone(), time });
            }
        }
    }
    let is_short = times.keys().any(|line| *line as usize > text.len());
    let why = format!("the file has {} lines: it is not the one that was compiled", text.len());
    match is_short {
        true => (Vec::new(), Some(why)),
        false => (shown.into_values().collect(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::CodeName;

    fn code(function: &str, file: &str, line: u32, computing: u64) -> CodeTime {
        let (function, file) = (Some(function.to_owned()), Some(file.to_owned()));
        let name = CodeName { function, module: "app".to_owned(), file, line: Some(line) };
        CodeTime { name, time: PlaceTimes { computing, ..PlaceTimes::default() } }
    }

    #[test]
    fn lines_have_their_text_their_time_and_their_surroundings() {
        let text: String = (1..=30).map(|line| format!("line {line}\n")).collect();
        let all = [code("sum", "/a.c", 5, 70), code("sum", "/a.c", 20, 20), code("main", "/gone.c", 3, 10)];
        let mut asked = Vec::new();
        let found = annotate(&all, &mut |file| {
            asked.push(file.to_owned());
            if file == "/a.c" { Ok(text.clone()) } else { Err(SourceError::Ended) }
        });
        assert_eq!(asked, ["/a.c", "/gone.c"], "each file is read once");
        let [sum, main] = found.as_slice() else { panic!("{found:?}") };
        let numbers: Vec<u32> = sum.lines.iter().map(|line| line.line).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6, 7, 8, 17, 18, 19, 20, 21, 22, 23]);
        assert_eq!((sum.lines[3].text.as_str(), sum.lines[3].time, sum.lines[4].time), ("line 5", 70, 0));
        assert_eq!((sum.time, &sum.why_not), (90, &None));
        assert_eq!(
            (main.lines.len(), main.why_not.as_deref()),
            (0, Some("its process had ended before it was looked at"))
        );
    }

    #[test]
    fn another_file_than_that_which_was_compiled_is_not_shown() {
        let found = annotate(&[code("sum", "/a.c", 9, 70)], &mut |_| Ok("one\ntwo\n".to_owned()));
        let why = "the file has 2 lines: it is not the one that was compiled";
        assert_eq!((found[0].lines.len(), found[0].why_not.as_deref()), (0, Some(why)));
    }

    #[test]
    fn lines_are_bounded_and_those_with_most_time_stay() {
        let text: String = (1..=10_000).map(|_| "x".repeat(1000) + "\n").collect();
        let all: Vec<CodeTime> = (1..=900).map(|n| code("sum", "/a.c", n * 10, n.into())).collect();
        let found = annotate(&all, &mut |_| Ok(text.clone()));
        assert_eq!(found[0].lines.len(), MAX_LINES);
        assert_eq!(found[0].lines.last().map(|line| (line.line, line.text.len())), Some((9003, MAX_LETTERS)));
    }
}
