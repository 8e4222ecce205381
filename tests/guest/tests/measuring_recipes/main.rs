//! Recipes of the guide. Blocks marked `sh` are followed on this machine, in one shell from the first command to the last, and so are those of
//! one MPI (`sh openmpi5`) where the page is followed with that; the commands of a block marked `sh guest` are run in the simulated machine, each with its cache lines counted. A block marked `sh elsewhere` cannot be run
//! here, and [`ELSEWHERE`] says why.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod database;
mod followed;
mod gromacs;
mod jvm;
mod linear;
mod operations;
mod ranks;
mod unpacked;

use followed::marked_blocks;
use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, place, programs};
use std::collections::BTreeSet;
use std::time::Duration;

const PAGES: [&str; 6] = ["database", "gromacs", "jvm", "linear", "operations", "ranks"];

/// Commands that no test runs: the page, how the line begins, and why.
const ELSEWHERE: [(&str, &str, &str); 8] = [
    ("database", "sudo sysctl vm.nr_hugepages=", "takes memory from all other programs of the machine"),
    ("operations", "sudo sysctl vm.zone_reclaim_mode=", "changes the whole machine"),
    ("operations", "echo madvise | sudo tee", "changes the whole machine"),
    ("operations", "sudo mount -t debugfs", "mounts a file system; kernels of virtual machines may lack it"),
    ("operations", "cat /sys/kernel/debug/sched", "needs that file system"),
    ("operations", "sudo modprobe", "needs a machine with a controller of IPMI"),
    ("operations", "ipmitool", "needs a machine with a controller of IPMI, and would switch it off"),
    ("operations", "numa run --cpus", "needs CPUs that the kernel was booted without"),
];

/// The text of a page.
fn text_of(page: &str) -> String {
    std::fs::read_to_string(place::root().join("docs/guide").join(page).with_extension("md")).unwrap()
}

/// What the lines of the shell before a recipe's first counted command are, and those commands.
struct Counted {
    setup: String,
    commands: Vec<String>,
}

/// The block of a page that is marked `sh guest`.
fn counted(page: &str) -> Counted {
    let text = text_of(page);
    let block = text.split_once("```sh guest\n").unwrap().1.split_once("```").unwrap().0;
    let (setup, commands): (Vec<&str>, Vec<&str>) =
        block.lines().partition(|line| line.starts_with("export "));
    Counted { setup: setup.join("\n"), commands: commands.into_iter().map(str::to_owned).collect() }
}

impl Counted {
    /// A guest of four nodes that runs all of it, a step for each command.
    fn guest(&self, timeout: Duration) -> Result<Guest, Failure> {
        let guest = Guest::new(Shape::named("four")?)
            .timeout(timeout)
            .program(&programs::numa()?)
            .small_pages()
            .without_balancing()
            .simulate(Simulation::new());
        Ok(self.commands.iter().fold(guest, |guest, command| {
            let shell =
                format!("{}\nnuma mark begin\n{command}\ncode=$?\nnuma mark end\nexit $code", self.setup);
            guest.step(command, &["sh", "-c", &shell])
        }))
    }

    /// Each command with what it printed and its remote lines, in millions; as rows of a table too.
    fn results<'a>(&'a self, boot: &'a Boot) -> Vec<(&'a str, String, f64)> {
        let each = &boot.traffic.as_ref().unwrap().each;
        assert_eq!(each.len(), self.commands.len(), "a region for each command");
        let row = |(command, lines): (&'a String, &Lines)| {
            let (local, remote) = lines.local_and_remote();
            let (all, remote) = ((local + remote) as f64, remote as f64);
            println!("| `{command}` | {:.2} | {:.1} % |", remote / 1e6, 100.0 * remote / all);
            (command.as_str(), boot[command.as_str()].succeeded(), remote / 1e6)
        };
        self.commands.iter().zip(each).map(row).collect()
    }
}

#[test]
fn every_command_of_a_recipe_is_run_or_has_its_reason() {
    let mut seen = BTreeSet::new();
    for page in PAGES {
        let text = text_of(page);
        for (mark, block) in marked_blocks(&text) {
            match mark {
                "sh" | "sh guest" | "text" => {}
                _ if ranks::MARKS.contains(&mark) => {}
                "sh elsewhere" => {
                    for line in block.lines() {
                        let reason = ELSEWHERE
                            .iter()
                            .position(|(of, begins, _)| *of == page && line.starts_with(begins));
                        seen.insert(
                            reason.unwrap_or_else(|| panic!("{page}: no reason why no test runs '{line}'")),
                        );
                    }
                }
                _ => panic!("{page}: a block is marked '{mark}', which no test knows"),
            }
        }
    }
    assert_eq!(seen.len(), ELSEWHERE.len(), "a reason is for no command");
}
