//! The kernel's functions by address, from /proc/kallsyms, and whether this process may read them.

use std::fs::File;
use std::io::Read;

const KALLSYMS: &str = "/proc/kallsyms";

/// Start address of each kernel function, and the kind that the caller assigns to it.
pub struct Symbols<K> {
    starts: Vec<(u64, K)>,
}

impl<K: Copy + Ord> Symbols<K> {
    /// The functions of the running kernel; reading them takes about 0.1 s of CPU time.
    pub fn of_kernel(kind: impl Fn(&str) -> K) -> Result<Symbols<K>, String> {
        let text = std::fs::read_to_string(KALLSYMS).map_err(|error| unreadable(&error))?;
        let symbols = Symbols::parse(&text, kind);
        if symbols.starts.is_empty() { Err(HIDDEN.to_string()) } else { Ok(symbols) }
    }

    /// Lines hold address, type, name and module. Data and symbols without an address are left out.
    /// If an address has several names, the highest kind counts.
    fn parse(text: &str, kind: impl Fn(&str) -> K) -> Symbols<K> {
        let function = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
            matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
            Some((address, kind(words.next()?)))
        };
        let mut starts: Vec<(u64, K)> = text.lines().filter_map(function).collect();
        starts.sort_unstable();
        Symbols { starts }
    }

    /// The kind of the function that contains an address: the last one that starts at or before it.
    /// `None` for addresses of programs, which lie below the kernel.
    pub fn kind_at(&self, address: u64) -> Option<K> {
        let next = self.starts.partition_point(|(start, _)| *start <= address);
        self.starts.get(next.checked_sub(1)?).map(|(_, kind)| *kind)
    }
}

const HIDDEN: &str = "the kernel hides the addresses of its functions (kernel.kptr_restrict): reading them needs root or CAP_SYSLOG";

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot read the kernel's functions from {KALLSYMS}: {error}")
}

/// Why addresses of kernel functions are unreadable, judged by the first line of the file alone.
pub fn symbols_hidden() -> Option<String> {
    let mut start = [0; 64];
    match File::open(KALLSYMS).and_then(|mut file| file.read(&mut start)) {
        Err(error) => Some(unreadable(&error)),
        Ok(length) => start[..length]
            .iter()
            .take_while(|byte| !byte.is_ascii_whitespace())
            .all(|byte| *byte == b'0')
            .then(|| HIDDEN.to_string()),
    }
}

/// `kernel.perf_event_paranoid`: what users may do with perf events.
pub fn perf_paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T _text\nffffffff81000000 T first\nffffffff81000400 t third\n\
                        ffffffff81000200 W second\nffffffff81000300 d data\n0000000000000000 A per_cpu\n\
                        ffffffffc0000000 t own\t[module]\nno line\n\nffffffff81000500 T\n";

    #[test]
    fn an_address_belongs_to_the_function_that_starts_before_it() {
        let symbols = Symbols::parse(TEXT, |name| name.len());
        let at = |address| symbols.kind_at(address);
        assert_eq!((at(0), at(0x40_0000), at(0xffff_ffff_80ff_ffff)), (None, None, None));
        // Both names of the first address have five letters.
        assert_eq!((at(0xffff_ffff_8100_0000), at(0xffff_ffff_8100_01ff)), (Some(5), Some(5)));
        assert_eq!((at(0xffff_ffff_8100_0200), at(0xffff_ffff_8100_03ff)), (Some(6), Some(6)));
        assert_eq!((at(0xffff_ffff_8100_0400), at(0xffff_ffff_bfff_ffff)), (Some(5), Some(5)));
        assert_eq!((at(0xffff_ffff_c000_0000), at(u64::MAX)), (Some(3), Some(3)));
    }

    #[test]
    fn of_two_names_the_higher_kind_counts() {
        for text in ["10 T lock\n10 T mark\n20 T other", "10 T mark\n10 T lock\n20 T other"] {
            let symbols = Symbols::parse(text, |name| name == "lock");
            assert_eq!(
                (symbols.kind_at(0x10), symbols.kind_at(0x1f), symbols.kind_at(0x20)),
                (Some(true), Some(true), Some(false))
            );
        }
    }

    #[test]
    fn symbols_without_addresses_are_left_out() {
        let hidden = TEXT.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
        assert!(Symbols::parse(&hidden, |_| ()).starts.is_empty());
        match symbols_hidden() {
            Some(why) => assert!(Symbols::of_kernel(|_| ()).is_err_and(|other| other == why), "{why}"),
            None => assert!(Symbols::of_kernel(|_| ()).is_ok_and(|all| all.starts.len() > 1000)),
        }
    }
}
