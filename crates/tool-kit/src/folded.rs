//! Notes and warnings that hold for many files, each printed once.

use std::collections::HashMap;

use crate::report::Message;
use crate::style;

/// Notes and warnings about files. Equal ones become one line with the number of files.
#[derive(Debug, Default)]
pub struct Folded {
    lines: Vec<Line>,
    /// The positions of lines, by what they say.
    by_text: HashMap<(bool, String), usize>,
}

#[derive(Debug)]
struct Line {
    is_warning: bool,
    text: String,
    /// The first file.
    file: String,
    /// The package that has all of the files.
    package: Option<String>,
    files: usize,
}

impl Folded {
    /// Adds a note about a file, which may be a member of a package.
    pub fn note(&mut self, file: &str, package: Option<&str>, text: &str) {
        self.add(false, file, package, text);
    }

    /// Adds a warning about a file.
    pub fn warning(&mut self, file: &str, package: Option<&str>, text: &str) {
        self.add(true, file, package, text);
    }

    fn add(&mut self, is_warning: bool, file: &str, package: Option<&str>, text: &str) {
        let next = self.lines.len();
        let at = *self.by_text.entry((is_warning, text.to_owned())).or_insert(next);
        if let Some(line) = self.lines.get_mut(at) {
            line.files += 1;
            line.package.take_if(|known| package != Some(known));
            return;
        }
        let (text, file) = (text.to_owned(), file.to_owned());
        let package = package.map(str::to_owned);
        self.lines.push(Line { is_warning, text, file, package, files: 1 });
    }

    /// Returns all messages, in the order in which they first came.
    pub fn messages(&self) -> Vec<Message> {
        let message = |line: &Line| {
            let Line { text, file, .. } = line;
            let files = style::files(line.files);
            let text = match (line.files, &line.package) {
                (1, _) => format!("{file}: {text}"),
                (_, Some(package)) => format!("{package}: {files}: {text}"),
                (_, None) => format!("{files}: {text}"),
            };
            if line.is_warning { Message::Warning(text) } else { Message::Note(text) }
        };
        self.lines.iter().map(message).collect()
    }

    /// Prints all messages, and forgets them.
    pub fn print(&mut self) {
        self.messages().iter().for_each(Message::print);
        *self = Folded::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_messages_are_one() {
        let mut folded = Folded::default();
        for file in ["a", "b"] {
            folded.note(&format!("p.whl:{file}.so"), Some("p.whl"), "no PTX left");
            folded.note(&format!("q.whl:{file}.so"), None, "signed");
        }
        folded.warning("p.whl:a.so", Some("p.whl"), "no PTX left");
        let note = |text: &str| Message::Note(text.to_owned());
        let warning = Message::Warning("p.whl:a.so: no PTX left".to_owned());
        let both = [note("p.whl: 2 files: no PTX left"), note("2 files: signed"), warning];
        assert_eq!(folded.messages(), both);
        folded.note("c.so", None, "no PTX left");
        assert_eq!(folded.messages()[0], note("3 files: no PTX left"));
        folded.print();
        assert!(folded.messages().is_empty());
    }
}
