//! The options of disk rows: what is wanted of them instead of the profile's blocks, depths and rate.

use crate::bench::{Candidate, DiskWish, disk_cases};

#[derive(clap::Args, Default)]
pub struct DiskArgs {
    /// Sizes of an I/O in disk.sequential and disk.random, like 4k,64k,1M (512 bytes to 8 MiB), instead of the profile's
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = block)]
    block: Vec<u64>,
    /// I/Os in flight of each job in disk.sequential and disk.random, like 1,32, instead of the profile's
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Vec<u32>,
    /// I/Os that fall due a second in disk.paced, instead of the profile's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    io_rate: Option<u64>,
}

const SMALLEST: u64 = 512;
const LARGEST: u64 = 8 << 20;

/// `4096`, `4k`, `1M`: whole sectors.
fn block(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(['k', 'K', 'm', 'M']);
    let factor = match &text[number.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        _ => 0,
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let fits = |bytes: &u64| (SMALLEST..=LARGEST).contains(bytes) && bytes.is_multiple_of(SMALLEST);
    bytes.filter(fits).ok_or_else(|| "a block is a multiple of 512 bytes up to 8M, like 4k or 1M".to_string())
}

impl DiskArgs {
    pub fn any(&self) -> bool {
        !self.block.is_empty() || !self.depth.is_empty() || self.io_rate.is_some()
    }

    /// The candidates of a plan, those of the disk as they are wanted.
    pub fn supply(&self, candidates: Vec<Candidate>) -> Vec<Candidate> {
        let wish = DiskWish { blocks: self.block.clone(), depths: self.depth.clone(), rate: self.io_rate };
        disk_cases(candidates, &wish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_sectors() {
        assert_eq!((block("4k"), block("1M"), block("512")), (Ok(4096), Ok(1 << 20), Ok(512)));
        for wrong in ["", "k", "0", "100", "16M", "4kk", "4g", "-1", "99999999999999999999M"] {
            assert!(block(wrong).is_err(), "{wrong:?}");
        }
    }
}
