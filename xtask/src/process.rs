//! Programs that are run, and how they end.

use std::borrow::BorrowMut;
use std::io::{self, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;

/// A reason to end a step early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A program, which has said what is wrong: its exit status.
    Status(u8),
    /// A text that says what is wrong.
    Wrong(String),
    /// A wrong command line, or files that are not as the steps expect them.
    Misused(String),
    /// This machine lacks something, and a line has said what.
    Lacking,
}

/// The end of a step, or what a part of it returns.
pub(crate) type Result<T = ()> = std::result::Result<T, Stop>;

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}

impl Stop {
    /// Says what is wrong, and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Status(status) => ExitCode::from(*status),
            Self::Wrong(text) => {
                eprintln!("{text}");
                ExitCode::from(1)
            }
            Self::Misused(text) => {
                eprintln!("{text}");
                ExitCode::from(2)
            }
            Self::Lacking => ExitCode::from(3),
        }
    }
}

/// Says what cannot be checked on this machine.
pub(crate) fn lacking(what: &str) -> Stop {
    println!("NOT CHECKED: {what}");
    Stop::Lacking
}

/// Returns what is wrong, as an end.
pub(crate) fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(Stop::Wrong(text.into()))
}

/// Returns the command of these words.
///
/// Everything is built once and not changed afterwards: cargo keeps nothing for changes.
pub(crate) fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("CARGO_INCREMENTAL", "0").env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs a command, which prints where this program does.
pub(crate) fn run(mut command: impl BorrowMut<Command>) -> Result {
    let command = command.borrow_mut();
    ended(command.status().map_err(|error| not_run(command, &error))?)
}

/// Runs a command, and returns what it prints.
pub(crate) fn read(mut command: impl BorrowMut<Command>) -> Result<String> {
    let command = command.borrow_mut();
    let child = command.stdout(Stdio::piped()).spawn();
    let output = child.and_then(Child::wait_with_output);
    let output = output.map_err(|error| not_run(command, &error))?;
    ended(output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command on a text, and returns what it prints, whatever its exit status is.
pub(crate) fn feed(mut command: impl BorrowMut<Command>, text: &str) -> Result<String> {
    let command = command.borrow_mut();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| not_run(command, &error))?;
    let input = child.stdin.take();
    let output = thread::scope(|scope| {
        scope.spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
        child.wait_with_output()
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command whose errors are not shown, and returns true if it succeeds.
pub(crate) fn succeeds(mut command: impl BorrowMut<Command>) -> bool {
    command.borrow_mut().stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn not_run(command: &Command, error: &io::Error) -> Stop {
    eprintln!("{}: {error}", command.get_program().display());
    Stop::Status(127)
}

fn ended(status: ExitStatus) -> Result {
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Stop::Status(u8::try_from(code).unwrap_or(1))),
        None => wrong(format!("a program ended: {status}")),
    }
}

/// Does as many jobs at a time as there are cores, in order. Returns true if all succeed.
pub(crate) fn all_succeed<T: Send>(jobs: Vec<T>, job: impl Fn(T) -> bool + Sync) -> bool {
    let left = Mutex::new(jobs.into_iter());
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let work = || {
        let mut all = true;
        while let Some(one) = next() {
            all &= job(one);
        }
        all
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(false))
            .fold(true, |all, one| all & one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn words_are_arguments() {
        let made = command("cargo test  --quiet");
        assert_eq!(made.get_program(), "cargo");
        assert_eq!(made.get_args().collect::<Vec<_>>(), ["test", "--quiet"]);
    }

    #[test]
    fn every_job_is_done_although_one_fails() {
        let done = AtomicU32::new(0);
        let job = |number: u32| done.fetch_add(number, Ordering::Relaxed) < u32::MAX && number != 2;
        assert!(!all_succeed(vec![1, 2, 3, 4], job));
        assert_eq!(done.load(Ordering::Relaxed), 10);
        assert!(all_succeed(vec![1, 3], job));
    }
}
