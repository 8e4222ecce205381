//! Where names of code come from that runtimes compile, and how to get those that are missing.

use super::percent;
use numakit_explain::Explanation;
use numakit_explain::runtime::{NamelessCode, NamesReport, NamesSource, RuntimeNames, RuntimeProgram};
use numakit_findings::next::symbols_command;
use numakit_model::numbers::duration;
use std::fmt::Write;

/// Code with a smaller part of the CPU time needs no names: that of a file, and that of a runtime.
const MIN_FILE: f64 = 0.05;
const MIN_RUNTIME: f64 = 0.01;
/// Files that are named.
const MAX_FILES: usize = 3;
/// A line for each runtime and file about which there is something to say.
pub fn notes(names: &NamesReport, explanation: &Explanation) -> String {
    let all: u64 = explanation.functions.iter().map(|code| code.time.total()).sum();
    let share = |time: u64| time as f64 / all.max(1) as f64;
    let mut out = String::new();
    for runtime in &names.runtimes {
        match runtime.program {
            RuntimeProgram::Java => java(runtime, share(runtime.nameless), &mut out),
            RuntimeProgram::Node => node(runtime, share(runtime.nameless), &mut out),
        }
    }
    let much = names.nameless.iter().filter(|file| share(file.time) >= MIN_FILE).take(MAX_FILES);
    much.for_each(|file| out.push_str(&nameless(file, share(file.time))));
    out
}

// Writing to a string cannot fail.
fn java(runtime: &RuntimeNames, nameless: f64, out: &mut String) {
    let RuntimeNames { process, source, chains, dumps, longest_dump, .. } = runtime;
    let flag = format!(
        "run it with -XX:+DumpPerfMapAtExit (JDK 17 and later), or run 'jcmd {process} Compiler.perfmap' before"
    );
    let missing = match source {
        NamesSource::Map => None,
        NamesSource::Asked { times } => {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            let chains =
                if *chains { "" } else { "; call chains through them need -XX:+PreserveFramePointer" };
            _ = writeln!(
                out,
                "the Java machine {process} was asked {times} for the names of its methods{chains}"
            );
            None
        }
        NamesSource::Old { version } => Some(format!(
            "JDK {version} cannot tell them: use JDK 17 or later, or an agent that writes /tmp/perf-{process}.map"
        )),
        NamesSource::Refused { why } => Some(format!("{why}; {flag}")),
        NamesSource::Nothing => Some(format!("it ended before it was asked; {flag}")),
    };
    if let Some(why) = missing.filter(|_| nameless >= MIN_RUNTIME) {
        _ = writeln!(out, "methods of the Java machine {process} have no names, since {why}");
    }
    if *dumps > 0 {
        let (times, longest) = (
            if *dumps == 1 { "once".to_owned() } else { format!("{dumps} times") },
            duration(*longest_dump as f64 / 1e9),
        );
        _ = writeln!(
            out,
            "the Java machine {process} was asked {times} what its threads wait for, and stopped them for at most {longest} each \
             time; --no-names asks nothing"
        );
    }
}

fn node(runtime: &RuntimeNames, nameless: f64, out: &mut String) {
    if runtime.source == NamesSource::Nothing && nameless >= MIN_RUNTIME {
        _ = writeln!(
            out,
            "JavaScript functions of process {} have no names: run it as node --perf-basic-prof, or by numa explain node",
            runtime.process
        );
    }
}

fn nameless(NamelessCode { path, .. }: &NamelessCode, share: f64) -> String {
    let fix = match symbols_command(path) {
        Some(command) => {
            format!("install the debug symbols of its package (-dbgsym, -debuginfo), or {command}")
        }
        None => "build it with -g, and without strip".to_owned(),
    };
    format!("{} of the CPU time is in functions of {path} that have no names: {fix}\n", percent(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(program: RuntimeProgram, source: NamesSource) -> RuntimeNames {
        RuntimeNames { process: 7, program, source, chains: true, nameless: 0, dumps: 0, longest_dump: 0 }
    }

    fn said(runtime: &RuntimeNames, nameless: f64) -> String {
        let mut out = String::new();
        match runtime.program {
            RuntimeProgram::Java => java(runtime, nameless, &mut out),
            RuntimeProgram::Node => node(runtime, nameless, &mut out),
        }
        out
    }

    #[test]
    fn missing_names_of_java_have_a_reason_and_a_flag() {
        let of = |source| said(&runtime(RuntimeProgram::Java, source), 0.5);
        assert_eq!(of(NamesSource::Map), "");
        assert!(of(NamesSource::Old { version: 11 }).contains("since JDK 11 cannot tell them: use JDK 17"));
        let refused = of(NamesSource::Refused { why: "it belongs to user 5".to_owned() });
        assert!(
            refused.contains("since it belongs to user 5; run it with -XX:+DumpPerfMapAtExit"),
            "{refused}"
        );
        assert!(of(NamesSource::Nothing).contains("ended before it was asked"));
        let calm = runtime(RuntimeProgram::Java, NamesSource::Nothing);
        assert_eq!(said(&calm, 0.0), "", "nothing of it needs a name");
    }

    #[test]
    fn what_java_was_asked_is_said() {
        let mut asked = runtime(RuntimeProgram::Java, NamesSource::Asked { times: 2 });
        assert_eq!(said(&asked, 0.0), "the Java machine 7 was asked 2 times for the names of its methods\n");
        (asked.chains, asked.dumps, asked.longest_dump) = (false, 1, 3_000_000);
        let text = said(&asked, 0.0);
        assert!(
            text.contains("methods; call chains through them need -XX:+PreserveFramePointer\n"),
            "{text}"
        );
        assert!(
            text.contains("was asked once what its threads wait for, and stopped them for at most 3 ms"),
            "{text}"
        );
    }

    #[test]
    fn names_of_scripts_and_files_have_a_way_to_get_them() {
        let node = said(&runtime(RuntimeProgram::Node, NamesSource::Nothing), 0.5);
        assert!(node.contains("process 7 have no names: run it as node --perf-basic-prof"));
        let of = |path: &str| nameless(&NamelessCode { path: path.to_owned(), time: 1 }, 0.48);
        let library = "/usr/lib/x86_64-linux-gnu/liblzma.so.5.4.1";
        assert!(
            of(library).starts_with(&format!(
                "48.0 % of the CPU time is in functions of {library} that have no names"
            ))
        );
        assert!(of(library).ends_with(&format!("debuginfod-find debuginfo {library}\n")));
        assert!(of("/home/u/app").ends_with("build it with -g, and without strip\n"));
    }
}
