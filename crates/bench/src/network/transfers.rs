//! The rows of bandwidth: transfers at several points, and the CPU time, waits and
//! drops of both ends.

use anyhow::bail;
use model::vocabulary::network as ids;
use model::vocabulary::{MetricId, ParamId};

use super::client::{Outcome, Peer};
use super::messages::{ByteCount, Direction, Report, SenderState, Transfer, Transport};
use super::metrics::*;
use super::way::{Route, USUAL_DATAGRAM};
use super::window_schedule::WindowSchedule;
use crate::Sampler;
use model::Case;

/// What a case asks for in all its transfers.
pub fn wanted(case: &Case, sampler: &Sampler, way: Route) -> anyhow::Result<Transfer> {
    let text = |name: ParamId| case.params.get(name).and_then(|value| value.text());
    let number = |name: ParamId| case.params.get(name).and_then(|value| value.number());
    let udp = case.bench == ids::UDP;
    let protocol = if udp { Transport::Udp } else { Transport::Tcp };
    let direction = Direction::parse(text(ids::param::DIRECTION)).map_err(anyhow::Error::msg)?;
    let schedule = WindowSchedule::on(sampler.windows(), case, way.round_trip);
    let usual = Transfer::new(protocol, direction, schedule);
    Ok(Transfer {
        streams: number(ids::param::STREAMS).map_or(1, |streams| streams as u32),
        bytes: if udp { way.datagram.unwrap_or(USUAL_DATAGRAM) } else { usual.bytes },
        rate: number(ids::param::RATE).map(|megabits| megabits * 1e6),
        congestion: text(ids::param::CONGESTION).map(str::to_string),
        ..usual
    })
}

/// The rows `network.tcp` and `network.udp`.
pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut peer = Peer::of(case, sampler.secret())?;
    let usual = wanted(case, sampler, peer.way())?;
    for at in super::transfer_points(case) {
        let of = |name: ParamId, usual: u32| {
            at.get(name)
                .and_then(|value| value.int())
                .and_then(|value| u32::try_from(value).ok())
                .unwrap_or(usual)
        };
        let spec = Transfer {
            streams: of(ids::param::STREAMS, usual.streams),
            bytes: of(ids::param::BYTES, usual.bytes),
            ..usual.clone()
        };
        let outcome = peer.prepare(spec)?.run()?;
        let windows = outcome.windows();
        let warm_up = outcome.spec.schedule.warm_up;
        let windows = without_stalls(windows, warm_up)?;
        sampler.windows_timed(at.clone(), ids::metric::BANDWIDTH, windows, warm_up)?;
        let counted = outcome.counted_ns();
        for (metric, value) in outcome.beside() {
            sampler.value(at.clone(), metric, value, counted)?;
        }
        sampler.facts().variant = outcome.congestion().map(|name| format!("congestion control {name}"));
    }
    sampler.facts().notes.extend(peer.seats_there());
    Ok(())
}

/// A window in which nothing arrived (a packet that was lost and waited for, a receiver that had no
/// CPU) is joined with the next one, the last with the one before: its time counts, and a rate of 0
/// is no figure.
fn without_stalls((work, ns): (Vec<f64>, Vec<f64>), warm_up: usize) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let (mut works, mut times) = (work[..warm_up].to_vec(), ns[..warm_up].to_vec());
    let (mut bytes, mut time) = (0.0, 0.0);
    for (work, ns) in work[warm_up..].iter().zip(&ns[warm_up..]) {
        (bytes, time) = (bytes + work, time + ns);
        if bytes > 0.0 {
            works.push(bytes);
            times.push(time);
            (bytes, time) = (0.0, 0.0);
        }
    }
    match times.len() > warm_up {
        true => times.iter_mut().next_back().into_iter().for_each(|last| *last += time),
        false => bail!("no data arrived in {:.0} ms: does a firewall block it?", time / 1e6),
    }
    Ok((works, times))
}

impl Outcome {
    fn sends(&self) -> bool {
        self.spec.direction != Direction::Receive
    }

    fn receives(&self) -> bool {
        self.spec.direction != Direction::Send
    }

    /// What arrived in each window, bytes, and how long it was, ns, by the receiver's own clock; of
    /// both directions the sum.
    pub fn windows(&self) -> (Vec<f64>, Vec<f64>) {
        let of = |marks: &[ByteCount]| -> (Vec<f64>, Vec<f64>) {
            let pairs = marks.windows(2);
            pairs.map(|pair| ((pair[1].received - pair[0].received) as f64, pair[1].ns - pair[0].ns)).unzip()
        };
        match (self.sends(), self.receives()) {
            (true, false) => of(&self.remote.marks),
            (false, _) => of(&self.local.marks),
            (true, true) => {
                let ((here, ns), (there, _)) = (of(&self.local.marks), of(&self.remote.marks));
                (here.iter().zip(there).map(|(here, there)| here + there).collect(), ns)
            }
        }
    }

    /// Length of all counted windows, ns.
    pub fn counted_ns(&self) -> f64 {
        self.windows().1[self.spec.schedule.warm_up..].iter().sum()
    }

    /// Bits a second that arrived in the counted windows.
    pub fn bits_per_second(&self) -> f64 {
        let (work, ns) = self.windows();
        let from = self.spec.schedule.warm_up;
        work[from..].iter().sum::<f64>() * 8e9 / ns[from..].iter().sum::<f64>()
    }

    /// Reports of the ends that send, and of those that receive.
    fn ends(&self) -> (Vec<&Report>, Vec<&Report>) {
        match (self.sends(), self.receives()) {
            (true, false) => (vec![&self.local], vec![&self.remote]),
            (false, _) => (vec![&self.remote], vec![&self.local]),
            (true, true) => (vec![&self.local, &self.remote], vec![&self.local, &self.remote]),
        }
    }

    pub fn congestion(&self) -> Option<&str> {
        self.ends().0.first().and_then(|sender| sender.congestion.as_deref())
    }

    /// Buffers of sender and receiver as the kernel counted them in the end, bytes.
    pub fn buffers(&self) -> Option<[f64; 2]> {
        let (senders, receivers) = self.ends();
        Some([senders.first()?.tcp?.send_buffer?, receivers.first()?.receive_buffer?])
    }

    /// All metrics but the bandwidth, as far as they are known.
    pub fn beside(&self) -> Vec<(MetricId, f64)> {
        let (local, remote) = (&self.local.cpu_costs, &self.remote.cpu_costs);
        let mut told = vec![
            (ids::metric::LOCAL_BUSY, local.busy),
            (ids::metric::REMOTE_BUSY, remote.busy),
            (ids::metric::LOCAL_SOFTIRQ, local.softirq),
            (ids::metric::REMOTE_SOFTIRQ, remote.softirq),
            (ids::metric::LOCAL_WAIT, local.wait),
            (ids::metric::REMOTE_WAIT, remote.wait),
            (ids::metric::LOCAL_THROTTLED, local.throttled),
            (ids::metric::REMOTE_THROTTLED, remote.throttled),
            (ids::metric::LOCAL_DROPS, local.drops),
            (ids::metric::REMOTE_DROPS, remote.drops),
        ];
        let (senders, receivers) = self.ends();
        if let Some(state) = senders.first().and_then(|sender| sender.tcp) {
            told.extend(sender_metrics(&state));
        }
        told.push((
            ids::metric::RECEIVE_BUFFER,
            receivers.first().and_then(|receiver| receiver.receive_buffer),
        ));
        if self.spec.protocol == Transport::Udp {
            told.extend(self.of_datagrams(&senders, &receivers));
        }
        told.into_iter()
            .filter_map(|(name, value)| Some((name, value.filter(|value| value.is_finite())?)))
            .collect()
    }

    fn of_datagrams(&self, senders: &[&Report], receivers: &[&Report]) -> [(MetricId, Option<f64>); 4] {
        let from = self.spec.schedule.warm_up;
        let rate = |report: &&Report| {
            let (first, last) = (report.marks.get(from)?, report.marks.last()?);
            Some((last.sent - first.sent) as f64 * GIGABITS / (last.ns - first.ns))
        };
        let sum = |reports: &[&Report], of: fn(&Report) -> u64| -> f64 {
            reports.iter().map(|report| of(report)).sum::<u64>() as f64
        };
        let sent = sum(senders, |report| report.sent_messages);
        let share = |part: f64, of: f64| Some(part / of);
        let received = sum(receivers, |report| report.received_messages);
        let rates: Option<Vec<f64>> = senders.iter().map(rate).collect();
        [
            (ids::metric::SENT, rates.map(|rates| rates.iter().sum())),
            (ids::metric::LOSS, share(sent - received, sent)),
            (ids::metric::REORDERED, share(sum(receivers, |report| report.reordered), received)),
            (ids::metric::DUPLICATED, share(sum(receivers, |report| report.duplicated), received)),
        ]
    }
}

fn sender_metrics(state: &SenderState) -> [(MetricId, Option<f64>); 10] {
    [
        (ids::metric::RETRANSMITS, Some(state.retransmits)),
        (ids::metric::DUPLICATES, state.duplicates),
        (ids::metric::RWND_LIMITED, state.rwnd_limited),
        (ids::metric::SNDBUF_LIMITED, state.sndbuf_limited),
        (ids::metric::SENDER_LIMITED_BUSY, state.busy),
        (ids::metric::CWND, Some(state.cwnd)),
        (ids::metric::RTT, Some(state.rtt_us)),
        (ids::metric::RTT_MIN, state.rtt_min_us),
        (ids::metric::DELIVERY_RATE, state.delivery_rate.map(|bits| bits / 1e9)),
        (ids::metric::SEND_BUFFER, state.send_buffer),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_lengthens_the_window_that_ends_it() {
        let stalled = (vec![0.0, 5.0, 0.0, 0.0, 7.0, 0.0], vec![1.0; 6]);
        let windows = without_stalls(stalled, 1).expect("something arrived");
        assert_eq!(windows, (vec![0.0, 5.0, 7.0], vec![1.0, 1.0, 4.0]));
        assert!(without_stalls((vec![3.0, 0.0], vec![1e6; 2]), 1).is_err());
    }
}
