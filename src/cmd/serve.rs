//! `assay serve`: the other end of a network test.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};

use super::network::{PORT, TOKEN};
use super::{measuring, output};
use crate::bench::network_serve::{self as serve, Event, Service};
use crate::bench::{NetworkPlace as Place, network_path};
use crate::machine::{Machine, snapshot};
use crate::placement::Floor;
use crate::sys::random::random;

/// Be the other end of a network test: `assay run --only network --to HOST` on another host
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay serve --bind 0.0.0.0               wait for the other host, on all addresses of this one
  assay serve --bind 10.0.0.5 --for 2h     on one address, for two hours without a guest
It prints a token, anew each time; nobody without it can make this host send or receive anything. The token is never sent.
One session at a time; uses the port and the one after it, TCP and UDP. Ctrl-C ends it.")]
pub struct Args {
    /// Address to listen on; 0.0.0.0 or :: are all of this host's
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Port to listen on; data takes the next one; 0: any
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Token to ask for instead of a random one; better in the environment as ASSAY_TOKEN, where nobody else sees it
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// End when nobody has come for so long
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = measuring::duration)]
    idle: Duration,
    /// A session may take so long
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = measuring::duration, hide = true)]
    session: Duration,
}

/// Shorter ones could be guessed.
const SHORTEST_TOKEN: usize = 16;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let given = args.token.or_else(|| std::env::var(TOKEN).ok()).filter(|token| !token.is_empty());
    let token = match given {
        Some(token) if token.len() < SHORTEST_TOKEN => {
            bail!("a token of {} characters can be guessed; {SHORTEST_TOKEN} are the fewest", token.len())
        }
        Some(token) => token,
        None => new_token()?,
    };
    let listener = TcpListener::bind((args.bind, args.port))
        .with_context(|| format!("cannot listen on {} port {}", args.bind, args.port))?;
    let address = listener.local_addr().context("cannot tell the port")?;
    output::print(&greeting(address, &token, args.idle))?;
    let service = Service {
        listener,
        token,
        idle: args.idle,
        session: args.session,
        place: place(),
        describe: &|to| network_path::describe(Some(to)),
    };
    let (mut refusals, mut guest) = (0u64, None);
    serve::run(service, &mut |event| match event {
        // A run has a session for each of its visits.
        Event::Began(from) if guest == Some(from.ip()) => {}
        Event::Began(from) => {
            guest = Some(from.ip());
            output::tell(&format!("  sessions with {} from now on", from.ip()));
        }
        Event::Ended(..) => {}
        Event::TooLong(from) => {
            output::tell(&format!("  session with {} ended: it took longer than it may", from.ip()))
        }
        Event::Refused(from, why) => {
            refusals += 1;
            // Of many, a few words.
            if refusals <= LOUD || refusals.is_power_of_two() {
                output::tell(&format!("  refused {}: {why} ({refusals} so far)", from.ip()));
            }
        }
    })?;
    output::tell(&format!("nobody came for {} s: the end", args.idle.as_secs()));
    Ok(ExitCode::SUCCESS)
}

/// So many refusals are told one by one.
const LOUD: u64 = 8;

fn new_token() -> anyhow::Result<String> {
    let bytes: [u8; 16] = random().context("no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// One CPU of each core, the one that is quiet first.
fn place() -> Place {
    let machine = Machine::from(&snapshot::read(Path::new("/")));
    let floor = Floor::of(&machine);
    let first = floor.one_cpu("task").ok().and_then(|placement| placement.cpus().first());
    let others = floor.one_per_core("task").seats.into_iter().filter_map(|seat| seat.cpus.first());
    let mut cpus: Vec<u32> = first.into_iter().collect();
    cpus.extend(others.filter(|cpu| Some(*cpu) != first));
    Place { seats: cpus.into_iter().map(crate::model::CpuSet::one).collect(), interface: None }
}

fn greeting(address: SocketAddr, token: &str, idle: Duration) -> String {
    let port = match address.port() {
        PORT => String::new(),
        port => format!(":{port}"),
    };
    let (host, where_) = match address.ip() {
        ip if ip.is_unspecified() => ("HOST".to_string(), "all addresses of this host"),
        ip if ip.is_loopback() => (shown(ip), "this host only (--bind 0.0.0.0 for others)"),
        ip => (shown(ip), "this address"),
    };
    format!(
        "assay serves network tests on {address}, for {where_}\ntoken {token}\nOn the other host:\n  ASSAY_TOKEN={token} \
         assay run --only network --to {host}{port}\nor, where nobody else sees arguments:\n  assay run --only network --to \
         {host}{port} --token {token}\nEnds by itself when nobody came for {} s; Ctrl-C ends it at once.\n",
        idle.as_secs()
    )
}

/// An address as it stands before a port.
fn shown(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_the_other_host_is_told() {
        let told =
            |address: &str| greeting(address.parse().expect("an address"), "secret", Duration::from_secs(5));
        assert!(told("10.0.0.5:4711").contains("--to 10.0.0.5 --token secret\n"));
        assert!(told("0.0.0.0:99").contains("--to HOST:99 --token secret"));
        assert!(told("[::1]:99").contains("--to [::1]:99"));
        assert!(told("127.0.0.1:4711").contains("this host only"));
        assert_ne!(new_token().expect("a token"), new_token().expect("another"));
    }
}
