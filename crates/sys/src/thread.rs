//! Threads: helpers of the program, and measured ones that are started as in C.
//!
//! The standard library maps a signal stack before each thread's work and unmaps it afterwards;
//! every unmapping interrupts the other CPUs that run the process. With hundreds of timed threads
//! that matters: 400 that ended together took a tenth of hackbench's time.

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Starts a helper thread. If the kernel refuses another task, returns an error
/// (`std::thread::spawn` would panic).
pub fn try_spawn<Answer: Send + 'static>(
    work: impl FnOnce() -> Answer + Send + 'static,
) -> io::Result<std::thread::JoinHandle<Answer>> {
    std::thread::Builder::new().spawn(work)
}

/// Runs `work` in this thread and in others, in at most `max_threads` together or as many as the
/// kernel permits; returns when all have ended.
pub fn run_in_parallel(max_threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..max_threads {
            if std::thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}

/// A thread with an answer; if this value is dropped, the thread runs on detached.
pub struct Thread<Answer> {
    handle: libc::pthread_t,
    joined: bool,
    answer: PhantomData<Answer>,
}

// SAFETY: any thread may join or detach the handle, and the answer is `Send`.
unsafe impl<Answer: Send> Send for Thread<Answer> {}

/// The work of a thread: boxed by `start`, taken by `enter`.
type Work<Answer> = Box<dyn FnOnce() -> Answer + Send>;

/// Starts a thread with a stack of `stack_bytes` bytes, or the minimum if that is larger. (The C
/// library caches up to 40 MiB of stacks of ended threads.) An error if memory runs out or the
/// kernel refuses another task.
pub fn start<Answer: Send + 'static>(
    stack_bytes: usize,
    work: impl FnOnce() -> Answer + Send + 'static,
) -> io::Result<Thread<Answer>> {
    // SAFETY: sysconf accesses no memory of this process.
    let min_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) }).unwrap_or(0);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut handle = MaybeUninit::<libc::pthread_t>::uninit();
    // Boxed twice, because the argument must be a thin pointer.
    let argument = Box::into_raw(Box::new(Box::new(work) as Work<Answer>));
    // SAFETY: the attributes are initialised before their use and destroyed once; `enter` takes
    // ownership of the argument, and only if the thread was started.
    let error = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), min_bytes.max(stack_bytes));
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
        // SAFETY: no thread was started, so this function still owns the box.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: pthread_create succeeded and has written it.
    let handle = unsafe { handle.assume_init() };
    Ok(Thread { handle, joined: false, answer: PhantomData })
}

/// The thread's entry function: runs the work and returns a box with its answer, or null if the
/// work panicked.
extern "C" fn enter<Answer: Send + 'static>(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a box of this type, once.
    let work = unsafe { Box::from_raw(argument.cast::<Work<Answer>>()) };
    match catch_unwind(AssertUnwindSafe(*work)) {
        Ok(answer) => Box::into_raw(Box::new(answer)).cast(),
        Err(_) => ptr::null_mut(),
    }
}

impl<Answer> Thread<Answer> {
    /// Waits for the thread's end; an error if it panicked.
    pub fn join(mut self) -> io::Result<Answer> {
        self.joined = true;
        let mut answer: *mut c_void = ptr::null_mut();
        // SAFETY: the thread was neither joined nor detached: both consume this value.
        let error = unsafe { libc::pthread_join(self.handle, &raw mut answer) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        if answer.is_null() {
            return Err(io::Error::other("a thread panicked"));
        }
        // SAFETY: the box that `enter` of this type returned, taken once.
        Ok(*unsafe { Box::from_raw(answer.cast::<Answer>()) })
    }
}

impl<Answer> Drop for Thread<Answer> {
    fn drop(&mut self) {
        if !self.joined {
            // SAFETY: not joined, and this is the only handle. The thread's answer is leaked.
            unsafe { libc::pthread_detach(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Large enough for the message of a panic.
    const STACK: usize = 1 << 20;

    #[test]
    fn every_thread_returns_its_answer() {
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
    fn an_answer_may_have_no_size() {
        start(STACK, || ()).expect("a thread").join().expect("it ended by itself");
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = start(STACK, || assert_eq!(1 + 1, 3)).expect("a thread").join().expect_err("it panicked");
        assert_eq!(error.to_string(), "a thread panicked");
    }

    #[test]
    fn a_detached_thread_runs_on() {
        let (sender, receiver) = std::sync::mpsc::channel();
        drop(start(STACK, move || sender.send(7)).expect("a thread"));
        assert_eq!(receiver.recv(), Ok(7));
    }
}
