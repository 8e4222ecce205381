//! The guide on the terminal and in a browser, and that its forms of JSON are those that the verbs write.

use crate::runner::{Done, Folder};
use crate::top::AtTerminal;
use numakit_guide::topics;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn every_topic_is_listed_and_shown() {
    let folder = Folder::new("guide-topics");
    let list = folder.run("help guide");
    assert_eq!(list.code, 0, "{}", list.err);
    for topic in topics::topics() {
        let lines = list.out.lines().filter(|line| line.split_whitespace().next() == Some(&topic.name));
        assert_eq!(lines.count(), 1, "{} in {}", topic.name, list.out);
        let page = folder.run(&format!("help guide {}", topic.name));
        let markdown = topic.document().unwrap().markdown();
        let title = markdown.lines().next().unwrap().trim_start_matches("# ").replace('`', "");
        assert!(
            page.code == 0 && page.out.replace('`', "").starts_with(&title),
            "{}: {}",
            topic.name,
            page.out
        );
        assert!(!page.out.contains('\x1b'), "a pipe has no styles: {}", page.out);
        // Of a verb, also by a former name, it is the help.
        let help = folder.run(&format!("help {}", topic.name)).out;
        assert!(help == page.out || help.contains("\nUsage: numa "), "{}: {help}", topic.name);
    }
}

#[test]
fn the_name_of_a_verb_finds_the_page_that_describes_it() {
    let folder = Folder::new("guide-verbs");
    assert_eq!(folder.run("help guide topo").out, folder.run("help guide topology").out);
    let help = folder.run("help run").out;
    assert!(help.contains("'numa help guide run' shows the page of the guide"), "{help}");
    let styled = folder.run("--color always help guide run");
    assert!(styled.out.starts_with("\x1b[1m") && !styled.out.contains("===="), "{}", styled.out);
}

/// Verbs that the list of pages names.
#[test]
fn all_verbs_that_the_guide_names_are_listed() {
    let folder = Folder::new("guide-listed");
    let (pages, verbs) = (folder.run("help guide").out, folder.run("help more").out);
    let named: Vec<&str> =
        pages.split("'numa ").skip(1).filter_map(|rest| rest.split(['\'', ' ']).next()).collect();
    assert!(named.contains(&"recover"), "{pages}");
    for verb in named {
        assert!(verbs.contains(&format!("  {verb} ")), "{verb}: {verbs}");
    }
}

#[test]
fn unknown_topics_are_refused_with_the_nearest() {
    let folder = Folder::new("guide-wrong");
    folder
        .run("help topolgy")
        .says(2, "'topolgy'; did you mean 'topo' or 'top' or 'topology'? 'numa help more'");
    folder
        .run("help guide xyzxyzxyz")
        .says(2, "page of the guide 'xyzxyzxyz'; 'numa help more' lists the verbs");
    folder.run("help --web metrcs").says(2, "'metrics'");
    folder.run("help guide help").says(2, "the guide has no page about 'numa help'");
    folder.run("help run plan").says(2, "one topic at a time; 'numa help guide plan'");
    folder.run("help plan for").says(2, "one topic at a time; 'numa help plan' has all of 'plan'");
    for line in ["help json", "help guide JSON"] {
        folder.run(line).says(
            2,
            "the form of JSON is on the page of the verb that writes it, as in 'numa help guide explain'",
        );
    }
    folder.run("help --no-open").says(2, "--web");
}

#[test]
fn a_terminal_shows_a_page_by_the_pager_that_variables_name() {
    let folder = Folder::new("guide-pager");
    let shows = |variables: &[(&str, &str)], text: &str| {
        AtTerminal::start(&folder, 90, 400, "help guide plan", variables).shows(text);
    };
    let first = "Plan for any launcher";
    shows(&[("NUMAKIT_PAGER", "sed 's/^/> /'"), ("PAGER", "cat")], &format!("> {first}"));
    shows(&[("PAGER", "head -n 1; echo by PAGER; cat >/dev/null")], "by PAGER");
    // One that reads nothing, and ends before it gets the text.
    shows(&[("PAGER", "exec <&-; sleep 0.2; echo ended; exit 127")], first);
    // Without a pager it is printed.
    for pager in ["cat", "", "no-such-pager-here -x"] {
        shows(&[("PAGER", pager)], first);
    }
}

/// The answer of a server to GET.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_browser_shows_the_guide_until_a_signal() {
    let folder = Folder::new("guide-web");
    let mut started = folder.spawn("help --web topo --no-open --listen 127.0.0.1:0");
    let mut line = String::new();
    let mut byte = [0];
    let out = started.child().stdout.as_mut().unwrap();
    while !line.ends_with('\n') && out.read(&mut byte).unwrap() == 1 {
        line.push(byte[0].into());
    }
    let (address, path) = line.trim().strip_prefix("guide  http://").unwrap().split_once('/').unwrap();
    assert_eq!(path, "guide/topology.html");
    let page = get(address, "/guide/topology.html");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<h1"), "{page}");
    assert!(get(address, "/guide/images/live.png").contains("image/png"));
    started.signal("INT");
    assert!(started.wait().success());
}

/// The names of all members, but for those below members whose names are data, and those of the topology, which has a page of its own.
fn members(value: &Value, names: &mut BTreeSet<String>) {
    const ELSEWHERE: [&str; 3] = ["by_rule", "offsets", "topology"];
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                names.insert(name.clone());
                if !ELSEWHERE.contains(&name.as_str()) {
                    members(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| members(value, names)),
        _ => {}
    }
}

/// The words in backquotes of the sections of a page about JSON, up to the next section of the same level.
fn described(page: &str) -> BTreeSet<String> {
    let markdown = topics::page(page).unwrap().markdown();
    let mut words = BTreeSet::new();
    let mut level = None;
    for line in markdown.lines() {
        let depth = line.bytes().take_while(|byte| *byte == b'#').count();
        if depth > 0 && level.is_none_or(|level| depth <= level) {
            level = line.contains("JSON").then_some(depth);
        }
        if level.is_some() {
            let is_part = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            words.extend(line.split(is_part).filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    words
}

/// The names in backquotes of the row of a page about a member.
fn row(page: &str, member: &str) -> BTreeSet<String> {
    let markdown = topics::page(page).unwrap().markdown();
    let start = format!("| `{member}` |");
    let row = markdown.lines().find_map(|line| line.strip_prefix(start.as_str())).unwrap();
    row.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_guide_describes_all_that_verbs_write_as_json() {
    let folder = Folder::new("guide-json");
    std::fs::write(folder.path("data"), [0; 8192]).unwrap();
    let run = |line: &str| {
        let mut command = folder.numa(line);
        Done::of(command.env("NUMAKIT_REGISTRY", folder.path("cores")).output().unwrap())
    };
    let threads =
        "import threading; [threading.Thread(target=lambda: sum(range(3000000))).start() for _ in range(3)]";
    folder.script("sum", &format!("#!/bin/sh\nexec python3 -c '{threads}'\n"));
    for (page, line) in [
        ("jobs", "jobs --json -i 300ms"),
        ("list", "list --json"),
        ("doctor", "doctor --json"),
        ("plan", "plan -c 1 --json"),
        ("tasks", "top --once --json -i 100ms"),
        ("topo", "topo --json"),
        ("file", "file show --json data"),
        ("bench", "bench latency --quick --json"),
        ("alloc", "alloc --profile numa --json - ls"),
        ("explain", "explain --json - ./sum"),
        ("ps", concat!("run -c 1 --busy off ", env!("CARGO_BIN_EXE_numa"), " ps --json")),
    ] {
        let done = run(line);
        let json = done.out.find('{').map(|at| &done.out[at..]).unwrap_or_default();
        let mut names = BTreeSet::new();
        let values = serde_json::Deserializer::from_str(json).into_iter::<Value>().map_while(Result::ok);
        let values: Vec<Value> = values.collect();
        values.iter().for_each(|value| members(value, &mut names));
        if page == "explain" {
            let row = row(page, "time");
            let written: BTreeSet<String> = values[0]["time"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(row, written);
        }
        let mut described = described(page);
        if page == "explain" {
            // Its findings are those of a recording, and are described there.
            described.extend(self::described("show"));
        }
        let missing: Vec<&String> = names.difference(&described).collect();
        assert!(
            missing.is_empty(),
            "the page about {page} does not describe {missing:?}, which '{line}' writes"
        );
        assert!(names.len() >= 5, "'{line}' wrote {names:?}: {}{}", done.out, done.err);
    }
}
