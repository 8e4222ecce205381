//! The ranks of an MPI job are distinguished, and waiting in MPI is no work.

use crate::compiler::builds;
use crate::explain::{explained_with, source};
use crate::runner::Folder;

#[test]
fn measuring_a_rank_with_more_work_keeps_the_other_one_waiting() {
    let folder = Folder::new("explain-ranks");
    let (library, program) = (folder.path("libmpi.so.40"), folder.path("ranks"));
    let library_path = library.display().to_string();
    let has_both =
        builds("cc", &["-O2", "-g", "-shared", "-fPIC", "-DLIBRARY"], &source("ranks.c"), &library)
            && builds("cc", &["-O2", "-g", &library_path], &source("ranks.c"), &program);
    if !has_both {
        return numakit_skips::COMPILERS.skip("there is no cc");
    }
    let Some(found) = explained_with(&folder, "", &program.display().to_string()) else { return };
    let ranks = found["ranks"].as_array().unwrap();
    let part = |rank: usize, of: &str| {
        let time = |of: &str| ranks[rank][of].as_u64().unwrap() as f64;
        time(of) / (time("worked") + time("waited"))
    };
    assert_eq!((ranks.len(), &ranks[0]["rank"], &ranks[1]["rank"]), (2, &0.into(), &1.into()), "{ranks:?}");
    assert!(part(0, "worked") > 0.8 && part(1, "worked") < 0.6, "{ranks:?}");
    assert_eq!(ranks[1]["calls"][0]["function"], "MPI_Barrier", "{ranks:?}");
    let findings = found["findings"].as_array().unwrap();
    let of = |rule: &str| findings.iter().find(|finding| finding["rule"] == rule);
    let waiting = of("waiting-ranks").unwrap_or_else(|| panic!("{findings:?}"));
    assert!(waiting["says"].as_str().unwrap().contains("rank 0 has most work"), "{waiting}");
    assert!(of("spinning").is_none(), "{findings:?}");
}
