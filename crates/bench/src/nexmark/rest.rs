//! A Flink JobManager as its REST endpoint shows it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

/// How long it may take to take a connection, and to say something.
const CONNECT: Duration = Duration::from_secs(3);
const ANSWER: Duration = Duration::from_secs(10);
/// A job's first submission loads the planner: 14 s on a slow host that does nothing else.
const SUBMIT: Duration = Duration::from_secs(180);
/// More than it ever says.
const LONGEST: u64 = 16 << 20;
/// Metrics asked for at once: their names stand in the address.
const AT_ONCE: usize = 20;

/// TaskManagers that are asked for their collectors: they are configured alike.
const WORKERS: usize = 16;

/// The gauge's name in the job.
pub const GAUGE: &str = "assay";
/// What operators of windows call the events that came when their window was over; a join counts
/// those of each side.
pub const DROPPED: [&str; 3] =
    ["numLateRecordsDropped", "leftNumLateRecordsDropped", "rightNumLateRecordsDropped"];

/// States in which a job runs no more.
pub const ENDED: [&str; 3] = ["CANCELED", "FAILED", "FINISHED"];
/// How long a job may take to appear after it was handed over, and to end when it is cancelled.
const COME: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(100);

/// What the file of a job's program is called.
fn program(job: &str) -> String {
    format!("assay-nexmark-{job}.jar")
}

#[derive(Clone)]
pub struct JobManager {
    agent: ureq::Agent,
    patient: ureq::Agent,
    address: String,
}

/// A JobManager's description of itself and its cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    pub version: String,
    pub taskmanagers: u64,
    pub slots: u64,
    pub free_slots: u64,
}

/// A job, as far as it has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub state: String,
    pub vertices: Vec<String>,
}

fn agent(answer: Duration) -> ureq::Agent {
    // Each part has its limit; one for the whole would resolve addresses in a thread. A cluster has
    // no proxy.
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .timeout_connect(Some(CONNECT))
        .timeout_send_request(Some(ANSWER))
        .timeout_send_body(Some(ANSWER))
        .timeout_recv_response(Some(answer))
        .timeout_recv_body(Some(ANSWER));
    config.build().into()
}

impl JobManager {
    /// At `HOST:PORT`.
    pub fn at(address: &str) -> JobManager {
        JobManager { agent: agent(ANSWER), patient: agent(SUBMIT), address: address.to_string() }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Its description of the cluster; an error if this is no JobManager.
    pub fn overview(&self) -> anyhow::Result<Overview> {
        let said = self.get("/overview")?;
        let number = |name: &str| said[name].as_u64().unwrap_or(0);
        let version = said["flink-version"].as_str().with_context(|| {
            let shown: String = said.to_string().chars().take(80).collect();
            format!(
                "{} is not the REST endpoint of a Flink JobManager: its /overview has no flink-version: {shown}",
                self.address
            )
        })?;
        Ok(Overview {
            version: version.to_string(),
            taskmanagers: number("taskmanagers"),
            slots: number("slots-total"),
            free_slots: number("slots-available"),
        })
    }

    /// Its configuration: keys and values.
    pub fn configuration(&self) -> anyhow::Result<Vec<(String, String)>> {
        let said = self.get("/jobmanager/config")?;
        let entry =
            |entry: &Value| Some((entry["key"].as_str()?.to_string(), entry["value"].as_str()?.to_string()));
        Ok(said.as_array().into_iter().flatten().filter_map(entry).collect())
    }

    /// The garbage collectors of its TaskManagers.
    pub fn collectors(&self) -> anyhow::Result<Vec<String>> {
        let said = self.get("/taskmanagers")?;
        let workers = said["taskmanagers"].as_array().into_iter().flatten();
        let mut all = std::collections::BTreeSet::new();
        for worker in workers.filter_map(|worker| worker["id"].as_str()).take(WORKERS) {
            let metrics = self.get(&format!("/taskmanagers/{}/metrics", encoded(worker)))?;
            let names = metrics.as_array().into_iter().flatten().filter_map(|metric| metric["id"].as_str());
            let collector = |name: &str| {
                name.strip_prefix("Status.JVM.GarbageCollector.")?.strip_suffix(".Count").map(str::to_string)
            };
            all.extend(names.filter_map(collector).filter(|name| name != "All"));
        }
        Ok(all.into_iter().collect())
    }

    /// Uploads the program of the job of this number; its name there.
    pub fn upload(&self, jar: &[u8], job: &str) -> anyhow::Result<String> {
        const BOUNDARY: &str = "assay-5f1d3c0b8e7a4926";
        let mut body = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"jarfile\"; filename=\"{}\"\r\n\
             Content-Type: application/java-archive\r\n\r\n",
            program(job)
        )
        .into_bytes();
        body.extend(jar);
        body.extend(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let sent = self.agent.post(self.url("/jars/upload")).header("Content-Type", kind).send(&body[..]);
        let said = self.understood(sent, "POST /jars/upload")?;
        let name = said["filename"].as_str().and_then(|path| path.rsplit('/').next());
        Ok(name.context("the JobManager accepted the program but returned no name")?.to_string())
    }

    /// Runs a program that was uploaded as the job of this number; the number that it got.
    pub fn submit(&self, jar: &str, class: &str, arguments: &[String], job: &str) -> anyhow::Result<String> {
        let path = format!("/jars/{}/run", encoded(jar));
        let body = json!({ "entryClass": class, "programArgsList": arguments, "jobId": job }).to_string();
        let post = self.patient.post(self.url(&path)).header("Content-Type", "application/json");
        let said = self.understood(post.send(body.as_bytes()), "POST /jars/…/run")?;
        Ok(said["jobid"]
            .as_str()
            .context("the JobManager started the program but returned no job")?
            .to_string())
    }

    pub fn job(&self, job: &str) -> anyhow::Result<Job> {
        let said = self.get(&format!("/jobs/{}", encoded(job)))?;
        let vertices = said["vertices"].as_array().into_iter().flatten();
        Ok(Job {
            state: said["state"].as_str().context("the JobManager reports no state of the job")?.to_string(),
            vertices: vertices.filter_map(|vertex| Some(vertex["id"].as_str()?.to_string())).collect(),
        })
    }

    /// Why a job failed, in a line.
    pub fn failure(&self, job: &str) -> String {
        let said = self.get(&format!("/jobs/{}/exceptions", encoded(job))).unwrap_or_default();
        let latest = said["exceptionHistory"]["entries"][0]["stacktrace"].as_str();
        let root = latest.or(said["root-exception"].as_str()).unwrap_or("it gives no reason");
        root_cause(root)
    }

    /// The names of all metrics of a vertex whose last part is one of these, of each subtask and
    /// operator.
    pub fn metrics(&self, job: &str, vertex: &str, last: &[&str]) -> anyhow::Result<Vec<String>> {
        let said = self.get(&format!("/jobs/{}/vertices/{}/metrics", encoded(job), encoded(vertex)))?;
        let names = said.as_array().into_iter().flatten().filter_map(|metric| metric["id"].as_str());
        let own = |name: &&str| name.rsplit('.').next().is_some_and(|part| last.contains(&part));
        Ok(names.filter(own).map(str::to_string).collect())
    }

    /// What these metrics of a vertex say now.
    pub fn read(&self, job: &str, vertex: &str, metrics: &[String]) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::new();
        for some in metrics.chunks(AT_ONCE) {
            let names: Vec<String> = some.iter().map(|name| encoded(name)).collect();
            let path = format!(
                "/jobs/{}/vertices/{}/metrics?get={}",
                encoded(job),
                encoded(vertex),
                names.join(",")
            );
            let said = self.get(&path)?;
            let values = said.as_array().into_iter().flatten();
            all.extend(values.filter_map(|metric| Some(metric["value"].as_str()?.to_string())));
        }
        Ok(all)
    }

    pub fn cancel(&self, job: &str) -> anyhow::Result<()> {
        let path = format!("/jobs/{}?mode=cancel", encoded(job));
        self.understood(self.agent.patch(self.url(&path)).send_empty(), "PATCH /jobs/…").map(|_| ())
    }

    /// Cancels the job of this number and removes its program, whatever their state. Returns
    /// whether anything was there; an error if that is unknown, or something stays.
    pub fn withdraw(&self, job: &str) -> anyhow::Result<bool> {
        let (end, mut cancelled) = (Instant::now() + COME, false);
        loop {
            let asked = self.agent.get(self.url("/jobs")).call();
            if let Err(ureq::Error::Io(error)) = &asked
                && error.kind() == ErrorKind::ConnectionRefused
            {
                // The JobManager has ended, and its jobs and programs with it.
                return Ok(cancelled);
            }
            let said = self.understood(asked, "GET /jobs")?;
            let mut jobs = said["jobs"].as_array().into_iter().flatten();
            let state = jobs.find(|one| one["id"] == job).and_then(|one| one["status"].as_str());
            let programs = self.programs(job)?;
            match state {
                Some(state) if !ENDED.contains(&state) => {
                    ensure!(Instant::now() < end, "the job {job} is {state} and does not end");
                    self.cancel(job)?;
                    cancelled = true;
                }
                // A killed driver may have submitted it, and the JobManager is about to start it.
                None if !cancelled && !programs.is_empty() && Instant::now() < end => {}
                _ => {
                    for program in &programs {
                        let path = format!("/jars/{}", encoded(program));
                        self.understood(self.agent.delete(self.url(&path)).call(), "DELETE /jars/…")?;
                    }
                    return Ok(cancelled || !programs.is_empty());
                }
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// What programs of this job lie there.
    fn programs(&self, job: &str) -> anyhow::Result<Vec<String>> {
        let said = self.get("/jars")?;
        let ids = said["files"].as_array().into_iter().flatten().filter_map(|file| file["id"].as_str());
        let end = format!("_{}", program(job));
        Ok(ids.filter(|id| id.ends_with(&end)).map(str::to_string).collect())
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.understood(self.agent.get(self.url(path)).call(), &format!("GET {path}"))
    }

    fn understood(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        what: &str,
    ) -> anyhow::Result<Value> {
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => bail!("{}", self.silence(&error)),
        };
        let status = answer.status().as_u16();
        let bytes = answer.body_mut().with_config().limit(LONGEST).read_to_vec();
        let bytes = bytes.with_context(|| format!("{}: the answer to {what} is incomplete", self.address))?;
        let text = String::from_utf8_lossy(&bytes);
        let said: Option<Value> = match text.trim() {
            "" => Some(Value::Null),
            text => serde_json::from_str(text).ok(),
        };
        let shown = || text.trim().chars().take(80).collect::<String>().replace(['\n', '\r'], " ");
        let said = said.with_context(|| {
            format!(
                "{} is not a Flink JobManager's REST endpoint: HTTP {status}, {:?} to {what}",
                self.address,
                shown()
            )
        })?;
        let errors = said["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let errors: Vec<String> = errors.map(root_cause).collect();
        ensure!(
            (200..300).contains(&status),
            "the JobManager at {} refused {what}: HTTP {status}, {}",
            self.address,
            if errors.is_empty() { shown() } else { errors.join("; ") }
        );
        Ok(said)
    }

    /// Why there was no answer.
    fn silence(&self, error: &ureq::Error) -> String {
        let address = &self.address;
        match error {
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => format!(
                "no program listens at {address}: start the JobManager or correct the port (rest.port, default 8081)"
            ),
            ureq::Error::ConnectionFailed => format!("cannot connect to {address}: check the address"),
            ureq::Error::HostNotFound => format!("no host has the address {address}"),
            ureq::Error::Timeout(_) => {
                format!("{address} does not answer: is it the REST port of a running Flink JobManager?")
            }
            ureq::Error::Protocol(error) => {
                format!("{address} does not speak HTTP ({error}): is it the REST port of a Flink JobManager?")
            }
            error => format!("cannot query {address}: {error}"),
        }
    }
}

/// The innermost cause of a Java stack trace, in a line.
fn root_cause(trace: &str) -> String {
    let mut causes = trace.lines().filter_map(|line| line.trim().strip_prefix("Caused by: "));
    let line = causes.next_back().or_else(|| trace.lines().find(|line| !line.trim().is_empty()));
    line.unwrap_or("no reason given").trim().chars().take(300).collect()
}

/// As it may stand in an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// The error of asking a server that answers so, once.
    fn asked(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a caller");
            let _ = stream.read(&mut [0; 4096]);
            stream.write_all(answer.as_bytes()).expect("heard");
        });
        let answer = JobManager::at(&address).overview();
        server.join().expect("it ends");
        answer.map_or_else(|error| format!("{error:#}"), |overview| format!("{overview:?}"))
    }

    #[test]
    fn only_a_jobmanager_is_taken_for_one() {
        let found = asked(
            "HTTP/1.1 200 OK\r\nContent-Length: 74\r\n\r\n\
             {\"taskmanagers\":1,\"slots-total\":2,\"slots-available\":1,\"flink-version\":\"9\"}",
        );
        assert!(found.contains("version: \"9\"") && found.contains("free_slots: 1"), "{found}");
        let html = asked("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>");
        assert!(html.contains("is not a Flink JobManager's REST endpoint: HTTP 200"), "{html}");
        let json = asked("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\": 1}");
        assert!(json.contains("has no flink-version: {\"a\":1}"), "{json}");
        let missing = asked("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}");
        assert!(missing.contains("refused GET /overview: HTTP 404"), "{missing}");
        let other = asked("SSH-2.0-OpenSSH_9.2\r\n");
        assert!(other.contains("does not speak HTTP") || other.contains("cannot query"), "{other}");
    }

    #[test]
    fn nobody_there_is_said_so() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let error = JobManager::at(&address).overview().expect_err("nobody is there").to_string();
        assert!(error.contains(&format!("no program listens at {address}")), "{error}");
    }

    #[test]
    fn traces_are_told_by_their_root_and_names_are_encoded() {
        let trace = "org.x.A: outer\n\tat a.b(C.java:1)\nCaused by: org.y.B: inner\n\tat d\n\t... 3 more\n";
        assert_eq!(root_cause(trace), "org.y.B: inner");
        assert_eq!((root_cause("\n one\n two"), root_cause("")), ("one".into(), "no reason given".into()));
        assert_eq!(encoded("0.Source__n[1].assay"), "0.Source__n%5B1%5D.assay");
    }
}
