//! The distance matrix.

use crate::nodes::{NODE, Nodes};
use crate::reader::Reader;
use crate::values::{self, ValueError};
use numakit_model::CpuSet;
use numakit_model::topology::Distances;

/// The matrix, if every node has a usable row; otherwise `None` and a note that says why.
pub(crate) fn read(reader: &mut Reader<'_>, nodes: &Nodes) -> Option<Distances> {
    if nodes.online.is_empty() {
        return None;
    }
    let ids: Vec<u32> = nodes.nodes.iter().map(|n| n.os_index).collect();
    let mut rows = Vec::with_capacity(ids.len());
    let mut lacking = CpuSet::new();
    for &id in &ids {
        match reader.value(format_args!("{NODE}/node{id}/distance"), row) {
            Some(row) => rows.push(row),
            None => lacking.insert(id),
        }
    }
    if rows.is_empty() {
        return None;
    }
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let equal = lacking.is_empty() && rows.iter().all(|row| row.len() == longest);
    let Some(columns) = columns(&ids, &nodes.online, longest).filter(|_| equal) else {
        reader.note(format!(
            "the distances do not fit {} nodes (longest row {longest}, rows missing for nodes '{lacking}') \
             and are left out",
            ids.len()
        ));
        return None;
    };
    let pick = |row: Vec<u32>| columns.iter().map(|&at| row[at]).collect();
    Distances::new(ids, rows.into_iter().map(pick).collect()).ok()
}

/// The column of each node in a row. Columns are those of the online nodes, in order. In a row with a different number of
/// columns, columns are node numbers, if that fits.
fn columns(ids: &[u32], online: &CpuSet, length: usize) -> Option<Vec<usize>> {
    let position = |set: &CpuSet, id: u32| set.iter().position(|other| other == id);
    if length == online.len() {
        ids.iter().map(|&id| position(online, id)).collect()
    } else if length == ids.len() {
        Some((0..length).collect())
    } else {
        let by_number = ids.iter().map(|&id| id as usize);
        by_number.map(|at| (at < length).then_some(at)).collect()
    }
}

/// Parses a row: numbers separated by spaces. A single 0 is how some kernels say that there are no distances.
pub fn row(bytes: &[u8]) -> Result<Vec<u32>, ValueError> {
    let text = values::text(bytes)?;
    let row: Result<Vec<u32>, _> = text.trim_matches('\0').split_ascii_whitespace().map(str::parse).collect();
    match row {
        Ok(row) if row.is_empty() || row == [0] => Err(ValueError::NoDistances),
        Ok(row) => Ok(row),
        Err(_) => Err(ValueError::Row),
    }
}
