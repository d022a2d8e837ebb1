//! One end of a transfer: starts its tasks, reads their counts at the edges of windows, and
//! computes its cost. The same code runs at both ends.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::net::sockopt;

use super::messages::{ByteCount, CpuCosts, Direction, Report, SenderState, Side, Transfer, Transport};
use super::streams::{Flow, Streams};
use super::workers::{Board, Task};
use machine::network;
use model::CpuSet;
use snapshot::network as files;
use sys::counters::{NetworkCounters, NetworkTotals};
use sys::process::{self, Child};
use sys::tcp::{self, TcpInfo};
use sys::{affinity, datagrams};

/// CPUs of an end's tasks, and its network interface.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Used round-robin.
    pub seats: Vec<CpuSet>,
    /// CPUs that send or return messages during a load.
    pub messages: Option<CpuSet>,
    /// Whose drops are counted; none over loopback.
    pub interface: Option<String>,
}

impl Place {
    pub fn seat(&self, task: usize) -> Option<&CpuSet> {
        self.seats.get(task % self.seats.len().max(1))
    }

    /// CPUs that this many tasks use.
    pub fn cpus(&self, tasks: usize) -> CpuSet {
        (0..tasks).filter_map(|task| self.seat(task)).flat_map(|cpus| cpus.iter()).collect()
    }
}

/// CPUs that handle the packets of an interface: these may be full while those of the tasks are
/// not.
fn packet_cpus(interface: Option<&str>) -> CpuSet {
    let end = interface.and_then(|name| network::end(&files::of_interface(name)));
    end.map(|end| end.packet_cpus()).unwrap_or_default()
}

/// How an end waits: until the time is over, or an error because the other end is gone.
pub type Pause<'a> = &'a mut dyn FnMut(Duration) -> anyhow::Result<()>;

/// What is still on its way when the senders stop may take as long as the transfer did, within
/// these bounds: a full send buffer would take longer than all that is measured where a window, or
/// losses, let little through.
const DRAIN: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(3)];
/// Datagrams have ended if none came for this long.
const QUIET: Duration = Duration::from_millis(30);
/// Time between checks whether tasks have ended.
const LOOK: Duration = Duration::from_millis(2);

/// Who does what at this end.
struct Job {
    stream: u32,
    sends: bool,
}

fn jobs(spec: &Transfer, side: Side) -> Vec<Job> {
    let (sends, receives) = match (spec.direction, side) {
        (Direction::Both, _) => (true, true),
        (Direction::Send, Side::Client) | (Direction::Receive, Side::Server) => (true, false),
        _ => (false, true),
    };
    let each = |stream| {
        let ways = [(sends, true), (receives, false)].into_iter().filter(|(does, _)| *does);
        ways.map(move |(_, sends)| Job { stream, sends })
    };
    (0..spec.streams).flat_map(each).collect()
}

/// Jobs by the process that does them: over TCP those of a direction that share a single CPU, else
/// each alone.
fn crews(spec: &Transfer, place: &Place, jobs: &[Job]) -> Vec<Vec<usize>> {
    let mut crews: Vec<Vec<usize>> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let seat = place.seat(number).filter(|cpus| cpus.len() == 1 && spec.protocol == Transport::Tcp);
        let joins = |crew: &&mut Vec<usize>| {
            seat.is_some() && place.seat(crew[0]) == seat && jobs[crew[0]].sends == job.sends
        };
        match crews.iter_mut().find(joins) {
            Some(crew) => crew.push(number),
            None => crews.push(vec![number]),
        }
    }
    crews
}

/// Sets what a test asks for on a socket, before it is connected.
pub fn tune(spec: &Transfer, socket: impl AsFd) -> anyhow::Result<()> {
    if let Some([sends, receives]) = spec.buffers {
        // Beyond the system's limit the kernel takes less without a word; the report says what
        // there was.
        sockopt::set_socket_send_buffer_size(&socket, sends as usize).context("cannot set SO_SNDBUF")?;
        sockopt::set_socket_recv_buffer_size(&socket, receives as usize).context("cannot set SO_RCVBUF")?;
    }
    if spec.protocol == Transport::Udp {
        if spec.buffers.is_none() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, 8 << 20);
        }
        // Fails before Linux 5.0: then every datagram comes alone. Before the first one comes, so
        // that all buffers are alike.
        let _ = datagrams::coalesce(socket.as_fd());
        let tick = Some(Duration::from_millis(20));
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, tick)
            .context("cannot set SO_RCVTIMEO")?;
    }
    Ok(())
}

/// Sets what only a connected socket takes.
pub fn tune_connected(spec: &Transfer, socket: impl AsFd) -> anyhow::Result<()> {
    if spec.protocol == Transport::Tcp {
        if let Some(name) = &spec.congestion {
            sockopt::set_tcp_congestion(&socket, name)
                .with_context(|| format!("this kernel does not allow congestion control {name:?}: see net.ipv4.tcp_allowed_congestion_control"))?;
        }
        if let Some(rate) = spec.rate {
            let bytes = rate / 8.0 / f64::from(spec.streams);
            tcp::pace(socket.as_fd(), bytes as u64).context("cannot set SO_MAX_PACING_RATE")?;
        }
    }
    Ok(())
}

/// One end's part of a transfer over these connected sockets, one a stream.
pub fn run_transfer(
    spec: &Transfer,
    side: Side,
    sockets: &[OwnedFd],
    place: &Place,
    pause: Pause,
) -> anyhow::Result<Report> {
    ensure!(sockets.len() >= spec.streams as usize, "a stream without a socket");
    let jobs = jobs(spec, side);
    let board = Board::new(jobs.len())?;
    let end = End { spec, side, sockets, place, jobs, board };
    let tasks = end.fork_tasks()?;
    let counted = end.count_windows(&tasks, pause)?;
    // The other end's last window ends a little later.
    if spec.protocol == Transport::Udp || end.jobs.iter().any(|job| job.sends) {
        pause(Duration::from_millis(spec.schedule.window_ms) / 2 + Duration::from_millis(3))?;
    }
    end.board.stop_senders();
    let drained = drain(spec, &end.board, &end.jobs, pause)?;
    let receive_buffer = end.receive_buffer();
    if !drained {
        // What waits in the kernel must not go on while something else is measured.
        for socket in sockets {
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
    }
    drop(tasks);
    Ok(end.report(counted, drained, receive_buffer))
}

/// One end of a transfer.
struct End<'a> {
    spec: &'a Transfer,
    side: Side,
    sockets: &'a [OwnedFd],
    place: &'a Place,
    jobs: Vec<Job>,
    board: Board,
}

/// What the kernel has counted so far.
struct Reading {
    at: Instant,
    totals: NetworkTotals,
    /// Of each CPU that handles packets, s.
    handled_s: Vec<f64>,
    thrown_away: Option<Vec<u32>>,
    tcp: Vec<TcpInfo>,
}

/// What the windows that count came to.
struct Counted {
    marks: Vec<ByteCount>,
    tasks: usize,
    elapsed_s: f64,
    used: NetworkTotals,
    /// The most that a CPU spent on packets.
    handled_s: Option<f64>,
    /// Buffers that sockets threw away.
    thrown_away: Option<f64>,
    tcp: Option<SenderState>,
}

impl End<'_> {
    fn fork_tasks(&self) -> anyhow::Result<Vec<Child>> {
        let crews = crews(self.spec, self.place, &self.jobs);
        let tasks = crews.iter().map(|crew| {
            let cpus = self.place.seat(crew[0]);
            let task = process::fork(|| {
                if cpus.is_some_and(|cpus| affinity::pin(cpus).is_err()) {
                    return 1;
                }
                self.work(crew);
                0
            });
            task.context("cannot fork a task")
        });
        tasks.collect()
    }

    /// The work of one task.
    fn work(&self, crew: &[usize]) {
        let (spec, board) = (self.spec, &self.board);
        let burn = spec.burn[usize::from(self.side == Side::Server)];
        let socket = |number: &usize| &self.sockets[self.jobs[*number].stream as usize];
        let job = &self.jobs[crew[0]];
        match spec.protocol {
            Transport::Tcp => {
                let flows = crew.iter().map(|number| Flow::new(socket(number), *number)).collect();
                let streams = Streams { board, flows, burn };
                if job.sends { streams.send(spec.bytes) } else { streams.receive(spec.bytes) }
            }
            Transport::Udp => {
                let task = Task { board, number: crew[0], burn };
                match job.sends {
                    true => task.send(spec, socket(&crew[0]), job.stream),
                    false => task.receive(spec, socket(&crew[0]), job.stream),
                }
            }
        }
    }

    /// The sockets that this end sends on, or receives from, by this protocol.
    fn sockets_of(&self, protocol: Transport, sends: bool) -> Vec<&OwnedFd> {
        let own = self.jobs.iter().filter(|job| self.spec.protocol == protocol && job.sends == sends);
        own.map(|job| &self.sockets[job.stream as usize]).collect()
    }

    /// Counts all windows but those of warming up.
    fn count_windows(&self, tasks: &[Child], pause: Pause) -> anyhow::Result<Counted> {
        let begin = Instant::now();
        let senders = self.sockets_of(Transport::Tcp, true);
        let receivers = self.sockets_of(Transport::Udp, false);
        let pids: Vec<u32> = tasks.iter().map(Child::id).collect();
        let (interface, schedule) = (self.place.interface.as_deref(), &self.spec.schedule);
        let handling = packet_cpus(interface);
        let mut counters = NetworkCounters::open(&pids, &self.place.cpus(self.jobs.len()), interface);
        let mut read = |at| Reading {
            at,
            totals: counters.read(),
            handled_s: counters.softirqs(&handling),
            thrown_away: dropped(&receivers),
            tcp: told(&senders),
        };
        let window = Duration::from_millis(schedule.window_ms);
        let windows = schedule.warm_up + schedule.count;
        let look = |marks: &mut Vec<ByteCount>| marks.push(mark(begin, &self.board, &self.jobs));
        let mut marks = Vec::with_capacity(windows + 1);
        look(&mut marks);
        let mut before = read(begin);
        for edge in 1..=windows {
            pause((window * edge as u32).saturating_sub(begin.elapsed()))?;
            look(&mut marks);
            if edge == schedule.warm_up {
                // The time spans what is counted: no task runs, or waits, for longer than it lasts.
                before = read(Instant::now());
            }
        }
        let now = read(Instant::now());
        let elapsed_s = before.at.elapsed().as_secs_f64();
        let used = now.totals.since(before.totals);
        Ok(Counted {
            marks,
            tasks: pids.len(),
            elapsed_s,
            handled_s: busiest(&before.handled_s, &now.handled_s),
            thrown_away: thrown_away(&used, before.thrown_away.as_deref(), now.thrown_away.as_deref())
                .filter(|_| !receivers.is_empty()),
            used,
            tcp: sender_state(&before.tcp, &now.tcp, &senders, elapsed_s),
        })
    }

    fn receive_buffer(&self) -> Option<f64> {
        let job = self.jobs.iter().find(|job| !job.sends)?;
        let bytes = sockopt::socket_recv_buffer_size(&self.sockets[job.stream as usize]);
        bytes.ok().map(|bytes| bytes as f64)
    }

    fn tasks(&self, sends: bool) -> impl Iterator<Item = usize> + Clone {
        (0..self.jobs.len()).filter(move |task| self.jobs[*task].sends == sends)
    }

    fn report(&self, counted: Counted, drained: bool, receive_buffer: Option<f64>) -> Report {
        let count =
            |of: fn(&Board, usize) -> u64, sends| self.tasks(sends).map(|task| of(&self.board, task)).sum();
        let wrong = (0..self.jobs.len()).find_map(|task| self.board.wrong(task));
        let senders = self.sockets_of(Transport::Tcp, true);
        Report {
            sent: count(Board::bytes, true),
            received: count(Board::bytes, false),
            sent_messages: count(Board::messages, true),
            received_messages: count(Board::messages, false),
            reordered: count(Board::reordered, false),
            duplicated: count(Board::duplicated, false),
            drained,
            wrong: wrong.map(|at| match self.spec.protocol {
                Transport::Tcp => format!("wrong data arrived at byte {} or soon after", at - 1),
                Transport::Udp => format!("message {at} arrived but was never sent"),
            }),
            cpu_costs: self.account(&counted),
            marks: counted.marks,
            tcp: counted.tcp,
            receive_buffer,
            congestion: senders.first().and_then(|socket| sockopt::tcp_congestion(socket).ok()),
            cpus: self.place.cpus(self.jobs.len()).iter().collect(),
        }
    }

    /// What the counted windows cost, as shares of their time.
    fn account(&self, counted: &Counted) -> CpuCosts {
        let used = &counted.used;
        // The kernel counts buffers, and messages are lost.
        let lost =
            counted.thrown_away.map(|buffers| buffers * self.board.messages_a_buffer(self.tasks(false)));
        let drops = match (used.drops, lost) {
            (None, None) => None,
            (packets, messages) => Some(packets.unwrap_or(0.0) + messages.unwrap_or(0.0)),
        };
        let cpus = self.place.cpus(self.jobs.len()).len().max(1) as f64;
        let share = |value: Option<f64>, of: f64| value.map(|value| value / (counted.elapsed_s * of));
        let (softirq, handled) = (share(used.softirq_s, cpus), share(counted.handled_s, 1.0));
        let wait = share(used.wait_ns.map(|ns| ns / 1e9), counted.tasks as f64);
        CpuCosts {
            busy: share(used.run_ns.map(|ns| ns / 1e9), cpus),
            softirq: softirq.into_iter().chain(handled).reduce(f64::max),
            // The kernel counts a wait when it ends: one that began before the counted time is
            // counted whole.
            wait: wait.map(|share| share.min(1.0)),
            throttled: share(used.throttled_s, 1.0),
            drops: share(drops, 1.0),
        }
    }
}

/// Buffers that each of these sockets has dropped so far; `None` if the kernel does not report it.
fn dropped(receivers: &[&OwnedFd]) -> Option<Vec<u32>> {
    receivers.iter().map(|socket| datagrams::dropped(socket.as_fd()).ok()).collect()
}

/// Packets that these sockets dropped meanwhile, or all sockets if the kernel reports only that.
fn thrown_away(used: &NetworkTotals, before: Option<&[u32]>, now: Option<&[u32]>) -> Option<f64> {
    let own = before.zip(now).map(|(before, now)| {
        let each = before.iter().zip(now).map(|(then, now)| f64::from(now.wrapping_sub(*then)));
        each.sum::<f64>()
    });
    own.or(used.full_sockets)
}

/// The most that a CPU spent meanwhile, s.
fn busiest(before: &[f64], now: &[f64]) -> Option<f64> {
    let each = before.iter().zip(now).map(|(then, now)| now - then);
    each.filter(|spent| spent.is_finite()).reduce(f64::max)
}

fn mark(begin: Instant, board: &Board, jobs: &[Job]) -> ByteCount {
    let sum = |sends: bool| -> u64 {
        (0..jobs.len()).filter(|task| jobs[*task].sends == sends).map(|task| board.bytes(task)).sum()
    };
    let (sent, received) = (sum(true), sum(false));
    ByteCount { ns: begin.elapsed().as_nanos() as f64, sent, received }
}

/// Waits for what is on its way; whether all of it was read to its end.
fn drain(spec: &Transfer, board: &Board, jobs: &[Job], pause: Pause) -> anyhow::Result<bool> {
    let begin = Instant::now();
    let longest = Duration::from_secs_f64(spec.schedule.seconds()).clamp(DRAIN[0], DRAIN[1]);
    if spec.protocol == Transport::Udp {
        let all = || (0..jobs.len()).map(|task| board.bytes(task)).sum::<u64>();
        let (mut last, mut since) = (all(), Instant::now());
        while since.elapsed() < QUIET && begin.elapsed() < longest {
            pause(QUIET / 2)?;
            if all() != last {
                (last, since) = (all(), Instant::now());
            }
        }
        board.stop_receivers();
    }
    while (0..jobs.len()).any(|task| !board.ended(task)) {
        if begin.elapsed() > longest {
            return Ok(false);
        }
        pause(LOOK)?;
    }
    Ok((0..jobs.len()).all(|task| board.whole(task)))
}

fn told(senders: &[&OwnedFd]) -> Vec<TcpInfo> {
    senders.iter().filter_map(|socket| tcp::tcp_info(socket.as_fd()).ok()).collect()
}

/// What TCP said of the senders since `before`.
fn sender_state(
    before: &[TcpInfo],
    now: &[TcpInfo],
    senders: &[&OwnedFd],
    elapsed: f64,
) -> Option<SenderState> {
    if now.is_empty() || now.len() != before.len() {
        return None;
    }
    let count = now.len() as f64;
    let mean = |of: &dyn Fn(&TcpInfo) -> f64| now.iter().map(of).sum::<f64>() / count;
    let pairs = || before.iter().zip(now);
    let share = |of: &dyn Fn(&TcpInfo) -> Option<u64>| -> Option<f64> {
        let each: Option<Vec<f64>> =
            pairs().map(|(then, now)| Some((of(now)?.saturating_sub(of(then)?)) as f64 / 1e6)).collect();
        Some((each?.iter().sum::<f64>() / count / elapsed).min(1.0))
    };
    let segments = |of: &dyn Fn(&TcpInfo) -> Option<u32>| -> Option<f64> {
        let each: Option<Vec<f64>> =
            pairs().map(|(then, now)| Some(f64::from(of(now)?.wrapping_sub(of(then)?)))).collect();
        Some(each?.iter().sum::<f64>() / elapsed)
    };
    let rates: Option<Vec<u64>> = now.iter().map(|info| info.delivery_rate).collect();
    let buffers = senders.iter().filter_map(|socket| sockopt::socket_send_buffer_size(socket).ok());
    Some(SenderState {
        retransmits: segments(&|info| Some(info.retransmits)).unwrap_or(0.0),
        duplicates: segments(&|info| info.duplicates),
        rwnd_limited: share(&|info| info.rwnd_limited_us),
        sndbuf_limited: share(&|info| info.sndbuf_limited_us),
        busy: share(&|info| info.busy_us),
        cwnd: mean(&|info| f64::from(info.cwnd)),
        rtt_us: mean(&|info| f64::from(info.rtt_us)),
        rtt_min_us: now.iter().filter_map(|info| info.min_rtt_us).min().map(f64::from),
        delivery_rate: rates.map(|rates| rates.iter().sum::<u64>() as f64 * 8.0),
        send_buffer: buffers.max().map(|bytes| bytes as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_cpu_at_the_card_counts() {
        assert_eq!(busiest(&[1.0, 5.0], &[1.5, 5.1]), Some(0.5));
        assert_eq!(busiest(&[1.0, f64::NAN], &[1.5, 9.0]), Some(0.5), "a CPU that is not told");
        assert_eq!(busiest(&[], &[]), None, "no card, as over loopback");
        assert!(packet_cpus(Some("lo")).is_empty() && packet_cpus(None).is_empty());
    }

    #[test]
    fn our_own_sockets_come_before_everybodys() {
        let used = NetworkTotals { full_sockets: Some(900.0), ..NetworkTotals::default() };
        let of = |before: &[u32], now: &[u32]| thrown_away(&used, Some(before), Some(now));
        assert_eq!(of(&[5, u32::MAX], &[8, 1]), Some(5.0), "a counter that began anew");
        assert_eq!(thrown_away(&used, None, None), Some(900.0));
    }
}
