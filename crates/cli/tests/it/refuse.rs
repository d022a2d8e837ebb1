//! Programs for which the kernel refuses some calls, as in containers and sandboxes: a filter
//! (seccomp) that a child gives itself between its birth and its program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
    c_long, sock_filter, sock_fprog,
};

/// A filter as the kernel runs it, step by step.
#[derive(Default)]
pub struct Filter(Vec<sock_filter>);

/// Where the number of a call and its first argument stand (`struct seccomp_data`).
const NUMBER: u32 = 0;
const FIRST: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };

impl Filter {
    /// These calls fail with this error.
    pub fn refusing(mut self, calls: &[c_long], error: i32) -> Filter {
        for call in calls {
            self.step(BPF_LD | BPF_W | BPF_ABS, 0, NUMBER);
            self.step(BPF_JMP | BPF_JEQ | BPF_K, 1, *call as u32);
            self.step(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | error as u32);
        }
        self
    }

    /// No further thread, while processes are still to be had.
    pub fn refusing_threads(self) -> Filter {
        // What is not there makes the C library ask in the older way, whose flags a filter can see.
        let mut filter = self.refusing(&[libc::SYS_clone3], libc::ENOSYS);
        filter.step(BPF_LD | BPF_W | BPF_ABS, 0, NUMBER);
        filter.step(BPF_JMP | BPF_JEQ | BPF_K, 3, libc::SYS_clone as u32);
        filter.step(BPF_LD | BPF_W | BPF_ABS, 0, FIRST);
        filter.step(BPF_JMP | BPF_JSET | BPF_K, 1, libc::CLONE_THREAD as u32);
        filter.step(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | libc::EAGAIN as u32);
        filter
    }

    /// One instruction; `otherwise`: how many are left out where a comparison fails.
    fn step(&mut self, code: u32, otherwise: u8, k: u32) {
        self.0.push(sock_filter { code: code as u16, jt: 0, jf: otherwise, k });
    }

    /// The command, to be run under this filter.
    pub fn on(mut self, mut command: Command) -> Command {
        self.step(BPF_RET | BPF_K, 0, SECCOMP_RET_ALLOW);
        let mut steps = self.0;
        let install = move || {
            let program = sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
            // SAFETY: two calls that read what is passed to them, and the filter outlives them.
            let refused = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                    || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
            };
            if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: between fork and exec the child makes two system calls: no memory, no lock.
        unsafe { command.pre_exec(install) };
        command
    }
}

/// Whether programs can be put under a filter here.
pub fn works() -> bool {
    let mut harmless = Filter::default().on(Command::new("true"));
    harmless.status().is_ok_and(|status| status.success())
}
