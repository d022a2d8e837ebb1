//! A browser driven over the DevTools protocol: JSON messages with a zero byte after each, in on
//! descriptor 3 and out on descriptor 4. No port, no WebSocket, no driver program.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(300);

/// A running browser with nothing in its profile and no way to the network; ends when dropped.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    last_id: u64,
    /// What the browser sent without a request, in order: method, parameters and session.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// One page of it.
pub struct Tab {
    session: String,
}

impl Browser {
    pub fn start(program: &Path) -> Browser {
        let profile = tempfile::tempdir().expect("a directory for the profile");
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-default-apps",
            "--disable-extensions",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--remote-debugging-pipe",
        ];
        // The shell hands our two pipes on as the descriptors that the browser wants.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "browser"])
            .arg(program)
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let input = child.stdin.take().expect("a pipe in");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe out"));
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while matches!(out.read_until(0, &mut message), Ok(length) if length > 0) {
                message.pop_if(|byte| *byte == 0);
                let value = serde_json::from_slice(&message).unwrap_or(Value::Null);
                if send.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        Browser { child, input, output, last_id: 0, events: Vec::new(), _profile: profile }
    }

    /// A new page, with all event domains enabled that could report faults, and the network off.
    pub fn tab(&mut self) -> Tab {
        let target = self.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let attached = self.call(
            None,
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        let tab = Tab { session: attached["sessionId"].as_str().expect("a session").to_owned() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&tab, &format!("{domain}.enable"), json!({}));
        }
        let offline =
            json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        self.ask(&tab, "Network.emulateNetworkConditions", offline);
        tab
    }

    /// Goes to a file and waits until its load event.
    pub fn open(&mut self, tab: &Tab, file: &Path) -> Duration {
        let begun = Instant::now();
        let from = self.events.len();
        self.ask(tab, "Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        let deadline = begun + PATIENCE;
        while !self.events[from..].iter().any(|event| event["method"] == "Page.loadEventFired") {
            assert!(self.receive(deadline).is_none(), "no answer is due");
        }
        begun.elapsed()
    }

    /// Ends a page.
    pub fn close(&mut self, tab: &Tab) {
        self.ask(tab, "Page.close", json!({}));
    }

    /// The value of a script expression in the page; promises are waited for.
    pub fn eval(&mut self, tab: &Tab, script: &str) -> Value {
        let asked = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask(tab, "Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The whole page as PNG.
    /// `whole`: also what is below the viewport; Chromium refuses that of very high pages.
    pub fn screenshot(&mut self, tab: &Tab, whole: bool) -> Vec<u8> {
        let asked = json!({ "format": "png", "captureBeyondViewport": whole });
        let answer = self.ask(tab, "Page.captureScreenshot", asked);
        testkit::png::from_base64(answer["data"].as_str().expect("a picture"))
    }

    pub fn size(&mut self, tab: &Tab, width: u64, height: u64) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask(tab, "Emulation.setDeviceMetricsOverride", metrics);
    }

    pub fn ask(&mut self, tab: &Tab, method: &str, parameters: Value) -> Value {
        let session = tab.session.clone();
        self.call(Some(&session), method, parameters)
    }

    fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("the browser reads");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.receive(deadline).filter(|answer| answer["id"] == id) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// The next answer; an event is kept and `None` returned.
    fn receive(&mut self, deadline: Instant) -> Option<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.output.recv_timeout(left) {
            Ok(message) if message["id"].is_u64() => Some(message),
            Ok(event) => {
                self.events.push(event);
                None
            }
            Err(RecvTimeoutError::Timeout) => panic!("the browser did not answer in {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the browser ended: {:?}", self.child.try_wait()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
