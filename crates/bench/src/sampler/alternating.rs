//! Two workloads in alternating samples, so that drift common to both cancels out of their
//! difference.

use anyhow::Context;
use model::Form;
use model::vocabulary::MetricId;

use super::calibration::{calibrate, linearity};
use super::columns::Columns;
use super::{Point, Sampler};

impl Sampler<'_> {
    /// Times two workloads in alternating samples, a point each. `body` runs the given number of
    /// iterations of workload 0 or 1 and returns their nanoseconds. Emits metric `longer` at the
    /// second point: for each sample, ns per unit of work of the first less the second.
    pub fn time_alternating(
        &mut self,
        points: [Point; 2],
        longer: MetricId,
        mut body: impl FnMut(usize, u64) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        self.time_alternating_dyn(points, longer, &mut body)
    }

    /// Not generic, so that it is compiled once.
    fn time_alternating_dyn(
        &mut self,
        points: [Point; 2],
        longer: MetricId,
        body: &mut dyn FnMut(usize, u64) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        let (mut iterations, mut linearities) = ([0; 2], [0.0; 2]);
        for (which, point) in points.iter().enumerate() {
            let window_ns = self.windows.window_ns * point.stretch;
            let mut one = |iterations| body(which, iterations);
            iterations[which] = calibrate(window_ns, &mut one).context("while calibrating")?;
            linearities[which] = linearity(iterations[which], &mut one)?;
        }
        let mut columns = [Columns::default(), Columns::default()];
        let begin = self.clock.now();
        for window in 0..self.windows.warm_up + self.windows.count {
            // The order swaps each round, so neither always finds the caches of the other.
            for which in if window % 2 == 0 { [0, 1] } else { [1, 0] } {
                let before = self.gauge();
                let ns = body(which, iterations[which])?;
                let work = iterations[which] as f64 * points[which].work;
                columns[which].push(&before, &self.gauge(), work, ns);
                columns[which].look_at_core(self.clock);
            }
            if self.clock.now() - begin > self.windows.limit_s * 1e9 {
                break;
            }
        }
        let mut all =
            points.into_iter().zip(columns).zip(linearities).map(|((point, columns), linearity)| {
                let warm_up = self.windows.warm_up.min(columns.ns.len().saturating_sub(1));
                let metrics = point.metrics();
                columns.samples(point.params, metrics, warm_up, Some(linearity))
            });
        let (Some(first), Some(second)) = (all.next(), all.next()) else { return Ok(()) };
        let each = [&first, &second].map(|samples| samples.values(Form::TimePerWork { scale: 1.0 }));
        let differences: Vec<Vec<f64>> =
            each[0].iter().zip(&each[1]).map(|(one, other)| vec![one - other]).collect();
        self.emit_notes(&second, &[(second.point.clone(), longer)], &differences)?;
        self.emit(first)?;
        self.emit(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point;
    use crate::rehearsal::with_sampler;
    use model::vocabulary::memory::{metric, param};

    #[test]
    fn differences_stand_at_the_second_point_window_by_window() {
        let points = [1u64, 2].map(|at| Point::new(metric::LATENCY, 10.0).at(point(param::BYTES, at)));
        // Common noise changes from sample to sample; the first takes 3 ns more for each of ten
        // units.
        let mut moved = 0.0;
        let all = with_sampler(|sampler| {
            sampler.time_alternating(points, metric::TRANSLATION, |which, iterations| {
                moved += 5.0;
                let each = [130.0, 100.0][which];
                Ok(iterations as f64 * each + moved)
            })
        })
        .expect("windows");
        let named = |name: &str| all.iter().filter(|one| one.metrics == [name]).collect::<Vec<_>>();
        assert_eq!(named("latency").len(), 2);
        let [longer] = named("translation")[..] else { panic!("{all:?}") };
        assert_eq!((longer.point.clone(), longer.len()), (point(param::BYTES, 2u64), 3));
        let values = longer.values(Form::Value);
        assert!(values.iter().all(|value| (value - 3.0).abs() < 0.1), "{values:?}");
        assert!(all.iter().all(|one| one.beside.clock_ghz.is_some() && one.linearity.is_some()));
    }
}
