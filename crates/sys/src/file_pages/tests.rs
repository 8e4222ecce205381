use super::*;
use std::io::Write;
use std::path::PathBuf;

struct Scratch(PathBuf, File);

impl Scratch {
    fn new(name: &str, pages: u64) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-pages-{name}-{}", std::process::id()));
        let options = || {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true);
            options
        };
        let mut file = options().open(&path).unwrap();
        file.write_all(&vec![7; (pages * sched::page_size()) as usize]).unwrap();
        file.sync_data().unwrap();
        Self(path, file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn pages_that_were_written_are_cached_and_have_nodes() {
    let file = Scratch::new("nodes", 700);
    let window = FileWindow::map(&file.1, 0, 700 * sched::page_size() as usize).unwrap();
    assert_eq!(window.start() as usize % HUGE, 0);
    assert_eq!(window.cached().unwrap(), vec![true; 700]);
    let all: Vec<u32> = (0..window.pages()).collect();
    let asked = |window: &FileWindow| match window.nodes(&all) {
        Ok(states) => Some(states.iter().filter(|state| matches!(state, PageState::Node(_))).count()),
        Err(error) => {
            numakit_skips::PRIVILEGES.skip_part(format_args!("move_pages is refused here: {error}"));
            None
        }
    };
    if asked(&window).is_some_and(|before| before != 0) {
        panic!("pages have nodes before they were touched");
    }
    assert_eq!(window.touch(&all).unwrap(), 0);
    assert!(asked(&window).is_none_or(|after| after == 700));
}

#[test]
fn a_file_that_shrinks_meanwhile_is_no_signal() {
    let file = Scratch::new("shrinks", 20);
    let window = FileWindow::map(&file.1, 0, 20 * sched::page_size() as usize).unwrap();
    file.1.set_len(3 * sched::page_size()).unwrap();
    let all: Vec<u32> = (0..20).collect();
    assert_eq!(window.touch(&all).unwrap(), 17);
    assert_eq!(window.cached().unwrap().iter().filter(|cached| **cached).count(), 3);
}

#[test]
fn what_is_evicted_is_not_cached_unless_it_is_mapped() {
    let file = Scratch::new("evicted", 64);
    assert!(tells_cached(&file.1).unwrap() && !is_of_pool(&file.1).unwrap());
    let length = 64 * sched::page_size() as usize;
    let count =
        || FileWindow::map(&file.1, 0, length).unwrap().cached().unwrap().iter().filter(|c| **c).count();
    let window = FileWindow::map(&file.1, 0, length).unwrap();
    assert_eq!(window.touch(&[5]).unwrap(), 0);
    evict(&file.1).unwrap();
    let held = count();
    assert!(held == 64 || (1..64).contains(&held), "{held}: a mapped page stays");
    drop(window);
    evict(&file.1).unwrap();
    let left = count();
    if left == 64 {
        return numakit_skips::MACHINE.skip("the temporary folder is memory, which is never evicted");
    }
    assert_eq!(left, 0);
}

#[test]
fn others_are_not_told_what_is_cached() {
    if crate::user::id() != 0 {
        // A system file of root.
        let Ok(file) = File::open("/etc/passwd") else { return };
        assert!(!tells_cached(&file).unwrap());
    } else {
        numakit_skips::MACHINE.skip("root sees what is cached of every file");
    }
}

#[test]
fn an_offset_need_not_be_aligned_to_huge_pages() {
    let file = Scratch::new("offset", 9);
    let page = sched::page_size();
    let window = FileWindow::map(&file.1, 5 * page, 4 * page as usize).unwrap();
    assert_eq!((window.start() as usize % HUGE) as u64, 5 * page);
    assert_eq!(window.touch(&[0, 1, 2, 3]).unwrap(), 0);
}
