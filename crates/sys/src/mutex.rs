//! A mutex in shared memory that works like the C library's default one.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// The three-state futex mutex (Drepper, "Futexes Are Tricky", 2011, mutex 2), the algorithm of
/// glibc's default mutex: without contention one atomic instruction to lock and one to unlock; a
/// task that finds it locked sleeps at once.
///
/// It stays locked if its owner dies; members of a visit die together.
pub struct Mutex<'a>(pub &'a AtomicU32);

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and tasks may sleep: unlocking must wake one.
const CONTENDED: u32 = 2;

impl Mutex<'_> {
    #[inline]
    pub fn lock(&self) {
        if self.0.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            // Woken, interrupted or raced: the swap checks again.
            let _ = futex::wait(self.0, futex::Flags::empty(), CONTENDED, None);
        }
    }

    #[inline]
    pub fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            // It is no error if all waiters have woken already.
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn only_one_task_at_a_time_holds_the_lock() {
        let (word, count) = (AtomicU32::new(FREE), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mutex = Mutex(&word);
                    for _ in 0..5000 {
                        mutex.lock();
                        // Load and store are not atomic together: two holders would lose additions.
                        let seen = count.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        count.store(seen + 1, Ordering::Relaxed);
                        mutex.unlock();
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 20_000);
        assert_eq!(word.load(Ordering::Relaxed), FREE);
    }
}
