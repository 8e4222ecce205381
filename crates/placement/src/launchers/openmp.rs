//! OpenMP runtimes, which environment variables configure. Each configuration unsets variables that would override it.

use super::job::{LauncherJob, Rank, StridedRange, list, runs, sequence};
use super::{LauncherError, LauncherLines};

type Result = std::result::Result<LauncherLines, LauncherError>;

/// `0-6:2,1-7:2`.
pub fn gomp(job: &LauncherJob<'_>) -> Result {
    let value = |rank: &Rank<'_>| sequence(&rank.order());
    // OMP_PLACES would override GOMP_CPU_AFFINITY, and OMP_PROC_BIND=false would disable it.
    Ok(program(job, "OMP_PLACES OMP_PROC_BIND", &[], "GOMP_CPU_AFFINITY", '"', &value))
}

/// `{0},{2}` or, for many, `{0}:64:4`.
pub fn places(job: &LauncherJob<'_>) -> Result {
    let same = &[("OMP_PROC_BIND", "close")];
    Ok(program(job, "GOMP_CPU_AFFINITY KMP_AFFINITY KMP_HW_SUBSET", same, "OMP_PLACES", '\'', &place_list))
}

/// The variables that [`places`] sets, and one that makes the runtime report what it did.
pub fn cray(job: &LauncherJob<'_>) -> Result {
    let same = &[("OMP_PROC_BIND", "close"), ("CRAY_OMP_CHECK_AFFINITY", "TRUE")];
    Ok(program(job, "GOMP_CPU_AFFINITY KMP_AFFINITY", same, "OMP_PLACES", '\'', &place_list))
}

/// `granularity=fine,explicit,proclist=[0,2,4,6]`.
pub fn kmp(job: &LauncherJob<'_>) -> Result {
    let value = |rank: &Rank<'_>| format!("granularity=fine,explicit,proclist=[{}]", list(rank.order()));
    let unset = "OMP_PLACES OMP_PROC_BIND GOMP_CPU_AFFINITY KMP_HW_SUBSET";
    Ok(program(job, unset, &[], "KMP_AFFINITY", '\'', &value))
}

/// `0,2,4,6`.
pub fn nvhpc(job: &LauncherJob<'_>) -> Result {
    let value = |rank: &Rank<'_>| list(rank.order());
    let most = job.ranks.iter().map(|rank| rank.steps.len()).max().unwrap_or(1).to_string();
    let same = &[("OMP_THREAD_LIMIT", most.as_str()), ("MP_BIND", "yes")];
    Ok(program(job, "OMP_PLACES OMP_PROC_BIND", same, "MP_BLIST", '\'', &value))
}

/// One place per thread, in the plan's order.
pub fn place_list(rank: &Rank<'_>) -> String {
    let part = |run: &StridedRange| match run.length {
        1 => format!("{{{}}}", run.first),
        length => format!("{{{}}}:{length}:{}", run.first, run.stride),
    };
    // Short lists are clearer without strides.
    runs(&rank.order(), |_, length| length > 8).iter().map(part).collect::<Vec<_>>().join(",")
}

/// The lines for one program. If several programs run at the same time, one line for each.
fn program(
    job: &LauncherJob<'_>,
    unset: &str,
    same: &[(&str, &str)],
    variable: &str,
    quote: char,
    value: &dyn Fn(&Rank<'_>) -> String,
) -> LauncherLines {
    let mut text = vec![format!("unset {unset}")];
    text.extend(job.threads().map(|threads| format!("export OMP_NUM_THREADS={threads}")));
    text.extend(same.iter().map(|(name, value)| format!("export {name}={value}")));
    if let [only] = job.ranks.as_slice() {
        text.push(format!("export {variable}={quote}{}{quote}", value(only)));
        text.push(job.app.clone());
        return job.lines(text);
    }
    for rank in &job.ranks {
        let threads = match job.threads() {
            Some(_) => String::new(),
            None => format!("OMP_NUM_THREADS={} ", rank.steps.len()),
        };
        text.push(format!("{threads}{variable}={quote}{}{quote} {} &", value(rank), job.app));
    }
    text.push("wait".to_owned());
    job.lines(text)
}
