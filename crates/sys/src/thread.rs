//! Threads: those that help the program, and below those that are measured, as a C program makes
//! them.
//!
//! Under its own `main` the standard library gives each of its threads a second stack for signals,
//! mapped before the thread's work and unmapped after it, and every unmapping interrupts the other
//! CPUs that run the process. Where threads are made by the hundred and their end is timed that
//! showed: 400 that ended together took a tenth of hackbench's time.

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Starts a thread that helps. Where one more task is refused that is an error and not, as with the
/// standard library's plain way to do it, our end.
pub fn aside<Answer: Send + 'static>(
    work: impl FnOnce() -> Answer + Send + 'static,
) -> io::Result<std::thread::JoinHandle<Answer>> {
    std::thread::Builder::new().spawn(work)
}

/// Runs `work` in this thread and in as many others as there can be, up to so many in all; back
/// when all have ended.
pub fn together(most: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..most {
            if std::thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// A thread whose answer is awaited; where it is dropped the thread goes on by itself.
pub struct Thread<Answer> {
    handle: libc::pthread_t,
    joined: bool,
    answer: PhantomData<Answer>,
}

// SAFETY: the handle is a number that any thread may join or detach, and the answer that it hands
// over is `Send`.
unsafe impl<Answer: Send> Send for Thread<Answer> {}

/// What a thread runs: made by `start`, taken by `enter`.
type Work<Answer> = Box<dyn FnOnce() -> Answer + Send>;

/// Starts a thread with a stack of so many bytes, or of the least that there can be. The C library
/// keeps 40 MiB of the stacks of threads that have ended, and unmaps what is more. An error where
/// there is no memory or no room for one more task.
pub fn start<Answer: Send + 'static>(
    stack: usize,
    work: impl FnOnce() -> Answer + Send + 'static,
) -> io::Result<Thread<Answer>> {
    // SAFETY: sysconf reads nothing of ours.
    let least = usize::try_from(unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) }).unwrap_or(0);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut handle = MaybeUninit::<libc::pthread_t>::uninit();
    // A box of a box: a thin pointer.
    let argument = Box::into_raw(Box::new(Box::new(work) as Work<Answer>));
    // SAFETY: the attributes are initialised before their use and destroyed once; `enter` takes
    // what the argument points to, and only where the thread was started.
    let error = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), least.max(stack));
        let error = libc::pthread_create(
            handle.as_mut_ptr(),
            attributes.as_ptr(),
            enter::<Answer>,
            argument.cast::<c_void>(),
        );
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    if error != 0 {
        // SAFETY: no thread was started, so the box is still ours alone.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: written by pthread_create, which succeeded.
    let handle = unsafe { handle.assume_init() };
    Ok(Thread { handle, joined: false, answer: PhantomData })
}

/// A thread's first function: works, and leaves its answer in a box. Nothing where the work
/// panicked.
extern "C" fn enter<Answer: Send + 'static>(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a box of this very type, once.
    let work = unsafe { Box::from_raw(argument.cast::<Work<Answer>>()) };
    match catch_unwind(AssertUnwindSafe(*work)) {
        Ok(answer) => Box::into_raw(Box::new(answer)).cast(),
        Err(_) => ptr::null_mut(),
    }
}

impl<Answer> Thread<Answer> {
    /// Waits for the thread's end; an error where it panicked.
    pub fn join(mut self) -> io::Result<Answer> {
        self.joined = true;
        let mut answer: *mut c_void = ptr::null_mut();
        // SAFETY: a handle of a thread that nobody has joined or detached: both consume it.
        let error = unsafe { libc::pthread_join(self.handle, &raw mut answer) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        if answer.is_null() {
            return Err(io::Error::other("a thread panicked"));
        }
        // SAFETY: what `enter` of this type left, handed over once.
        Ok(*unsafe { Box::from_raw(answer.cast::<Answer>()) })
    }
}

impl<Answer> Drop for Thread<Answer> {
    fn drop(&mut self) {
        if !self.joined {
            // SAFETY: not joined, and this is the only handle. An answer that nobody takes is lost.
            unsafe { libc::pthread_detach(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Room for a panic to tell where it was.
    const STACK: usize = 1 << 20;

    #[test]
    fn answers_come_back_and_nothing_is_lost() {
        let count = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..200)
            .map(|index| {
                let count = Arc::clone(&count);
                start(16 << 10, move || {
                    count.fetch_add(1, Ordering::Relaxed);
                    vec![index; 3]
                })
                .expect("one more thread")
            })
            .collect();
        for (index, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().expect("its answer"), [index; 3]);
        }
        assert_eq!((count.load(Ordering::Relaxed), Arc::strong_count(&count)), (200, 1));
    }

    #[test]
    fn an_answer_of_no_size_is_one() {
        start(STACK, || ()).expect("a thread").join().expect("it ended by itself");
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = start(STACK, || assert_eq!(1 + 1, 3)).expect("a thread").join().expect_err("it panicked");
        assert_eq!(error.to_string(), "a thread panicked");
    }

    #[test]
    fn who_is_not_waited_for_goes_on() {
        let (tell, told) = std::sync::mpsc::channel();
        drop(start(STACK, move || tell.send(7)).expect("a thread"));
        assert_eq!(told.recv(), Ok(7));
    }
}
