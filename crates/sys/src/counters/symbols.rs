//! The kernel's own functions by their addresses, as /proc/kallsyms tells them, and what decides
//! whether it tells.

use std::fs::File;
use std::io::Read;

const KALLSYMS: &str = "/proc/kallsyms";

/// Where each function of the kernel begins, and of which kind the caller holds it to be.
pub struct Symbols<K> {
    begins: Vec<(u64, K)>,
}

impl<K: Copy + Ord> Symbols<K> {
    /// Those of the running kernel; takes some 0.1 s of CPU time.
    pub fn of_kernel(kind: impl Fn(&str) -> K) -> Result<Symbols<K>, String> {
        let text = std::fs::read_to_string(KALLSYMS).map_err(|error| unreadable(&error))?;
        let symbols = Symbols::parse(&text, kind);
        if symbols.begins.is_empty() { Err(HIDDEN.to_string()) } else { Ok(symbols) }
    }

    /// Lines of address, type and name, behind which modules name themselves. Data is left out, and
    /// so is all that has no address. Of several names of one address the highest kind holds.
    fn parse(text: &str, kind: impl Fn(&str) -> K) -> Symbols<K> {
        let function = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
            matches!(words.next()?, "t" | "T" | "w" | "W").then_some(())?;
            Some((address, kind(words.next()?)))
        };
        let mut begins: Vec<(u64, K)> = text.lines().filter_map(function).collect();
        begins.sort_unstable();
        Symbols { begins }
    }

    /// The kind of the function that begins last at or before an address; `None` below all of them,
    /// as programs are.
    pub fn at(&self, address: u64) -> Option<K> {
        let behind = self.begins.partition_point(|(begin, _)| *begin <= address);
        self.begins.get(behind.checked_sub(1)?).map(|(_, kind)| *kind)
    }
}

const HIDDEN: &str = "the kernel hides where its functions are (kernel.kptr_restrict): it tells only root, or who has CAP_SYSLOG";

fn unreadable(error: &std::io::Error) -> String {
    format!("the kernel's functions cannot be named ({KALLSYMS}: {error})")
}

/// Why the kernel's functions cannot be named, by the first line alone.
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
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(TEXT, |name| name.len());
        let at = |address| symbols.at(address);
        assert_eq!((at(0), at(0x40_0000), at(0xffff_ffff_80ff_ffff)), (None, None, None));
        // Both names of the first address have five letters.
        assert_eq!((at(0xffff_ffff_8100_0000), at(0xffff_ffff_8100_01ff)), (Some(5), Some(5)));
        assert_eq!((at(0xffff_ffff_8100_0200), at(0xffff_ffff_8100_03ff)), (Some(6), Some(6)));
        assert_eq!((at(0xffff_ffff_8100_0400), at(0xffff_ffff_bfff_ffff)), (Some(5), Some(5)));
        assert_eq!((at(0xffff_ffff_c000_0000), at(u64::MAX)), (Some(3), Some(3)));
    }

    #[test]
    fn of_two_names_the_higher_kind_holds() {
        for text in ["10 T lock\n10 T mark\n20 T other", "10 T mark\n10 T lock\n20 T other"] {
            let symbols = Symbols::parse(text, |name| name == "lock");
            assert_eq!(
                (symbols.at(0x10), symbols.at(0x1f), symbols.at(0x20)),
                (Some(true), Some(true), Some(false))
            );
        }
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let hidden = TEXT.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
        assert!(Symbols::parse(&hidden, |_| ()).begins.is_empty());
        match symbols_hidden() {
            Some(why) => assert!(Symbols::of_kernel(|_| ()).is_err_and(|other| other == why), "{why}"),
            None => assert!(Symbols::of_kernel(|_| ()).is_ok_and(|all| all.begins.len() > 1000)),
        }
    }
}
