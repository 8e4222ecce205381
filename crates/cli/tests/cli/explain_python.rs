//! Programs of Python are explained by their functions and lines.

use crate::explain::explained_with;
use crate::runner::Folder;
use serde_json::Value;

/// Two threads that compute under the GIL, and one that sleeps in two functions in turn.
const THREADS: &str = "import threading, time
def compute(end):
    total = 0
    while time.time() < end:
        for i in range(10000):
            total += i * i
def doze():
    time.sleep(0.35)
def rest():
    time.sleep(0.35)
def pause():
    for i in range(5):
        doze()
        rest()
end = time.time() + 4
threads = [threading.Thread(target=compute, args=(end,)) for _ in range(2)]
threads.append(threading.Thread(target=pause))
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";

/// What is seen of a program of Python; `None` where it cannot be seen.
fn seen(folder: &Folder, text: &str) -> Option<Value> {
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|done| done.status.success()) {
        numakit_skips::TOOLS.skip("there is no python3");
        return None;
    }
    std::fs::write(folder.path("app.py"), text).unwrap();
    let found = explained_with(folder, "", &format!("python3 {}", folder.path("app.py").display()))?;
    if let Some(why) = found["waits"]["refused"].as_str() {
        numakit_skips::PRIVILEGES.skip(why);
        return None;
    }
    if !found["python"]["unread"].as_array().unwrap().is_empty() {
        numakit_skips::TOOLS.skip(format_args!("python3 cannot be read: {}", found["python"]["unread"]));
        return None;
    }
    Some(found)
}

/// Whether the innermost function of a chain is this one of the program.
fn is_in(chain: &Value, function: &str, lines: std::ops::RangeInclusive<u64>) -> bool {
    let code = &chain[0];
    code["function"] == function
        && code["module"] == "app.py"
        && lines.contains(&code["line"].as_u64().unwrap_or(0))
}

#[test]
fn measuring_functions_of_python_are_those_of_looks_of_waits_and_of_the_gil() {
    let Some(found) = seen(&Folder::new("explain-python"), THREADS) else { return };
    let python = &found["python"];
    let first = &python["functions"][0];
    assert_eq!((&first["function"], &first["module"]), (&"compute".into(), &"app.py".into()), "{python}");
    assert!((4..=6).contains(&first["line"].as_u64().unwrap()), "{python}");
    assert!(
        python["looks"].as_u64() > Some(0) && python["failed"].as_u64() < python["looks"].as_u64(),
        "{python}"
    );
    let rows = found["waits"]["rows"].as_array().unwrap();
    // Both wait in the same call, at the same place of the interpreter.
    for (function, line) in [("doze", 8), ("rest", 10)] {
        let is_it = |row: &&Value| row["kind"] == "timer" && is_in(&row["chain"], function, line..=line);
        assert!(rows.iter().any(|row| is_it(&row)), "{function}: {rows:?}");
    }
    let locks = found["waits"]["locks"].as_array().unwrap();
    let gil = locks.iter().find(|lock| lock["is_gil"] == true).unwrap_or_else(|| panic!("{locks:?}"));
    assert!(is_in(&gil["chain"], "compute", 4..=6), "{gil}");
    assert!(is_in(&gil["holders"][0]["chain"], "compute", 4..=6), "{gil}");
    let rules: Vec<&str> =
        found["findings"].as_array().unwrap().iter().filter_map(|finding| finding["rule"].as_str()).collect();
    assert!(rules.contains(&"contended-gil") && !rules.contains(&"contended-lock"), "{rules:?}");
}

#[test]
fn measuring_blocks_belong_to_the_functions_of_python_that_allocate_them() {
    // Both allocate by the same code of the interpreter. The first look reads the interpreter, and may come too late; so may others.
    let text = "import time
def first():
    return bytearray(64 << 20)
def second():
    return bytearray(64 << 20)
def use(block, end):
    while time.time() < end:
        block.find(b'x')
def main():
    blocks = [make() for _ in range(5) for make in (first, second)]
    for block in blocks:
        block[:] = b'y' * len(block)
    for block in blocks:
        use(block, time.time() + .4)
main()
";
    let Some(found) = seen(&Folder::new("explain-python-blocks"), text) else { return };
    let objects = found["objects"].as_array().unwrap();
    let names: Vec<&str> = objects.iter().filter_map(|object| object["name"].as_str()).collect();
    for function in ["first (app.py:3), ", "second (app.py:5), "] {
        assert!(names.iter().any(|name| name.starts_with(function)), "{function}: {names:?}");
    }
}

#[test]
fn measuring_one_thread_of_python_keeps_nobody_waiting() {
    let text = "import time
def compute(end):
    while time.time() < end:
        sum(range(10000))
compute(time.time() + 2)
";
    let Some(found) = seen(&Folder::new("explain-python-one"), text) else { return };
    assert_eq!(found["python"]["functions"][0]["function"], "compute", "{}", found["python"]);
    let rules = found["findings"].as_array().unwrap().iter().map(|finding| &finding["rule"]);
    assert!(!rules.clone().any(|rule| rule == "contended-gil"), "{:?}", rules.collect::<Vec<_>>());
}
