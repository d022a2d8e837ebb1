//! Result files of other tools.

use std::collections::BTreeSet;

use compare::{ComparisonSide, Options, compare};
use model::VerdictKind;

/// A file: refused, or results whose figures each have a value or a reason, and that agree with
/// themselves.
pub fn import(data: &[u8]) {
    let Ok(results) = ::import::read(data) else { return };
    assert!(!results.is_empty(), "neither refused nor read");
    for one in &results {
        assert!(!one.figures.is_empty(), "a result without figures");
        let keys: BTreeSet<&str> =
            one.figures.iter().map(|figure| figure.judged.series.key.as_str()).collect();
        assert_eq!(keys.len(), one.figures.len(), "two series of one key");
        let mut values = 0;
        for figure in &one.figures {
            let (series, analysis) = (&figure.judged.series, &figure.judged.analysis);
            assert!(series.key.is_ascii() || !series.key.contains(char::is_whitespace), "{}", series.key);
            assert!(!analysis.verdict.reason.is_empty(), "{} without a reason", series.key);
            match &analysis.estimate {
                Some(estimate) => {
                    values += 1;
                    assert!(estimate.median.is_finite() && estimate.median >= 0.0);
                    let kinds = [VerdictKind::Unverified, VerdictKind::Rejected];
                    assert!(kinds.contains(&analysis.verdict.kind), "{}", series.key);
                }
                None => assert_eq!(analysis.verdict.kind, VerdictKind::Skipped),
            }
        }
        // Bootstraps of thousands of figures would only be slow.
        if values <= 100 {
            let arm = ComparisonSide::imported(one, "file");
            let same = compare(&arm, &arm, &Options::default());
            assert!(same.environment.is_empty() && same.metrics.len() + same.refused.len() <= values);
            assert!(same.metrics.iter().all(|metric| metric.ratio == 1.0));
        }
    }
}
