//! Pages in the language of `man`, of its macros those that every `man` knows.

use std::fmt::Write;

/// A page that is written from its top down.
#[derive(Debug)]
pub struct Page {
    text: String,
    /// `true` if nothing stands below the last title: the first paragraph there needs no macro.
    is_titled: bool,
}

impl Page {
    /// Creates a page of section 1, with the purpose of the command, and what it is a part of, with its version and the date.
    pub fn new(name: &str, about: &str, (version, date): (&str, &str)) -> Self {
        let title = name.to_uppercase();
        let mut page = Page { text: String::new(), is_titled: false };
        page.line(&format!(".TH \"{title}\" \"1\" \"{date}\" \"{version}\" \"User Commands\""));
        // Lines are ragged, and no word is cut: most of them are names.
        page.line(".nh");
        page.line(".ad l");
        page.section("NAME");
        page.line(&format!("{} \\- {}", escaped(name), text(about)));
        page
    }

    /// Adds the title of a section.
    pub fn section(&mut self, title: &str) {
        self.line(&format!(".SH {}", quoted(&title.to_uppercase())));
        self.is_titled = true;
    }

    /// Adds the title of a part of a section.
    pub fn subsection(&mut self, title: &str) {
        self.line(&format!(".SS {}", quoted(title)));
        self.is_titled = true;
    }

    /// Adds paragraphs, separated by empty lines. Text between backquotes becomes bold.
    pub fn prose(&mut self, prose: &str) {
        for paragraph in prose.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
            self.paragraph();
            self.sentences(paragraph);
        }
    }

    /// Adds a term and its description.
    pub fn item(&mut self, term: &str, prose: &str) {
        self.line(".TP");
        self.line(term);
        let mut paragraphs = prose.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
        match paragraphs.next() {
            Some(first) => self.sentences(first),
            // No term without a text.
            None => self.line("\\&"),
        }
        for paragraph in paragraphs {
            self.line(".IP");
            self.sentences(paragraph);
        }
    }

    /// Adds lines unchanged, in the font of typed text.
    pub fn literal<'t>(&mut self, lines: impl IntoIterator<Item = &'t str>) {
        self.paragraph();
        self.line(".RS 4");
        self.line(".nf");
        for line in lines {
            self.line(&format!("\\fB{}\\fR", escaped(line)));
        }
        self.line(".fi");
        self.line(".RE");
    }

    /// Adds the related pages, all of section 1.
    pub fn see_also<'t>(&mut self, names: impl IntoIterator<Item = &'t str>) {
        self.section("SEE ALSO");
        let names = names.into_iter().map(|name| format!("\\fB{}\\fR(1)", escaped(name)));
        let names: Vec<_> = names.collect();
        self.line(&names.join(",\n"));
    }

    /// Adds a formatted line.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.is_titled = false;
    }

    /// Returns the text of the page.
    pub fn finish(self) -> String {
        self.text
    }

    fn paragraph(&mut self) {
        if !self.is_titled {
            self.line(".PP");
        }
    }

    /// Adds text that is filled; each sentence ends a line of the source.
    fn sentences(&mut self, paragraph: &str) {
        const WIDTH: usize = 80;
        let mut line = String::new();
        for word in text(paragraph).split_whitespace() {
            if line.len() + word.len() >= WIDTH || line.ends_with('.') {
                self.line(&std::mem::take(&mut line));
            }
            match line.is_empty() {
                // Nothing but a request or a macro may begin so.
                true if word.starts_with(['.', '\'']) => line.push_str("\\&"),
                true => {}
                false => line.push(' '),
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(&line);
        }
    }
}

/// Returns text with its quoted commands in bold.
pub fn text(prose: &str) -> String {
    let mut parts = prose.split('`');
    let mut formatted = escaped(parts.next().unwrap_or_default());
    while let Some(typed) = parts.next() {
        let _ = write!(formatted, "\\fB{}\\fR", escaped(typed));
        formatted.push_str(&escaped_within(parts.next().unwrap_or_default()));
    }
    formatted
}

/// Returns text that is typed literally.
pub fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped_within(text))
}

/// Returns text that is replaced by a value.
pub fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escaped_within(text))
}

/// Returns text that may begin a line.
pub fn escaped(text: &str) -> String {
    let escaped = escaped_within(text);
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

/// Returns text with no character that means something else, or becomes another one in a terminal.
fn escaped_within(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns an argument of a macro.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped_within(text).replace('"', "\\(dq"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_a_request() {
        assert_eq!(escaped(".hip_fatbin"), "\\&.hip_fatbin");
        assert_eq!(escaped("'a'"), "\\(aqa\\(aq");
        assert_eq!(escaped("a\\b -c ~"), "a\\eb \\-c \\(ti");
    }

    #[test]
    fn quoted_commands_are_bold() {
        assert_eq!(text("see `offload ls`."), "see \\fBoffload ls\\fR.");
    }
}
