//! Who is at the other end of pipes and sockets.

use super::open_files::FileIdentity;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, processes};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Descriptors that one search looks at, and searches while the program runs: each looks at all processes.
const MAX_LINKS: usize = 20_000;
const MAX_SEARCHES: usize = 3;
/// Pipes and sockets whose other end is looked for.
const MAX_WANTED: usize = 256;
/// Processes at one end that are named.
const MAX_PEERS: usize = 4;
/// Bits of the flags of a descriptor that say how it may be used: 0 for reading, 1 for writing, 2 for both.
const ACCESS: u32 = 3;
const READS: u32 = 0;
const WRITES: u32 = 1;
/// The flag of a Unix socket that listens.
const ACCEPTS: u32 = 0x0001_0000;
/// The state of a socket that listens.
const LISTENS: &str = "0A";

/// What is known of the other end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherEnd {
    /// What the socket is, such as `TCP to 127.0.0.1:5432`, or where it listens, `TCP 0.0.0.0:5432`; `None` for a pipe.
    pub address: Option<String>,
    /// Whether it listens.
    pub listens: bool,
    /// The processes there, each as `name (number)`.
    pub processes: Vec<String>,
}

/// The other ends that were found, by the inode of this end.
#[derive(Debug, Default)]
pub struct Peers {
    known: HashMap<u64, OtherEnd>,
    searches: usize,
}

/// A connection as /proc/net/tcp has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TcpSocket {
    local: String,
    remote: String,
    listens: bool,
    inode: u64,
}

/// A pipe or socket whose holders are looked for.
#[derive(Debug)]
struct Wanted {
    /// The inode of this end.
    inode: u64,
    /// The process that waits and whether it writes, of a pipe.
    waiting: Option<(u32, bool)>,
}

impl Peers {
    /// Looks for the other ends of these files, for each of which a process waits that reads or writes; those that are known
    /// are not looked for again. At the end, those are looked for again that had nobody.
    pub fn find<'a>(
        &mut self,
        root: &SysRoot,
        files: impl Iterator<Item = (&'a FileIdentity, bool)>,
        complete: bool,
    ) {
        let is_known = |end: &OtherEnd| !complete || end.address.is_some() || !end.processes.is_empty();
        let mut wanted: HashMap<String, Wanted> = HashMap::new();
        let mut tables: HashMap<u32, SocketTable> = HashMap::new();
        for (file, writes) in files {
            let Some(inode) = file.inode().filter(|inode| !self.known.get(inode).is_some_and(is_known))
            else {
                continue;
            };
            if wanted.len() >= MAX_WANTED || !complete && self.searches >= MAX_SEARCHES {
                break;
            }
            if file.link.starts_with("pipe:") {
                self.known.insert(inode, OtherEnd::default());
                wanted.insert(file.link.to_string(), Wanted { inode, waiting: Some((file.process, writes)) });
            } else {
                let table = tables.entry(file.process).or_insert_with(|| SocketTable::of(root, file.process));
                let (end, other) = table.find(inode);
                self.known.insert(inode, end);
                let other = other.map(|other| (format!("socket:[{other}]"), Wanted { inode, waiting: None }));
                wanted.extend(other);
            }
        }
        if !wanted.is_empty() {
            self.searches += 1;
            self.search(root, &wanted);
        }
    }

    /// Looks for the processes that have these files open.
    fn search(&mut self, root: &SysRoot, wanted: &HashMap<String, Wanted>) {
        let mut looked = 0;
        for pid in processes(root).unwrap_or_default() {
            let process = TaskDir::of(root, pid);
            for number in root.list(&process.path("fd")).unwrap_or_default() {
                looked += 1;
                let link = root.link(&process.path(&format!("fd/{number}")));
                let Some(Wanted { inode, waiting }) = link.ok().and_then(|link| wanted.get(&link)) else {
                    continue;
                };
                let is_other =
                    waiting.is_none_or(|(own, writes)| is_opposite(&process, &number, own == pid, writes));
                if let Some(end) =
                    self.known.get_mut(inode).filter(|end| is_other && end.processes.len() < MAX_PEERS)
                {
                    let name = process.stat().map(|stat| stat.name()).unwrap_or_default();
                    let named = format!("{name} ({pid})");
                    if !end.processes.contains(&named) {
                        end.processes.push(named);
                    }
                }
            }
            if looked > MAX_LINKS {
                break;
            }
        }
    }

    /// What was found of the other end of a file.
    pub fn of(&self, file: &FileIdentity) -> OtherEnd {
        file.inode().and_then(|inode| self.known.get(&inode)).cloned().unwrap_or_default()
    }
}

/// Whether a descriptor is at the other end of a pipe than one that reads or writes. Where that is not known, the process that
/// waits is not at both ends.
fn is_opposite(process: &TaskDir<'_>, number: &str, is_own: bool, writes: bool) -> bool {
    let text = process.text(&format!("fdinfo/{number}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let access =
        flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).map(|flags| flags & ACCESS);
    let own_side = if writes { WRITES } else { READS };
    access.map_or(!is_own, |access| access != own_side)
}

/// The sockets of the network namespace of a process.
#[derive(Debug)]
struct SocketTable {
    tcp: Vec<TcpSocket>,
    /// The paths of Unix sockets, by inode, and whether they listen; empty for those without a path.
    unix: HashMap<u64, (String, bool)>,
}

impl SocketTable {
    fn of(root: &SysRoot, pid: u32) -> Self {
        let process = TaskDir::of(root, pid);
        let read = |file: &str| process.text(file).unwrap_or_default();
        let unix = |line: &str| {
            let mut words = line.split_ascii_whitespace().skip(3);
            let flags = u32::from_str_radix(words.next()?, 16).ok()?;
            let (inode, path) = (words.nth(2)?.parse().ok()?, words.next().unwrap_or_default());
            Some((inode, (path.to_owned(), flags & ACCEPTS != 0)))
        };
        Self {
            tcp: [read("net/tcp"), read("net/tcp6")].iter().flat_map(|text| parse(text)).collect(),
            unix: read("net/unix").lines().filter_map(unix).collect(),
        }
    }

    /// What a socket is, and the inode of the socket of this machine that it is connected to.
    fn find(&self, wanted: u64) -> (OtherEnd, Option<u64>) {
        let end = |address, listens| OtherEnd { address, listens, processes: Vec::new() };
        if let Some(own) = self.tcp.iter().find(|socket| socket.inode == wanted) {
            if own.listens {
                return (end(Some(format!("TCP {}", own.local)), true), None);
            }
            let is_other = |other: &&TcpSocket| other.local == own.remote && other.remote == own.local;
            let other = self.tcp.iter().find(is_other).map(|other| other.inode);
            return (end(Some(format!("TCP to {}", own.remote)), false), other);
        }
        let Some((path, listens)) = self.unix.get(&wanted) else { return (OtherEnd::default(), None) };
        let address = (!path.is_empty()).then(|| format!("the Unix socket {path}"));
        (end(address, *listens), None)
    }
}

/// The sockets of /proc/net/tcp or tcp6.
fn parse(text: &str) -> Vec<TcpSocket> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, state, _, _, _, _, _, inode, ..] = words.as_slice() else { return None };
        Some(TcpSocket {
            local: address(local)?,
            remote: address(remote)?,
            listens: *state == LISTENS,
            inode: inode.parse().ok()?,
        })
    };
    text.lines().filter_map(line).collect()
}

/// `127.0.0.1:80` of `0100007F:0050`. The kernel prints words of the address as numbers of this machine.
fn address(text: &str) -> Option<String> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Vec<u8> = (0..host.len() / 8)
        .filter_map(|at| u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok())
        .flat_map(u32::to_ne_bytes)
        .collect();
    let ip = match <[u8; 4]>::try_from(words.as_slice()) {
        Ok(four) => IpAddr::from(Ipv4Addr::from(four)),
        Err(_) => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(words.as_slice()).ok()?)),
    };
    Some(std::net::SocketAddr::new(ip.to_canonical(), port).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    fn process(tree: &mut FileTree, pid: u32, name: &str, descriptors: &[(u32, &str, &str)]) {
        let stat = format!("{pid} ({name}) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n");
        tree.file(&format!("/proc/{pid}/stat"), stat);
        for (number, link, flags) in descriptors {
            tree.symlink(&format!("/proc/{pid}/fd/{number}"), link);
            tree.file(&format!("/proc/{pid}/fdinfo/{number}"), format!("pos:\t0\nflags:\t{flags}\n"));
        }
    }

    fn end(tree: FileTree, process: u32, link: &str, writes: bool) -> OtherEnd {
        let (root, file) = (SysRoot::of_tree(tree), FileIdentity { process, link: link.into() });
        let mut peers = Peers::default();
        peers.find(&root, [(&file, writes)].into_iter(), false);
        peers.of(&file)
    }

    #[test]
    fn the_other_end_of_a_pipe_is_who_may_do_the_opposite() {
        let mut tree = FileTree::new();
        process(&mut tree, 7, "reader", &[(0, "pipe:[55]", "00")]);
        process(&mut tree, 8, "writer", &[(1, "pipe:[55]", "01")]);
        process(&mut tree, 9, "other", &[(0, "pipe:[55]", "00"), (1, "pipe:[56]", "01")]);
        assert_eq!(end(tree.clone(), 7, "pipe:[55]", false).processes, ["writer (8)"]);
        assert_eq!(end(tree, 8, "pipe:[55]", true).processes, ["reader (7)", "other (9)"]);
    }

    #[test]
    fn a_connection_of_this_machine_has_a_process_at_its_other_end() {
        let mut tree = FileTree::new();
        process(&mut tree, 7, "client", &[(3, "socket:[91]", "02")]);
        process(&mut tree, 8, "server", &[(4, "socket:[92]", "02"), (5, "socket:[93]", "02")]);
        let line = |local: &str, remote: &str, state: &str, inode: u64| {
            format!("0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1\n")
        };
        let text = line("0100007F:D431", "0100007F:1538", "01", 91)
            + &line("0100007F:1538", "0100007F:D431", "01", 92)
            + &line("00000000:1538", "00000000:0000", "0A", 93);
        tree.file("/proc/7/net/tcp", text.clone()).file("/proc/8/net/tcp", text);
        let client = end(tree.clone(), 7, "socket:[91]", false);
        assert_eq!(client.address.as_deref(), Some("TCP to 127.0.0.1:5432"));
        assert_eq!(client.processes, ["server (8)"]);
        let server = end(tree, 8, "socket:[93]", false);
        assert_eq!((server.address.as_deref(), server.listens), (Some("TCP 0.0.0.0:5432"), true));
    }

    #[test]
    fn a_unix_socket_has_its_path_and_may_listen() {
        let mut tree = FileTree::new();
        process(&mut tree, 7, "server", &[(3, "socket:[91]", "02"), (4, "socket:[92]", "02")]);
        let text = "Num RefCount Protocol Flags Type St Inode Path\n\
                    00: 00000002 00000000 00010000 0001 01 91 /run/app.sock\n\
                    00: 00000003 00000000 00000000 0001 03 92\n";
        tree.file("/proc/7/net/unix", text);
        let listening = end(tree.clone(), 7, "socket:[91]", false);
        assert_eq!(
            (listening.address.as_deref(), listening.listens),
            (Some("the Unix socket /run/app.sock"), true)
        );
        let connected = end(tree, 7, "socket:[92]", false);
        assert_eq!((connected.address.as_deref(), connected.listens), (None, false));
    }

    #[test]
    fn addresses_are_as_the_kernel_prints_them() {
        let loopback = "00000000000000000000000001000000:0050";
        assert_eq!(address(loopback).as_deref(), Some("[::1]:80"));
        assert_eq!(address("0000000000000000FFFF00000100007F:0050").as_deref(), Some("127.0.0.1:80"));
        assert_eq!((address("01:50"), address("x")), (None, None));
    }
}
