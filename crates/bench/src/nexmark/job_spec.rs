//! What a case prescribes for a pass.

use std::path::PathBuf;

use anyhow::{Context, ensure};

use super::cluster::Plan;
use super::walk::Length;
use super::{APART, ELSEWHERE, HOME, JAR, JAVA, PORT, ROUNDS, SLOTS, STEP, TASKMANAGER, WARM_UP};
use super::{JOB, cluster_of, field, file, keeps_windows};
use model::{Case, CpuSet};

/// A job as its case describes it.
pub struct JobSpec {
    pub query: String,
    /// Whether its query keeps windows.
    pub windows: bool,
    pub jar: PathBuf,
    pub length: Length,
    pub parallelism: u64,
    pub on: Target,
}

pub enum Target {
    Own(Plan),
    Running {
        address: String,
        /// The number that the job gets.
        job: String,
    },
}

impl JobSpec {
    pub fn of(case: &Case) -> anyhow::Result<JobSpec> {
        let input = |name: &str| case.inputs.get(name).map(String::as_str);
        let number = |name: &str| -> anyhow::Result<f64> {
            let number =
                input(name).and_then(|text| text.parse().ok()).filter(|n: &f64| n.is_finite() && *n > 0.0);
            number.with_context(|| format!("the case has no number {name}"))
        };
        let jar = input(JAR).context("this command has no Flink: run `assay run --only nexmark`")?;
        let mut length =
            Length { rounds: number(ROUNDS)? as u32, step_s: number(STEP)?, warm_up_s: number(WARM_UP)? };
        let windows = keeps_windows(&case.bench);
        let seats = case.placement.seats.iter().filter(|seat| seat.role == TASKMANAGER);
        let cpus: CpuSet = seats.clone().flat_map(|seat| seat.cpus.iter().collect::<Vec<u32>>()).collect();
        let (parallelism, on) = match cluster_of(case) {
            Some(address) => {
                length = length.for_readings_apart(number(APART)?);
                // A case that is run by hand has no journal.
                let job = input(JOB).map_or_else(field::any_number, str::to_string);
                (number(SLOTS)? as u64, Target::Running { address, job })
            }
            None => {
                ensure!(!cpus.is_empty(), "the case has no CPUs for a TaskManager");
                let own = |name: &str| {
                    input(name).map(PathBuf::from).with_context(|| format!("the case has no {name}"))
                };
                let elsewhere = input(ELSEWHERE).and_then(CpuSet::parse_list);
                let plan = Plan {
                    java: own(JAVA)?,
                    flink: own(HOME)?,
                    dir: file::directory_of(case),
                    elsewhere: elsewhere.filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| cpus.clone()),
                    port: input(PORT).map(str::parse).transpose().context("the port is not a number")?,
                    seats: cpus,
                    windows,
                };
                (plan.seats.len() as u64, Target::Own(plan))
            }
        };
        let query = case.bench.rsplit('.').next().unwrap_or_default().to_string();
        Ok(JobSpec { query, windows, jar: jar.into(), length, parallelism, on })
    }
}
