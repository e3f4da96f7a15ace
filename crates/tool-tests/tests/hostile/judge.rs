//! Claims of a run about a file, and whether they are true.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

use std::collections::BTreeSet;

use crate::hostile::{Form, Held, Hostile, Truth};
use crate::runs::{End, Run};

/// Verdict on one run of a tool on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It gave the images that there are, or said nothing that is not so.
    Right,
    /// It complained about what is malformed.
    Refused,
    /// It complained about what is odd, but legal.
    RefusedLegal,
    /// It succeeded without a word on a malformed file, or with other images than there are.
    Wrong,
    Crash,
    /// It did not end, or wrote without end.
    Hang,
    /// It took all memory that it was given.
    Memory,
}

pub const VERDICTS: [Verdict; 7] = [
    Verdict::Right,
    Verdict::Refused,
    Verdict::RefusedLegal,
    Verdict::Wrong,
    Verdict::Crash,
    Verdict::Hang,
    Verdict::Memory,
];

/// Claim of a successful run about the images of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing that can be compared.
    Nothing,
    Ids(Vec<String>),
    Bytes(Vec<Vec<u8>>),
    /// All images but empty ones and placeholders of the host, also those in images.
    Substance(Vec<Vec<u8>>),
    /// These are the images of these IDs, but not necessarily all.
    Some(Vec<(String, Vec<u8>)>),
    /// The very images, in order, also those in images.
    All(Vec<Held>),
    /// A claim that contradicts itself.
    Nonsense(String),
}

/// Words by which a process says that it ran out of memory.
const MEMORY: [&str; 5] = [
    "out of memory",
    "bad_alloc",
    "Cannot allocate memory",
    "memory allocation of",
    "memory exhausted",
];
/// Words of a crash that a handler made an exit status of.
const CRASH: [&str; 4] =
    ["PLEASE submit a bug report", "Stack dump:", "LLVM ERROR:", "panicked at"];

pub fn verdict(file: &Hostile, run: &Run, claim: impl FnOnce() -> Claim) -> Verdict {
    let says = |words: &[&str]| words.iter().any(|word| run.stderr.contains(word));
    match run.end {
        End::Limit => Verdict::Hang,
        _ if says(&MEMORY) => Verdict::Memory,
        End::Signal(_) => Verdict::Crash,
        _ if says(&CRASH) => Verdict::Crash,
        End::Exit(0) => match (&file.truth, run.stderr.is_empty()) {
            (Truth::Refused, true) => Verdict::Wrong,
            // It names what is wrong, and goes on.
            (Truth::Refused, false) => Verdict::Refused,
            _ => {
                if is_true(file, &claim()) {
                    Verdict::Right
                } else {
                    Verdict::Wrong
                }
            }
        },
        // A failure without a message is as bad as a wrong answer without one.
        End::Exit(_) if run.stderr.is_empty() && run.stdout.is_empty() => Verdict::Wrong,
        End::Exit(_) => match file.truth {
            Truth::Holds(_) => Verdict::RefusedLegal,
            _ => Verdict::Refused,
        },
    }
}

/// Returns whether a claim about a file that need not be refused can be true.
fn is_true(file: &Hostile, claim: &Claim) -> bool {
    let outer = |images: &[Held]| -> Vec<Held> {
        images.iter().filter(|image| !image.inner).cloned().collect()
    };
    match (&file.truth, claim) {
        (_, Claim::Nothing) => true,
        (_, Claim::Nonsense(_)) => false,
        (Truth::Holds(held), Claim::Ids(ids)) => {
            let ids = set(ids);
            let of = |images: &[Held]| images.iter().map(|image| image.id.clone()).collect();
            let printed = |images: &[Held]| images.iter().map(|i| escaped(&i.id)).collect();
            let outer = outer(held);
            [of(&outer), of(held), printed(&outer), printed(held)].contains(&ids)
        }
        (Truth::Holds(held), Claim::Bytes(bytes)) => {
            let bytes = set(bytes);
            let of = |images: &[Held]| images.iter().map(|image| image.bytes.clone()).collect();
            // As files, images in images may be listed in addition or instead.
            let inner: Vec<Held> = held.iter().filter(|image| image.inner).cloned().collect();
            bytes == of(&outer(held)) || bytes == of(held) || bytes == of(&inner)
        }
        (Truth::Holds(held), Claim::Substance(bytes)) => {
            let placeholder = |image: &Held| {
                file.form == Form::ObjectSections
                    && image.bytes == [0]
                    && image.id.starts_with("host")
            };
            let images = held.iter().filter(|image| !image.bytes.is_empty() && !placeholder(image));
            set(bytes) == images.map(|image| image.bytes.clone()).collect()
        }
        (Truth::Holds(held), Claim::All(images)) => images == held,
        (Truth::Holds(held) | Truth::Part(held), Claim::Some(some)) => some
            .iter()
            .all(|(id, bytes)| held.iter().any(|image| image.id == *id && image.bytes == *bytes)),
        (Truth::Part(held), Claim::Ids(ids)) => {
            ids.iter().all(|id| held.iter().any(|image| image.id == *id))
        }
        (Truth::Part(held), Claim::Bytes(all) | Claim::Substance(all)) => {
            all.iter().all(|bytes| held.iter().any(|image| image.bytes == *bytes))
        }
        (Truth::Part(held), Claim::All(images)) => images.iter().all(|image| held.contains(image)),
        (Truth::Any, Claim::Ids(_)) => true,
        (Truth::Any, Claim::Bytes(all) | Claim::Substance(all)) => {
            all.iter().all(|bytes| lies_in(file, bytes))
        }
        (Truth::Any, Claim::Some(some)) => some.iter().all(|(_, bytes)| lies_in(file, bytes)),
        (Truth::Any, Claim::All(images)) => images.iter().all(|image| lies_in(file, &image.bytes)),
        (Truth::Refused, _) => false,
    }
}

fn set<T: Ord + Clone>(all: &[T]) -> BTreeSet<T> {
    all.iter().cloned().collect()
}

/// As our tools print text that could move a terminal's cursor.
fn escaped(text: &str) -> String {
    // Control characters, and characters that change the direction of the text around them.
    let is_hidden = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}');
    let escape =
        |c: char| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

fn lies_in(file: &Hostile, bytes: &[u8]) -> bool {
    // Images in bitcode need not start at a whole byte, and compressed ones are not in the file.
    let is_plain = file.form != Form::Bitcode && crate::hostile::count(&file.bytes, b"CCOB") == 0;
    !is_plain
        || bytes.is_empty()
        || file.bytes.windows(bytes.len()).any(|window| window == bytes)
        || file.beside.iter().any(|(_, beside)| beside.windows(bytes.len()).any(|w| w == bytes))
}
