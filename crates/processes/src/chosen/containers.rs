//! Containers, by the control groups in which runtimes put them and by the files in which runtimes keep their names.

use numakit_sys::file;
use serde_json::Value;
use std::path::Path;

/// Digits of the number of a container.
const DIGITS: usize = 64;
/// A part of the number that users may give has at least this many digits.
pub(super) const MIN_DIGITS: usize = 6;
/// A file of a runtime with more bytes is not read.
const MAX_FILE: u64 = 16 << 20;

/// The container whose processes are in a control group: the last one if one runs in another. Docker, Podman, CRI-O and
/// containerd end the name of its group with 64 digits.
pub fn of_group(path: &str) -> Option<&str> {
    path.rsplit('/').find_map(|name| {
        let name = name.strip_suffix(".scope").unwrap_or(name);
        let (prefix, number) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
        // The process that watches a container is in a group of its own.
        (is_number(number) && !prefix.contains("conmon")).then_some(number)
    })
}

/// Whether a group is that of a container of LXC with this name.
pub(super) fn is_lxc(path: &str, name: &str) -> bool {
    let mut above = "";
    path.split('/').any(|part| {
        let is_it = part.strip_prefix("lxc.payload.") == Some(name) || (above == "lxc" && part == name);
        above = part;
        is_it
    })
}

/// Whether a word can be the number of a container, or its begin.
pub(super) fn is_number(word: &str) -> bool {
    (MIN_DIGITS..=DIGITS).contains(&word.len())
        && word.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The names of a container, as the runtimes' files below this folder tell them without their daemons. Most are readable for
/// root alone.
pub fn names(folder: &Path, number: &str) -> Vec<String> {
    let json = |path: &str| -> Option<Value> {
        serde_json::from_str(&file::named_text(&folder.join(path), MAX_FILE).ok()?).ok()
    };
    let mut names = Vec::new();
    if let Some(docker) = json(&format!("var/lib/docker/containers/{number}/config.v2.json")) {
        names.extend(text(&docker["Name"]).map(|name| name.trim_start_matches('/').to_owned()));
    }
    // Podman and CRI-O keep all containers in one list.
    let stored = json("var/lib/containers/storage/overlay-containers/containers.json");
    for container in stored.iter().filter_map(Value::as_array).flatten() {
        if container["id"].as_str() == Some(number) {
            names.extend(container["names"].as_array().into_iter().flatten().filter_map(text));
        }
    }
    for space in ["k8s.io", "default", "moby"] {
        let path = format!("run/containerd/io.containerd.runtime.v2.task/{space}/{number}/config.json");
        if let Some(containerd) = json(&path) {
            let notes = &containerd["annotations"];
            names.extend(
                ["io.kubernetes.cri.container-name", "nerdctl/name"]
                    .iter()
                    .filter_map(|key| text(&notes[*key])),
            );
        }
    }
    names.dedup();
    names
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(digit: &str) -> String {
        digit.repeat(DIGITS)
    }

    #[test]
    fn groups_of_all_runtimes_have_the_number_of_their_container() {
        let id = number("a");
        for group in [
            "/docker/ID",
            "/system.slice/docker-ID.scope",
            "/system.slice/docker-ID.scope/init",
            "/machine.slice/libpod-ID.scope/container",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-ID.scope",
            "/kubepods/besteffort/pod1/ID",
            "/kubepods.slice/kubepods-pod1.slice/crio-ID.scope",
            "/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:ID",
        ] {
            assert_eq!(of_group(&group.replace("ID", &id)), Some(id.as_str()), "{group}");
        }
        for group in
            ["/", "/user.slice/user-0.slice", "/machine.slice/libpod-conmon-ID.scope", "/docker/IDé", "/é"]
        {
            assert_eq!(of_group(&group.replace("ID", &id)), None, "{group}");
        }
        // Of a container in another one, the inner one.
        let inner = format!("/docker/{id}/docker/{}", number("b"));
        assert_eq!(of_group(&inner), Some(number("b").as_str()));
        assert!(is_lxc("/lxc.payload.web/init.scope", "web") && is_lxc("/lxc/web", "web"));
        assert!(!is_lxc("/lxc.payload.web2", "web") && !is_lxc("/web/lxc", "web"));
        assert!(
            is_number("0123ab") && !is_number("0123a") && !is_number("0123AB") && !is_number("webserver")
        );
    }

    #[test]
    fn names_come_from_the_files_of_runtimes() {
        let folder = std::env::temp_dir().join(format!("numakit-containers-{}", std::process::id()));
        let (docker, podman, pod) = (number("1"), number("2"), number("3"));
        for (path, content) in [
            (
                format!("var/lib/docker/containers/{docker}/config.v2.json"),
                r#"{"Name":"/web","State":{}}"#.to_owned(),
            ),
            (
                "var/lib/containers/storage/overlay-containers/containers.json".to_owned(),
                format!(r#"[{{"id":"{podman}","names":["db"]}},{{"id":"{pod}"}}]"#),
            ),
            (
                format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{pod}/config.json"),
                r#"{"annotations":{"io.kubernetes.cri.container-name":"api"}}"#.to_owned(),
            ),
        ] {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let of = |number: &str| names(&folder, number);
        assert_eq!(
            (of(&docker), of(&podman), of(&pod)),
            (vec!["web".to_owned()], vec!["db".to_owned()], vec!["api".to_owned()])
        );
        assert_eq!(of(&number("4")), Vec::<String>::new());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
