//! Limits of connections. If there are too many, the oldest of the address that has most is closed:
//! a flood from one address closes its own connections, and a client with a token gets in.

use crate::wire::Role;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The role of the last request; `None` before the first one, or if that had no valid cookie.
pub type PeerRole = Option<Role>;

/// Maximum number of connections without a role, of viewers, and of controllers.
const fn max_connections(role: PeerRole) -> usize {
    match role {
        None => 256,
        Some(Role::Viewer) => 64,
        Some(Role::Controller) => 32,
    }
}

/// The address that limits are counted for: of IPv6 the /64 network, since its owner has all of it.
pub fn owner_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !0 << 64).into(),
        v4 => v4,
    }
}

/// The position of the first entry of the owner that has most entries.
pub fn oldest_of_largest_owner<T: Eq + Hash>(owners: &[T]) -> Option<usize> {
    let mut counts: HashMap<&T, usize> = HashMap::new();
    owners.iter().for_each(|owner| *counts.entry(owner).or_default() += 1);
    (0..owners.len()).min_by_key(|at| Reverse(counts.get(&owners[*at]).copied()))
}

/// All connections.
#[derive(Default)]
pub struct Connections(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    /// Oldest first.
    open: Vec<Connection>,
}

struct Connection {
    number: u64,
    owner: IpAddr,
    role: PeerRole,
    end: Arc<Notify>,
}

/// A connection's entry, which is removed when this is dropped.
pub struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
    end: Arc<Notify>,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; also returns the owner of the one that is closed for it, if any.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> (ConnectionSlot, Option<IpAddr>) {
        let mut inner = self.lock();
        let (number, end) = (inner.next, Arc::new(Notify::new()));
        inner.next += 1;
        inner.open.push(Connection { number, owner: owner_of(address), role: None, end: Arc::clone(&end) });
        let closed = inner.make_room(None, number);
        drop(inner);
        (ConnectionSlot { connections: Arc::clone(self), number, end }, closed)
    }

    /// Closes a connection without a role, or else one of a viewer, because the system has too many.
    pub fn shed(&self) -> Option<IpAddr> {
        let mut inner = self.lock();
        inner.end(None, None).or_else(|| inner.end(Some(Role::Viewer), None))
    }
}

impl Inner {
    /// If there are too many of a role, closes one of them other than the newest.
    fn make_room(&mut self, role: PeerRole, newest: u64) -> Option<IpAddr> {
        let count = self.open.iter().filter(|open| open.role == role).count();
        if count > max_connections(role) { self.end(role, Some(newest)) } else { None }
    }

    /// Closes the oldest connection of the owner that has most of a role.
    fn end(&mut self, role: PeerRole, except: Option<u64>) -> Option<IpAddr> {
        let others = self.open.iter().filter(|open| open.role == role && Some(open.number) != except);
        let (numbers, owners): (Vec<u64>, Vec<IpAddr>) = others.map(|t| (t.number, t.owner)).unzip();
        let number = numbers.get(oldest_of_largest_owner(&owners)?)?;
        let closed = self.open.remove(self.open.iter().position(|open| open.number == *number)?);
        closed.end.notify_one();
        Some(closed.owner)
    }
}

impl ConnectionSlot {
    /// Sets the role of the last request. Behind a proxy, the next one may come from another client.
    pub fn set_role(&self, role: PeerRole) -> Option<IpAddr> {
        let mut inner = self.connections.lock();
        let own = inner.open.iter_mut().find(|open| open.number == self.number)?;
        if std::mem::replace(&mut own.role, role) == role {
            return None;
        }
        inner.make_room(role, self.number)
    }

    /// Waits until the connection has to be closed.
    pub async fn closed(&self) {
        self.end.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().open.retain(|open| open.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_flood_closes_only_its_own_connections() {
        let connections = Arc::new(Connections::default());
        let (friend, _) = connections.take(address("10.0.0.2"));
        let flood: Vec<_> = (0..500).map(|_| connections.take(address("10.0.0.1"))).collect();
        let ended: Vec<usize> = (0..500).filter(|n| flood[*n].0.set_role(None).is_none()).collect();
        assert_eq!(ended.len(), 500);
        assert_eq!(
            flood.iter().filter(|(_, closed)| closed.is_some()).count(),
            500 + 1 - max_connections(None)
        );
        let left: Vec<u64> = connections.lock().open.iter().map(|t| t.number).collect();
        assert!(left.contains(&friend.number) && left.contains(&500) && !left.contains(&1));
        assert_eq!(left.len(), max_connections(None));
        drop((friend, flood));
        assert!(connections.lock().open.is_empty());
    }

    #[test]
    fn a_token_frees_a_connection_from_the_limit() {
        let connections = Arc::new(Connections::default());
        let (control, _) = connections.take(address("10.0.0.1"));
        assert_eq!(control.set_role(Some(Role::Controller)), None);
        let viewers: Vec<_> = (0..500).map(|_| connections.take(address("10.0.0.1")).0).collect();
        let closed = viewers.iter().filter(|v| v.set_role(Some(Role::Viewer)).is_some()).count();
        let count = |role| connections.lock().open.iter().filter(|t| t.role == role).count();
        // Those that were too many without a key were closed before.
        assert_eq!((count(None), count(Some(Role::Viewer))), (0, max_connections(Some(Role::Viewer))));
        assert_eq!(closed, max_connections(None) - max_connections(Some(Role::Viewer)));
        assert_eq!(count(Some(Role::Controller)), 1);
        assert!(connections.shed().is_some() && connections.shed().is_some());
        assert_eq!(count(Some(Role::Viewer)), max_connections(Some(Role::Viewer)) - 2);
        control.set_role(None);
        assert_eq!(count(None), 1, "the next request over it has no key");
    }

    #[test]
    fn an_owner_is_an_address_or_network() {
        assert_eq!(owner_of(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        assert_eq!(owner_of(address("2001:db8:1:2:3:4:5:6")), address("2001:db8:1:2::"));
        assert_eq!(oldest_of_largest_owner(&["a", "b", "c", "b"]), Some(1));
        assert_eq!(oldest_of_largest_owner(&["a", "b"]), Some(0));
        assert_eq!(oldest_of_largest_owner::<&str>(&[]), None);
    }
}
