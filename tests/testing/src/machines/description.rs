//! Parses the text of a machine.

use super::MachineError;

/// The sections of a text.
#[derive(Debug, Default)]
pub(super) struct Description {
    /// With the number of its line.
    pub topology: (usize, String),
    /// `cpu`, `midr` or `pvr`, and the identity of the CPU.
    pub identity: (String, String),
    pub paranoid: String,
    pub units: Vec<Unit>,
}

/// PMUs with the same files.
#[derive(Debug)]
pub(super) struct Unit {
    pub line: usize,
    pub names: Vec<String>,
    /// Type number of the first; the others have the following numbers.
    pub kind: u32,
    pub place: Place,
    pub counters: usize,
    /// The files in its directory, and their text.
    pub files: Vec<(String, String)>,
}

/// The CPUs that a PMU lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// None: it is on every CPU.
    All,
    /// All, in the file `cpus` of a core PMU.
    Cores,
    /// The first.
    First,
    /// The first of each package.
    Packages,
    /// The first of each node.
    Nodes,
    /// The first of one package.
    Package(u32),
    /// The first of one node.
    Node(u32),
}

const TITLE: &str = "write [NAME type NUMBER cpus PLACE counters NUMBER], where PLACE is all, cores, first, \
                     packages, nodes, 'package N' or 'node N'";
const LINE: &str = "write 'topology', 'cpu', 'midr', 'pvr' or 'paranoid' with a value before the first PMU, and \
                    'format NAME TEXT', 'event NAME TERMS', 'event NAME TERMS SCALE UNIT' or 'file NAME TEXT' \
                    below one";

pub(super) fn parse(text: &str) -> Result<Description, MachineError> {
    let mut description = Description::default();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let fault = |fix: &str| MachineError::Line {
            line: at,
            wrong: format!("invalid line '{line}'"),
            fix: fix.to_owned(),
        };
        if line.starts_with('[') {
            description.units.push(unit(line, at).ok_or_else(|| fault(TITLE))?);
        } else {
            read(&mut description, line, at).ok_or_else(|| fault(LINE))?;
        }
    }
    let needed = [
        ("topology", &description.topology.1),
        ("cpu', 'midr' or 'pvr", &description.identity.0),
        ("paranoid", &description.paranoid),
    ];
    match needed.iter().find(|(_, value)| value.is_empty()) {
        Some((key, _)) => Err(MachineError::Line {
            line: 1,
            wrong: format!("the file has no line '{key}'"),
            fix: LINE.to_owned(),
        }),
        None => Ok(description),
    }
}

fn read(description: &mut Description, line: &str, at: usize) -> Option<()> {
    let (key, rest) = line.split_once(' ')?;
    let rest = rest.trim();
    if let Some(unit) = description.units.last_mut() {
        return file(unit, key, rest);
    }
    match key {
        "topology" => description.topology = (at, rest.to_owned()),
        "cpu" | "midr" | "pvr" => description.identity = (key.to_owned(), rest.to_owned()),
        "paranoid" => rest.clone_into(&mut description.paranoid),
        _ => return None,
    }
    Some(())
}

fn file(unit: &mut Unit, key: &str, rest: &str) -> Option<()> {
    let (name, content) = rest.split_once(' ')?;
    let path = match key {
        "format" => format!("format/{name}"),
        "file" => name.to_owned(),
        "event" => format!("events/{name}"),
        _ => return None,
    };
    let mut words = content.split(' ');
    if key == "event" {
        unit.files.push((path.clone(), words.next()?.to_owned()));
        for suffix in ["scale", "unit"] {
            unit.files.extend(words.next().map(|word| (format!("{path}.{suffix}"), word.to_owned())));
        }
    } else {
        unit.files.push((path, content.to_owned()));
    }
    Some(())
}

fn unit(line: &str, at: usize) -> Option<Unit> {
    let words: Vec<&str> = line.strip_prefix('[')?.strip_suffix(']')?.split(' ').collect();
    let (name, kind, place, counters) = match words.as_slice() {
        [name, "type", kind, "cpus", place, "counters", counters] => (name, kind, (*place, None), counters),
        [name, "type", kind, "cpus", place, number, "counters", counters] => {
            (name, kind, (*place, Some(number.parse().ok()?)), counters)
        }
        _ => return None,
    };
    let place = match place {
        ("all", None) => Place::All,
        ("cores", None) => Place::Cores,
        ("first", None) => Place::First,
        ("packages", None) => Place::Packages,
        ("nodes", None) => Place::Nodes,
        ("package", Some(n)) => Place::Package(n),
        ("node", Some(n)) => Place::Node(n),
        _ => return None,
    };
    Some(Unit {
        line: at,
        names: names(name)?,
        kind: kind.parse::<u16>().ok()?.into(),
        place,
        counters: counters.parse().ok()?,
        files: Vec::new(),
    })
}

/// One name, or the names of a range such as `name_[0-3]`.
fn names(name: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = name.split_once('[') else { return Some(vec![name.to_owned()]) };
    let (range, after) = rest.split_once(']')?;
    let (first, last) = range.split_once('-')?;
    let indices = first.parse::<u32>().ok()?..=last.parse().ok()?;
    Some(indices.map(|index| format!("{before}{index}{after}")).collect())
}
