//! The kernel's figures of a TCP connection (TCP_INFO), and pacing.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Current figures of one connection's sending side (`TCP_INFO`, linux/tcp.h); `None` on kernels
/// that are too old.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpInfo {
    /// Maximum segment size, bytes.
    pub segment: u32,
    /// Path MTU, bytes.
    pub path_mtu: u32,
    /// Whether segments carry timestamps, which take 12 bytes of each.
    pub timestamps: bool,
    /// Smoothed round-trip time, µs.
    pub rtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments retransmitted so far.
    pub retransmits: u32,
    /// Shortest round-trip time, µs.
    pub min_rtt_us: Option<u32>,
    /// Latest delivery rate, bytes per second.
    pub delivery_rate: Option<u64>,
    /// Time with data in flight so far, µs.
    pub busy_us: Option<u64>,
    /// The part of it limited by the receiver's window, µs.
    pub rwnd_limited_us: Option<u64>,
    /// The part of it limited by the send buffer, µs.
    pub sndbuf_limited_us: Option<u64>,
    /// Segments that the receiver reported as duplicates (D-SACK): needless retransmits.
    pub duplicates: Option<u32>,
}

/// The structure of every kernel is shorter, bytes.
const MAX_BYTES: usize = 512;

pub fn tcp_info(socket: BorrowedFd) -> io::Result<TcpInfo> {
    let mut bytes = [0u8; MAX_BYTES];
    let mut length = MAX_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes up to `length` bytes, the buffer's size, and reports how many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    match done {
        0 => Ok(parse(&bytes[..(length as usize).min(MAX_BYTES)])),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads fields by their offsets; newer kernels only append fields.
fn parse(bytes: &[u8]) -> TcpInfo {
    let word = |offset: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
    };
    let long = |offset: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
    };
    // All ones: no minimum yet.
    let min_rtt_us = word(148).filter(|us| *us != u32::MAX);
    TcpInfo {
        segment: word(16).unwrap_or(0),
        path_mtu: word(60).unwrap_or(0),
        // TCPI_OPT_TIMESTAMPS of tcpi_options.
        timestamps: bytes.get(5).is_some_and(|options| options & 1 != 0),
        rtt_us: word(68).unwrap_or(0),
        cwnd: word(80).unwrap_or(0),
        retransmits: word(100).unwrap_or(0),
        min_rtt_us,
        delivery_rate: long(160),
        busy_us: long(168),
        rwnd_limited_us: long(176),
        sndbuf_limited_us: long(184),
        duplicates: word(216),
    }
}

/// Limits a connection's sending rate (`SO_MAX_PACING_RATE`): the kernel spaces its segments.
pub fn pace(socket: BorrowedFd, bytes_per_second: u64) -> io::Result<()> {
    let set = |value: *const libc::c_void, length: usize| {
        // SAFETY: the pointer refers to a live number of this length, which the kernel copies.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                value,
                length as libc::socklen_t,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // Kernels before 4.20 read only the first four bytes.
    match u32::try_from(bytes_per_second) {
        Ok(rate) if rate < u32::MAX => set((&raw const rate).cast(), size_of::<u32>()),
        _ => set((&raw const bytes_per_second).cast(), size_of::<u64>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn a_paced_connection_reports_its_figures() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut one = TcpStream::connect(listener.local_addr().expect("address")).expect("connected");
        let (mut other, _) = listener.accept().expect("accepted");
        pace(one.as_fd(), 50_000_000).expect("paced");
        pace(one.as_fd(), 50_000_000_000).expect("paced with more than 32 bits");
        one.write_all(&[1; 5000]).expect("sent");
        other.read_exact(&mut [0; 5000]).expect("received");
        let info = tcp_info(one.as_fd()).expect("figures");
        assert!(info.segment > 500 && info.cwnd > 0 && info.path_mtu > 500, "{info:?}");
    }

    #[test]
    fn older_kernels_report_less() {
        let mut bytes = vec![0u8; 104];
        bytes[68..72].copy_from_slice(&77u32.to_ne_bytes());
        let info = parse(&bytes);
        assert_eq!((info.rtt_us, info.min_rtt_us, info.busy_us), (77, None, None));
        assert_eq!(info.duplicates, None);
        bytes.resize(232, 0);
        bytes[216..220].copy_from_slice(&9u32.to_ne_bytes());
        assert_eq!(parse(&bytes).duplicates, Some(9));
        assert_eq!(parse(&[]), TcpInfo::default());
    }
}
