//! Places for connections. Whoever takes too many loses the oldest of their own; so a flood
//! closes itself, and a newcomer with a key is always let in.

use crate::wire::Role;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Who is at the other end, as the last request showed; nobody before the first one.
pub type Guest = Option<Role>;

/// Connections at once: of those who showed no key, of viewers, and for control.
const fn most(guest: Guest) -> usize {
    match guest {
        None => 256,
        Some(Role::Viewer) => 64,
        Some(Role::Controller) => 32,
    }
}

/// What counts as one address. Whoever has an address of IPv6 has the whole network of it.
pub fn share(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !0 << 64).into(),
        v4 => v4,
    }
}

/// Of owners in the order of their arrival, where the first one is of whoever owns most.
pub fn first_of_most<T: Eq + Hash>(owners: &[T]) -> Option<usize> {
    let mut counts: HashMap<&T, usize> = HashMap::new();
    owners.iter().for_each(|owner| *counts.entry(owner).or_default() += 1);
    (0..owners.len()).min_by_key(|at| Reverse(counts.get(&owners[*at]).copied()))
}

/// All places.
#[derive(Default)]
pub struct Places(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    /// In the order of their arrival.
    taken: Vec<Taken>,
}

struct Taken {
    number: u64,
    owner: IpAddr,
    guest: Guest,
    end: Arc<Notify>,
}

/// The place of one connection, free again when dropped.
pub struct ConnectionSlot {
    places: Arc<Places>,
    number: u64,
    end: Arc<Notify>,
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from there, and whose connection has to end for it.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> (ConnectionSlot, Option<IpAddr>) {
        let mut inner = self.lock();
        let (number, end) = (inner.next, Arc::new(Notify::new()));
        inner.next += 1;
        inner.taken.push(Taken { number, owner: share(address), guest: None, end: Arc::clone(&end) });
        let gone = inner.make_room(None, number);
        drop(inner);
        (ConnectionSlot { places: Arc::clone(self), number, end }, gone)
    }

    /// The system has no room for one more connection: one without a key ends, or else one of a
    /// viewer.
    pub fn shed(&self) -> Option<IpAddr> {
        let mut inner = self.lock();
        inner.end(None, None).or_else(|| inner.end(Some(Role::Viewer), None))
    }
}

impl Inner {
    /// Where there are too many of a kind, one of them ends, but not the one that just came.
    fn make_room(&mut self, guest: Guest, came: u64) -> Option<IpAddr> {
        let count = self.taken.iter().filter(|taken| taken.guest == guest).count();
        if count > most(guest) { self.end(guest, Some(came)) } else { None }
    }

    /// Ends the oldest connection of whoever has most of a kind.
    fn end(&mut self, guest: Guest, but: Option<u64>) -> Option<IpAddr> {
        let others = self.taken.iter().filter(|taken| taken.guest == guest && Some(taken.number) != but);
        let (numbers, owners): (Vec<u64>, Vec<IpAddr>) = others.map(|t| (t.number, t.owner)).unzip();
        let number = numbers.get(first_of_most(&owners)?)?;
        let gone = self.taken.remove(self.taken.iter().position(|taken| taken.number == *number)?);
        gone.end.notify_one();
        Some(gone.owner)
    }
}

impl ConnectionSlot {
    /// A request showed who is there. Behind a proxy the next one may be of somebody else.
    pub fn shows(&self, guest: Guest) -> Option<IpAddr> {
        let mut inner = self.places.lock();
        let own = inner.taken.iter_mut().find(|taken| taken.number == self.number)?;
        if std::mem::replace(&mut own.guest, guest) == guest {
            return None;
        }
        inner.make_room(guest, self.number)
    }

    /// Waits until the connection has to end.
    pub async fn wanted(&self) {
        self.end.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.lock().taken.retain(|taken| taken.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_flood_closes_itself_and_not_those_of_others() {
        let places = Arc::new(Places::default());
        let (friend, _) = places.take(address("10.0.0.2"));
        let flood: Vec<_> = (0..500).map(|_| places.take(address("10.0.0.1"))).collect();
        let ended: Vec<usize> = (0..500).filter(|n| flood[*n].0.shows(None).is_none()).collect();
        assert_eq!(ended.len(), 500);
        assert_eq!(flood.iter().filter(|(_, gone)| gone.is_some()).count(), 500 + 1 - most(None));
        let left: Vec<u64> = places.lock().taken.iter().map(|t| t.number).collect();
        assert!(left.contains(&friend.number) && left.contains(&500) && !left.contains(&1));
        assert_eq!(left.len(), most(None));
        drop((friend, flood));
        assert!(places.lock().taken.is_empty());
    }

    #[test]
    fn a_key_leads_out_of_the_crowd() {
        let places = Arc::new(Places::default());
        let (control, _) = places.take(address("10.0.0.1"));
        assert_eq!(control.shows(Some(Role::Controller)), None);
        let viewers: Vec<_> = (0..500).map(|_| places.take(address("10.0.0.1")).0).collect();
        let closed = viewers.iter().filter(|v| v.shows(Some(Role::Viewer)).is_some()).count();
        let count = |guest| places.lock().taken.iter().filter(|t| t.guest == guest).count();
        // Those that were too many without a key were closed before.
        assert_eq!((count(None), count(Some(Role::Viewer))), (0, most(Some(Role::Viewer))));
        assert_eq!(closed, most(None) - most(Some(Role::Viewer)));
        assert_eq!(count(Some(Role::Controller)), 1);
        assert!(places.shed().is_some() && places.shed().is_some());
        assert_eq!(count(Some(Role::Viewer)), most(Some(Role::Viewer)) - 2);
        control.shows(None);
        assert_eq!(count(None), 1, "the next request over it has no key");
    }

    #[test]
    fn an_address_is_what_one_owner_has() {
        assert_eq!(share(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        assert_eq!(share(address("2001:db8:1:2:3:4:5:6")), address("2001:db8:1:2::"));
        assert_eq!(first_of_most(&["a", "b", "c", "b"]), Some(1));
        assert_eq!(first_of_most(&["a", "b"]), Some(0));
        assert_eq!(first_of_most::<&str>(&[]), None);
    }
}
