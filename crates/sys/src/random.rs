//! Random bytes from the kernel, for tokens and nonces that must not be guessed.

use std::io;

/// Unpredictable bytes. Waits for the kernel's generator only in the first seconds after a boot.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0u8; N];
    let mut filled = 0;
    while filled < N {
        let rest = &mut bytes[filled..];
        // SAFETY: pointer and length describe one writable slice.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match got {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            got => filled += got.unsigned_abs().min(rest.len()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_calls_differ() {
        assert_ne!(random::<32>().expect("random bytes"), random::<32>().expect("random bytes"));
    }
}
