//! Driver and offloads of a network interface, by read-only ethtool commands.

use std::ffi::c_char;
use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

// The ioctl and its commands (linux/sockios.h, linux/ethtool.h).
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const DRIVER: u32 = 0x03;
/// Commands that return one number, by their names in ethtool(8).
const SWITCHES: [(&str, u32); 6] = [
    ("rx_checksum", 0x14),
    ("tx_checksum", 0x16),
    ("scatter_gather", 0x18),
    ("tso", 0x1e),
    ("gso", 0x23),
    ("gro", 0x2b),
];
const FLAGS: u32 = 0x25;
/// Large receive offload among the flags.
const LRO: u32 = 1 << 15;

/// `struct ethtool_value`.
#[repr(C)]
#[derive(Default)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct Driver {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    erom: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// Names and values: `driver`, `firmware`, `bus`, and `on` or `off` for each offload that the
/// driver reports. Interfaces without hardware report fewer or none.
pub fn settings(interface: &str) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    let Ok(socket) =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
    else {
        return settings;
    };
    let mut driver = Driver {
        command: DRIVER,
        driver: [0; 32],
        version: [0; 32],
        firmware: [0; 32],
        bus: [0; 32],
        erom: [0; 32],
        reserved: [0; 12],
        counts: [0; 5],
    };
    if ask(&socket, interface, &mut driver).is_ok() {
        let texts = [("driver", driver.driver), ("firmware", driver.firmware), ("bus", driver.bus)];
        let texts = texts.map(|(name, bytes)| (name, text(&bytes)));
        settings.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()));
    }
    let number = |command: u32| {
        let mut value = Value { command, data: 0 };
        ask(&socket, interface, &mut value).ok().map(|()| value.data)
    };
    let switch = |on: bool| if on { "on" } else { "off" }.to_string();
    for (name, command) in SWITCHES {
        settings.extend(number(command).map(|data| (name, switch(data != 0))));
    }
    settings.extend(number(FLAGS).map(|flags| ("lro", switch(flags & LRO != 0))));
    settings
}

/// A structure that starts with the number of an ethtool command, which reads and fills it.
trait Question {}
impl Question for Value {}
impl Question for Driver {}

fn ask<Q: Question>(socket: &impl AsRawFd, interface: &str, question: &mut Q) -> io::Result<()> {
    // SAFETY: all of the structure may be zero: numbers, characters, and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_data = std::ptr::from_mut(question).cast();
    // SAFETY: the name ends with 0, and the request points to a structure with the layout of its
    // command, which lives until the call returns; the kernel writes nothing beyond it.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_kernels_size() {
        assert_eq!((size_of::<Value>(), size_of::<Driver>()), (8, 196));
    }

    #[test]
    fn every_host_has_a_loopback_with_offloads() {
        let found = settings("lo");
        assert!(
            found.iter().any(|(name, value)| *name == "tso" && (value == "on" || value == "off")),
            "{found:?}"
        );
        assert!(settings("no-such-interface-name-at-all").is_empty() && settings("").is_empty());
    }
}
