//! The windows of a transfer: how long they are, how many, and how many of them are a connection's
//! start.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::TO;
use crate::Windows;
use model::Case;
use model::vocabulary::network as ids;

/// A median needs ten round trips beyond it.
pub const MIN_TRIPS: usize = 24;

/// The windows of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSchedule {
    /// Length of a window, ms.
    pub window_ms: u64,
    /// Windows that are not counted: a connection's start.
    pub warm_up: usize,
    pub count: usize,
}

/// Shortest warm-up of a connection over a network, ms: it takes some round trips.
const START_MS: u64 = 300;
/// Round trips that a start has: a window of ten segments that doubles with each is 60 MB after
/// twelve, more than a link of 5 Gbit/s holds over 90 ms. Longer paths with more bandwidth still
/// rise then; `growth` shows it.
const START_TRIPS: f64 = 12.0;
/// Counted ones: what comes in a burst each round trip is as much in each half of them.
const COUNTED_TRIPS: f64 = 8.0;
/// Starts of longer round trips are no longer than those of this one.
const LONGEST_TRIP: Duration = Duration::from_millis(500);

impl WindowSchedule {
    pub fn of(windows: Windows, case: &Case) -> WindowSchedule {
        let usual_ms = windows.window_ns / 1e6;
        match case.inputs.contains_key(TO) {
            false => {
                let window_ms = (4.0 * usual_ms).ceil().clamp(20.0, 100.0) as u64;
                WindowSchedule { window_ms, warm_up: windows.warm_up.max(1) + 1, count: windows.count }
            }
            true => {
                let window_ms = (20.0 * usual_ms).ceil().clamp(20.0, 500.0) as u64;
                WindowSchedule {
                    window_ms,
                    warm_up: START_MS.div_ceil(window_ms) as usize,
                    count: windows.count,
                }
            }
        }
    }

    /// What a row's transfers use on a way with this round trip.
    pub fn on(windows: Windows, case: &Case, round_trip: Option<Duration>) -> WindowSchedule {
        let usual = WindowSchedule::of(windows, case);
        match case.id() {
            Some(ids::BOTTLENECK) => usual.of_arm().over(round_trip),
            Some(ids::LOADED) => usual.over(round_trip).whole().lasting(round_trip),
            _ => usual.over(round_trip),
        }
    }

    /// As long a start, and as long windows, as a way with this round trip needs; over loopback
    /// there is none.
    fn over(self, round_trip: Option<Duration>) -> WindowSchedule {
        let trip_ms = round_trip.unwrap_or_default().min(LONGEST_TRIP).as_secs_f64() * 1e3;
        let window_ms = (COUNTED_TRIPS * trip_ms / self.count.max(1) as f64).ceil() as u64;
        let window_ms = self.window_ms.max(window_ms).max(1);
        let start_ms = (self.window_ms * self.warm_up as u64).max((START_TRIPS * trip_ms).ceil() as u64);
        WindowSchedule { window_ms, warm_up: start_ms.div_ceil(window_ms) as usize, ..self }
    }

    /// One window in which messages that go to and fro meanwhile have a median, and a start no
    /// shorter than before.
    fn lasting(self, round_trip: Option<Duration>) -> WindowSchedule {
        let trips = round_trip.unwrap_or_default().min(LONGEST_TRIP) * MIN_TRIPS as u32;
        let window_ms = self.window_ms.max(trips.as_millis() as u64).max(1);
        let start_ms = self.window_ms * self.warm_up as u64;
        WindowSchedule { window_ms, warm_up: start_ms.div_ceil(window_ms) as usize, ..self }
    }

    /// One window of the time that all of this one's counted windows take, and no longer a start
    /// than before.
    pub fn whole(self) -> WindowSchedule {
        let window_ms = (self.window_ms * self.count as u64).max(1);
        let start_ms = self.window_ms * self.warm_up as u64;
        WindowSchedule { window_ms, warm_up: start_ms.div_ceil(window_ms) as usize, count: 1 }
    }

    /// The same for an arm of the experiment, of which there are many: half of the time for each,
    /// in two windows, so that one that still rises is seen.
    pub fn of_arm(self) -> WindowSchedule {
        let WindowSchedule { window_ms, warm_up, count } =
            WindowSchedule { count: (self.count / 2).max(2), warm_up: self.warm_up.div_ceil(2), ..self }
                .whole();
        WindowSchedule { window_ms: window_ms.div_ceil(2), warm_up: 2 * warm_up, count: 2 * count }
    }

    pub fn seconds(self) -> f64 {
        (self.window_ms * (self.warm_up + self.count) as u64) as f64 / 1e3
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Candidate;
    use model::Placement;

    pub const WINDOWS: Windows = Windows { window_ns: 2e6, count: 5, warm_up: 1, limit_s: 2.0 };

    /// A case without seats, of this host or with another one.
    pub fn case(bench: model::vocabulary::BenchId, to: Option<&str>) -> Case {
        let placement = Placement::named("one-cpu");
        let mut case = Candidate::new(bench, placement, 1, 0.0).case;
        case.inputs.extend(to.map(|to| (TO.to_string(), to.to_string())));
        case
    }

    #[test]
    fn a_start_has_as_many_round_trips_as_slow_start_needs() {
        for bench in [ids::TCP, ids::UDP, ids::BOTTLENECK, ids::LOADED] {
            let start_s = |trip_ms: u64| {
                let schedule = WindowSchedule::on(
                    WINDOWS,
                    &case(bench, Some("far:1")),
                    Some(Duration::from_millis(trip_ms)),
                );
                (schedule.window_ms * schedule.warm_up as u64) as f64 / 1e3
            };
            assert!(start_s(0) >= if bench == ids::BOTTLENECK { 0.15 } else { 0.3 }, "{bench}");
            assert!(start_s(80) >= 12.0 * 0.08, "{bench}: {}", start_s(80));
            assert!(start_s(80) < 24.0 * 0.08 + 0.3, "{bench}: {}", start_s(80));
            assert_eq!(start_s(30_000), start_s(500), "{bench}: bounded");
            // Nor does the longest go beyond what a server allows.
            let most =
                WindowSchedule::on(WINDOWS, &case(bench, Some("far:1")), Some(Duration::from_secs(30)));
            assert!(most.seconds() < 30.0 && most.warm_up + most.count < 400, "{bench}: {most:?}");
        }
    }

    #[test]
    fn both_halves_of_what_is_counted_have_several_round_trips() {
        let schedule = WindowSchedule::on(
            WINDOWS,
            &case(ids::BOTTLENECK, Some("far:1")),
            Some(Duration::from_millis(80)),
        );
        assert!(schedule.count == 2 && schedule.window_ms >= 320, "{schedule:?}");
    }

    #[test]
    fn over_loopback_no_start_is_longer_than_its_windows() {
        let own = case(ids::TCP, None);
        assert_eq!(
            WindowSchedule::on(WINDOWS, &own, None),
            WindowSchedule { window_ms: 20, warm_up: 2, count: 5 }
        );
        let arm = WindowSchedule::on(WINDOWS, &case(ids::BOTTLENECK, None), None);
        assert_eq!(arm, WindowSchedule { window_ms: 20, warm_up: 2, count: 2 });
    }
}
