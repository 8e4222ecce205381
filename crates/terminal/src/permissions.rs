//! `numa doctor`: what this process may do, as a table and as JSON.

use crate::wrap::wrap;
use numakit_sensors::checkup::permissions::{Permission, Permissions};
use serde_json::{Value, json};
use std::fmt::Write;

/// Where the text about a permission begins.
const INDENT: usize = 25;

/// Where this process runs, and a line for each permission, or with `is_brief` one for all that are permitted; below a refused one,
/// what is done without it, what is lost, and what permits it.
pub fn text(permissions: &Permissions, width: Option<usize>, is_brief: bool) -> String {
    let inner = width.map(|width| width.saturating_sub(INDENT).max(20));
    let surroundings = &permissions.surroundings;
    let filter = if surroundings.has_filter { ", with a seccomp filter" } else { "" };
    let mut out = format!("\nPermissions ({}{filter}):\n", surroundings.runtime);
    if is_brief {
        let (all, refused) = (Permission::ALL.len(), permissions.refusals.len());
        // Writing to a string cannot fail.
        _ = writeln!(out, "  {} of {all} permitted", all - refused);
    }
    for permission in Permission::ALL {
        let mut name = permission.name();
        let mut put = |text: &str| {
            for line in wrap(text, inner) {
                // Writing to a string cannot fail.
                _ = writeln!(out, "  {name:<width$}{line}", width = INDENT - 2);
                name = "";
            }
        };
        match permissions.check(permission) {
            Ok(()) if is_brief => {}
            Ok(()) => put("permitted"),
            Err(refusal) => {
                put(&format!("refused: {}", refusal.refuser));
                put(&format!("instead: {}", permission.substitute()));
                put(&format!("lost: {}", permission.loss()));
                put(&format!("fix: {}", refusal.fix));
            }
        }
    }
    out
}

/// The same as JSON, as `numa doctor --help` describes.
pub fn json(permissions: &Permissions) -> Value {
    let one = |permission: Permission| {
        let mut value = json!({
            "name": permission.name(),
            "calls": permission.calls(),
            "permitted": permissions.check(permission).is_ok(),
        });
        if let Err(refusal) = permissions.check(permission) {
            value["refused_by"] = refusal.refuser.to_string().into();
            value["instead"] = permission.substitute().into();
            value["lost"] = permission.loss().into();
            value["fix"] = refusal.fix.to_string().into();
        }
        value
    };
    json!({
        "surroundings": permissions.surroundings.runtime.to_string(),
        "permissions": Permission::ALL.map(one),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::Fix;
    use numakit_sensors::checkup::permissions::{Refusal, Refuser, Runtime, Surroundings};

    fn contained() -> Permissions {
        let fix = Fix::Step("docker run --cap-add SYS_NICE ...".to_owned());
        Permissions {
            surroundings: Surroundings {
                runtime: Runtime::Docker,
                has_filter: true,
                ..Surroundings::default()
            },
            refusals: vec![Refusal { permission: Permission::Policies, refuser: Refuser::Filter, fix }],
        }
    }

    #[test]
    fn a_refused_permission_has_its_substitute_its_loss_and_its_fix() {
        let all = Permission::ALL.len();
        let brief = text(&contained(), None, true);
        assert!(
            brief.contains(&format!("  {} of {all} permitted\n  memory policies        refused: ", all - 1)),
            "{brief}"
        );
        let text = text(&contained(), None, false);
        assert!(text.starts_with("\nPermissions (Docker container, with a seccomp filter):\n"), "{text}");
        let expected = "  memory policies        refused: a seccomp filter refuses it
                         instead: first touch on the thread's CPU
                         lost: --memory bind, prefer, interleave and weighted
                         fix: docker run --cap-add SYS_NICE ...\n";
        assert!(text.contains(expected), "{text}");
        assert_eq!(text.matches("permitted").count(), Permission::ALL.len() - 1);
    }

    #[test]
    fn json_has_the_same() {
        let value = json(&contained());
        assert_eq!(value["surroundings"], "Docker container");
        let policies = &value["permissions"][1];
        assert_eq!((&policies["permitted"], &policies["name"]), (&false.into(), &"memory policies".into()));
        assert_eq!(policies["fix"], "docker run --cap-add SYS_NICE ...");
        assert_eq!(value["permissions"][0]["permitted"], true);
    }
}
