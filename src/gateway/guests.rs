//! Who is connected to the door. Connections are many and patience is short:
//! one that says nothing gives its place to a newcomer, and first where one
//! address holds the most. The time is an argument.

use core::cmp::Reverse;
use core::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub const MAX_GUESTS: usize = 256;
/// What one address may hold. Half of the room stays for the others.
pub const PER_ADDRESS: usize = MAX_GUESTS / 2;
/// A connection this young may still be about to speak.
pub const GRACE: Duration = Duration::from_millis(250);

#[derive(Default)]
pub struct Guests {
    seats: Vec<Seat>,
    next: u64,
}

struct Seat {
    number: u64,
    from: IpAddr,
    /// A request is being answered.
    busy: bool,
    idle_since: Instant,
    leave: CancellationToken,
}

/// What becomes of somebody who knocks.
pub enum GuestAdmission {
    /// `leave` is told when the place is needed for another.
    Seated {
        number: u64,
        leave: CancellationToken,
    },
    /// Every place is taken by somebody who may still speak.
    Later,
    /// One address holds all it may, and none of it lies idle.
    TooMany,
}

impl Guests {
    pub fn admit(&mut self, from: IpAddr, now: Instant) -> GuestAdmission {
        let from = neighbourhood(from);
        if self.held_by(from) >= PER_ADDRESS {
            if !self.shed(now, |seat| seat.from == from) {
                return GuestAdmission::TooMany;
            }
        } else if self.seats.len() >= MAX_GUESTS && !self.shed(now, |_| true) {
            return GuestAdmission::Later;
        }
        let (number, leave) = (self.next, CancellationToken::new());
        self.next += 1;
        self.seats.push(Seat {
            number,
            from,
            busy: false,
            idle_since: now,
            leave: leave.clone(),
        });
        GuestAdmission::Seated { number, leave }
    }

    pub fn busy(&mut self, number: u64, busy: bool, now: Instant) {
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.number == number) {
            (seat.busy, seat.idle_since) = (busy, now);
        }
    }

    pub fn left(&mut self, number: u64) {
        self.seats.retain(|seat| seat.number != number);
    }

    fn held_by(&self, from: IpAddr) -> usize {
        self.seats.iter().filter(|seat| seat.from == from).count()
    }

    /// Sends the one away that has been silent longest, of the address that
    /// holds the most.
    fn shed(&mut self, now: Instant, may_go: impl Fn(&Seat) -> bool) -> bool {
        let silent = self.seats.iter().enumerate().filter(|(_, seat)| {
            !seat.busy && now.duration_since(seat.idle_since) >= GRACE && may_go(seat)
        });
        let chosen = silent.max_by_key(|(_, seat)| {
            let age = now.duration_since(seat.idle_since);
            (self.held_by(seat.from), age, Reverse(seat.number))
        });
        let Some(place) = chosen.map(|(place, _)| place) else {
            return false;
        };
        self.seats.swap_remove(place).leave.cancel();
        true
    }
}

/// Whoever has one IPv6 address has its whole network of 64 bits.
fn neighbourhood(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// A place at the door, given back when dropped.
pub struct GuestPlace {
    pub guests: Arc<Mutex<Guests>>,
    pub number: u64,
}

impl GuestPlace {
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While this is held a request is being answered.
    pub fn occupied(self: &Arc<Self>) -> Occupied {
        self.guests().busy(self.number, true, Instant::now());
        Occupied(Arc::clone(self))
    }
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        self.guests().left(self.number);
    }
}

pub struct Occupied(Arc<GuestPlace>);

impl Drop for Occupied {
    fn drop(&mut self) {
        let now = Instant::now();
        self.0.guests().busy(self.0.number, false, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn seated(admission: GuestAdmission) -> Option<(u64, CancellationToken)> {
        match admission {
            GuestAdmission::Seated { number, leave } => Some((number, leave)),
            GuestAdmission::Later | GuestAdmission::TooMany => None,
        }
    }

    #[test]
    fn one_address_never_holds_more_than_its_share() {
        let (mut guests, now) = (Guests::default(), Instant::now());
        let first = seated(guests.admit(address(1), now)).unwrap();
        for _ in 1..PER_ADDRESS {
            assert!(seated(guests.admit(address(1), now)).is_some());
        }
        let more = guests.admit(address(1), now);
        assert!(matches!(more, GuestAdmission::TooMany));
        assert!(seated(guests.admit(address(2), now)).is_some());
        assert!(seated(guests.admit(address(1), now + GRACE)).is_some());
        assert!(first.1.is_cancelled(), "the oldest silent one went");
        assert_eq!(guests.held_by(address(1)), PER_ADDRESS);
    }

    #[test]
    fn a_newcomer_takes_the_place_of_a_silent_one_of_the_largest_crowd() {
        let (mut guests, now) = (Guests::default(), Instant::now());
        let small: Vec<_> = (0..MAX_GUESTS - 100)
            .map(|n| seated(guests.admit(address(u8::try_from(n).unwrap()), now)).unwrap())
            .collect();
        let crowd: Vec<_> = (0..100)
            .map(|_| seated(guests.admit(address(200), now)).unwrap())
            .collect();
        let early = guests.admit(address(201), now);
        assert!(matches!(early, GuestAdmission::Later));
        guests.busy(crowd[0].0, true, now);
        assert!(seated(guests.admit(address(201), now + GRACE)).is_some());
        assert_eq!(guests.seats.len(), MAX_GUESTS);
        assert!(!crowd[0].1.is_cancelled(), "its request is under way");
        let gone = crowd.iter().filter(|(_, leave)| leave.is_cancelled());
        assert_eq!(gone.count(), 1);
        assert!(small.iter().all(|(_, leave)| !leave.is_cancelled()));
    }

    #[test]
    fn whoever_is_being_answered_keeps_the_place() {
        let (mut guests, now) = (Guests::default(), Instant::now());
        for _ in 0..PER_ADDRESS {
            let (number, _) = seated(guests.admit(address(1), now)).unwrap();
            guests.busy(number, true, now);
        }
        let later = now + GRACE * 100;
        let more = guests.admit(address(1), later);
        assert!(matches!(more, GuestAdmission::TooMany));
        guests.left(0);
        assert!(seated(guests.admit(address(1), later)).is_some());
    }

    #[test]
    fn a_network_of_sixty_four_bits_is_one_address() {
        let of = |text: &str| neighbourhood(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), address(1));
    }
}
