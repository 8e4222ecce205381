//! `numa explain --as`: what a program would be on a machine that is not here.

use crate::explain::{explained_with, program};
use crate::runner::Folder;

/// Points of percent by which a share may differ from what the program does.
const POINTS: f64 = 8.0;

#[test]
fn measuring_a_machine_of_one_node_tells_what_would_be_far_on_five() {
    let folder = Folder::new("explain-as");
    let Some(program) = program(&folder, "cc", "parts.c") else { return };
    // A node for each thread: the main thread's, which touches, and those of the others.
    let machine = folder.numa("topo --json --synthetic").arg("node:5 core:2 pu:1").output().unwrap();
    std::fs::write(folder.path("five.json"), machine.stdout).unwrap();
    let options = "--as five.json";
    for (mode, far, verdict) in
        [("main", 100.0, Some("first-touch")), ("own", 0.0, None), ("all", 100.0, Some("shared-by-all"))]
    {
        let Some(result) = explained_with(&folder, options, &format!("{} {mode}", program.display())) else {
            return;
        };
        let projected = &result["projected"];
        if let Some(why) = projected["why_not"].as_str() {
            assert!(why.contains("page faults"), "{why}");
            return numakit_skips::PRIVILEGES.skip_part(why);
        }
        assert_eq!(
            (projected["machine"].as_str(), projected["threads"].as_u64()),
            (Some("five.json"), Some(5))
        );
        let share = 100.0 * projected["remote_share"]["share"].as_f64().unwrap();
        println!("{mode}: {share:.1} % far, {:.1} % unknown", 100.0 * projected["unknown"].as_f64().unwrap());
        assert!((share - far).abs() < POINTS, "{mode}: {share}");
        assert!(projected["unknown"].as_f64().unwrap() < 0.05, "{mode}: {projected}");
        let object = &projected["objects"][0];
        assert!(object["name"].as_str().unwrap().contains("aligned_alloc in main"), "{object}");
        let layout = ["random-on-small-pages", "random"];
        let rule = object["verdict"]["rule"].as_str().filter(|rule| !layout.contains(rule));
        assert_eq!(rule, verdict, "{mode}: {object}");
        assert!(object["used_from"].as_array().unwrap().len() >= 2, "{object}");
    }
}

#[test]
fn measuring_what_fits_the_caches_of_the_other_machine_is_not_far_there() {
    let folder = Folder::new("explain-as-caches");
    let Some(program) = program(&folder, "cc", "parts.c") else { return };
    // The time at memory of another machine, divided by the CPU time here; none where it is not known.
    let outside = |described: &str| -> Option<f64> {
        let machine = folder.numa("topo --json --synthetic").arg(described).output().unwrap();
        std::fs::write(folder.path("other.json"), machine.stdout).unwrap();
        let result = explained_with(&folder, "--as other.json", &format!("{} main", program.display()))?;
        let projected = &result["projected"];
        if let Some(why) = projected["why_not"].as_str() {
            numakit_skips::PRIVILEGES.skip(why);
            return None;
        }
        let nodes = projected["nodes"].as_array().unwrap();
        let time: u64 = nodes.iter().map(|pair| pair["time"].as_u64().unwrap()).sum();
        Some(time as f64 / result["threads"]["user"].as_f64().unwrap())
    };
    let Some(usual) = outside("node:5 core:2 pu:1") else { return };
    assert!(usual > 0.5, "{usual}");
    // What is left is at addresses that are hit too rarely to tell what fits.
    let large = outside("node:5 l3:1(size=16G) core:2(l2=8G) pu:1").unwrap();
    assert!(large < 0.1, "{large}");
}

#[test]
fn a_method_without_page_faults_says_that_it_cannot_be_told() {
    let folder = Folder::new("explain-as-in-process");
    let Some(program) = program(&folder, "cc", "parts.c") else { return };
    let options = "--method in-process --as node:4";
    let Some(result) = explained_with(&folder, options, &format!("{} own", program.display())) else {
        return;
    };
    let why = result["projected"]["why_not"].as_str().unwrap();
    assert!(why.contains("no page faults were seen"), "{why}");
    assert_eq!(result["projected"]["remote_share"], serde_json::Value::Null);
}

#[test]
fn what_is_no_machine_is_refused_before_the_program_runs() {
    let folder = Folder::new("explain-as-refused");
    let done = folder.run("explain --as node:many -- touch ran");
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("--as: 'many' is not a count"), "{}", done.err);
    assert!(!folder.path("ran").exists());
}
