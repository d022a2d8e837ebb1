//! `assay serve`: the other end of a network test.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::network::{PORT, address, given, is_link_local, weakness};
use super::output::{self, eprint_line, refuse};
use bench::network_path::{self, Probe};
use bench::network_seats as seats;
use bench::network_serve::{self as serve, Event, Service};
use bench::placement::Floor;
use machine::Machine;
use model::units::duration;
use sys::random::random;

/// Answer network tests from another host
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay serve --bind 0.0.0.0               on all addresses of this host
  assay serve --bind 10.0.0.5 --for 2h     on one address; ends after two hours without a client
It prints a new random token at each start. It handles one session at a time, on its port and the next one, TCP and \
UDP. Ctrl-C ends it.
Protected: without the token no client can make this host send or receive anything. Both ends prove that they know \
it and never send it. Their messages cannot be changed or replayed, and data connections prove which session they \
belong to.
Not protected: nothing is encrypted. An eavesdropper reads everything but the token; an attacker on the path can \
spoil or end a measurement. A recorded session allows guessing short tokens offline, but not one of 22 random \
characters. Anyone who reaches the port can disturb it (denial of service): open it for the other host only, and \
only while you measure.")]
pub struct Args {
    /// Address to listen on: 0.0.0.0 or :: for all, or fe80::1%eth0
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    bind: SocketAddr,
    /// Port to listen on, and the next one for data (0: any)
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Token of clients [default: $ASSAY_TOKEN, else a random one]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Accept a token of fewer than 22 characters, at both ends
    #[arg(long)]
    weak_token: bool,
    /// Stop after this long without a client
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = duration)]
    idle: Duration,
    /// Longest session
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration, hide = true)]
    session: Duration,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let token = match given(args.token) {
        Some(token) => {
            refuse(weakness(&token, args.weak_token))?;
            token
        }
        None => new_token()?,
    };
    let mut bind = args.bind;
    bind.set_port(args.port);
    let listener = TcpListener::bind(bind).map_err(|error| cannot_listen(bind, error))?;
    let address = listener.local_addr().context("cannot find out the port")?;
    let machine = Machine::from(&snapshot::read(Path::new("/")));
    let floor = Floor::of(&machine);
    output::print(&greeting(address, &token, args.idle))?;
    let service = Service {
        listener,
        token,
        idle: args.idle,
        session: args.session,
        place: &|to| seats::towards(&machine, &floor, to),
        describe: &|to| {
            let seats = seats::towards(&machine, &floor, to).seats;
            let seats: Vec<String> = seats.iter().map(|cpus| cpus.to_string()).collect();
            format!("{}seats {}\n", network_path::describe(Some(to), Probe::Datagram), seats.join(","))
        },
    };
    let (mut refusals, mut guest) = (0u64, None);
    serve::run(service, &mut |event| match event {
        // A run has a session for each of its visits.
        Event::Began(from) if guest == Some(from.ip()) => {}
        Event::Began(from) => {
            guest = Some(from.ip());
            eprint_line(&format!("  sessions with {} from now on", from.ip()));
        }
        Event::Ended(..) => {}
        Event::TooLong(from) => {
            eprint_line(&format!("  session with {} ended: it reached its time limit", from.ip()))
        }
        Event::Full(error) => {
            eprint_line(&format!("  cannot accept a client ({error}): check ulimit -n; trying again"))
        }
        Event::Refused(from, why) => {
            refusals += 1;
            // A summary of further refusals.
            if refusals <= LOUD || refusals.is_power_of_two() {
                eprint_line(&format!("  refused {}: {why} ({refusals} so far)", from.ip()));
            }
        }
    })?;
    eprint_line(&format!("no client for {} s: ending", args.idle.as_secs()));
    Ok(ExitCode::SUCCESS)
}

/// Most refusals that are printed one by one.
const LOUD: u64 = 8;

fn new_token() -> anyhow::Result<String> {
    let bytes: [u8; 16] = random().context("no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Why it cannot listen, and what would help.
fn cannot_listen(bind: SocketAddr, error: std::io::Error) -> anyhow::Error {
    let help = match error.kind() {
        ErrorKind::AddrInUse => {
            ": another program listens there, perhaps `assay serve`: end it, or choose another port (--port)"
        }
        ErrorKind::AddrNotAvailable => ": this host has no such address (`ip address` lists them)",
        ErrorKind::PermissionDenied => ": choose a port above 1023 (--port)",
        _ => "",
    };
    anyhow::anyhow!("cannot listen on {} port {} ({error}){help}", bind.ip(), bind.port())
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
    let weak = if weakness(token, false).is_some() { " --weak-token" } else { "" };
    format!(
        "assay serves network tests on {address}, for {where_}\ntoken {token}\nOn the other host:\n  \
          ASSAY_TOKEN={token} assay run --only network --to {host}{port}{weak}\nor, if no other user can \
          see arguments there:\n  assay run --only network --to {host}{port} --token {token}{weak}\nEnds \
          after {} s without a client, or with Ctrl-C.\n",
        idle.as_secs()
    )
}

/// An address as written before a port.
fn shown(ip: IpAddr) -> String {
    match ip {
        // The interface has another name on the other host.
        IpAddr::V6(ip) if is_link_local(ip.into()) => format!("[{ip}%INTERFACE]"),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_of_listening_is_told_with_what_helps() {
        let told = |bind: &str, kind: ErrorKind| {
            cannot_listen(bind.parse().expect("an address"), kind.into()).to_string()
        };
        let taken = told("127.0.0.1:4711", ErrorKind::AddrInUse);
        assert!(
            taken.contains("port 4711")
                && taken.contains("--port")
                && taken.contains("perhaps `assay serve`")
        );
        let foreign = told("[2001:db8::1]:4711", ErrorKind::AddrNotAvailable);
        assert!(foreign.contains("no such address") && !foreign.contains("--port"), "{foreign}");
    }

    #[test]
    fn the_command_for_the_other_host_is_told() {
        const TOKEN: &str = "22-characters-or-more--";
        let of = |address: &str, token: &str| {
            greeting(address.parse().expect("an address"), token, Duration::from_secs(5))
        };
        let told = |address: &str| of(address, TOKEN);
        assert!(told("10.0.0.5:4711").contains(&format!("--to 10.0.0.5 --token {TOKEN}\n")));
        assert!(of("10.0.0.5:4711", "short").contains("--to 10.0.0.5 --token short --weak-token\n"));
        assert!(told("0.0.0.0:99").contains(&format!("--to HOST:99 --token {TOKEN}\n")));
        assert!(told("[::1]:99").contains("--to [::1]:99"));
        assert!(told("[fe80::1%3]:99").contains("--to [fe80::1%INTERFACE]:99"));
        assert!(told("127.0.0.1:4711").contains("this host only"));
        assert_ne!(new_token().expect("a token"), new_token().expect("another"));
    }
}
