//! The documented JSON form of a topology.

use super::{Cache, ControlLimits, Core, CoreKind, Device, Distances, Node, Package, Topology};
use crate::{CpuSet, MeasuredMemory};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of the form; fields are only ever added to it.
const SCHEMA: u32 = 1;

/// Why a document is not a machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// Written by a newer program.
    #[error("schema is {0}, this program knows up to {SCHEMA}; use a newer numa")]
    Schema(u32),
    /// Two nodes in the wrong order.
    #[error("nodes are not in ascending order of os_index: {before} comes before {after}; sort them")]
    Order {
        /// The first of the two.
        before: u32,
        /// The second.
        after: u32,
    },
    /// The matrix of distances has too few or too many rows.
    #[error("distances have {rows} rows for {nodes} nodes; give one row per node")]
    Rows {
        /// Rows of the matrix.
        rows: usize,
        /// Nodes of the machine.
        nodes: usize,
    },
    /// A row of the matrix has too few or too many values.
    #[error("row {row} of the distances has {values} values for {nodes} nodes; give one per node")]
    Row {
        /// The row, from 0.
        row: usize,
        /// How many values it has.
        values: usize,
        /// Nodes of the machine.
        nodes: usize,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    schema: u32,
    origin: String,
    page_size: u64,
    #[serde(skip_deserializing)]
    cores: usize,
    #[serde(skip_deserializing)]
    pus: usize,
    online: CpuSet,
    offline: CpuSet,
    allowed: CpuSet,
    #[serde(skip_deserializing)]
    not_allowed: CpuSet,
    allowed_nodes: CpuSet,
    nodes: Vec<Node>,
    distances: Option<Vec<Vec<u32>>>,
    boards: Vec<CpuSet>,
    packages: Vec<Package>,
    dies: Vec<CpuSet>,
    clusters: Vec<CpuSet>,
    units: Vec<CpuSet>,
    books: Vec<CpuSet>,
    drawers: Vec<CpuSet>,
    caches: Vec<Cache>,
    kinds: Vec<CoreKind>,
    core_list: Vec<Core>,
    #[serde(skip_deserializing)]
    pu_list: Vec<Pu>,
    devices: Vec<Device>,
    weights_auto: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<MeasuredMemory>,
    #[serde(skip_serializing_if = "ControlLimits::is_none")]
    limits: ControlLimits,
    notes: Vec<String>,
}

/// A hardware thread, and what it belongs to.
#[derive(Debug, Default, Serialize)]
struct Pu {
    os_index: u32,
    node: Option<u32>,
    package: Option<usize>,
    core: Option<usize>,
    allowed: bool,
}

impl From<Topology> for Document {
    fn from(t: Topology) -> Self {
        Self {
            schema: SCHEMA,
            cores: t.cores.len(),
            pus: t.online.len(),
            not_allowed: t.not_allowed(),
            pu_list: pus(&t),
            origin: t.origin,
            page_size: t.page_size,
            online: t.online,
            offline: t.offline,
            allowed: t.allowed,
            allowed_nodes: t.allowed_nodes,
            nodes: t.nodes,
            distances: t.distances.map(|d| d.rows),
            boards: t.boards,
            packages: t.packages,
            dies: t.dies,
            clusters: t.clusters,
            units: t.units,
            books: t.books,
            drawers: t.drawers,
            caches: t.caches,
            kinds: t.kinds,
            core_list: t.cores,
            devices: t.devices,
            weights_auto: t.weights_auto,
            measured: t.measured,
            limits: t.limits.clone(),
            notes: t.notes,
        }
    }
}

/// One entry per online CPU. Tables instead of searches: there may be thousands.
fn pus(t: &Topology) -> Vec<Pu> {
    let slots = t.online.last().map_or(0, |last| last as usize + 1);
    let mut table: Vec<Pu> = (0..slots as u32).map(|os_index| Pu { os_index, ..Pu::default() }).collect();
    let mut set = |cpus: &CpuSet, put: &dyn Fn(&mut Pu)| {
        for cpu in cpus.iter() {
            if let Some(pu) = table.get_mut(cpu as usize) {
                put(pu);
            }
        }
    };
    for node in t.nodes.iter().rev() {
        set(&node.cpus, &|pu| pu.node = Some(node.os_index));
    }
    for (at, package) in t.packages.iter().enumerate() {
        set(&package.cpus, &|pu| pu.package = Some(at));
    }
    for (at, core) in t.cores.iter().enumerate() {
        set(&core.cpus, &|pu| pu.core = Some(at));
    }
    set(&t.allowed, &|pu| pu.allowed = true);
    table.retain(|pu| t.online.contains(pu.os_index));
    table
}

impl TryFrom<Document> for Topology {
    type Error = DocumentError;

    fn try_from(d: Document) -> Result<Self, DocumentError> {
        if d.schema > SCHEMA {
            return Err(DocumentError::Schema(d.schema));
        }
        if let Some(pair) = d.nodes.windows(2).find(|pair| pair[0].os_index >= pair[1].os_index) {
            return Err(DocumentError::Order { before: pair[0].os_index, after: pair[1].os_index });
        }
        let nodes: Vec<u32> = d.nodes.iter().map(|n| n.os_index).collect();
        Ok(Self {
            distances: d.distances.map(|rows| Distances::new(nodes, rows)).transpose()?,
            origin: d.origin,
            page_size: d.page_size,
            online: d.online,
            offline: d.offline,
            allowed: d.allowed,
            allowed_nodes: d.allowed_nodes,
            nodes: d.nodes,
            boards: d.boards,
            packages: d.packages,
            dies: d.dies,
            clusters: d.clusters,
            units: d.units,
            books: d.books,
            drawers: d.drawers,
            caches: d.caches,
            kinds: d.kinds,
            cores: d.core_list,
            devices: d.devices,
            weights_auto: d.weights_auto,
            measured: d.measured,
            limits: d.limits,
            notes: d.notes,
        })
    }
}
