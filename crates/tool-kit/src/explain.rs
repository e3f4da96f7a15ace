//! Pages with a section for each message of a program: what it means, and what helps.

use std::io;

use crate::style::{self, COLUMN, HEADING, show};
use crate::{Outcome, report};

/// The section of a message.
#[derive(Clone, Copy, Debug)]
struct Section<'p> {
    title: &'p str,
    text: &'p str,
}

/// Returns all sections.
fn sections(page: &str) -> impl Iterator<Item = Section<'_>> {
    let parts = page.split("\n## ").skip(1);
    parts.filter_map(|part| part.split_once('\n')).map(|(title, text)| Section { title, text })
}

impl<'p> Section<'p> {
    /// Returns the message, and others of the same meaning.
    fn messages(&self) -> impl Iterator<Item = &'p str> {
        let also = self.text.lines().find_map(|line| line.strip_prefix("Also: "));
        let others = also.into_iter().flat_map(|also| also.trim_end_matches('.').split(", "));
        [self.title].into_iter().chain(others.map(|other| other.trim_matches('`')))
    }

    /// Returns whether a text has one of the messages, or is a part of one.
    fn is_about(&self, text: &str) -> bool {
        const SHORTEST: usize = 8;
        self.messages().map(plain).any(|message| {
            text.contains(&message) || text.len() >= SHORTEST && message.contains(text.trim_end())
        })
    }
}

/// Returns the words of a text in lower case, with a space before and after each.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |text, word| text + word + " ")
}

/// Prints the sections of a page in Markdown whose messages are in a text, or that the text is a part of.
pub fn explain(page: &str, text: &str) -> io::Result<Outcome> {
    let text = plain(text);
    print(page, "no message that is known here", |section| section.is_about(&text))
}

/// Prints the section of a page with this title.
pub fn explain_title(page: &str, title: &str) -> io::Result<Outcome> {
    let unknown = format!("{title}: no such code");
    print(page, &unknown, |section| section.title == title)
}

/// Returns the titles of a page.
pub fn titles(page: &str) -> impl Iterator<Item = &str> {
    sections(page).map(|section| section.title)
}

/// Prints sections of a page; if there is none, an error and the titles.
fn print(
    page: &str,
    unknown: &str,
    is_meant: impl Fn(&Section<'_>) -> bool,
) -> io::Result<Outcome> {
    let found: Vec<Section<'_>> = sections(page).filter(is_meant).collect();
    if found.is_empty() {
        report::error(&unknown);
        for title in titles(page) {
            report::note(&format_args!("known: {title}"));
        }
        return Ok(Outcome::Faults);
    }
    let mut out = style::stdout().as_prose();
    for (n, section) in found.iter().enumerate() {
        if n > 0 {
            show!(out)?;
        }
        let title = section.title;
        show!(out, "{HEADING}{title}{HEADING:#}")?;
        let mut is_command = false;
        // The lines of a paragraph are one, which is broken where the terminal ends.
        let mut paragraph: Vec<&str> = Vec::new();
        for line in section.text.trim_end().lines().map(Some).chain([None]) {
            let is_fence = line.is_some_and(|line| line.starts_with("```"));
            match line {
                Some(line) if !is_command && !is_fence && !line.is_empty() => {
                    paragraph.push(line);
                    continue;
                }
                _ if paragraph.is_empty() => {}
                _ => show!(out, "{}", std::mem::take(&mut paragraph).join(" "))?,
            }
            match line {
                _ if is_fence => is_command = !is_command,
                Some(line) if is_command => show!(out, "  {COLUMN}{line}{COLUMN:#}")?,
                Some(_) => show!(out)?,
                None => {}
            }
        }
    }
    out.flush().map(|()| Outcome::Clean)
}
