//! From lines of text to shapes that can be booted.

use super::{Attribute, Confined, Node, Shape, ShapeError};
use numakit_model::CpuSet;

/// More than this the machine types of QEMU and the time of people do not bear.
const MAX_NODES: usize = 16;
const MAX_CPUS: usize = 64;
/// A kernel with the start of user space needs this much somewhere.
const MIN_MIB: u64 = 128;
const LOCAL: u8 = 10;
const REMOTE: u8 = 20;

/// All shapes of a text.
pub fn shapes(text: &str) -> Result<Vec<Shape>, ShapeError> {
    let mut found: Vec<Shape> = Vec::new();
    let mut first_line = 0;
    for (index, line) in text.lines().enumerate() {
        let at = |problem: String| ShapeError::Line { line: index + 1, problem };
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        match *words.as_slice() {
            [] => {}
            ["shape", name] => {
                if let Some(last) = found.last_mut() {
                    finish(last).map_err(|problem| ShapeError::Line { line: first_line, problem })?;
                }
                if found.iter().any(|shape| shape.name == name) {
                    return Err(at(format!("a second shape '{name}'; give it another name")));
                }
                found.push(Shape {
                    name: name.to_owned(),
                    packages: 1,
                    dies: 1,
                    threads: 1,
                    ..Shape::default()
                });
                first_line = index + 1;
            }
            _ => match found.last_mut() {
                Some(shape) => fact(shape, &words).map_err(at)?,
                None => return Err(at("nothing may stand before the first line 'shape NAME'".to_owned())),
            },
        }
    }
    if let Some(last) = found.last_mut() {
        finish(last).map_err(|problem| ShapeError::Line { line: first_line, problem })?;
    }
    Ok(found)
}

fn fact(shape: &mut Shape, words: &[&str]) -> Result<(), String> {
    match *words {
        ["about", ..] => shape.about = words.get(1..).unwrap_or(&[]).join(" "),
        ["packages", n] => shape.packages = number(n)?,
        ["dies", n] => shape.dies = number(n)?,
        ["threads", n] => shape.threads = number(n)?,
        ["node", id, "cpus", cpus, "memory", mib] => {
            if number::<usize>(id)? != shape.nodes.len() || shape.nodes.len() == MAX_NODES {
                let next = shape.nodes.len();
                return Err(format!("node {id}: the next node is {next}, of at most {MAX_NODES}"));
            }
            shape.nodes.push(Node { cpus: cpus_of(cpus)?, memory_mib: number(mib)?, initiator: None });
        }
        ["distances", from, ..] => {
            if number::<usize>(from)? != shape.distances.len() {
                return Err(format!("distances {from}: the next row is {}", shape.distances.len()));
            }
            let values = words.iter().skip(2).map(|word| number(word));
            shape.distances.push(values.collect::<Result<_, _>>()?);
        }
        ["initiator", node, from] => {
            let (node, from) = (existing(shape, node)?, existing(shape, from)?);
            if let Some(node) = shape.nodes.get_mut(node) {
                node.initiator = Some(from);
            }
        }
        ["latency", from, to, value] => {
            let row = attribute(shape, from, to, value)?;
            shape.latencies.push(row);
        }
        ["bandwidth", from, to, value] => {
            let row = attribute(shape, from, to, value)?;
            shape.bandwidths.push(row);
        }
        ["cpuset", "cpus", cpus, "mems", mems] => {
            shape.confined = Some(Confined { cpus: list(cpus)?, mems: list(mems)? });
        }
        _ => {
            return Err(format!(
                "'{}' is no fact of a shape; the top of shapes.txt has all",
                words.join(" ")
            ));
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("'{word}' is not a number that is possible here"))
}

fn list(word: &str) -> Result<CpuSet, String> {
    CpuSet::parse_list(word).map_err(|e| format!("'{word}': {e}; write a list such as 0-2,5"))
}

fn cpus_of(word: &str) -> Result<CpuSet, String> {
    if word == "none" { Ok(CpuSet::new()) } else { list(word) }
}

fn existing(shape: &Shape, word: &str) -> Result<usize, String> {
    let id = number(word)?;
    if id < shape.nodes.len() {
        return Ok(id);
    }
    Err(format!("node {id} is not known yet; write its line 'node {id} cpus ... memory ...' above this one"))
}

fn attribute(shape: &Shape, from: &str, to: &str, value: &str) -> Result<Attribute, String> {
    Ok(Attribute { from: existing(shape, from)?, to: existing(shape, to)?, value: number(value)? })
}

/// Fills in what was not said, and checks that the whole is a machine.
fn finish(shape: &mut Shape) -> Result<(), String> {
    let count = shape.nodes.len();
    let cpus = shape.cpus();
    if cpus == 0 || cpus > MAX_CPUS {
        return Err(format!("'{}' has {cpus} CPUs; between 1 and {MAX_CPUS} are possible", shape.name));
    }
    numbers(shape)?;
    parts(shape)?;
    if shape.nodes.iter().all(|node| node.memory_mib < MIN_MIB) {
        return Err(format!("no node has {MIN_MIB} MiB; Linux does not start with less"));
    }
    if shape.distances.is_empty() {
        let row = |from: usize| (0..count).map(|to| if from == to { LOCAL } else { REMOTE }).collect();
        shape.distances = (0..count).map(row).collect();
    }
    distances(shape)?;
    attributes(shape)?;
    let all: CpuSet = (0..count).filter_map(|id| u32::try_from(id).ok()).collect();
    match &shape.confined {
        Some(set) if set.cpus.is_empty() || set.mems.is_empty() => Err("an empty cpuset".to_owned()),
        Some(set) if !set.cpus.is_subset(&shape.all_cpus()) || !set.mems.is_subset(&all) => {
            Err(format!("the cpuset names what is not there: CPUs {}, nodes {}", set.cpus, set.mems))
        }
        _ => Ok(()),
    }
}

/// Every number from 0 stands on one node.
fn numbers(shape: &Shape) -> Result<(), String> {
    let mut found = CpuSet::new();
    for cpu in shape.nodes.iter().flat_map(|node| node.cpus.iter()) {
        if found.contains(cpu) {
            return Err(format!("CPU {cpu} is on two nodes; let it stand on one"));
        }
        found.insert(cpu);
    }
    match (0..).zip(found.iter()).find(|(number, cpu)| number != cpu) {
        Some((number, cpu)) => {
            Err(format!("there is a CPU {cpu} and no CPU {number}; number them from 0 without a gap"))
        }
        None => Ok(()),
    }
}

/// CPUs are divided evenly among packages, dies and cores.
fn parts(shape: &Shape) -> Result<(), String> {
    let (packages, dies, threads) = (shape.packages, shape.dies, shape.threads);
    let cpus = shape.cpus();
    let divided = u64::from(packages) * u64::from(dies);
    let parts = divided * u64::from(threads);
    if parts != 0 && (cpus as u64).is_multiple_of(parts) {
        return Ok(());
    }
    let of = if threads == 1 { String::new() } else { format!(" with cores of {threads} threads") };
    Err(format!("{cpus} CPUs cannot be divided evenly among {packages} packages of {dies} dies{of}"))
}

fn distances(shape: &Shape) -> Result<(), String> {
    let count = shape.nodes.len();
    if shape.distances.len() != count || shape.distances.iter().any(|row| row.len() != count) {
        return Err(format!("{count} nodes need {count} rows 'distances FROM ...' of {count} values"));
    }
    for (from, row) in shape.distances.iter().enumerate() {
        for (to, &value) in row.iter().enumerate() {
            if (from == to) != (value == LOCAL) || value < LOCAL {
                return Err(format!(
                    "distance {value} from {from} to {to}: {LOCAL} to itself, more to others"
                ));
            }
        }
    }
    Ok(())
}

/// Firmware tells of every pair or of none.
fn attributes(shape: &Shape) -> Result<(), String> {
    for (id, node) in shape.nodes.iter().enumerate() {
        let near = node.initiator.and_then(|from| shape.nodes.get(from));
        if near.is_some_and(|near| near.cpus.is_empty()) {
            return Err(format!("the initiator of node {id} has no CPUs itself"));
        }
        if node.cpus.is_empty() && near.is_none() && !shape.latencies.is_empty() {
            return Err(format!("node {id} has no CPUs; add 'initiator {id} FROM'"));
        }
    }
    let has_cpus = |id: usize| shape.nodes.get(id).is_some_and(|node| !node.cpus.is_empty());
    let has_memory = |id: usize| shape.nodes.get(id).is_some_and(|node| node.memory_mib > 0);
    for (name, rows) in [("latency", &shape.latencies), ("bandwidth", &shape.bandwidths)] {
        if shape.latencies.is_empty() && shape.bandwidths.is_empty() {
            break;
        }
        for from in (0..shape.nodes.len()).filter(|id| has_cpus(*id)) {
            for to in (0..shape.nodes.len()).filter(|id| has_memory(*id)) {
                if rows.iter().filter(|row| (row.from, row.to) == (from, to)).count() != 1 {
                    return Err(format!("'{name} {from} {to}' must be there once"));
                }
            }
        }
        if let Some(row) = rows.iter().find(|row| !has_cpus(row.from) || !has_memory(row.to)) {
            return Err(format!("'{name} {} {}' is between nodes without CPUs or memory", row.from, row.to));
        }
    }
    Ok(())
}
