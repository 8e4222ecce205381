//! `numa ps`: who holds which cores.

use crate::table::page_table;
use numakit_model::numbers::{ABSENT, duration};
use numakit_model::{CpuSet, Topology};
use numakit_registry::{HolderState, Holding, user_name};
use serde_json::{Value, json};

/// The text if no cores are reserved.
const EMPTY: &str = "No program holds cores. 'numa run -c 4 PROGRAM' takes four.\n";

/// Who holds what, on this machine, at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Holders<'a> {
    /// The holders.
    pub holdings: &'a [Holding],
    /// The machine.
    pub topology: &'a Topology,
    /// Now, in nanoseconds since 1970.
    pub now: u64,
}

impl Holders<'_> {
    /// A line for each holder, and notes on some.
    pub fn table(&self) -> String {
        if self.holdings.is_empty() {
            return EMPTY.to_owned();
        }
        let headings = ["APPLICATION", "USER", "PID", "FOR", "CORES", "CPUS", "NODES", "<JOB"];
        let rows: Vec<Vec<String>> = self.holdings.iter().map(|holding| self.row(holding)).collect();
        let mut text = page_table(&headings, &rows, "");
        for note in self.notes() {
            text.push_str(&note);
            text.push('\n');
        }
        text
    }

    /// The same as JSON, as `numa ps --help` describes.
    pub fn json(&self) -> Value {
        json!({ "holders": self.holdings.iter().map(|holding| self.object(holding)).collect::<Vec<_>>() })
    }

    fn row(&self, holding: &Holding) -> Vec<String> {
        let absent = || ABSENT.to_owned();
        let who = holding.holder.as_ref();
        let since = who.and_then(|who| who.since);
        let job = who.and_then(|who| match &who.job {
            Some(job) => Some(format!("slurm {job}")),
            None => who.cgroup.clone(),
        });
        vec![
            who.map_or_else(|| "unknown".to_owned(), |who| who.application.clone()),
            who.map_or_else(absent, |who| user_name(who.user)),
            holding.pid().map_or_else(absent, |pid| pid.to_string()),
            since.map_or_else(absent, |since| duration(self.now.saturating_sub(since) as f64 / 1e9)),
            self.cores(holding).to_string(),
            holding.cpus.to_string(),
            self.nodes(&holding.cpus).to_string(),
            job.unwrap_or_else(absent),
        ]
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let damaged = self.holdings.iter().find(|holding| holding.state == HolderState::Unknown);
        if let Some(holding) = damaged {
            notes.push(format!(
                "CPUs {} are held, but the record of their holder is damaged; they become free when the holder ends.",
                holding.cpus
            ));
        }
        for holding in self.holdings {
            if let HolderState::Bound(pid) = holding.state {
                notes.push(format!(
                    "CPUs {}: their locks are lost, but process {pid} still runs; they become free when it ends.",
                    holding.cpus
                ));
            }
            if holding.state == HolderState::InRemovedFile {
                notes.push(format!(
                    "CPUs {}: the registry with their holders was removed; they become free when the holders end.",
                    holding.cpus
                ));
            }
        }
        if self.holdings.iter().any(|holding| !holding.same_pid_namespace && holding.holder.is_some()) {
            notes.push("No PID: the process is in another PID namespace, such as a container.".to_owned());
        }
        notes
    }

    /// Cores of this machine, where it has these CPUs.
    fn cores(&self, holding: &Holding) -> u32 {
        let cores = self.topology.cores.iter().filter(|core| core.cpus.intersects(&holding.cpus)).count();
        if cores == 0 { holding.cores() } else { cores as u32 }
    }

    fn nodes(&self, cpus: &CpuSet) -> CpuSet {
        let nodes = self.topology.nodes.iter().filter(|node| node.cpus.intersects(cpus));
        nodes.map(|node| node.os_index).collect()
    }

    fn object(&self, holding: &Holding) -> Value {
        let who = holding.holder.as_ref();
        json!({
            "application": who.map(|who| &who.application),
            "user": who.map(|who| user_name(who.user)),
            "uid": who.map(|who| who.user),
            "pid": holding.pid(),
            "keeper": who.and_then(|who| who.supervisor).filter(|_| holding.same_pid_namespace).map(|keeper| keeper.pid),
            "since": who.and_then(|who| who.since).map(|since| since as f64 / 1e9),
            "cores": self.cores(holding),
            "cpus": holding.cpus,
            "nodes": self.nodes(&holding.cpus),
            "cgroup": who.and_then(|who| who.cgroup.as_ref()),
            "job": who.and_then(|who| who.job.as_ref()),
            "state": match holding.state {
                HolderState::Held => "held",
                HolderState::Bound(_) => "bound",
                HolderState::InRemovedFile => "removed",
                HolderState::Unknown => "unknown",
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::{Core, Node};
    use numakit_registry::{Holder, ProcessId};

    fn machine() -> Topology {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let node = |os_index, cpus| Node { os_index, cpus: set(cpus), ..Node::default() };
        let core = |cpus| Core { cpus: set(cpus), ..Core::default() };
        Topology {
            nodes: vec![node(0, "0-1,4-5"), node(1, "2-3,6-7")],
            cores: vec![core("0,4"), core("1,5"), core("2,6"), core("3,7")],
            ..Topology::default()
        }
    }

    fn holdings() -> Vec<Holding> {
        let who = Holder {
            application: "ep.C".to_owned(),
            user: 0,
            since: Some(1_000_000_000_000),
            cores: Some(2),
            cgroup: Some("/user.slice".to_owned()),
            program: Some(ProcessId { pid: 4242, start: 1 }),
            supervisor: Some(ProcessId { pid: 4241, start: 1 }),
            ..Holder::default()
        };
        let held = Holding {
            cpus: "1-2,5-6".parse().unwrap(),
            state: HolderState::Held,
            holder: Some(who.clone()),
            same_pid_namespace: true,
            is_own: false,
        };
        let elsewhere = Holder { application: "pi".to_owned(), job: Some("77".to_owned()), ..who.clone() };
        let unknown =
            Holding { state: HolderState::Unknown, holder: None, same_pid_namespace: false, ..held.clone() };
        vec![
            Holding { cpus: "3".parse().unwrap(), ..unknown.clone() },
            Holding { cpus: "4".parse().unwrap(), state: HolderState::InRemovedFile, ..unknown },
            Holding { cpus: "0".parse().unwrap(), state: HolderState::Bound(9), ..held.clone() },
            Holding {
                cpus: "7".parse().unwrap(),
                holder: Some(elsewhere),
                same_pid_namespace: false,
                ..held.clone()
            },
            held,
        ]
    }

    #[test]
    fn every_holder_has_a_line_and_special_states_have_a_note() {
        let (holdings, topology) = (holdings(), machine());
        let text = Holders { holdings: &holdings, topology: &topology, now: 1_090_000_000_000 }.table();
        let expected = "\
APPLICATION  USER   PID         FOR  CORES     CPUS  NODES  JOB
unknown         -     -           -      1        3      1  -
unknown         -     -           -      1        4      0  -
ep.C         root     9  1 min 30 s      1        0      0  /user.slice
pi           root     -  1 min 30 s      1        7      1  slurm 77
ep.C         root  4242  1 min 30 s      2  1-2,5-6    0-1  /user.slice
CPUs 3 are held, but the record of their holder is damaged; they become free when the holder ends.
CPUs 4: the registry with their holders was removed; they become free when the holders end.
CPUs 0: their locks are lost, but process 9 still runs; they become free when it ends.
No PID: the process is in another PID namespace, such as a container.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn without_holders_it_says_so() {
        let topology = machine();
        let none = Holders { holdings: &[], topology: &topology, now: 0 };
        assert_eq!(none.table(), EMPTY);
        assert_eq!(none.json(), json!({ "holders": [] }));
    }

    #[test]
    fn what_is_unknown_is_null_in_json() {
        let (holdings, topology) = (holdings(), machine());
        let all = Holders { holdings: &holdings, topology: &topology, now: 0 }.json();
        let unknown = &all["holders"][0];
        assert!(unknown["application"].is_null() && unknown["since"].is_null() && unknown["pid"].is_null());
        assert_eq!((&unknown["cpus"], &unknown["state"]), (&json!("3"), &json!("unknown")));
        assert_eq!(all["holders"][1]["state"], json!("removed"));
        let held = &all["holders"][4];
        assert_eq!(
            (&held["since"], &held["keeper"], &held["pid"]),
            (&json!(1000.0), &json!(4241), &json!(4242))
        );
    }
}
