//! Seccomp filters: that of Podman comes with Debian; that of Docker differs from it as its sources
//! say.

use serde_json::{Value, json};
use std::path::Path;

/// Podman's, which names capabilities and architectures that rules depend on.
const FILE: &str = "/usr/share/containers/seccomp.json";

/// Which calls the kernel refuses in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// None.
    Open,
    /// Podman's and CRI-O's default.
    Podman,
    /// Docker's and containerd's default.
    Docker,
}

/// Calls that Docker permits with a capability only.
const OF_CAPABILITIES: [(&str, &[&str]); 4] = [
    ("CAP_SYS_NICE", &["get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node"]),
    ("CAP_PERFMON", &["perf_event_open"]),
    ("CAP_SYS_PTRACE", &["kcmp", "process_madvise"]),
    ("CAP_SYS_ADMIN", &["clone3"]),
];
/// Calls that Docker never permits and Podman does.
const NEVER: [&str; 5] =
    ["io_uring_enter", "io_uring_register", "io_uring_setup", "move_pages", "userfaultfd"];

/// `errno` values that the rules answer with.
const EPERM: i64 = 1;
const ENOSYS: i64 = 38;

/// Whether the file is here.
pub(crate) fn is_installed() -> bool {
    Path::new(FILE).is_file()
}

impl Profile {
    /// The filter of a container with these capabilities, as the runtime's configuration has it.
    pub(crate) fn seccomp(self, capabilities: &[String]) -> std::io::Result<Option<Value>> {
        if self == Self::Open {
            return Ok(None);
        }
        let profile: Value = serde_json::from_str(&std::fs::read_to_string(FILE)?)?;
        let rules = profile["syscalls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut rules: Vec<Value> =
            rules.iter().filter(|rule| applies(rule, capabilities)).map(without_conditions).collect();
        let mut otherwise = profile["defaultErrnoRet"].as_i64().unwrap_or(EPERM);
        if self == Self::Docker {
            otherwise = EPERM;
            as_docker(&mut rules, capabilities);
        }
        rules.retain(|rule| rule["names"].as_array().is_some_and(|names| !names.is_empty()));
        Ok(Some(json!({
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": otherwise,
            "architectures": ["SCMP_ARCH_X86_64"],
            "syscalls": rules,
        })))
    }
}

/// Whether a rule is for a container with these capabilities on x86-64.
fn applies(rule: &Value, capabilities: &[String]) -> bool {
    let has = |name: &Value| name.as_str().is_some_and(|name| capabilities.iter().any(|has| has == name));
    let list = |of: &str, what: &str| rule[of][what].as_array().cloned().unwrap_or_default();
    let here = |arches: &[Value]| arches.iter().any(|arch| arch == "amd64");
    let (needs, not) = (list("includes", "arches"), list("excludes", "arches"));
    list("includes", "caps").iter().all(has)
        && !list("excludes", "caps").iter().any(has)
        && (needs.is_empty() || here(&needs))
        && !here(&not)
}

fn without_conditions(rule: &Value) -> Value {
    let mut rule = rule.clone();
    if let Some(members) = rule.as_object_mut() {
        members.retain(|name, _| ["names", "action", "args", "errnoRet"].contains(&name.as_str()));
    }
    rule
}

fn as_docker(rules: &mut Vec<Value>, capabilities: &[String]) {
    let ruled: Vec<&str> =
        OF_CAPABILITIES.iter().flat_map(|(_, calls)| *calls).chain(&NEVER).copied().collect();
    for rule in rules.iter_mut() {
        if let Some(names) = rule["names"].as_array_mut() {
            names.retain(|name| !ruled.iter().any(|call| name == call));
        }
    }
    for (capability, calls) in OF_CAPABILITIES {
        if capabilities.iter().any(|has| has == capability) {
            rules.push(json!({"names": calls, "action": "SCMP_ACT_ALLOW"}));
        } else if calls.contains(&"clone3") {
            // The C library then uses clone.
            rules.push(json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS}));
        }
    }
}
