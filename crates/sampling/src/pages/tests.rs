use super::*;
use numakit_sys::pages::Present;
use numakit_sys::root::FileTree;
use std::io;
use std::sync::Mutex;

/// The kernel of a machine where page N is on node N modulo 4, and every fifth page is absent.
#[derive(Debug, Default)]
struct Scripted {
    queries: Mutex<Vec<usize>>,
    fails: Option<ErrorKind>,
}

impl Pages for Scripted {
    fn open(&self, _: u32) -> io::Result<Box<dyn Present>> {
        Err(ErrorKind::NotFound.into())
    }

    fn nodes(&self, _: u32, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        self.queries.lock().unwrap().push(pages.len());
        match self.fails {
            Some(kind) => Err(kind.into()),
            None => Ok(pages
                .iter()
                .map(|page| page >> 12)
                .map(|n| (n % 5 != 0).then_some((n % 4) as u32))
                .collect()),
        }
    }

    fn pools(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
}

const STAT: &str = "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 55 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 0 0";

fn machine(maps: &str, fails: Option<ErrorKind>) -> (PageNodes, Arc<Scripted>) {
    let mut tree = FileTree::new();
    tree.file("/proc/7/numa_maps", maps).file("/proc/7/stat", STAT);
    let pages = Arc::new(Scripted { fails, ..Scripted::default() });
    let kernel: Arc<dyn Pages> = pages.clone();
    (PageNodes::new(&SysRoot::of_tree(tree).with_pages(kernel), &[0, 1, 2, 3]), pages)
}

#[test]
fn pages_are_asked_for_once_and_in_batches() {
    let (mut nodes, kernel) = machine("", None);
    let addresses = || (1u64..=1200).flat_map(|page| [page << 12, (page << 12) + 100]);
    nodes.ask(7, addresses(), 10);
    nodes.ask(7, addresses(), 20);
    assert_eq!(*kernel.queries.lock().unwrap(), [512, 512, 176]);
    assert_eq!(nodes.place(7, (6 << 12) + 5), PagePlace::Node(2));
    assert_eq!(nodes.place(7, 5 << 12), PagePlace::Absent);
    assert_eq!((nodes.place(7, 0), nodes.place(8, 6 << 12)), (PagePlace::Unknown, PagePlace::Unknown));
    // An old answer is asked for again.
    nodes.ask(7, [6 << 12].into_iter(), 10 + REMEMBERED);
    assert_eq!(kernel.queries.lock().unwrap().last(), Some(&1));
    assert!(!nodes.is_coarse(7));
    nodes.forget(7);
    assert_eq!(nodes.place(7, 6 << 12), PagePlace::Unknown);
}

#[test]
fn where_pages_are_refused_their_mappings_are_known() {
    let maps = "1000 default heap anon=3 N1=2 N3=1 kernelpagesize_kB=4\n9000 default anon=1 N2=1 kernelpagesize_kB=4\nf000 default file=/x\n";
    let (mut nodes, kernel) = machine(maps, Some(ErrorKind::PermissionDenied));
    nodes.ask(7, [0x1800, 0x2000, 0x9000, 0xf000, 0x800].into_iter(), 1);
    nodes.ask(7, [0x3000].into_iter(), 2);
    let among = PagePlace::Among([(1, 8192), (3, 4096)].into());
    assert_eq!((nodes.place(7, 0x1800), nodes.place(7, 0x3fff)), (among.clone(), among));
    assert_eq!((nodes.place(7, 0x9000), nodes.place(7, 0xf000)), (PagePlace::Node(2), PagePlace::Absent));
    assert_eq!(nodes.place(7, 0x800), PagePlace::Unknown);
    assert!(nodes.is_coarse(7) && kernel.queries.lock().unwrap().len() == 1);
}

#[test]
fn an_ended_process_keeps_its_answers() {
    let (mut nodes, _) = machine("", Some(ErrorKind::NotFound));
    nodes.remembered.insert((7, 0x1000), (0, PagePlace::Node(3)));
    nodes.ask(7, [0x1000].into_iter(), REMEMBERED * 2);
    assert_eq!((nodes.place(7, 0x1000), nodes.is_coarse(7)), (PagePlace::Node(3), false));
}

#[test]
fn one_node_has_all_memory() {
    let mut nodes = PageNodes::new(&SysRoot::of_tree(FileTree::new()), &[4]);
    nodes.ask(7, [0x1000].into_iter(), 0);
    assert_eq!(nodes.place(7, 0x1000), PagePlace::Node(4));
}

#[test]
fn pages_of_this_process_have_a_node() {
    let mut nodes = PageNodes::new(&SysRoot::host(), &[0, 1]);
    let data = [1u8; 8];
    let address = &raw const data as u64;
    nodes.ask(std::process::id(), [address].into_iter(), 0);
    let place = nodes.place(std::process::id(), address);
    if place == PagePlace::Unknown {
        return numakit_skips::PRIVILEGES.skip("neither move_pages nor numa_maps are permitted here");
    }
    assert!(matches!(place, PagePlace::Node(_) | PagePlace::Among(_)), "{place:?}");
}
