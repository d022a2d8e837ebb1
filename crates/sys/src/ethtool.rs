//! What a network interface's driver tells by the ethtool calls: its name, and which offloads are
//! on.
//!
//! Only questions are asked; nothing here changes a setting.

use std::ffi::c_char;
use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// The call and its questions, as linux/sockios.h and linux/ethtool.h have them.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const DRIVER: u32 = 0x03;
/// Those that answer with one number, by the names that ethtool(8) uses.
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

/// Answers as names and values: `driver`, `firmware`, `bus`, and `on` or `off` for each offload
/// that it has an answer for. An interface that has no driver of hardware (or is none) answers
/// less, or nothing.
pub fn settings(interface: &str) -> Vec<(&'static str, String)> {
    let mut told = Vec::new();
    let Ok(socket) =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
    else {
        return told;
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
        told.extend(texts.into_iter().filter(|(_, text)| !text.is_empty()));
    }
    let number = |command: u32| {
        let mut value = Value { command, data: 0 };
        ask(&socket, interface, &mut value).ok().map(|()| value.data)
    };
    let switch = |on: bool| if on { "on" } else { "off" }.to_string();
    for (name, command) in SWITCHES {
        told.extend(number(command).map(|data| (name, switch(data != 0))));
    }
    told.extend(number(FLAGS).map(|flags| ("lro", switch(flags & LRO != 0))));
    told
}

/// A structure that an ethtool command reads and fills: it begins with the command's number.
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
    // SAFETY: the request has a name that ends with 0 and points to a structure of the layout that
    // its command is answered with, which lives until the call returns; the kernel writes no
    // further than that.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    match answer {
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
    fn structures_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<Value>(), size_of::<Driver>()), (8, 196));
    }

    #[test]
    fn every_machine_has_a_loopback_with_offloads() {
        let told = settings("lo");
        assert!(
            told.iter().any(|(name, value)| *name == "tso" && (value == "on" || value == "off")),
            "{told:?}"
        );
        assert!(settings("no-such-interface-name-at-all").is_empty() && settings("").is_empty());
    }
}
