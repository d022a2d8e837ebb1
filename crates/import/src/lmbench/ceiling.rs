//! Files that a result says were read faster than its own memory.

use crate::{Figure, Imported};
use model::vocabulary as ids;
use model::{Finding, figure};

/// lmbench pins nothing, so that turbo and other work differ between two of its figures.
const ALLOWANCE: f64 = 1.25;

/// A finding of each read of a file that is at least as large as the largest block of memory that
/// was read, and came more than 1.25 times as fast: the rule of Assay's own runs.
pub fn above_memory(one: &Imported) -> Vec<Finding> {
    let median = |figure: &Figure| figure.judged.analysis.estimate.as_ref().map(|found| found.median);
    let bytes = |figure: &Figure| figure.judged.series.params().get(ids::memory::param::BYTES)?.number();
    let is_read = |figure: &&Figure| {
        let case = &figure.judged.series.case;
        let op = case.params.get(ids::memory::param::OP).and_then(|op| op.text());
        case.bench == ids::memory::BANDWIDTH && op == Some("read")
    };
    let is_file = |figure: &&Figure| {
        let series = &figure.judged.series;
        series.case.bench.starts_with("file.") && series.metric.unit == "GB/s"
    };
    let reads = one.figures.iter().filter(is_read);
    let reads = reads.filter_map(|figure| Some((bytes(figure)?, median(figure)?, figure)));
    let Some((block, memory, from)) = reads.max_by(|one, other| one.0.total_cmp(&other.0)) else {
        return Vec::new();
    };
    let finding = |file: &Figure| {
        let read = median(file).filter(|read| *read > ALLOWANCE * memory)?;
        bytes(file).filter(|bytes| *bytes >= block)?;
        let (key, of_memory) = (&file.judged.series.key, &from.judged.series.key);
        Some(Finding::warning(ids::host::rule::ABOVE_CEILING, format!(
            "{} reaches {}, memory only {}: the file was in the page cache",
            file.wording,
            figure(read, "GB/s"),
            figure(memory, "GB/s")
        ))
            .cause("A file larger than the caches is read from memory at best. It was in the page cache, not on a disk, and one of the two \
                    figures is wrong, or they read in different ways.")
            .fact("file", figure(read, "GB/s"), key)
            .fact("memory, the largest block", figure(memory, "GB/s"), of_memory)
            .confirm("assay run --only memory.bandwidth,file.mmap,file.read")
            .advice("Do not use it as the figure of a disk.")
            .concerns([key]))
    };
    one.figures.iter().filter(is_file).filter_map(finding).collect()
}
