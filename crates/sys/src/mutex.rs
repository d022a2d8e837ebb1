//! A mutex in memory that processes share, made as the C library's default one is.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// The three-state futex mutex (Drepper, "Futexes Are Tricky", 2011, mutex 2), which is also what
/// glibc's default mutex does: one atomic instruction to lock and one to unlock while nobody waits;
/// who finds it locked goes to sleep at once.
///
/// It ends nothing when its owner dies: members of a visit die together.
pub struct Mutex<'a>(pub &'a AtomicU32);

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and somebody may sleep: unlocking must wake.
const AWAITED: u32 = 2;

impl Mutex<'_> {
    #[inline]
    pub fn lock(&self) {
        if self.0.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            // Woken, interrupted or raced: the swap looks again.
            let _ = futex::wait(self.0, futex::Flags::empty(), AWAITED, None);
        }
    }

    #[inline]
    pub fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            // Nobody asleep any more is fine.
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn only_one_at_a_time_is_inside() {
        let (word, count) = (AtomicU32::new(FREE), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mutex = Mutex(&word);
                    for _ in 0..5000 {
                        mutex.lock();
                        // Not atomic together: two inside would lose additions.
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
