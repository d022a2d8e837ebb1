//! The route to another host from TCP's own figures of a connection: its round trip, and what
//! a datagram may be long.

use std::net::IpAddr;
use std::time::Duration;

use sys::tcp::TcpInfo;

/// Over loopback, and where nothing is known: what fills a packet of 1500 bytes over IPv4.
pub const USUAL_DATAGRAM: u32 = 1472;

/// MTUs that links have; beyond them it is the loopback's.
const LINKS: std::ops::RangeInclusive<u32> = 576..=16_384;

/// The way to another host; of the loopback nothing is known, and nothing depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Route {
    /// The shortest that was seen: queues add to it, and are none of the way's.
    pub round_trip: Option<Duration>,
    /// The longest datagram that goes in one packet, bytes.
    pub datagram: Option<u32>,
}

impl Route {
    pub fn of(told: &TcpInfo, to: IpAddr) -> Route {
        let trip = told.min_rtt_us.unwrap_or(told.rtt_us);
        // The segment is what both ends agreed on, less the room for time stamps.
        let inside = if to.to_canonical().is_ipv6() { 60 } else { 40 } + if told.timestamps { 12 } else { 0 };
        let mtu = [told.path_mtu, told.segment + inside].into_iter().filter(|mtu| LINKS.contains(mtu)).min();
        Route {
            round_trip: (trip > 0).then(|| Duration::from_micros(trip.into())),
            datagram: mtu.map(|mtu| datagram(mtu, to)),
        }
    }
}

/// The longest datagram that a path of this MTU carries in one packet: IP's and UDP's headers take
/// their share.
pub fn datagram(mtu: u32, to: IpAddr) -> u32 {
    match (LINKS.contains(&mtu), to.to_canonical().is_ipv6()) {
        (true, false) => mtu - 28,
        (true, true) => mtu - 48,
        (false, _) => USUAL_DATAGRAM,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_fills_a_packet_and_no_more() {
        let (v4, v6) = (IpAddr::from([10, 0, 0, 2]), "2001:db8::2".parse::<IpAddr>().expect("an address"));
        let ethernet = TcpInfo { segment: 1448, path_mtu: 1500, timestamps: true, ..TcpInfo::default() };
        assert_eq!(Route::of(&ethernet, v4).datagram, Some(1472));
        assert_eq!(Route::of(&ethernet, "::ffff:10.0.0.2".parse().expect("mapped")).datagram, Some(1472));
        let over_v6 = TcpInfo { segment: 1428, ..ethernet };
        assert_eq!(Route::of(&over_v6, v6).datagram, Some(1452));
        // Jumbo frames at this end only.
        let jumbo = TcpInfo { path_mtu: 9000, ..ethernet };
        assert_eq!(Route::of(&jumbo, v4).datagram, Some(1472));
        let tunnel = TcpInfo { segment: 1348, path_mtu: 1400, ..ethernet };
        assert_eq!(Route::of(&tunnel, v4).datagram, Some(1372));
        let unstamped = TcpInfo { segment: 1460, timestamps: false, ..jumbo };
        assert_eq!(Route::of(&unstamped, v4).datagram, Some(1472));
        let own = TcpInfo { segment: 65_483, path_mtu: 65_536, ..ethernet };
        assert_eq!(Route::of(&own, v4).datagram, None);
        assert_eq!([datagram(1500, v4), datagram(1280, v6), datagram(65_536, v4)], [1472, 1232, 1472]);
    }

    #[test]
    fn the_shortest_round_trip_is_the_ways() {
        let told = TcpInfo { rtt_us: 90_000, min_rtt_us: Some(80_000), ..TcpInfo::default() };
        let trip = |told: TcpInfo| Route::of(&told, IpAddr::from([10, 0, 0, 2])).round_trip;
        assert_eq!(trip(told), Some(Duration::from_millis(80)));
        assert_eq!(trip(TcpInfo { min_rtt_us: None, ..told }), Some(Duration::from_millis(90)));
        assert_eq!(trip(TcpInfo::default()), None);
    }
}
