//! Test programs whose modules share a boot. Each module is a part: it says what it would do in a guest of its own.

use crate::boot::{Boot, Step};
use crate::failure::Failure;
use crate::guest::{Guest, RESET};
use crate::traffic::Lines;
use std::collections::BTreeMap;
use std::ops::Index;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Makes the guest of a module, not booted.
type Build = fn() -> Result<Guest, Failure>;

/// The parts of a test program: name, which is that of the module, and guest.
///
/// They are booted together when the first test asks for its part, in this order. If the program was told which tests to
/// run, only the parts of these are booted.
#[derive(Debug)]
pub struct Parts {
    all: &'static [(&'static str, Build)],
    is_whole: bool,
    boots: Mutex<BTreeMap<&'static str, &'static Shared>>,
}

/// A boot, and why parts that it was to have are not in it.
#[derive(Debug)]
struct Shared {
    boot: Result<Boot, Failure>,
    left_out: BTreeMap<&'static str, Failure>,
}

/// What one part of a boot gave. `part["name"]` is a step.
#[derive(Debug, Clone)]
pub struct Part {
    name: &'static str,
    boot: &'static Boot,
    /// What its steps left in their folder.
    pub out: PathBuf,
}

impl Parts {
    /// Of these modules.
    pub const fn new(all: &'static [(&'static str, Build)]) -> Self {
        Self { all, is_whole: false, boots: Mutex::new(BTreeMap::new()) }
    }

    /// All of these, whatever tests are to run: a test looks at several.
    pub const fn whole(all: &'static [(&'static str, Build)]) -> Self {
        Self { all, is_whole: true, boots: Mutex::new(BTreeMap::new()) }
    }

    /// A part, or nothing after a line that says why the test is skipped. Every other failure fails the test.
    #[track_caller]
    pub fn part(&self, name: &str) -> Option<Part> {
        let Some((name, _)) = self.all.iter().find(|(known, _)| *known == name) else {
            panic!("there is no part '{name}'");
        };
        let shared = self.shared(name);
        let failure = match (&shared.boot, shared.left_out.get(name)) {
            (_, Some(failure)) | (Err(failure), _) => failure,
            (Ok(boot), None) => return Some(Part::of(boot, name)),
        };
        match failure {
            Failure::Unavailable { kind, .. } => kind.skip(failure),
            _ => panic!("{failure}"),
        }
        None
    }

    /// The boot that has this part. One that nobody seemed to want has a boot of its own.
    fn shared(&self, name: &'static str) -> &'static Shared {
        let mut boots = self.boots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = boots.get(name) {
            return shared;
        }
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let is_wanted = |part: &str| self.is_whole || is_wanted(part, &arguments);
        let together = boots.is_empty() && is_wanted(name);
        let parts = self.all.iter().filter(|(part, _)| *part == name || together && is_wanted(part));
        let parts: Vec<_> = parts.copied().collect();
        // It lives as long as the program, as all that tests share.
        let shared: &Shared = Box::leak(Box::new(Shared::boot(&parts)));
        boots.extend(parts.iter().map(|(part, _)| (*part, shared)));
        shared
    }
}

impl Shared {
    fn boot(parts: &[(&'static str, Build)]) -> Self {
        let (mut guests, mut left_out) = (Vec::new(), BTreeMap::new());
        for (name, build) in parts {
            match build() {
                Ok(guest) => guests.push((*name, guest)),
                Err(failure) => _ = left_out.insert(*name, failure),
            }
        }
        let names: Vec<&str> = guests.iter().map(|(name, _)| *name).collect();
        let boot = Guest::of_parts(guests).and_then(Guest::boot);
        if let Ok(boot) = &boot {
            println!("{}", told(&names, boot));
        }
        Self { boot, left_out }
    }
}

/// What a boot took, how much CPU time of it each part, and the steps that took most.
fn told(names: &[&str], boot: &Boot) -> String {
    let steps = boot.asked.iter().map(|(name, _)| name.as_str());
    let used = boot.cpu.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_secs_f64());
    let mut steps: Vec<(&str, f64)> = steps.zip(used).collect();
    let of_part = |part: &str| -> f64 {
        let is_of_part = |step: &str| step.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'));
        steps.iter().filter(|(step, _)| is_of_part(step)).map(|(_, used)| used).sum::<f64>() + 0.0
    };
    let parts: Vec<(&str, f64)> = names.iter().map(|name| (*name, of_part(name))).collect();
    steps.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let listed = |list: &[(&str, f64)]| {
        list.iter().map(|(name, used)| format!("{name} {used:.1} s")).collect::<Vec<_>>().join(", ")
    };
    let (first, all) = (boot.boot_time.as_secs_f64(), boot.total_time.as_secs_f64());
    let longest = listed(&steps[..steps.len().min(8)]);
    format!("booted in {first:.1} s, {all:.1} s in all; CPU time: {}; of these {longest}", listed(&parts))
}

impl Part {
    #[track_caller]
    fn of(boot: &'static Boot, name: &'static str) -> Self {
        if let Some(ended) = boot.ended.as_ref().filter(|ended| ended.part == name) {
            panic!("{}", ended.failure);
        }
        let part = Self { name, boot, out: boot.out.join(name) };
        part[RESET].succeeded();
        part
    }

    fn full(&self, step: &str) -> String {
        format!("{}/{step}", self.name)
    }

    /// Whether it was to have this step: a part leaves out what it lacks a runtime for.
    pub fn has(&self, step: &str) -> bool {
        self.boot.asked.iter().any(|(name, _)| *name == self.full(step))
    }

    /// What the simulator counted in the regions of a step. All steps before succeeded: one that failed may have fewer
    /// regions, and the later ones would be taken for others.
    #[track_caller]
    pub fn regions(&self, step: &str) -> &'static [Lines] {
        let each = match &self.boot.traffic {
            Some(traffic) => traffic.each.as_slice(),
            None => panic!("nothing was counted"),
        };
        let wanted = self.full(step);
        let mut first = 0;
        for (name, count) in self.boot.asked.iter().filter(|(_, count)| *count > 0) {
            self.boot.step(name).succeeded();
            if *name == wanted {
                let counted = each.get(first..first + count);
                return counted
                    .unwrap_or_else(|| panic!("{name} has not its {count} regions of {}", each.len()));
            }
            first += count;
        }
        panic!("step '{wanted}' was to have no regions");
    }
}

impl Index<&str> for Part {
    type Output = Step;

    #[track_caller]
    fn index(&self, step: &str) -> &Step {
        self.boot.step(&self.full(step))
    }
}

/// Options of the test harness that have a value in the next word.
const WITH_VALUE: [&str; 6] = ["--test-threads", "--color", "--format", "--logfile", "--shuffle-seed", "-Z"];

/// Whether the harness with these arguments may run tests of this module. Where only a function is named, it is not known:
/// then not, and the part is booted when its test asks for it.
fn is_wanted(part: &str, arguments: &[String]) -> bool {
    let tests = format!("{part}::");
    let exact = arguments.iter().any(|word| word == "--exact");
    let (mut named, mut is_named) = (false, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let skip =
            if word == "--skip" { words.next().map(String::as_str) } else { word.strip_prefix("--skip=") };
        if skip.is_some_and(|skip| !exact && tests.contains(skip)) {
            return false;
        }
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') && skip.is_none() {
            named = true;
            is_named |= word.starts_with(&tests) || !exact && tests.contains(word.as_str());
        }
    }
    is_named || !named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_booted_whose_tests_run() {
        for (arguments, wanted) in [
            ("", true),
            ("--nocapture --test-threads 1", true),
            ("runs", true),
            ("runs::", true),
            ("runs::pairs", true),
            ("registry", false),
            ("registry runs::pairs --exact", true),
            ("runs --exact", false),
            ("--skip runs", false),
            ("--skip=runs::", false),
            ("--skip runs::pairs", true),
            ("--skip runs --exact", true),
            ("--exact --skip runs::pairs", true),
            ("a_function_of_some_module", false),
        ] {
            let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            assert_eq!(is_wanted("runs", &words), wanted, "{arguments}");
        }
    }
}
