//! Running the real binary.

#[allow(dead_code, reason = "not every test file has a lake")]
pub mod lakes;
#[allow(dead_code, reason = "not every test file has archives")]
pub mod warcs;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The binary in an empty environment of settings, working in `dir`.
pub fn trawl(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.current_dir(dir);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TRAWL_") {
            command.env_remove(name);
        }
    }
    command
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs it with `input` on stdin.
#[allow(dead_code, reason = "not every test file feeds it")]
pub fn feed(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The other end may close early; that is what some tests are about.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The synthetic web in a process of its own, ended when dropped.
#[allow(dead_code, reason = "not every test file crawls")]
pub struct Web {
    child: Child,
    /// What to give a crawl.
    pub connect_to: String,
}

#[allow(dead_code, reason = "not every test file crawls")]
impl Web {
    /// Starts it; seeds, expected pages and the log of requests are files in `dir`.
    pub fn start(dir: &Path) -> Self {
        let mut child = trawl(dir)
            .args(["--json", "testweb", "--domains", "12", "--pages", "60", "--seeds-file", "seeds.txt"])
            .args(["--expected-file", "expected.txt", "--depth", "2", "--log", "requests.log"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let facts: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self { child, connect_to: facts["connect_to"].as_str().unwrap().to_owned() }
    }

    /// Crawls it into `crawl`, two links deep.
    pub fn crawl(&self, dir: &Path, more: &[&str]) -> Output {
        self.crawl_into(dir, "crawl", more)
    }

    /// Crawls it into another directory.
    pub fn crawl_into(&self, dir: &Path, out: &str, more: &[&str]) -> Output {
        trawl(dir)
            .args(["crawl", "seeds.txt", "--out", out, "--depth", "2", "--scope", "any", "--delay", "20ms", "-q"])
            .args(["--connect-to", &self.connect_to])
            .args(more)
            .output()
            .unwrap()
    }

    /// Ends it as a user would, so that its log is complete.
    pub fn finish(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
