//! The listener of `assay serve`: accepts one client at a time that knows the token, and survives
//! all others.
//!
//! Strangers cost a place among a bounded number of guests that have not yet proved themselves, for
//! two seconds at most; the oldest make room for new ones, those of the same address first. A
//! session runs in a process of its own: whatever happens to it, this one goes on. Nothing here
//! waits for a single guest.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::conduct::Place;
use super::door::knocks;
use super::link::{Link, canonical};
use super::messages::{Reply, Side};
use super::session::{self, Host};
use super::wire::{HELLO_BYTES, Hello, Keys, PROOF_BYTES, VERSION, Verdict, equal};
use sys::process::{self, Child};
use sys::random::random;

/// What a server does and for how long.
pub struct Service<'a> {
    pub listener: TcpListener,
    pub token: String,
    /// Ends after this long without a client.
    pub idle: Duration,
    /// A session takes no longer.
    pub session: Duration,
    /// Where the tasks of a session with this client sit.
    pub place: &'a dyn Fn(SocketAddr) -> Place,
    pub describe: &'a dyn Fn(SocketAddr) -> String,
}

/// What a server reports to people.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Began(SocketAddr),
    Ended(SocketAddr, Duration),
    /// It took longer than a session may.
    TooLong(SocketAddr),
    /// A client that failed to authenticate, or that got no process, with the reason.
    Refused(SocketAddr, String),
    /// A client waits that cannot be accepted, with the reason; reported once.
    Full(String),
}

/// Guests that have not yet proved themselves, in all and of one address.
const GUESTS: usize = 64;
const OF_ONE_ADDRESS: usize = 32;
/// Time limit for authentication.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections accepted in one go before the others are read.
const AT_ONCE: usize = 32;
/// Pause before the next try if no client can be accepted.
const REST: Duration = Duration::from_millis(250);
/// The clock is read at least this often.
const TICK: Duration = Duration::from_millis(500);

struct Client {
    stream: TcpStream,
    from: SocketAddr,
    since: Instant,
    heard: Vec<u8>,
    nonce: [u8; 32],
    keys: Option<Keys>,
}

/// State of a client after a step.
enum ClientState {
    Waiting,
    Welcome(Keys),
    Gone(Option<String>),
}

struct Running {
    child: Child,
    ended: Option<OwnedFd>,
    from: SocketAddr,
    since: Instant,
}

/// Serves until no client has come for long enough; `tell` is called for each event.
pub fn run(service: Service, tell: &mut dyn FnMut(Event)) -> anyhow::Result<()> {
    service.listener.set_nonblocking(true).context("cannot make a listening socket non-blocking")?;
    let mut guests: Vec<Client> = Vec::new();
    let mut running: Option<Running> = None;
    let mut idle_since = Instant::now();
    let (mut rests_until, mut full) = (None, false);
    loop {
        if let Some(session) = &mut running {
            let over = session.since.elapsed() > service.session;
            if over || session.child.ended()?.is_some() {
                tell(match over {
                    true => Event::TooLong(session.from),
                    false => Event::Ended(session.from, session.since.elapsed()),
                });
                // Its tasks die with it.
                running = None;
                idle_since = Instant::now();
                rests_until = None;
            }
        } else if idle_since.elapsed() > service.idle {
            return Ok(());
        }
        rests_until = rests_until.filter(|until| *until > Instant::now());
        wait(&service, &guests, &running, idle_since, rests_until)?;
        if rests_until.is_none()
            && let Err(error) = accept(&service.listener, &mut guests)
        {
            rests_until = Some(Instant::now() + REST);
            if !std::mem::replace(&mut full, true) {
                tell(Event::Full(error.to_string()));
            }
        }
        let mut kept = Vec::new();
        let mut rest = VecDeque::from(std::mem::take(&mut guests));
        while let Some(mut guest) = rest.pop_front() {
            let became = match guest.since.elapsed() > PATIENCE {
                true => ClientState::Gone(Some("it did not authenticate in time".to_string())),
                false => guest.go_on(&service.token, running.is_some()),
            };
            match became {
                ClientState::Waiting => kept.push(guest),
                ClientState::Gone(None) => {}
                ClientState::Gone(Some(why)) => tell(Event::Refused(guest.from, why)),
                ClientState::Welcome(keys) => {
                    // The child keeps nothing of the other guests'.
                    let others = (&mut kept, &mut rest);
                    let Client { stream, from, .. } = guest;
                    let begun = begin(&service, stream, from, keys, || {
                        drop((std::mem::take(others.0), std::mem::take(others.1)))
                    });
                    match begun {
                        Ok(begun) => {
                            running = Some(begun);
                            tell(Event::Began(from));
                        }
                        // A limit that others reached, perhaps: the next one may have more luck.
                        Err(error) => tell(Event::Refused(from, format!("{error:#}"))),
                    }
                }
            }
        }
        guests = kept;
    }
}

/// Until something has come, has ended or is due.
fn wait(
    service: &Service,
    guests: &[Client],
    running: &Option<Running>,
    idle_since: Instant,
    rests_until: Option<Instant>,
) -> anyhow::Result<()> {
    let mut polled = Vec::new();
    // A waiting client causes no wake-ups while it cannot be accepted.
    polled.extend(rests_until.is_none().then(|| PollFd::new(&service.listener, PollFlags::IN)));
    polled.extend(guests.iter().map(|guest| PollFd::new(&guest.stream, PollFlags::IN)));
    let ended = running.as_ref().and_then(|session| session.ended.as_ref());
    polled.extend(ended.map(|ended| PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)));
    // Without a descriptor that signals its end, a session is checked more often.
    let tick = match running {
        Some(session) if session.ended.is_none() => TICK / 10,
        Some(_) => TICK,
        None => TICK.min(service.idle.saturating_sub(idle_since.elapsed()) + Duration::from_millis(1)),
    };
    let tick = rests_until.map_or(tick, |until| tick.min(until.saturating_duration_since(Instant::now())));
    let time = Timespec { tv_sec: tick.as_secs() as _, tv_nsec: tick.subsec_nanos() as _ };
    match poll(&mut polled, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for clients"),
    }
}

/// An error: no client can be accepted just now.
fn accept(listener: &TcpListener, guests: &mut Vec<Client>) -> io::Result<()> {
    for _ in 0..AT_ONCE {
        let (stream, from) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::AGAIN) => return Ok(()),
                // Gone again.
                Some(Errno::INTR | Errno::CONNABORTED) => continue,
                // Without a free descriptor the kernel returns this error even if no client waits.
                _ if !knocks(listener) => return Ok(()),
                // The oldest client without a proof is dropped, and the next one gets its
                // descriptor.
                Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) if !guests.is_empty() => {
                    guests.remove(0);
                    continue;
                }
                _ => return Err(error),
            },
        };
        let from = canonical(from);
        let nonce = random()?;
        if stream.set_nonblocking(true).is_err() {
            continue;
        }
        let same = guests.iter().filter(|guest| guest.from.ip() == from.ip()).count();
        let oldest = match (same >= OF_ONE_ADDRESS, guests.len() >= GUESTS) {
            (true, _) => guests.iter().position(|guest| guest.from.ip() == from.ip()),
            (false, true) => Some(0),
            (false, false) => None,
        };
        if let Some(oldest) = oldest {
            guests.remove(oldest);
        }
        guests.push(Client { stream, from, since: Instant::now(), heard: Vec::new(), nonce, keys: None });
    }
    Ok(())
}

impl Client {
    /// Takes what it has said meanwhile.
    fn go_on(&mut self, token: &str, busy: bool) -> ClientState {
        loop {
            let mut piece = [0u8; HELLO_BYTES];
            let wanted = if self.keys.is_some() { PROOF_BYTES } else { HELLO_BYTES };
            match self.stream.read(&mut piece[..wanted - self.heard.len()]) {
                Ok(0) => return ClientState::Gone(None),
                Ok(count) => self.heard.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ClientState::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return ClientState::Gone(None),
            }
            let became = match &self.keys {
                None => self.hello(token),
                Some(keys) if self.heard.len() == PROOF_BYTES => {
                    let right = equal(&self.heard, &keys.client);
                    let verdict = match (right, busy) {
                        (false, _) => Verdict::WrongToken,
                        (true, true) => Verdict::Busy,
                        (true, false) => Verdict::Welcome,
                    };
                    let told = self.stream.write_all(&verdict.bytes(keys));
                    match verdict {
                        Verdict::Welcome if told.is_ok() => ClientState::Welcome(keys.clone()),
                        Verdict::WrongToken => ClientState::Gone(Some("its token is wrong".to_string())),
                        _ => ClientState::Gone(None),
                    }
                }
                Some(_) => ClientState::Waiting,
            };
            if !matches!(became, ClientState::Waiting) {
                return became;
            }
        }
    }

    fn hello(&mut self, token: &str) -> ClientState {
        let theirs = match Hello::parse(&self.heard) {
            Ok(None) => return ClientState::Waiting,
            Ok(Some(hello)) => hello,
            Err(_) => return ClientState::Gone(Some("it uses another protocol".to_string())),
        };
        let ours = Hello { version: VERSION, nonce: self.nonce };
        // A few bytes into an empty buffer: a client that cannot take them is gone. The hello
        // itself shows another version.
        if self.stream.write_all(&ours.bytes()).is_err() {
            return ClientState::Gone(None);
        }
        if let Err(why) = theirs.agrees() {
            return ClientState::Gone(Some(why));
        }
        self.keys = Some(Keys::of(token, &theirs.nonce, &self.nonce));
        self.heard.clear();
        ClientState::Waiting
    }
}

/// Starts a session in a process of its own.
fn begin(
    service: &Service,
    stream: TcpStream,
    from: SocketAddr,
    keys: Keys,
    let_go: impl FnOnce(),
) -> anyhow::Result<Running> {
    let port = service.listener.local_addr().map_or(0, |address| address.port());
    let mut stream = Some(stream);
    let theirs = keys.clone();
    let child = process::fork(|| {
        let_go();
        let host = Host {
            place: (service.place)(from),
            port: port.checked_add(1).unwrap_or(0),
            describe: service.describe,
        };
        let link = stream
            .take()
            .context("the UDP stream is missing")
            .and_then(|stream| Link::new(stream, theirs, Side::Server));
        match link.and_then(|link| session::attend(link, &host)) {
            Ok(()) => 0,
            Err(_) => 1,
        }
    });
    let child = child.context("cannot start a process for a session: check ulimit -u and pids.max");
    if let (Err(error), Some(stream)) = (&child, stream) {
        // A few bytes into an empty buffer, so this does not block.
        let told = Reply::Refused(format!("{error:#}"));
        let _ = Link::new(stream, keys, Side::Server).and_then(|mut link| link.send(&told));
    }
    let child = child?;
    let pid = Pid::from_raw(child.id() as i32);
    let ended = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    Ok(Running { child, ended, from, since: Instant::now() })
}
