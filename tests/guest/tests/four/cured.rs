//! What a cure does where it cannot do what it should: the node is full, or a CPU of the plan has gone. The program lives, and its line says where
//! its memory is.

use super::moved_troubles::with_full_node;
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use std::path::Path;
use std::process::Command;

/// The steps, and what runs under `numa run --apply`. CPU 2 is the first of node 1, to which the cure gives all of the variable.
const CASES: [(&str, &str, &str); 3] = [
    ("full", "numa run", "full"),
    ("gone", "numa run", "sh -c 'echo 0 >/sys/devices/system/cpu/cpu2/online; exec full'"),
    ("touched", "filtered numa run", "sh -c 'echo 0 >/sys/devices/system/cpu/cpu2/online; exec full'"),
];

/// What a command prints about a file.
fn printed(words: &[&str], file: &Path) -> Result<String, Failure> {
    let output = Command::new(words[0]).args(&words[1..]).arg(file).output();
    let output = output.map_err(|_| Failure::NotFound(words[0].to_owned()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A cure that gives the variable of the program to its second thread.
fn cure(program: &Path) -> Result<String, Failure> {
    let (names, notes) = (printed(&["nm", "-P"], program)?, printed(&["readelf", "-n"], program)?);
    let symbol = names.lines().find_map(|line| line.strip_prefix("table B ")).unwrap();
    let mut symbol = symbol.split(' ');
    let (address, bytes) = (symbol.next().unwrap(), u64::from_str_radix(symbol.next().unwrap(), 16).unwrap());
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let module = format!(r#"{{"file": "full", "build_id": "{id}"}}"#);
    Ok(format!(
        r#"{{"cure": 1, "command": "full", "program": {module}, "threads": {{"working": [0, 1], "count": 2, "cpus": 9}}, "objects":
            [{{"name": "table", "verdict": "other-node", "reason": "", "variable": {{"module": {module}, "address": "0x{address}", "bytes": {bytes}}},
            "policy": {{"parts": {{"over": "block", "parts": [{{"from": 0, "to": 64, "thread": 1, "samples": 9, "sure": 1}}]}}}}}}]}}"#
    ))
}

pub fn guest() -> Result<Guest, Failure> {
    let (program, filtered) =
        (programs::compiled("full")?.unwrap(), programs::compiled("filtered")?.unwrap());
    let write = format!("cat >/root/cure <<'END'\n{}\nEND", cure(&program)?);
    let mut guest =
        Guest::new(Shape::named("four")?).program(&programs::numa()?).program(&program).program(&filtered);
    guest = guest.step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]);
    guest = guest.step("write", &["sh", "-c", &write]);
    for (name, run, program) in CASES {
        let run =
            format!("{run} -c 4 --policy spread:node --busy off --apply /root/cure {program}; echo code $?");
        let run = if name == "full" { with_full_node("200", &run) } else { run };
        let command = format!("{run}; echo 1 >/sys/devices/system/cpu/cpu2/online");
        guest = guest.step(name, &["sh", "-c", &command]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::LATER.part("cured")
}

#[test]
fn programs_live_where_a_cure_cannot_do_what_it_should() {
    let Some(boot) = part() else { return };
    for (name, ..) in CASES {
        let (text, errors) = (boot[name].succeeded(), boot[name].errors());
        println!("{name}:\n{text}{errors}");
        assert!(text.contains("code 7"), "{name}: {text}");
        match name {
            // What the node has no room for is elsewhere.
            "full" => {
                assert_eq!(text.matches("pages_on_node ").count(), 2, "{name}: {text}");
                assert!(errors.contains("% on node 1") && errors.contains("% on node 0"), "{errors}");
            }
            "gone" => assert!(errors.contains("parts on the nodes of their threads (1)"), "{errors}"),
            _ => assert!(errors.contains("table: refused for 1 variable"), "{errors}"),
        }
    }
}
