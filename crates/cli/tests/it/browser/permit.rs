//! How many browsers run at once.

use std::sync::{Condvar, Mutex, PoisonError};

/// Browsers that may run at once: they are large, and each keeps a CPU busy.
pub const AT_ONCE: usize = 2;
static RUNNING: Mutex<usize> = Mutex::new(0);
static ONE_ENDED: Condvar = Condvar::new();

/// The right to run as many of `AT_ONCE` browsers.
pub struct Permit(usize);

impl Permit {
    pub fn wait(for_browsers: usize) -> Permit {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |running: &mut usize| *running + for_browsers > AT_ONCE;
        let waited = ONE_ENDED.wait_while(running, full);
        *waited.unwrap_or_else(PoisonError::into_inner) += for_browsers;
        Permit(for_browsers)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        ONE_ENDED.notify_all();
    }
}
