//! Messages of fio other than results: errors, failed verification, signals, warnings.

use super::Sheet;
use crate::faults::short;

/// Remarks of one kind that are quoted.
const QUOTED: usize = 5;

/// Whether a line reports failed I/O.
fn failed(line: &str) -> bool {
    line.starts_with("verify:")
        || line.contains("io_u error")
        || line.contains("bad magic header")
        || line.contains("bad header ")
        || (line.contains("err=") && line.contains("/file:"))
        || (line.starts_with("fio: pid=") && line.contains("error="))
        || line.contains("ENOSPC on laying out")
}

/// Words of lines about where data were, and what they mean.
const HINTS: [(&str, &str); 3] = [
    ("cache invalidation of", "the page cache could not be emptied first: it may have had the data"),
    (
        "Cache flush bypassed",
        "the page cache was not emptied first, which only root may do: it may have had the data",
    ),
    ("not support direct=1", "the file system does not support direct I/O"),
];

/// Notes what the lines around results say; those that are results are not among them, or are
/// passed over.
pub fn read(lines: &[&str], sheet: &mut Sheet) {
    let (mut quoted, mut more) = (Vec::new(), 0);
    let mut hints: Vec<&str> = Vec::new();
    for line in lines.iter().map(|line| line.trim()) {
        if line.contains("(groupid=") {
            continue;
        }
        for (sign, hint) in HINTS {
            if line.contains(sign) && !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        if failed(line) {
            sheet.faults.failed("says", line, "the file");
        } else if line.contains("terminating on signal") {
            sheet.faults.interrupted(line);
        } else if line.starts_with("fio: ") || line.to_ascii_lowercase().contains("warning") {
            if quoted.len() < QUOTED { quoted.push(format!("it says {:?}", short(line))) } else { more += 1 }
        }
    }
    for job in &mut sheet.jobs {
        job.hints.extend(hints.iter().map(|hint| hint.to_string()));
    }
    sheet.remarks.append(&mut quoted);
    if more > 0 {
        sheet.remarks.push(format!("and {more} more such lines"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_report_failed_io_are_failures() {
        for line in [
            "verify: bad magic header 0, wanted acca at file /t/f offset 0, length 4096",
            "fio: io_u error on file /t/f: Input/output error: read offset=0, buflen=4096",
            "fio: bad header rand_seed 1, wanted 2",
            "job1: (groupid=0): err= 5 (file:io_u.c:1896, func=io_u error, error=Input/output error)",
            "fio: pid=77, err=5/file:io_u.c:1896, func=io_u error, error=Input/output error",
            "fio: ENOSPC on laying out file, stopping",
        ] {
            assert!(failed(line), "{line}");
        }
        for line in [
            "fio: pid=77, got signal=2",
            "fio: this platform does not support process shared mutexes",
            "job1: (groupid=0, jobs=1): err= 0: pid=77",
            "error=0",
            "stat of /file: ok",
        ] {
            assert!(!failed(line), "{line}");
        }
    }
}
