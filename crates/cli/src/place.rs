//! The options that say what to place and how, for every verb that makes a plan.

use clap::Args;
use numakit_placement::request::{self, RequestError};
use numakit_placement::{Cores, MemoryRequest, Policy, Request, Words};

/// What to place, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What to place")]
pub struct Place {
    /// Cores for all processes together; 'auto' is all that are free, 'all' is all
    #[arg(short, long, value_name = "N|auto|all", allow_negative_numbers = true)]
    cores: Option<Cores>,
    /// Processes: the ranks of an MPI program
    #[arg(long, value_name = "N", default_value = "1", value_parser = processes, allow_negative_numbers = true)]
    processes: u32,
    /// Threads of each process; without it, as many as its share of the cores holds
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<u32>,
    /// PUs of each core that get a thread
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads_per_core, allow_negative_numbers = true)]
    threads_per_core: u32,
    /// Use one of so many neighbouring cores of a package
    #[arg(long, value_name = "N", default_value = "1", value_parser = stride, allow_negative_numbers = true)]
    stride: u32,
    /// Which cores: compact (nearest nodes first), scatter (over nodes far apart), balanced (as
    /// many on each node and cache), spread:LEVEL (one on each unit, l2, cluster, l3, die, node,
    /// package or board before any has two), memory:SIZE (on nodes with so much memory),
    /// near:DEVICE, or near:gpu{rank} for a device of its own for each process
    #[arg(long, value_name = "POLICY", default_value = "compact")]
    policy: Policy,
    /// Where memory comes from: local, bind, prefer, interleave or weighted, with nodes as in
    /// bind:0-1, or on the nodes of the threads
    #[arg(long, value_name = "MODE[:NODES]", default_value = "local")]
    memory: MemoryRequest,
    /// Only these CPUs, as in 0-7, 0-31:2, !4-7, +0-3, all
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<Words>,
    /// Only CPUs of these nodes
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    nodes: Option<Words>,
    /// No core with one of these CPUs
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    exclude: Option<Words>,
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

impl Place {
    /// Asks for so many cores, whatever the options say.
    pub fn set_cores(&mut self, cores: Option<Cores>) {
        self.cores = cores;
    }

    /// The request that the options are.
    pub fn request(&self) -> Request {
        Request {
            cores: self.cores,
            processes: self.processes,
            threads: self.threads,
            threads_per_core: self.threads_per_core,
            stride: self.stride,
            policy: self.policy.clone(),
            memory: self.memory.clone(),
            cpus: self.cpus.clone(),
            nodes: self.nodes.clone(),
            exclude: self.exclude.clone(),
        }
    }
}
