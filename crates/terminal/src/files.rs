//! `numa file`: where the page cache of files is.

mod by_use;
mod changed;

pub use by_use::{FileByUse, FilesByUse, SamplesTaken};
pub use changed::{ChangedFiles, Deed};

use crate::table::page_table;
use numakit_files::{FileResidence, FoundFile, LeftOut, OneSidedFile, Piece};
use numakit_model::Unavailable;
use numakit_model::numbers::{ABSENT, NumberStyle};
use numakit_processes::{Mapper, Mappers};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What was found of some files.
#[derive(Debug, Clone)]
pub struct ShownFiles {
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<u32>,
    /// The files.
    pub files: Vec<(FoundFile, FileResidence)>,
    /// What was left out of folders.
    pub left_out: LeftOut,
    /// The processes that map the files.
    pub mappers: Mappers,
    /// The fix if the kernel denies reading other processes.
    pub fix: String,
}

/// Maximum number of nodes that have a column.
const MAX_NODES: usize = 8;

/// Maximum number of files in the table: those with most cached bytes.
const MAX_FILES: usize = 20;

/// Widths of a strip: the minimum beside the table, the maximum.
const STRIP: (usize, usize) = (16, 64);

impl ShownFiles {
    /// The page for a terminal of this width.
    pub fn page(&self, width: usize) -> String {
        let nodes = columns(&self.nodes, self.files.iter().map(|(_, residence)| residence));
        let mut headings: Vec<String> = ["FILE", "SIZE", "CACHED", "CACHED%"].map(str::to_owned).to_vec();
        headings.extend(nodes.iter().map(|node| format!("NODE{node}")));
        headings.push("HUGE".to_owned());
        let listed = self.listed();
        let mut rows: Vec<Vec<String>> = listed.iter().map(|file| row(file, &nodes)).collect();
        let plain = page_table(&words(&headings), &rows, "");
        let used = plain.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let room = width.saturating_sub(used + 2).min(STRIP.1);
        let mut text = if room >= STRIP.0 {
            headings.push("<START TO END".to_owned());
            let strips = listed.iter().map(|(_, residence)| strip(&residence.pieces, room));
            rows.iter_mut().zip(strips).for_each(|(row, strip)| row.push(strip));
            page_table(&words(&headings), &rows, "")
        } else {
            let room = width.saturating_sub(2).clamp(1, STRIP.1);
            let strips = listed.iter().filter(|(_, residence)| !residence.pieces.is_empty());
            strips.fold(plain, |text, (file, residence)| {
                format!("{text}\n{}\n  {}\n", path(file), strip(&residence.pieces, room))
            })
        };
        text.push_str(&self.processes());
        let notes: String = self.notes().iter().map(|note| format!("{note}\n")).collect();
        text + if notes.is_empty() { "" } else { "\n" } + &notes
    }

    /// The files of the table, in their order.
    fn listed(&self) -> Vec<&(FoundFile, FileResidence)> {
        let cached = |at: &usize| self.files[*at].1.cached.as_ref().ok().copied().unwrap_or(0);
        let mut most: Vec<usize> = (0..self.files.len()).collect();
        most.sort_by_key(|at| (std::cmp::Reverse(cached(at)), *at));
        most.truncate(MAX_FILES);
        most.sort_unstable();
        most.into_iter().map(|at| &self.files[at]).collect()
    }

    fn processes(&self) -> String {
        let row = |mapper: &Mapper| {
            let file = self.files.get(mapper.file).map_or_else(String::new, |(file, _)| path(file));
            let bytes = NumberStyle::Bytes.words(mapper.mapped as f64);
            vec![mapper.pid.to_string(), mapper.command.clone(), bytes, threads(&mapper.threads), file]
        };
        let rows: Vec<Vec<String>> = self.mappers.list.iter().map(row).collect();
        let table = page_table(&["PID", "COMMAND", "MAPS", "THREADS ON NODE", "<FILE"], &rows, "");
        if table.is_empty() { table } else { format!("\n{table}") }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.files.len() > MAX_FILES {
            let sum: u64 =
                self.files.iter().filter_map(|(_, residence)| residence.cached.as_ref().ok()).sum();
            notes.push(format!(
                "The {MAX_FILES} of {} files with most cached bytes; all of them have {} cached; --json has all.",
                self.files.len(),
                bytes(Some(sum))
            ));
        }
        let listed = self.listed();
        let all = || listed.iter().flat_map(|(_, residence)| &residence.pieces);
        if all().any(|piece| *piece != Piece::Absent) {
            let unknown = if all().any(|piece| *piece == Piece::Unknown) { ", ? not told" } else { "" };
            notes.push(format!("START TO END: node of the cached pages, . not cached, + mixed{unknown}."));
        }
        for (file, residence) in listed.iter().copied() {
            let known = [residence.cached.as_ref().err(), residence.huge.as_ref().err()];
            notes.extend(known.into_iter().flatten().next().map(|why| format!("{}: {why}.", path(file))));
            if let Some(size) = residence.changed {
                let sizes = [residence.size, size].map(|size| NumberStyle::Bytes.words(size as f64));
                notes.push(format!(
                    "{}: its size changed from {} to {} meanwhile.",
                    path(file),
                    sizes[0],
                    sizes[1]
                ));
            }
        }
        if self.mappers.denied > 0 {
            let denied = self.mappers.denied;
            let processes = if denied == 1 { "1 process".to_owned() } else { format!("{denied} processes") };
            notes.push(format!("The mappings of {processes} cannot be read; {}.", self.fix));
        }
        notes.extend(left_out(&self.left_out));
        notes
    }

    /// The JSON.
    pub fn json(&self) -> Value {
        let file = |(at, (file, residence)): (usize, &(FoundFile, FileResidence))| {
            let mut object = residence_json(residence, &self.nodes);
            let mappers = self.mappers.list.iter().filter(|mapper| mapper.file == at);
            object["path"] = json!(file.path.to_string_lossy());
            object["mapped_by"] = mappers.map(|mapper| self.process_json(mapper)).collect();
            object
        };
        let LeftOut { links, special, pool, unreadable } = self.left_out;
        json!({
            "nodes": self.nodes,
            "files": self.files.iter().enumerate().map(file).collect::<Vec<_>>(),
            "denied": self.mappers.denied,
            "left_out": { "links": links, "special": special, "pool": pool, "unreadable": unreadable },
        })
    }

    fn process_json(&self, mapper: &Mapper) -> Value {
        let threads = self.nodes.iter().map(|node| mapper.threads.get(node).copied().unwrap_or(0));
        json!({
            "pid": mapper.pid,
            "command": mapper.command,
            "mapped": mapper.mapped,
            "threads": threads.collect::<Vec<_>>(),
        })
    }
}

/// What is wrong with a file that is cached on one node, and the command that spreads it.
pub fn one_sided(file: &OneSidedFile) -> (String, String) {
    let nodes: Vec<String> = file.threads.keys().map(u32::to_string).collect();
    let path = file.path.to_string_lossy();
    let seen = format!(
        "{path} ({}) is cached on node {}, and {} ({}) maps it with threads on nodes {}",
        bytes(Some(file.size)),
        file.node,
        file.pid,
        file.command,
        nodes.join(", ")
    );
    (seen, format!("as root: numa file spread '{path}'"))
}

/// The residence of a file as JSON, without its path.
fn residence_json(residence: &FileResidence, nodes: &[u32]) -> Value {
    let why = |value: Option<&Unavailable>| value.map(ToString::to_string);
    let on = |by_node: &BTreeMap<u32, u64>| {
        nodes.iter().map(|node| by_node.get(node).copied().unwrap_or(0)).collect::<Vec<_>>()
    };
    json!({
        "size": residence.size,
        "changed": residence.changed,
        "cached": residence.cached.as_ref().ok(),
        "on": residence.nodes.as_ref().ok().map(on),
        "huge": residence.huge.as_ref().ok(),
        "pieces": residence.pieces.iter().map(|piece| match piece {
            Piece::Node(node) => json!(node),
            Piece::Absent => json!("absent"),
            Piece::Mixed => json!("mixed"),
            Piece::Unknown => json!("unknown"),
        }).collect::<Vec<_>>(),
        "why": {
            "cached": why(residence.cached.as_ref().err()),
            "huge": why(residence.huge.as_ref().err()),
        },
    })
}

/// The nodes with columns: those with most cached bytes.
fn columns<'a>(nodes: &[u32], files: impl Iterator<Item = &'a FileResidence>) -> Vec<u32> {
    let files: Vec<&FileResidence> = files.collect();
    let bytes = |node: u32| files.iter().filter_map(|residence| residence.on(node)).sum::<u64>();
    let mut nodes = nodes.to_vec();
    nodes.sort_by_key(|node| (std::cmp::Reverse(bytes(*node)), *node));
    nodes.truncate(MAX_NODES);
    nodes.sort_unstable();
    nodes
}

fn row((file, residence): &(FoundFile, FileResidence), nodes: &[u32]) -> Vec<String> {
    let cached = residence.cached.as_ref().ok().copied();
    // The last page is whole.
    let share = cached.filter(|_| residence.size > 0);
    let share = share.map(|cached| (cached as f64 / residence.size as f64 * 100.0).min(100.0));
    let mut row = vec![path(file), bytes(Some(residence.size)), bytes(cached)];
    row.push(share.map_or_else(|| ABSENT.to_owned(), |share| format!("{share:.1}")));
    row.extend(nodes.iter().map(|node| bytes(residence.on(*node))));
    row.push(bytes(residence.huge.as_ref().ok().copied()));
    row
}

/// A path for a terminal.
fn path(file: &FoundFile) -> String {
    file.path.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn bytes(value: Option<u64>) -> String {
    value.map_or_else(
        || ABSENT.to_owned(),
        |value| match value {
            0 => "0".to_owned(),
            value => NumberStyle::Bytes.words(value as f64),
        },
    )
}

fn words(headings: &[String]) -> Vec<&str> {
    headings.iter().map(String::as_str).collect()
}

/// `0:4 1:12`: four threads on node 0, twelve on node 1.
fn threads(by_node: &BTreeMap<u32, u64>) -> String {
    let nodes: Vec<String> = by_node.iter().map(|(node, count)| format!("{node}:{count}")).collect();
    if nodes.is_empty() { ABSENT.to_owned() } else { nodes.join(" ") }
}

/// The pieces in at most `width` characters.
fn strip(pieces: &[Piece], width: usize) -> String {
    let count = pieces.len().min(width);
    let piece = |at: usize| {
        let part = &pieces[at * pieces.len() / count..(at + 1) * pieces.len() / count];
        part.iter().copied().reduce(Piece::and).unwrap_or(Piece::Unknown)
    };
    (0..count).map(|at| letter(piece(at))).collect()
}

/// Nodes above 9 are letters, as digits of large bases are.
fn letter(piece: Piece) -> char {
    match piece {
        Piece::Absent => '.',
        Piece::Mixed => '+',
        Piece::Unknown => '?',
        Piece::Node(node) => char::from_digit(node, 36).unwrap_or('#'),
    }
}

fn left_out(left_out: &LeftOut) -> Option<String> {
    let LeftOut { links, special, pool, unreadable } = *left_out;
    let kinds = [
        (links, "symbolic links"),
        (special, "FIFOs, sockets and devices"),
        (pool, "files on hugetlbfs"),
        (unreadable, "files and folders that you may not read"),
    ];
    let listed: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{kind} {count}")).collect();
    (!listed.is_empty()).then(|| format!("Left out: {}.", listed.join(", ")))
}

#[cfg(test)]
mod tests;
