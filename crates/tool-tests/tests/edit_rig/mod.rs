//! Shows that edited files are right: builds files of many kinds, looks at them before and after, tells what is wrong.

pub mod broken;
pub mod check;
pub mod cuda;
pub mod hip;
pub mod memory;
pub mod messages;
pub mod observe;
pub mod packs;
pub mod retouch;
pub mod survive;
pub mod zoo;

use crate::common::new_command;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Complaints of a check about a file; empty if it is right.
pub type Complaints = Vec<String>;

/// A program of the system.
pub fn tool(name: &str) -> PathBuf {
    let path = Path::new("/usr/bin").join(name);
    assert!(path.exists(), "{} is missing: .ci/run installs it", path.display());
    path
}

/// Runs a tool to its end, but not for ever: what it runs may be broken.
pub fn run<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Output {
    command(program).args(arguments).output().unwrap()
}

/// A command that is to be run by [`run`]'s rules.
pub fn command(program: &Path) -> Command {
    let mut command = new_command("timeout");
    command.args(["--kill-after=5", "300"]).arg(program);
    command
}

/// Runs a tool that must succeed.
pub fn must<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> String {
    let arguments: Vec<_> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
    let output = run(program, &arguments);
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}\n{}",
        program.display(),
        output.status,
        said(&output)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the text that a tool printed, on either stream.
pub fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).trim_end().to_owned()
}

/// Does something with each item, as many at a time as there are cores. A panic is a complaint, too.
pub fn each<T: Sync>(items: &[T], job: impl Fn(&T) -> Complaints + Sync) -> Complaints {
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Complaints::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = std::panic::AssertUnwindSafe(|| job(item));
                    let found = std::panic::catch_unwind(run).unwrap_or_else(|panic| {
                        let text = panic.downcast_ref::<String>().map(String::as_str);
                        vec![format!("panic: {}", text.unwrap_or("above"))]
                    });
                    complaints.lock().unwrap().extend(found);
                }
            });
        }
    });
    complaints.into_inner().unwrap()
}

/// Panics with all complaints, if there are any.
pub fn settle(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
