//! `select` on descriptors that the caller keeps open.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::event::{FdSetElement, FdSetIter, Timespec, fd_set_bound, fd_set_insert, fd_set_num_elements};

/// A set of descriptors that is polled repeatedly for being readable.
pub struct ReadSet<'fd> {
    wanted: Vec<FdSetElement>,
    answer: Vec<FdSetElement>,
    bound: i32,
    /// Keeps the descriptors open for as long as the set exists.
    _descriptors: Vec<BorrowedFd<'fd>>,
}

impl<'fd> ReadSet<'fd> {
    pub fn of(descriptors: impl Iterator<Item = BorrowedFd<'fd>>) -> ReadSet<'fd> {
        let descriptors: Vec<BorrowedFd> = descriptors.collect();
        let highest = descriptors.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(0);
        let mut wanted = vec![FdSetElement::default(); fd_set_num_elements(descriptors.len(), highest + 1)];
        for descriptor in &descriptors {
            fd_set_insert(&mut wanted, descriptor.as_raw_fd());
        }
        let bound = fd_set_bound(&wanted);
        ReadSet { answer: wanted.clone(), wanted, bound, _descriptors: descriptors }
    }

    /// The number of readable descriptors; does not wait. The kernel overwrites the set, so it gets
    /// a copy.
    pub fn ask(&mut self) -> io::Result<usize> {
        const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.answer.copy_from_slice(&self.wanted);
        // SAFETY: the set borrows all its descriptors, so they are open.
        let ready =
            unsafe { rustix::event::select(self.bound, Some(&mut self.answer), None, None, Some(&NO_WAIT))? };
        Ok(usize::try_from(ready).unwrap_or(0))
    }

    /// Whether the last [`ReadSet::ask`] found this descriptor readable.
    pub fn is_readable(&self, descriptor: impl AsFd) -> bool {
        FdSetIter::new(&self.answer).any(|readable| readable == descriptor.as_fd().as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readable_descriptors_are_reported() {
        let (idle, _idle_end) = rustix::pipe::pipe().expect("a pipe");
        let (ready, ready_end) = rustix::pipe::pipe().expect("a pipe");
        let mut set = ReadSet::of([&idle, &ready].into_iter().map(AsFd::as_fd));
        assert_eq!(set.ask().expect("select"), 0);
        rustix::io::write(&ready_end, b"x").expect("a byte");
        assert_eq!(set.ask().expect("select"), 1);
        assert!(set.is_readable(&ready) && !set.is_readable(&idle));
    }
}
