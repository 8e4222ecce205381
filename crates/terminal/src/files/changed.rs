//! What became of files that were moved, spread, evicted or loaded.

use super::{bytes, columns, path, residence_json, words};
use crate::table::page_table;
use numakit_files::{FileResidence, FoundFile, LeftOut, Relocated, Way};
use numakit_model::numbers::NumberStyle;
use numakit_processes::Mappers;
use serde_json::{Value, json};

/// What was done with a file.
#[derive(Debug, Clone)]
pub enum Deed {
    /// Its pages were moved.
    Moved(Relocated),
    /// They were removed from the cache.
    Evicted {
        /// Where it was.
        before: FileResidence,
        /// What stayed.
        after: FileResidence,
    },
    /// It was read.
    Loaded {
        /// Where it was.
        before: FileResidence,
        /// Where it is.
        after: FileResidence,
        /// The bytes that were read.
        read: u64,
        /// The memory policy.
        policy: String,
    },
}

/// What was done with some files.
#[derive(Debug, Clone)]
pub struct ChangedFiles {
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<u32>,
    /// Bytes of a page.
    pub page: u64,
    /// The files.
    pub files: Vec<(FoundFile, Deed)>,
    /// What was left out of folders.
    pub left_out: LeftOut,
    /// The processes that map the files.
    pub mappers: Mappers,
    /// What gives this process CAP_SYS_NICE.
    pub capability: String,
}

impl Deed {
    fn before(&self) -> &FileResidence {
        match self {
            Self::Moved(relocated) => &relocated.before,
            Self::Evicted { before, .. } | Self::Loaded { before, .. } => before,
        }
    }

    fn after(&self) -> &FileResidence {
        match self {
            Self::Moved(relocated) => &relocated.after,
            Self::Evicted { after, .. } | Self::Loaded { after, .. } => after,
        }
    }

    /// Whether nothing remains to be done, as far as it can be told.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Moved(relocated) => relocated.left() == 0 && relocated.way != Way::Refused,
            Self::Evicted { after, .. } => after.cached.as_ref().is_ok_and(|cached| *cached == 0),
            Self::Loaded { .. } => true,
        }
    }
}

impl ChangedFiles {
    /// Whether everything was done.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|(_, deed)| deed.is_complete())
    }

    /// The page: where the files were and are, and what remains.
    pub fn page(&self) -> String {
        let nodes = columns(&self.nodes, self.files.iter().map(|(_, deed)| deed.after()));
        let mut headings: Vec<String> = ["FILE", "", "CACHED"].map(str::to_owned).to_vec();
        headings.extend(nodes.iter().map(|node| format!("NODE{node}")));
        let row = |name: String, when: &str, residence: &FileResidence| {
            let mut row = vec![name, when.to_owned(), bytes(residence.cached.as_ref().ok().copied())];
            row.extend(nodes.iter().map(|node| bytes(residence.on(*node))));
            row
        };
        let rows: Vec<Vec<String>> = self
            .files
            .iter()
            .flat_map(|(file, deed)| {
                [row(path(file), "before", deed.before()), row(String::new(), "after", deed.after())]
            })
            .collect();
        let notes =
            (0..self.files.len()).flat_map(|at| self.notes(at)).chain(super::left_out(&self.left_out));
        let notes: String = notes.map(|note| format!("{note}\n")).collect();
        page_table(&words(&headings), &rows, "") + if notes.is_empty() { "" } else { "\n" } + &notes
    }

    fn notes(&self, at: usize) -> Vec<String> {
        let (file, deed) = &self.files[at];
        let notes = match deed {
            Deed::Moved(relocated) => self.moved(at, relocated),
            Deed::Evicted { after, .. } => self.stayed(at, after).into_iter().collect(),
            Deed::Loaded { before, read, policy, .. } => {
                let read = bytes(Some(*read));
                let stays = before.cached.as_ref().ok().filter(|cached| **cached > 0).map(|cached| {
                    let cached = bytes(Some(*cached));
                    format!("; {cached} were cached before and stay where they were: evict or move them")
                });
                vec![format!("read {read} under the policy {policy}{}.", stays.unwrap_or_default())]
            }
        };
        let mut notes: Vec<String> =
            notes.into_iter().map(|note| format!("{}: {note}", path(file))).collect();
        if let Err(why) = &deed.after().cached {
            notes.push(format!("{}: {why}.", path(file)));
        }
        notes
    }

    fn moved(&self, at: usize, relocated: &Relocated) -> Vec<String> {
        let pages = |count: u64| NumberStyle::Count.words(count as f64);
        let counts = &relocated.pages;
        let mut notes = vec![match relocated.way {
            Way::InPlace => format!(
                "{} pages moved in memory, {} were there already.",
                pages(counts.moved),
                pages(counts.there)
            ),
            Way::ReadAgain => "move_pages is refused here: removed from the cache and read again.".to_owned(),
            Way::Refused => format!(
                "nothing moved: move_pages is refused here, and {} it. Stop them, or start the container without \
                 its seccomp filter.",
                self.users(at)
            ),
        }];
        if counts.kept > 0 {
            let kept = pages(counts.kept);
            notes.push(format!("{kept} pages stay as planned: nobody was seen to use them, or too rarely."));
        }
        if relocated.block > 1 {
            let block = bytes(Some(relocated.block * self.page));
            notes.push(format!(
                "spread in blocks of {block}: its file system caches in larger units than pages."
            ));
        }
        if relocated.read_whole {
            notes.push("the whole file was read, as the kernel does not tell what was cached.".to_owned());
        }
        if counts.mapped > 0 {
            notes.push(format!(
                "{} pages stayed on other nodes: {} it. Run as root, or {}; or stop them.",
                pages(counts.mapped),
                self.users(at),
                self.capability
            ));
        }
        if counts.full > 0 {
            let full = pages(counts.full);
            notes.push(format!(
                "{full} pages stayed: the node has no free memory; free some, or take another node."
            ));
        }
        if counts.busy > 0 {
            let busy = pages(counts.busy);
            notes.push(format!(
                "{busy} pages stayed: they are locked, in use or being written; run it again."
            ));
        }
        notes
    }

    /// Why pages stayed in the cache.
    fn stayed(&self, at: usize, after: &FileResidence) -> Option<String> {
        let cached = after.cached.as_ref().ok().filter(|cached| **cached > 0)?;
        let why = match self.mappers.list.iter().any(|mapper| mapper.file == at) {
            true => format!("{} it; stop them", self.users(at)),
            false => {
                "a process maps or locks them, or the file system keeps files in memory (tmpfs)".to_owned()
            }
        };
        Some(format!("{} stayed in the cache: {why}.", bytes(Some(*cached))))
    }

    /// `7 (server), 9 (bench) map`.
    fn users(&self, at: usize) -> String {
        let users: Vec<String> = self
            .mappers
            .list
            .iter()
            .filter(|mapper| mapper.file == at)
            .map(|mapper| format!("{} ({})", mapper.pid, mapper.command))
            .collect();
        match users[..] {
            [] => "processes that you may not examine map".to_owned(),
            [_] => format!("process {} maps", users.join(", ")),
            _ => format!("processes {} map", users.join(", ")),
        }
    }

    /// The JSON.
    pub fn json(&self) -> Value {
        let file = |(at, (file, deed)): (usize, &(FoundFile, Deed))| {
            let mut object = json!({
                "path": file.path.to_string_lossy(),
                "complete": deed.is_complete(),
                "before": residence_json(deed.before(), &self.nodes),
                "after": residence_json(deed.after(), &self.nodes),
                "notes": self.notes(at),
            });
            match deed {
                Deed::Moved(relocated) => {
                    let pages = &relocated.pages;
                    object["way"] = json!(match relocated.way {
                        Way::InPlace => "in-place",
                        Way::ReadAgain => "read-again",
                        Way::Refused => "refused",
                    });
                    object["block"] = json!(relocated.block * self.page);
                    object["pages"] = json!({
                        "moved": pages.moved, "there": pages.there, "mapped": pages.mapped,
                        "busy": pages.busy, "full": pages.full, "gone": pages.gone, "kept": pages.kept,
                    });
                }
                Deed::Loaded { read, .. } => object["read"] = json!(read),
                Deed::Evicted { .. } => {}
            }
            object
        };
        json!({
            "nodes": self.nodes,
            "files": self.files.iter().enumerate().map(file).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;
