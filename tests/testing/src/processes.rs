//! A machine of four nodes with processes. Node N has the CPUs 2N and 2N + 1.

use numakit_model::topology::Node;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use std::fmt::Write;

/// Four nodes of two CPUs.
pub fn four_nodes() -> Topology {
    let node = |id: u32| Node { os_index: id, cpus: CpuSet::range(2 * id, 2 * id + 1), ..Node::default() };
    Topology { page_size: 4096, nodes: (0..4).map(node).collect(), ..Topology::default() }
}

/// A process of the generated /proc.
#[derive(Debug, Clone)]
pub struct MadeProcess {
    /// Its number.
    pub pid: u32,
    /// That of its parent.
    pub parent: u32,
    /// The name of its program.
    pub command: &'static str,
    /// The letter of its state.
    pub state: char,
    /// The kernel's flags.
    pub flags: u32,
    /// Its user.
    pub user: u32,
    /// Its start time in ticks.
    pub start: u64,
    /// Resident pages.
    pub resident: u64,
    /// minflt cminflt majflt cmajflt utime stime cutime cstime
    pub counts: [u64; 8],
    /// For each thread: id, CPU, CPU time in ns, preferred node.
    pub threads: Vec<(u32, u32, u64, i32)>,
    /// The numbers of its children.
    pub children: Vec<u32>,
    /// Lines of its numa_maps.
    pub numa_maps: Vec<String>,
}

impl MadeProcess {
    /// One thread on a CPU.
    pub fn new(pid: u32, parent: u32, cpu: u32) -> Self {
        Self {
            pid,
            parent,
            command: "made",
            state: 'S',
            flags: 0,
            user: 1000,
            start: u64::from(pid) * 10,
            resident: 100,
            counts: [0; 8],
            threads: vec![(pid, cpu, 0, -1)],
            children: Vec::new(),
            numa_maps: Vec::new(),
        }
    }

    /// Pages of each node in a mapping.
    pub fn maps(mut self, what: &str, pages: &[(u32, u64)]) -> Self {
        let mut line = format!("7f{:04x} default {what}", self.numa_maps.len());
        pages.iter().for_each(|(node, pages)| _ = write!(line, " N{node}={pages}"));
        self.numa_maps
            .push(format!("{line} kernelpagesize_kB={}\n", if what.ends_with(" huge") { 2048 } else { 4 }));
        self
    }

    fn stat(&self, id: u32, cpu: u32) -> String {
        let [a, b, c, d, e, f, g, h] = self.counts;
        format!(
            "{id} ({}) {} {} 1 1 0 -1 {} {a} {b} {c} {d} {e} {f} {g} {h} 20 0 {} 0 {} 1000 {} 1 1 1 1 1 1 0 0 0 0 0 0 0 17 {cpu} 0 0\n",
            self.command,
            self.state,
            self.parent,
            self.flags,
            self.threads.len(),
            self.start,
            self.resident
        )
    }

    /// A machine with these processes.
    pub fn machine(processes: &[&Self]) -> SysRoot {
        let mut tree = FileTree::new();
        processes.iter().for_each(|process| process.put(&mut tree));
        SysRoot::of_tree(tree)
    }

    /// Adds its files.
    pub fn put(&self, tree: &mut FileTree) {
        let folder = format!("/proc/{}", self.pid);
        tree.remove(&folder);
        tree.file(&format!("{folder}/stat"), self.stat(self.pid, self.threads[0].1));
        tree.file(&format!("{folder}/numa_maps"), self.numa_maps.concat());
        tree.file(&format!("{folder}/smaps_rollup"), "Rss: 1 kB\nAnonHugePages: 2048 kB\n");
        tree.file(&format!("{folder}/sched"), "");
        tree.file(&format!("{folder}/status"), format!("Name:\tx\nUid:\t5\t{}\t5\t5\n", self.user));
        for (at, (id, cpu, ran, preferred)) in self.threads.iter().enumerate() {
            let task = format!("{folder}/task/{id}");
            tree.file(&format!("{task}/stat"), self.stat(*id, *cpu));
            tree.file(&format!("{task}/schedstat"), format!("{ran} 0 1\n"));
            tree.file(
                &format!("{task}/sched"),
                format!("se.nr_migrations : {}\nnr_voluntary_switches : 5\nnr_involuntary_switches : 6\nnuma_preferred_nid : {preferred}\n", ran / 1000),
            );
            let children = if at == 0 { self.children.as_slice() } else { &[] };
            let words: Vec<String> = children.iter().map(u32::to_string).collect();
            tree.file(&format!("{task}/children"), words.join(" "));
        }
    }
}
