//! Messages on standard error: `offload: error: FILE: what is wrong`.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, Write};
use std::mem;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

use anstream::{AutoStream, ColorChoice, StripStream};

use crate::erase::{lock, without_line};
use crate::style::{self, ERROR, NOTE, Style, Text, WARNING, printable_lines, text};
use crate::width::{HANGING, wrapped};

/// The name of the tool in messages.
pub const OFFLOAD: &str = "offload";

/// A message of `offload` that is printed later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An error.
    Error(String),
    /// A warning.
    Warning(String),
    /// A note.
    Note(String),
}

impl Message {
    /// Prints the message.
    pub fn print(&self) {
        match self {
            Message::Error(text) => error(text),
            Message::Warning(text) => warning(text),
            Message::Note(text) => note(text),
        }
    }

    /// Returns the code of the finding that the message is, unless it has a code of its own.
    pub fn code(&self) -> &'static str {
        match self {
            Message::Error(_) => "file/error",
            Message::Warning(_) | Message::Note(_) => "file/note",
        }
    }
}

/// A message that was collected, and the file that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The file that it is about, which the message does not name. A message without one may name files in its text.
    pub file: Option<String>,
    /// The code of the finding that it is.
    pub code: &'static str,
    /// The message.
    pub message: Message,
}

/// Messages of `offload` that are collected in place of being printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection(Option<Arc<Mutex<Vec<Collected>>>>);

thread_local! {
    /// The collection of this thread.
    static COLLECTION: RefCell<Collection> = const { RefCell::new(Collection(None)) };
}

impl Collection {
    /// Returns the collection of this thread, for threads that work for it.
    pub(crate) fn of_thread() -> Self {
        COLLECTION.with_borrow(Clone::clone)
    }

    /// Does something whose messages are collected here.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        /// The collection before, which is the one of this thread again once this is dropped.
        struct Before(Collection);
        impl Drop for Before {
            fn drop(&mut self) {
                COLLECTION.set(mem::take(&mut self.0));
            }
        }
        let _before = Before(COLLECTION.replace(self.clone()));
        work()
    }

    /// Takes a message; returns whether it is collected.
    fn takes(file: Option<&str>, message: impl FnOnce() -> Message) -> bool {
        Collection::takes_finding(file, None, message)
    }

    /// Takes a message that may have a code of its own; returns whether it is collected.
    fn takes_finding(
        file: Option<&str>,
        code: Option<&'static str>,
        message: impl FnOnce() -> Message,
    ) -> bool {
        let collected = || {
            let (file, message) = (file.map(str::to_owned), message());
            Collected { file, code: code.unwrap_or(message.code()), message }
        };
        COLLECTION.with_borrow(|Collection(messages)| {
            messages.as_ref().map(|messages| lock(messages).push(collected())).is_some()
        })
    }
}

/// Does something for a program that is not a tool of this workspace: messages of `offload` are returned, not printed, and no
/// progress is shown.
pub fn collected<T>(work: impl FnOnce() -> T) -> (T, Vec<Collected>) {
    let messages = Arc::default();
    let done = Collection(Some(Arc::clone(&messages))).during(work);
    let messages = mem::take(&mut *lock(&messages));
    (done, messages)
}

/// Returns whether messages of this thread are collected.
pub(crate) fn is_collected() -> bool {
    COLLECTION.with_borrow(|collection| collection.0.is_some())
}

/// Prints an error of `offload`.
pub fn error(message: &dyn Display) {
    if !Collection::takes(None, || Message::Error(message.to_string())) {
        error_of(OFFLOAD, message);
    }
}

/// Prints an error of `offload` about a file.
pub fn error_about(file: &str, message: &dyn Display) {
    if !Collection::takes(Some(file), || Message::Error(message.to_string())) {
        error(&format_args!("{file}: {message}"));
    }
}

/// Prints a warning of `offload`.
pub fn warning(message: &dyn Display) {
    if !Collection::takes(None, || Message::Warning(message.to_string())) {
        warning_of(OFFLOAD, message);
    }
}

/// Prints a note of `offload`.
pub fn note(message: &dyn Display) {
    if !Collection::takes(None, || Message::Note(message.to_string())) {
        line(OFFLOAD, NOTE, "note", message);
    }
}

/// Prints a note of `offload` about a file.
pub fn note_about(file: &str, message: &dyn Display) {
    if !Collection::takes(Some(file), || Message::Note(message.to_string())) {
        note(&format_args!("{file}: {message}"));
    }
}

/// Prints a note of `offload` about a file, which is a finding with this code where messages are collected.
pub fn note_with_code(file: &str, code: &'static str, message: &dyn Display) {
    if !Collection::takes_finding(Some(file), Some(code), || Message::Note(message.to_string())) {
        note(&format_args!("{file}: {message}"));
    }
}

/// Prints an error of a tool that is not called `offload`.
pub fn error_of(tool: &str, message: &dyn Display) {
    line(tool, ERROR, "error", message);
}

/// Prints a warning of a tool that is not called `offload`.
pub fn warning_of(tool: &str, message: &dyn Display) {
    line(tool, WARNING, "warning", message);
}

/// Says that a tool has a new name.
pub fn deprecated(name: &str, instead: &str) {
    say(&text!("{WARNING}warning: {WARNING:#}'{name}' is deprecated. Use '{instead}' instead."));
}

/// Prints a line on standard error, broken to the width of a terminal. Errors of printing are ignored: the exit status remains.
pub fn say(line: &Text) {
    say_styled_lines(&[line.as_str(), "\n"].concat());
}

/// Prints lines of our own with colours, broken to the width of a terminal.
pub(crate) fn say_styled_lines(lines: &str) {
    static FIT: OnceLock<usize> = OnceLock::new();
    let fit = *FIT.get_or_init(style::error_width);
    let fitting: String =
        lines.lines().flat_map(|line| [wrapped(line, fit, HANGING), "\n".into()]).collect();
    print(fitting.as_bytes());
}

/// Prints lines on standard error, without colours.
pub fn say_lines(lines: &str) {
    print(printable_lines(lines).as_bytes());
}

/// Writes to standard error. `anstream` would write what lies between colours piece by piece.
fn print(lines: &[u8]) {
    static CHOICE: OnceLock<ColorChoice> = OnceLock::new();
    let write = || match CHOICE.get_or_init(|| AutoStream::choice(&io::stderr())) {
        ColorChoice::Never => {
            let mut plain = StripStream::new(Vec::new());
            plain.write_all(lines).and_then(|()| io::stderr().write_all(&plain.into_inner()))
        }
        _ => anstream::stderr().write_all(lines),
    };
    let _ = without_line(write);
}

/// Ends a tool with an error. If standard output was closed early, ends quietly with the status of SIGPIPE.
pub fn end(tool: &str, error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::from(141);
    }
    match error.raw_os_error() {
        // Name the output for errors of the system.
        Some(_) => error_of(tool, &format_args!("<stdout>: {}", reason(error))),
        None => error_of(tool, &reason(error)),
    }
    ExitCode::FAILURE
}

/// Prints a help text of the tool, and ends.
pub fn print_help(tool: &str, text: &str) -> ExitCode {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => end(tool, &error),
    }
}

/// Returns the system's message without the number of the error.
pub fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::IsADirectory && error.get_ref().is_none() {
        return "Is a directory".to_owned();
    }
    let mut text = error.to_string();
    if let Some(at) = text.find(" (os error ") {
        text.truncate(at);
    }
    text
}

/// Returns the error with its reason before the name of the file: LLVM's tools that name no file start with the
/// reason.
pub fn reason_first(error: io::Error) -> io::Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};

    // Errors of the system; others are ours.
    let of_system = !matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof);
    let text = error.to_string();
    let named = text.strip_prefix('\'').and_then(|text| text.rsplit_once("': "));
    match named.filter(|_| of_system && error.get_ref().is_some()) {
        Some((path, reason)) => io::Error::new(error.kind(), format!("{reason}: '{path}'")),
        None => error,
    }
}

fn line(tool: &str, style: Style, severity: &str, message: &dyn Display) {
    say(&text!("{tool}: {style}{severity}{style:#}: {message}"));
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::parallel::in_order;

    #[test]
    fn messages_of_all_threads_are_collected_and_then_printed_again() {
        let work = |number: &i32| {
            note(number);
            Collection::takes(None, || Message::Note("again".to_owned()))
        };
        for threads in [1, 3] {
            let ((), messages) = collected(|| {
                let things: Vec<i32> = (0..20).collect();
                let threads = NonZeroUsize::new(threads).unwrap();
                in_order(threads, &things, work, |_, is_taken| is_taken.then_some(()).ok_or(()))
                    .unwrap();
                error_about("odd: name", &"a: b");
                error(&"wrong");
                note_with_code("x", "network/cost", &"read");
            });
            assert_eq!(messages.len(), 43);
            let of = |file: Option<&str>, code, message| {
                let file = file.map(str::to_owned);
                Collected { file, code, message }
            };
            assert!(messages.contains(&of(None, "file/note", Message::Note("7".to_owned()))));
            let last = [
                of(Some("odd: name"), "file/error", Message::Error("a: b".to_owned())),
                of(None, "file/error", Message::Error("wrong".to_owned())),
                of(Some("x"), "network/cost", Message::Note("read".to_owned())),
            ];
            assert_eq!(messages.get(40..), Some(&last[..]));
            assert!(!is_collected());
        }
        let panicked =
            std::panic::catch_unwind(|| collected(|| std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err() && !is_collected());
    }
}
