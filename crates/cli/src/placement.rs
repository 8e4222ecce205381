//! Placement options, for all verbs that make a plan.

use anyhow::anyhow;
use clap::Args;
use numakit_launch::StartError;
use numakit_placement::request::{self, RequestError};
use numakit_placement::{CorePolicy, Cores, MemoryRequest, NumberList, PlacementRequest};
use numakit_sys::command::quoted;
use std::ffi::OsString;

/// What to place, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What to place")]
pub struct PlacementArgs {
    /// Cores for all processes together: a number, 'auto' (all free cores) or 'all'
    #[arg(short, long, value_name = "N|auto|all", allow_negative_numbers = true)]
    cores: Option<Cores>,
    /// Number of processes, such as MPI ranks
    #[arg(long, value_name = "N", default_value = "1", value_parser = processes, allow_negative_numbers = true)]
    processes: u32,
    /// Threads per process [default: as many as fit on its share of the cores]
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<u32>,
    /// Hardware threads (PUs) to use per core
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads_per_core, allow_negative_numbers = true)]
    threads_per_core: u32,
    /// Use every Nth core of a package
    #[arg(long, value_name = "N", default_value = "1", value_parser = stride, allow_negative_numbers = true)]
    stride: u32,
    /// How to choose cores: compact (nearest nodes first), scatter (nodes far apart), balanced (the
    /// same number on each node and cache), spread:LEVEL (one per unit, l2, cluster, l3, die, node,
    /// package or board before any gets two), memory:SIZE (as many nodes as provide SIZE of memory),
    /// near:DEVICE, or near:gpu{rank} (a different GPU for each process) [default: compact]
    #[arg(long, value_name = "POLICY")]
    policy: Option<CorePolicy>,
    /// Memory policy: local, bind, prefer, interleave or weighted, with nodes as in bind:0-1;
    /// without nodes, those of the threads
    #[arg(long, value_name = "MODE[:NODES]", default_value = "local")]
    memory: MemoryRequest,
    /// Use only these CPUs, as in 0-7, 0-31:2, !4-7, +0-3 or all
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<NumberList>,
    /// Use only CPUs of these nodes
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    nodes: Option<NumberList>,
    /// Do not use cores that contain one of these CPUs
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    exclude: Option<NumberList>,
}

fn processes(word: &str) -> Result<u32, RequestError> {
    request::number("number of processes", word)
}

fn threads(word: &str) -> Result<u32, RequestError> {
    request::number("number of threads", word)
}

fn threads_per_core(word: &str) -> Result<u32, RequestError> {
    request::number("number of threads per core", word)
}

fn stride(word: &str) -> Result<u32, RequestError> {
    request::number("stride", word)
}

/// A message that a plan failed; where this machine never has enough cores, with the command for another one, of
/// which `words` are the last.
pub fn with_another_machine(error: StartError, command: &str, words: &[OsString]) -> anyhow::Error {
    let last = if words.is_empty() { String::new() } else { format!(" {}", quoted(words)) };
    match &error {
        StartError::Plan(plan) if plan.is_impossible() => anyhow!(
            "{plan}; for another machine: {command} --machine NAME{last} ('numa topo --machine list' lists them)"
        ),
        _ => error.into(),
    }
}

impl PlacementArgs {
    /// The number of cores as an option, or nothing.
    pub fn cores_words(&self) -> String {
        match self.cores {
            Some(Cores::Count(count)) => format!(" -c {count}"),
            _ => String::new(),
        }
    }

    /// The options as a request; `usual` is the policy if none is given.
    pub fn request(&self, usual: CorePolicy) -> PlacementRequest {
        PlacementRequest {
            cores: self.cores,
            processes: self.processes,
            threads: self.threads,
            threads_per_core: self.threads_per_core,
            stride: self.stride,
            policy: self.policy.clone().unwrap_or(usual),
            memory: self.memory.clone(),
            cpus: self.cpus.clone(),
            nodes: self.nodes.clone(),
            exclude: self.exclude.clone(),
        }
    }
}
