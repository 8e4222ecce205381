//! `numa show` of each kind of file: the text of a result is that of the verb which wrote it, and former names of verbs work.

use crate::mcp;
use crate::runner::Folder;
use crate::top::AtTerminal;
use numakit_testing::until;

/// A program that uses the processor for a moment.
const WORK: &str = "#!/bin/sh\nn=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done\n";

/// Writes a result of `numa explain`, and returns its text.
fn explain(folder: &Folder, name: &str) -> String {
    folder.script("work", WORK);
    let done = folder.run(&format!("explain --json {name}.json -o {name}.txt ./work"));
    assert_eq!(done.code, 0, "{}", done.err);
    std::fs::read_to_string(folder.path(&format!("{name}.txt"))).unwrap()
}

#[test]
fn a_result_of_explain_has_the_text_and_the_json_that_it_had() {
    let folder = Folder::new("show-explained");
    let text = explain(&folder, "a");
    let shown = folder.run("show a.json");
    assert_eq!((shown.code, shown.out.as_str()), (0, text.as_str()), "{}", shown.err);
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let written = std::fs::read_to_string(folder.path("a.json")).unwrap();
    assert_eq!(value(&folder.run("show --json a.json").out), value(&written));
    explain(&folder, "b");
    let compared = folder.run("show a.json b.json");
    compared.says(0, "");
    assert!(
        compared.out.starts_with("AFTER takes ") && compared.out.contains("; observed "),
        "{}",
        compared.out
    );
    // Of a version whose form is older or newer.
    for (from, to, part) in [
        ("\"waits\":", "\"no_waits\":", "missing field `waits`"),
        ("\"version\": 1,", "\"version\": 99,", "has version 99"),
        ("\"regime\": \"", "\"regime\": \"other-", "unknown variant"),
        ("\"regime\"", "\"no_regime\"", "it is another kind of JSON"),
    ] {
        let changed = written.replacen(from, to, 1);
        assert_ne!(changed, written, "{from}");
        std::fs::write(folder.path("changed.json"), changed).unwrap();
        folder.run("show changed.json").says(2, part);
    }
    std::fs::write(folder.path("cut.json"), &written[..written.len() / 2]).unwrap();
    folder.run("show cut.json").says(2, "cut.json is neither a recording nor a result");
}

#[test]
fn the_newest_result_is_shown_without_a_file() {
    let folder = Folder::new("show-newest");
    folder.run("show").says(2, "there is no result of 'numa explain' in ");
    let text = explain(&folder, "a");
    let kept = folder.path("state/numakit/explained/a-1.json");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::copy(folder.path("a.json"), kept).unwrap();
    let shown = folder.run("show");
    assert_eq!((shown.code, shown.out), (0, text));
    assert!(
        shown.err.contains("newest result of 'numa explain': ") && shown.err.contains("explained/a-1.json")
    );
    assert!(!shown.err.contains("is newer"), "{}", shown.err);
    folder.run("record -e vmstat.pgfault -- true").says(0, "numa-1.arrows");
    folder.run("show").says(0, "numa: numa-1.arrows is newer: numa show numa-1.arrows\n");
}

#[test]
fn results_of_bench_are_shown_and_compared() {
    let folder = Folder::new("show-bench");
    let measured = folder.run("bench latency --cpus 0 --size 1M --time 1ms --json");
    std::fs::write(folder.path("a.json"), &measured.out).unwrap();
    for options in ["", " --csv", " --json", " --all"] {
        let shown = folder.run(&format!("show a.json{options}"));
        assert_eq!((shown.code, &shown.out), (0, &folder.run(&format!("bench show a.json{options}")).out));
        assert!(!shown.out.is_empty(), "{}", shown.err);
    }
    for options in ["", " --json", " --rows 1"] {
        let compared = folder.run(&format!("show a.json a.json{options}"));
        let expected = folder.run(&format!("bench compare a.json a.json{options}"));
        assert_eq!((compared.code, &compared.out), (0, &expected.out), "{}", compared.err);
    }
    assert_eq!(folder.run("show a.json --html page.html").code, 0);
    assert!(std::fs::read_to_string(folder.path("page.html")).unwrap().starts_with("<!doctype html>"));
    folder.run("show --page a.json").says(2, "--html OUT writes it");
}

#[test]
fn kinds_are_not_mixed_and_options_fit_the_kind() {
    let folder = Folder::new("show-kinds");
    folder
        .run("record -i 5ms -e pgfault -o r.arrows -- sleep 0.1")
        .says(0, "'numa show r.arrows' analyses it");
    explain(&folder, "e");
    folder
        .run("show r.arrows e.json")
        .says(2, "e.json is a result of 'numa explain': show files of one kind");
    folder.run("show e.json r.arrows --page").says(2, "show files of one kind at a time");
    folder.run("show r.arrows r.arrows r.arrows").says(2, "3 files: ");
    folder.run("show e.json none.json").says(2, "cannot read none.json");
    for (line, option) in [
        ("show e.json --phase x", "--phase"),
        ("show e.json --csv", "--csv"),
        ("show r.arrows --rows 3", "--rows"),
        ("show r.arrows --page --json", "--json"),
        ("show e.json --page --rows 1", "--rows"),
    ] {
        let done = folder.run(line);
        assert!(done.code == 2 && done.err.contains(option), "{line}: {}", done.err);
    }
}

#[test]
fn the_last_samples_of_a_killed_recorder_are_read_by_every_verb() {
    let folder = Folder::new("show-killed");
    std::fs::create_dir(folder.path("in")).unwrap();
    let started = folder.start("record -i 5ms -e pgfault,self.lost -o in/a.arrows");
    let taken = || folder.run("ctl status").out.split(' ').nth(2).and_then(|count| count.parse::<u64>().ok());
    until!(taken().is_some_and(|count| count > 100));
    started.signal("KILL");
    started.end();
    let before = (std::fs::read(folder.path("in/a.arrows")).unwrap(), folder.path("in/a.arrows.tail"));
    let rows = folder.read("in/a.arrows");
    let (samples, total) = (rows.samples(), rows.total());
    assert!(samples > 100 && before.1.exists(), "{samples}");
    let shown = folder.run("show in/a.arrows");
    assert!(shown.code == 0 && shown.out.contains(&format!(": {samples} samples of ")), "{}", shown.out);
    let exported = folder.run("export in/a.arrows --to csv");
    assert_eq!((exported.code, exported.out.lines().count()), (0, 1 + total));
    let question = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"findings\",\
        \"arguments\":{\"recording\":\"a.arrows\"}}}\n";
    let initialized = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    let answer = mcp::asked(&folder, "in", &format!("{}{initialized}{question}", mcp::INITIALIZE));
    assert!(answer.out.contains(&format!("covered_samples\\\":{samples},")), "{} {}", answer.out, answer.err);
    let mut top = AtTerminal::start(&folder, 120, 30, "top --replay in/a.arrows", &[]);
    top.shows("Verdict");
    top.press("q");
    // Readers change nothing, and the name is not given to another recording.
    assert_eq!(std::fs::read(folder.path("in/a.arrows")).unwrap(), before.0);
    assert!(before.1.exists());
    std::fs::rename(folder.path("in/a.arrows"), folder.path("in/b.arrows")).unwrap();
    folder.run("record -o in/a.arrows -- true").says(2, "has the last samples of a recorder that was killed");
    assert!(before.1.exists());
}

#[test]
fn former_names_of_verbs_work() {
    let folder = Folder::new("former");
    folder.run("record -i 5ms -e pgfault -o a.arrows -- sleep 0.1").says(0, "samples");
    for (former, now) in [
        ("report a.arrows", "show a.arrows"),
        ("report a.arrows a.arrows --json", "show a.arrows a.arrows --json"),
        ("tasks --help", "top --help"),
        ("view --help", "show --help"),
        ("alloc-profile --help", "alloc --help"),
    ] {
        let (former, now) = (folder.run(former), folder.run(now));
        assert_eq!((former.code, &former.out), (now.code, &now.out), "{}", former.err);
        assert_eq!(former.code, 0, "{}", former.err);
    }
    folder.run("tasks -p 4194305").says(2, "there is no process 4194305");
    folder.run("alloc-stats 4194305").says(2, "there is no process 4194305;");
    folder.run("alloc-stats --json -i 1s 4194305").says(2, "there is no process 4194305;");
    let page = folder.run("view a.arrows --html o.html");
    if page.err.contains("built without its web page") {
        return numakit_skips::PAGE.skip_part("view --html: this numa has no page");
    }
    assert!(page.code == 0 && page.out.starts_with("wrote o.html: "), "{}", page.err);
}
