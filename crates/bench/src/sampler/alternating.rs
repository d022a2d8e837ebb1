//! Two workloads in alternating samples, so that drift common to both cancels out of their
//! difference.

use anyhow::Context;
use model::vocabulary::MetricId;
use model::{Form, Samples};

use super::calibration::{calibrate, linearity};
use super::columns::Columns;
use super::{Point, Sampler};

impl Sampler<'_> {
    /// Times two workloads in alternating samples, one point each. `body` runs the given number of
    /// iterations of workload 0 or 1 and returns their nanoseconds. Emits metric `difference` at
    /// the second point: for each round, ns per unit of work of the first less the second.
    pub fn time_alternating(
        &mut self,
        points: [Point; 2],
        difference: MetricId,
        mut body: impl FnMut(usize, u64) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        self.time_alternating_dyn(points, difference, &mut body)
    }

    /// Not generic, so that it is compiled once.
    fn time_alternating_dyn(
        &mut self,
        points: [Point; 2],
        difference: MetricId,
        body: &mut dyn FnMut(usize, u64) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        let (mut iterations, mut linearities) = ([0; 2], [0.0; 2]);
        for (which, point) in points.iter().enumerate() {
            let window_ns = self.windows.window_ns * point.stretch;
            let mut workload = |iterations| body(which, iterations);
            iterations[which] = calibrate(window_ns, &mut workload).context("while calibrating")?;
            linearities[which] = linearity(iterations[which], &mut workload)?;
        }
        let mut columns = [Columns::default(), Columns::default()];
        let begin = self.clock.now();
        // A round is one window of each. The order swaps, so that neither workload always finds the
        // caches as the other left them.
        for round in 0..self.windows.warm_up + self.windows.count {
            for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let before = self.gauge();
                let ns = body(which, iterations[which])?;
                let work = iterations[which] as f64 * points[which].work;
                columns[which].push(&before, &self.gauge(), work, ns);
                columns[which].probe_core(self.clock);
            }
            if self.clock.now() - begin > self.windows.limit_s * 1e9 {
                break;
            }
        }
        let samples_of = |point: Point, columns: Columns, linearity: f64| {
            let warm_up = self.windows.warm_up.min(columns.ns.len().saturating_sub(1));
            let metrics = point.metrics();
            columns.samples(point.params, metrics, warm_up, Some(linearity))
        };
        let ([first_point, second_point], [first_columns, second_columns]) = (points, columns);
        let first = samples_of(first_point, first_columns, linearities[0]);
        let second = samples_of(second_point, second_columns, linearities[1]);
        let per_work = |samples: &Samples| samples.values(Form::TimePerWork { scale: 1.0 });
        // One noted value per round: the difference.
        let noted: Vec<Vec<f64>> = per_work(&first)
            .iter()
            .zip(per_work(&second))
            .map(|(first_ns, second_ns)| vec![first_ns - second_ns])
            .collect();
        self.emit_notes(&second, &[(second.point.clone(), difference)], &noted)?;
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
    fn differences_stand_at_the_second_point_round_by_round() {
        let points = [1u64, 2].map(|at| Point::new(metric::LATENCY, 10.0).at(point(param::BYTES, at)));
        // A disturbance common to both grows from sample to sample; the first takes 3 ns more for
        // each of ten units.
        let mut disturbance = 0.0;
        let all = with_sampler(|sampler| {
            sampler.time_alternating(points, metric::TRANSLATION, |which, iterations| {
                disturbance += 5.0;
                let each = [130.0, 100.0][which];
                Ok(iterations as f64 * each + disturbance)
            })
        })
        .expect("windows");
        let named = |name: &str| all.iter().filter(|one| one.metrics == [name]).collect::<Vec<_>>();
        assert_eq!(named("latency").len(), 2);
        let [differences] = named("translation")[..] else { panic!("{all:?}") };
        assert_eq!((differences.point.clone(), differences.len()), (point(param::BYTES, 2u64), 3));
        let values = differences.values(Form::Value);
        assert!(values.iter().all(|value| (value - 3.0).abs() < 0.1), "{values:?}");
        assert!(all.iter().all(|one| one.beside.clock_ghz.is_some() && one.linearity.is_some()));
    }
}
