//! The same program by all methods: what they say differs by less than chance and five points.

use crate::explain::{explained_or_not, program};
use crate::runner::Folder;
use serde_json::Value;

const ROADS: [&str; 3] = ["perf", "in-process", "ptrace"];

/// Points of percent that two methods may differ by, beside chance.
const POINTS: f64 = 5.0;

/// What a method says, in percent: samples at memory; of these, those whose address is the one that was accessed, from which
/// alone it is estimated what fits the caches; of all, those whose address or object is known.
#[derive(Debug, Clone, Copy)]
struct Said {
    samples: f64,
    shares: [f64; 3],
}

fn said(result: &Value) -> Said {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let samples = &result["samples"];
    let total = number(&samples["total"]);
    // By which exact rule it was found depends on how far behind the access a method's samples land.
    let inexact: f64 = ["next", "chain", "object"].iter().map(|rule| number(&samples["by_rule"][rule])).sum();
    Said {
        samples: total,
        shares: [
            100.0 * number(&samples["memory"]) / total,
            100.0 * (number(&samples["recovered"]) - inexact) / number(&samples["memory"]),
            100.0 * number(&samples["recovered"]) / total,
        ],
    }
}

/// Three times the standard deviation of a difference of two shares, in points: some thirty differences are looked at.
fn chance(one: Said, other: Said) -> f64 {
    300.0 * (0.25 / one.samples + 0.25 / other.samples).sqrt()
}

#[test]
fn measuring_all_methods_say_the_same() {
    methods_say_the_same("explain-methods", &["gather", "python"]);
}

#[test]
#[ignore = "thorough: four more programs by each method, half a minute"]
fn measuring_all_methods_say_the_same_of_more_programs() {
    methods_say_the_same("explain-methods-more", &["tree", "hash-table", "binary-search", "perl"]);
}

fn methods_say_the_same(folder: &str, programs: &[&str]) {
    let folder = Folder::new(folder);
    let Some(kernels) = program(&folder, "g++", "kernels.cpp") else { return };
    std::fs::write(folder.path("work.py"), "d={}\nfor i in range(6000000): d[i*7919%5000011]=i\n").unwrap();
    let text = "my %h; for my $i (1..2000000) { $h{$i*7919%3000017}.=1; }\n";
    std::fs::write(folder.path("work.pl"), text).unwrap();
    for program in programs {
        let command = &match *program {
            "python" => "python3 work.py".to_owned(),
            "perl" => "perl work.pl".to_owned(),
            kernel => format!("{} {kernel} 256 1", kernels.display()),
        };
        let mut all: Vec<(&str, Said)> = Vec::new();
        for method in ROADS {
            match explained_or_not(&folder, &format!("-F 250 --road {method}"), command) {
                Ok(result) => all.push((method, said(&result))),
                Err((kind, why)) => kind.skip_part(format_args!("--road {method}: {why}")),
            }
        }
        println!("{command}: {all:.1?}");
        let Some(((_, first), others)) = all.split_first().filter(|(_, others)| !others.is_empty()) else {
            return numakit_skips::MACHINE.skip("there are no two methods to compare");
        };
        for (method, other) in others {
            let limit = POINTS + chance(*first, *other);
            for (a, b) in first.shares.iter().zip(other.shares) {
                assert!((a - b).abs() <= limit, "{command}, {method}: {a:.1} and {b:.1}, limit {limit:.1}");
            }
        }
    }
}
