//! Lists of CPUs and nodes, as in taskset and numactl: `0-3,8`, `0-15:2`, `!0-3` (all except these), `+0-3` (relative to
//! the allowed ones), `all`.

use numakit_model::CpuSet;
use numakit_model::cpuset::MAX_ID;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A list as written; its numbers depend on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberList {
    inverted: bool,
    relative: bool,
    parts: Parts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Parts {
    All,
    These(Vec<Part>),
}

/// From one number to another in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: u32,
    last: u32,
    step: u32,
}

/// A list is invalid, or has numbers that do not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ListError {
    /// A word that cannot be parsed.
    #[error("'{word}' in the list '{list}' {problem}; {fix}")]
    Word {
        /// The word.
        word: String,
        /// The whole list.
        list: String,
        /// The problem.
        problem: String,
        /// The fix.
        fix: String,
    },
    /// A list without numbers.
    #[error("the list '{list}' is empty{why}; {fix}")]
    Empty {
        /// The list.
        list: String,
        /// Why the list is invalid, if that is not obvious.
        why: String,
        /// The fix.
        fix: String,
    },
    /// Numbers of CPUs or nodes that cannot be used.
    #[error("{what} {named} of the list '{list}' {problem}; {fix}")]
    NotThere {
        /// `CPU` or `node`.
        what: &'static str,
        /// Those of the list's numbers that cannot be used.
        named: CpuSet,
        /// The list.
        list: String,
        /// Why these numbers cannot be used.
        problem: String,
        /// Which can be used.
        fix: String,
    },
}

/// Maximum length of a list in an error.
const SHOWN: usize = 80;

fn shown(list: &str) -> String {
    if list.chars().count() <= SHOWN {
        return list.to_owned();
    }
    list.chars().take(SHOWN).chain("...".chars()).collect()
}

impl FromStr for NumberList {
    type Err = ListError;
    fn from_str(list: &str) -> Result<Self, ListError> {
        let mut rest = list.trim();
        let mut flag = |sign| match rest.strip_prefix(sign) {
            Some(after) => {
                rest = after.trim_start();
                true
            }
            None => false,
        };
        let (inverted, relative) = (flag('!'), flag('+'));
        if rest.is_empty() {
            let fix = "write numbers and ranges such as 0-3,8, or 'all'".to_owned();
            return Err(ListError::Empty { list: shown(list), why: String::new(), fix });
        }
        if rest == "all" {
            return Ok(Self { inverted, relative, parts: Parts::All });
        }
        let parts: Result<Vec<Part>, ListError> =
            rest.split(',').map(|word| Part::read(word.trim()).map_err(|w| w.of(word, list))).collect();
        let parts = parts?;
        let steps = |part: &Part| u64::from((part.last - part.first) / part.step) + 1;
        let work: u64 = parts.iter().map(|p| if p.step == 1 { steps(p) / 64 + 1 } else { steps(p) }).sum();
        // Bounds the work that a short text can cause.
        if work > 4 * u64::from(MAX_ID) {
            return Err(Wrong::new("makes it too long", "name each number once").of("...", list));
        }
        Ok(Self { inverted, relative, parts: Parts::These(parts) })
    }
}

/// What is wrong with a word.
struct Wrong {
    problem: String,
    fix: String,
}

impl Wrong {
    fn new(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { problem: problem.into(), fix: fix.into() }
    }

    fn of(self, word: &str, list: &str) -> ListError {
        ListError::Word { word: shown(word.trim()), list: shown(list), problem: self.problem, fix: self.fix }
    }
}

impl Part {
    fn read(word: &str) -> Result<Self, Wrong> {
        if word.starts_with("0x") {
            let fix = match CpuSet::parse_mask(word) {
                Ok(set) if !set.is_empty() => format!("write it as a list: {}", shown(&set.to_string())),
                _ => "write a list such as 0-3,8".to_owned(),
            };
            return Err(Wrong::new("is a mask", fix));
        }
        if word.starts_with(['!', '+']) {
            let fix = "write ! and + once, before the whole list: !+0-3,8";
            return Err(Wrong::new("has its sign inside the list", fix));
        }
        let (range, step) = word.split_once(':').map_or((word, None), |(r, s)| (r, Some(s)));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, number(range)?),
        };
        if last < first {
            return Err(Wrong::new("runs backwards", format!("write {last}-{first}")));
        }
        let step = step.map_or(Ok(1), number)?;
        if step == 0 {
            return Err(Wrong::new("has stride 0", format!("write {first}-{last}:2 for every second")));
        }
        Ok(Self { first, last, step })
    }

    fn add_to(self, set: &mut CpuSet) {
        if self.step == 1 {
            *set = set.or(&CpuSet::range(self.first, self.last));
        } else {
            (self.first..=self.last).step_by(self.step as usize).for_each(|id| set.insert(id));
        }
    }
}

fn number(word: &str) -> Result<u32, Wrong> {
    let word = word.trim();
    let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        let fix = "write numbers, ranges 0-3, strides 0-15:2, !0-3 for all but these, +0-3 for the first \
                   four that may be used, or 'all'";
        return Err(Wrong::new("is no number and no range", fix));
    }
    word.parse()
        .ok()
        .filter(|&id| id <= MAX_ID)
        .ok_or_else(|| Wrong::new("is too large", format!("the largest number that can be is {MAX_ID}")))
}

impl fmt::Display for NumberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.inverted { "!" } else { "" })?;
        f.write_str(if self.relative { "+" } else { "" })?;
        let Parts::These(parts) = &self.parts else { return f.write_str("all") };
        for (at, part) in parts.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            match part {
                Part { first, last, step: 1 } if first == last => write!(f, "{first}")?,
                Part { first, last, step: 1 } => write!(f, "{first}-{last}")?,
                Part { first, last, step } => write!(f, "{first}-{last}:{step}")?,
            }
        }
        Ok(())
    }
}

/// The numbers of a machine.
#[derive(Debug, Clone, Copy)]
pub struct KnownNumbers<'a> {
    /// `CPU` or `node`.
    pub what: &'static str,
    /// All numbers that are online.
    pub there: &'a CpuSet,
    /// All numbers that are offline.
    pub offline: &'a CpuSet,
    /// The numbers that this process may use.
    pub allowed: &'a CpuSet,
    /// Why this process may not use the others.
    pub limit: &'static str,
}

impl NumberList {
    /// The list of a set.
    pub fn of(set: &CpuSet) -> Option<Self> {
        if set.is_empty() { None } else { set.to_string().parse().ok() }
    }

    /// Whether the list names all of its numbers explicitly.
    pub fn is_plain(&self) -> bool {
        !self.inverted && !self.relative && self.parts != Parts::All
    }

    /// The numbers of the list on a machine; not empty, and only allowed ones.
    pub fn within(&self, known: &KnownNumbers<'_>) -> Result<CpuSet, ListError> {
        let named = self.named(known)?;
        let outside = named.minus(known.allowed);
        if !outside.is_empty() && !self.inverted {
            let problem = format!("may not be used: {}", known.limit);
            return Err(self.not_there(known, outside, problem));
        }
        self.not_empty(if self.inverted { known.allowed.minus(&named) } else { named }, known)
    }

    /// The numbers of the list, allowed or not, online or not; for exclusions.
    pub fn anywhere(&self, known: &KnownNumbers<'_>) -> Result<CpuSet, ListError> {
        let (there, offline) = (known.there.or(known.offline), CpuSet::new());
        let named = self.named(&KnownNumbers { there: &there, offline: &offline, ..*known })?;
        self.not_empty(if self.inverted { there.minus(&named) } else { named }, known)
    }

    /// The numbers of the list, all of which exist.
    fn named(&self, known: &KnownNumbers<'_>) -> Result<CpuSet, ListError> {
        let Parts::These(parts) = &self.parts else { return Ok(known.allowed.clone()) };
        let mut set = CpuSet::new();
        parts.iter().for_each(|part| part.add_to(&mut set));
        if self.relative {
            let count = known.allowed.len() as u32;
            let beyond = count.checked_sub(1).map_or(set.clone(), |last| set.minus(&CpuSet::range(0, last)));
            if !beyond.is_empty() {
                let problem = format!("is counted within the {count} that may be used, which begin with +0");
                return Err(self.not_there(known, beyond, problem));
            }
            let selected = known.allowed.iter().zip(0u32..).filter(|(_, at)| set.contains(*at));
            return Ok(selected.map(|(id, _)| id).collect());
        }
        let offline = set.and(known.offline);
        if !offline.is_empty() {
            return Err(self.not_there(known, offline, "is offline".to_owned()));
        }
        let unknown = set.minus(known.there);
        if !unknown.is_empty() {
            return Err(self.not_there(known, unknown, "is not on this machine".to_owned()));
        }
        Ok(set)
    }

    fn not_empty(&self, set: CpuSet, known: &KnownNumbers<'_>) -> Result<CpuSet, ListError> {
        if !set.is_empty() {
            return Ok(set);
        }
        Err(ListError::Empty {
            list: shown(&self.to_string()),
            why: format!(": nothing is left of the {}s {} that may be used", known.what, known.allowed),
            fix: "name some of them".to_owned(),
        })
    }

    fn not_there(&self, known: &KnownNumbers<'_>, named: CpuSet, problem: String) -> ListError {
        let allowed = shown(&known.allowed.to_string());
        ListError::NotThere {
            what: known.what,
            named,
            list: shown(&self.to_string()),
            problem,
            fix: format!("those that may be used are {allowed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse_list(text).unwrap()
    }

    /// CPUs 0 to 11 without 5, which is off; 4 to 11 may be used.
    fn within(list: &str) -> String {
        let (there, offline, allowed) = (set("0-4,6-11"), set("5"), set("4,6-11"));
        let limit = "the mask that was inherited";
        let known = KnownNumbers { what: "CPU", there: &there, offline: &offline, allowed: &allowed, limit };
        let found = list.parse::<NumberList>().and_then(|words| words.within(&known));
        found.map_or_else(|error| error.to_string(), |set| set.to_string())
    }

    #[test]
    fn lists_of_taskset_and_numactl() {
        assert_eq!(within("6-8,10"), "6-8,10");
        assert_eq!(within("6-11:2"), "6,8,10");
        assert_eq!(within(" 6 , 8 "), "6,8");
        assert_eq!(within("all"), "4,6-11");
        assert_eq!(within("!6-9"), "4,10-11");
        assert_eq!(within("!0-3"), "4,6-11");
        assert_eq!(within("+0-2"), "4,6-7");
        assert_eq!(within("+0-6:3"), "4,8,11");
        assert_eq!(within("!+0-4"), "10-11");
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (list, words) in [
            ("5", "CPU 5 of the list '5' is offline; those that may be used are 4,6-11"),
            ("6,99", "CPU 99 of the list '6,99' is not on this machine"),
            ("0-4", "CPU 0-3 of the list '0-4' may not be used: the mask that was inherited"),
            ("+5-7", "CPU 7 of the list '+5-7' is counted within the 7 that may be used"),
            ("!all", "the list '!all' is empty: nothing is left of the CPUs 4,6-11"),
            ("", "the list '' is empty; write numbers"),
            ("!", "the list '!' is empty; write numbers"),
            ("8-6", "'8-6' in the list '8-6' runs backwards; write 6-8"),
            ("0-8:0", "has stride 0; write 0-8:2"),
            ("0xf0", "is a mask; write it as a list: 4-7"),
            ("6,!7", "write ! and + once"),
            ("-1", "'-1' in the list '-1' is no number"),
            ("6,,7", "is no number"),
            ("eth0", "'eth0' in the list 'eth0' is no number"),
            ("99999999999", "is too large"),
        ] {
            let error = within(list);
            assert!(error.contains(words), "{list}: {error}");
        }
        let long = within(&"6,".repeat(10_000));
        assert!(long.len() < 600, "{long}");
        assert!(within(&vec!["0-1048575:2"; 10_000].join(",")).contains("too long"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+!,:0-9allx ]{0,24}|.{0,24}") {
            if let Ok(words) = text.parse::<NumberList>() {
                prop_assert_eq!(words.to_string().parse::<NumberList>(), Ok(words));
            }
            within(&text);
        }

        #[test]
        fn a_set_is_a_list(ids in prop::collection::vec(0u32..3000, 1..60)) {
            let all = CpuSet::range(0, 3000);
            let set: CpuSet = ids.into_iter().collect();
            let none = CpuSet::new();
            let known = KnownNumbers { what: "CPU", there: &all, offline: &none, allowed: &all, limit: "" };
            prop_assert_eq!(NumberList::of(&set).unwrap().within(&known), Ok(set));
        }
    }
}
