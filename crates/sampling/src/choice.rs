//! Which method of taking samples is used, and why.

use crate::method::MethodKind;
use numakit_model::Fix;
use numakit_sys::permissions::{Permission, Permissions, Refusal};
use std::fmt;
use thiserror::Error;

/// What is to be sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampledProgram<'a> {
    /// A command that this program starts, and why no library can be preloaded into it.
    Command(Option<&'a PreloadObstacle>),
    /// Processes that run already.
    Running,
    /// Everything on this machine.
    Machine,
}

/// Why no library can be preloaded into a program: the end of a sentence about the program, such as "is statically
/// linked".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreloadObstacle(pub String);

impl fmt::Display for PreloadObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program {}", self.0)
    }
}

/// Why a method is closed to this process or for this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The kernel or a container refuses it.
    Refused(Refusal),
    /// No library can be preloaded.
    Preload(PreloadObstacle),
    /// The method leads only to programs that this process starts.
    Running,
    /// The user asked for another method.
    NotAsked,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "{}", refusal.refuser),
            Self::Preload(obstacle) => write!(f, "{obstacle}"),
            Self::Running => f.write_str("only for a command that is started for it"),
            Self::NotAsked => f.write_str("the user chose another one"),
        }
    }
}

/// The method that is used, and why the better ones are not. Printed, it is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The method.
    pub method: MethodKind,
    /// The better methods, each with the reason why it is closed.
    pub closed: Vec<(MethodKind, Closed)>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "samples by {}", self.method)?;
        for (at, (method, why)) in self.closed.iter().enumerate() {
            write!(f, "{}{method}: {why}", if at == 0 { "; not by " } else { ", " })?;
        }
        Ok(())
    }
}

/// No method is open.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}; {fix}", self.why())]
pub struct NoMethod {
    /// Each method with the reason why it is closed.
    pub closed: Vec<(MethodKind, Closed)>,
    /// What opens the best method.
    pub fix: Fix,
}

impl NoMethod {
    /// Why there is none, without what opens one.
    pub fn why(&self) -> String {
        format!("no samples can be taken: {}", reasons(&self.closed))
    }
}

/// What could be opened. That a method is not for running programs, or was not asked for, is said where there is nothing else.
fn reasons(closed: &[(MethodKind, Closed)]) -> String {
    let is_refused = |why: &Closed| matches!(why, Closed::Refused(_) | Closed::Preload(_));
    let has_others = closed.iter().any(|(_, why)| is_refused(why));
    let said = closed.iter().filter(|(_, why)| !has_others || is_refused(why));
    said.map(|(method, why)| format!("{method}: {why}")).collect::<Vec<_>>().join(", ")
}

/// The permissions that [`choose`] asks about.
pub const PERMISSIONS: [Permission; 2] = [Permission::Counters, Permission::Tracing];

/// Chooses the best method that is open, or the one that is asked for.
pub fn choose(
    permissions: &Permissions,
    program: SampledProgram<'_>,
    asked: Option<MethodKind>,
) -> Result<Choice, NoMethod> {
    let mut closed = Vec::new();
    for method in MethodKind::ALL {
        let open = match asked.is_none_or(|asked| asked == method) {
            true => is_open(permissions, program, method),
            false => Err(Closed::NotAsked),
        };
        match open {
            Ok(()) => return Ok(Choice { method, closed }),
            Err(why) => closed.push((method, why)),
        }
    }
    let fix = closed.iter().find_map(|(_, why)| match why {
        Closed::Refused(refusal) => Some(refusal.fix.clone()),
        _ => None,
    });
    let fix = fix.unwrap_or_else(|| Fix::Step("start the program with numa".to_owned()));
    Err(NoMethod { closed, fix })
}

fn is_open(permissions: &Permissions, program: SampledProgram<'_>, method: MethodKind) -> Result<(), Closed> {
    let permitted =
        |permission| permissions.check(permission).map_err(|refusal| Closed::Refused(refusal.clone()));
    match (method, program) {
        (MethodKind::Perf, _) => permitted(Permission::Counters),
        (_, SampledProgram::Running | SampledProgram::Machine) => Err(Closed::Running),
        (MethodKind::InProcess, SampledProgram::Command(obstacle)) => match obstacle {
            Some(obstacle) => Err(Closed::Preload(obstacle.clone())),
            None => Ok(()),
        },
        (MethodKind::Ptrace, SampledProgram::Command(_)) => permitted(Permission::Tracing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::permissions::Refuser;

    fn refusing(refused: &[(Permission, Refuser)]) -> Permissions {
        let refusal = |(permission, refuser): &(Permission, Refuser)| Refusal {
            permission: *permission,
            refuser: refuser.clone(),
            fix: Fix::command(format!("permit {permission:?}")),
        };
        Permissions { refusals: refused.iter().map(refusal).collect(), ..Permissions::default() }
    }

    #[test]
    fn the_best_open_method_is_taken_and_said_in_a_line() {
        let (all, some) = (refusing(&[]), refusing(&[(Permission::Counters, Refuser::Paranoid(3))]));
        let command = SampledProgram::Command(None);
        let said = |permissions, program| choose(permissions, program, None).unwrap().to_string();
        assert_eq!(said(&all, command), "samples by performance events");
        assert_eq!(said(&all, SampledProgram::Running), "samples by performance events");
        assert_eq!(
            said(&some, command),
            "samples by timers in the program; not by performance events: kernel.perf_event_paranoid is 3"
        );
        let obstacle = PreloadObstacle("is statically linked".to_owned());
        assert_eq!(
            said(&some, SampledProgram::Command(Some(&obstacle))),
            "samples by ptrace; not by performance events: kernel.perf_event_paranoid is 3, timers in the program: the \
             program is statically linked"
        );
    }

    #[test]
    fn the_method_that_is_asked_for_is_taken_or_refused() {
        let (all, asked) = (refusing(&[]), Some(MethodKind::InProcess));
        let chosen = choose(&all, SampledProgram::Command(None), asked).unwrap();
        let closed = vec![(MethodKind::Perf, Closed::NotAsked)];
        assert_eq!(chosen, Choice { method: MethodKind::InProcess, closed });
        let error = choose(&all, SampledProgram::Running, asked).unwrap_err();
        assert_eq!(error.closed[1], (MethodKind::InProcess, Closed::Running));
    }

    #[test]
    fn without_a_method_the_fix_is_named() {
        let none =
            refusing(&[(Permission::Counters, Refuser::Filter), (Permission::Tracing, Refuser::Filter)]);
        let error = choose(&none, SampledProgram::Running, None).unwrap_err();
        assert_eq!(error.fix, Fix::command("permit Counters".to_owned()));
        assert_eq!(error.closed.len(), 3);
        let text = error.to_string();
        assert!(
            text.starts_with("no samples can be taken: performance events: a seccomp filter refuses it; "),
            "{text}"
        );
        assert!(text.ends_with("permit Counters"), "{text}");
        let obstacle = PreloadObstacle("is setuid".to_owned());
        assert!(choose(&none, SampledProgram::Command(Some(&obstacle)), None).is_err());
        assert!(choose(&none, SampledProgram::Command(None), None).is_ok());
    }
}
