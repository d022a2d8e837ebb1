//! Many datagrams per system call, and segmentation by the kernel or the network card.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Buffers of equal size, sent or received together by `sendmmsg` and `recvmmsg`.
pub struct Batch {
    bytes: Vec<u8>,
    buffer_bytes: usize,
    lengths: Vec<usize>,
}

/// Largest number of buffers in one call.
pub const MAX_BUFFERS: usize = 32;

impl Batch {
    /// `count` buffers (at most [`MAX_BUFFERS`]) of `buffer_bytes` bytes.
    pub fn new(count: usize, buffer_bytes: usize) -> Batch {
        let count = count.clamp(1, MAX_BUFFERS);
        Batch { bytes: vec![0; count * buffer_bytes], buffer_bytes, lengths: vec![0; count] }
    }

    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    pub fn buffer_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.bytes[index * self.buffer_bytes..(index + 1) * self.buffer_bytes]
    }

    /// The bytes that the last call received in this buffer.
    pub fn received(&self, index: usize) -> &[u8] {
        let start = index * self.buffer_bytes;
        &self.bytes[start..start + self.lengths[index].min(self.buffer_bytes)]
    }

    /// Sends the first `length` bytes of each buffer over a connected socket; returns the number of
    /// buffers sent.
    pub fn send(&mut self, socket: BorrowedFd, length: usize) -> io::Result<usize> {
        let length = length.min(self.buffer_bytes);
        self.call(length, |headers, count| {
            // SAFETY: every header points to one vector, which points into this batch's buffers;
            // all outlive the call, which only reads them.
            unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count, 0) }
        })
    }

    /// Waits for one datagram and receives all that have arrived; returns the number of buffers
    /// filled.
    pub fn receive(&mut self, socket: BorrowedFd) -> io::Result<usize> {
        let length = self.buffer_bytes;
        self.call(length, |headers, count| {
            // SAFETY: as above; the kernel writes no more than a vector's length into the buffers,
            // which `&mut self` borrows exclusively. No time limit is given.
            unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    headers,
                    count,
                    libc::MSG_WAITFORONE as _,
                    std::ptr::null_mut(),
                )
            }
        })
    }

    fn call(
        &mut self,
        length: usize,
        call: impl FnOnce(*mut libc::mmsghdr, libc::c_uint) -> libc::c_int,
    ) -> io::Result<usize> {
        let count = self.count();
        // SAFETY: all zeroes are valid vectors and headers: no address, no memory.
        let (mut vectors, mut headers): ([libc::iovec; MAX_BUFFERS], [libc::mmsghdr; MAX_BUFFERS]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let base = self.bytes.as_mut_ptr();
        for (index, (vector, header)) in vectors.iter_mut().zip(&mut headers).take(count).enumerate() {
            // SAFETY: `bytes` contains `count` buffers of `buffer_bytes` bytes.
            vector.iov_base = unsafe { base.add(index * self.buffer_bytes) }.cast();
            vector.iov_len = length;
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        let done = call(headers.as_mut_ptr(), count as libc::c_uint);
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let done = done.unsigned_abs() as usize;
        for (length, header) in self.lengths.iter_mut().zip(&headers).take(done) {
            *length = header.msg_len as usize;
        }
        Ok(done)
    }
}

/// Makes the kernel or the card cut every buffer sent from now on into datagrams of this size
/// (`UDP_SEGMENT`, Linux 4.18); 0 switches it off.
pub fn segment(socket: BorrowedFd, bytes: u32) -> io::Result<()> {
    option(socket, libc::UDP_SEGMENT, bytes)
}

/// Permits the kernel to deliver datagrams of equal size from one sender as one buffer (`UDP_GRO`,
/// Linux 5.0).
pub fn coalesce(socket: BorrowedFd) -> io::Result<()> {
    option(socket, libc::UDP_GRO, 1)
}

/// Buffers that the kernel has dropped because this socket's buffer was full (`SO_MEMINFO`, Linux
/// 4.12), modulo 2^32. A buffer of several datagrams ([`coalesce`]) counts once.
pub fn dropped(socket: BorrowedFd) -> io::Result<u32> {
    // linux/sock_diag.h: SK_MEMINFO_DROPS is the ninth word.
    const DROPS: usize = 8;
    let mut words = [0u32; 16];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes up to `length` bytes, which is the array's size, and says how many.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &mut length,
        )
    };
    match done {
        0 if length as usize > DROPS * size_of::<u32>() => Ok(words[DROPS]),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn option(socket: BorrowedFd, name: libc::c_int, value: u32) -> io::Result<()> {
    let length = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the pointer is to a live number of this length; the kernel copies it.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, name, (&raw const value).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    fn pair() -> (UdpSocket, UdpSocket) {
        let bound = || UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (one, other) = (bound(), bound());
        one.connect(other.local_addr().expect("address")).expect("connected");
        other.connect(one.local_addr().expect("address")).expect("connected");
        (one, other)
    }

    #[test]
    fn a_batch_arrives_complete_and_in_order() {
        let (one, other) = pair();
        let mut sends = Batch::new(8, 100);
        for index in 0..8 {
            sends.buffer_mut(index).fill(index as u8 + 1);
        }
        assert_eq!(sends.send(one.as_fd(), 60).expect("sent"), 8);
        let mut receives = Batch::new(MAX_BUFFERS, 2000);
        let mut got = Vec::new();
        while got.len() < 8 {
            let count = receives.receive(other.as_fd()).expect("received");
            got.extend((0..count).map(|index| receives.received(index).to_vec()));
        }
        for (index, bytes) in got.iter().enumerate() {
            assert_eq!(bytes, &vec![index as u8 + 1; 60]);
        }
    }

    #[test]
    fn a_full_socket_counts_dropped_buffers() {
        let (one, other) = pair();
        let before = match dropped(other.as_fd()) {
            Ok(count) => count,
            Err(error) => return println!("skipped: no SO_MEMINFO here ({error})"),
        };
        rustix::net::sockopt::set_socket_recv_buffer_size(&other, 4096).expect("a small buffer");
        for _ in 0..100 {
            one.send(&[0; 1000]).expect("sent");
        }
        let mut bytes = [0; 2000];
        other.set_nonblocking(true).expect("no waiting");
        let arrived = std::iter::from_fn(|| other.recv(&mut bytes).ok()).count();
        let lost = dropped(other.as_fd()).expect("counted").wrapping_sub(before) as usize;
        assert!(lost > 50 && lost + arrived == 100, "{lost} of 100 dropped, {arrived} arrived");
    }

    #[test]
    fn one_buffer_becomes_many_datagrams() {
        let (one, other) = pair();
        if let Err(error) = segment(one.as_fd(), 100) {
            return println!("skipped: no UDP_SEGMENT here ({error})");
        }
        let mut sends = Batch::new(1, 1000);
        sends.send(one.as_fd(), 1000).expect("sent");
        let mut bytes = [0u8; 2000];
        for _ in 0..10 {
            assert_eq!(other.recv(&mut bytes).expect("received"), 100);
        }
        coalesce(other.as_fd()).expect("a kernel that segments has this, too");
        sends.send(one.as_fd(), 1000).expect("sent");
        assert!(other.recv(&mut bytes).expect("received") >= 100);
    }
}
