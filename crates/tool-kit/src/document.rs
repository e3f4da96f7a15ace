//! The output of a command in a format that programs read: rows, then files, findings and the verdict.
//!
//! JSON is one document, `{"version":1,"command":"ls","images":[...],"files":[...],"findings":[...],"ok":true}`, which is written as
//! its rows come.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::finding::{Finding, Level};
use crate::format::Format;
use crate::looked::{Looked, Seen};
use crate::style::{self, printable};
use crate::{Outcome, ci, json};

/// The version of the JSON: a field that is gone, or means something else, is another version.
pub const VERSION: u32 = 1;

/// The shape of the output of a command.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The name of the command.
    pub command: &'static str,
    /// The name of the rows.
    pub rows: &'static str,
    /// The columns of CSV and Markdown, separated by blanks: fields of rows, or fields of fields such as `compression.method`.
    /// Names that end in `/B` are bytes, which Markdown shows as KiB and MiB.
    pub columns: &'static str,
}

impl Shape {
    /// Creates a shape.
    pub const fn new(command: &'static str, rows: &'static str, columns: &'static str) -> Self {
        Shape { command, rows, columns }
    }

    /// Returns whether the rows are findings.
    fn has_findings(&self) -> bool {
        self.rows == "findings"
    }
}

/// The name of rows that are files.
const FILES: &str = "files";

/// The columns of findings.
pub const FINDINGS: &str = "level code file message help";

/// A column.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    is_bytes: bool,
}

impl Column {
    fn all(columns: &'static str) -> impl Iterator<Item = Column> {
        columns.split(' ').map(|column| match column.strip_suffix("/B") {
            Some(name) => Column { name, is_bytes: true },
            None => Column { name: column, is_bytes: false },
        })
    }

    /// Returns the value in a row; null if the row lacks it.
    fn of(self, row: &Value) -> &Value {
        self.name.split('.').fold(row, |value, name| value.get(name).unwrap_or(&Value::Null))
    }
}

/// Something that was read, with the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FileRecord {
    file: String,
    /// In bytes, if it is known.
    size: Option<u64>,
    format: Option<String>,
    /// `ok`, `no-code`, `faults`, `not-read`.
    result: &'static str,
}

/// Facts about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The size in bytes.
    pub size: u64,
    /// The name of the format.
    pub format: String,
    /// `false` if it has nothing of what is looked for.
    pub has_code: bool,
}

/// The output of a command on standard output. In text, the command prints itself, and this is silent.
pub struct Document {
    out: Box<dyn Write>,
    format: Format,
    shape: &'static Shape,
    rows: usize,
    /// `true` if it only collects, and messages on standard error are not wanted.
    is_silent: bool,
    files: Vec<FileRecord>,
    findings: Vec<Finding>,
    abouts: HashMap<String, About>,
    /// Further fields of the document.
    fields: Vec<(&'static str, Value)>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Document {
    /// Starts the output of a command.
    pub fn start(format: Format, shape: &'static Shape) -> io::Result<Self> {
        Document::to(Box::new(style::buffered_stdout()), format, shape)
    }

    /// Creates one that only collects files and findings.
    pub fn silent(shape: &'static Shape) -> io::Result<Self> {
        let document = Document::to(Box::new(io::sink()), Format::Github, shape)?;
        Ok(Document { is_silent: true, ..document })
    }

    /// Returns whether it only collects, and messages on standard error are not wanted.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    fn to(mut out: Box<dyn Write>, format: Format, shape: &'static Shape) -> io::Result<Self> {
        let Shape { command, rows, columns } = shape;
        match format {
            Format::Json => {
                write!(out, "{{\"version\":{VERSION},\"command\":\"{command}\",\"{rows}\":[")?;
            }
            Format::Ndjson => writeln!(out, "{{\"version\":{VERSION},\"command\":\"{command}\"}}")?,
            Format::Csv => {
                let names: Vec<_> = Column::all(columns).map(|column| column.name).collect();
                writeln!(out, "{}", names.join(","))?;
            }
            _ => {}
        }
        let (files, findings, fields) = (Vec::new(), Vec::new(), Vec::new());
        let abouts = HashMap::new();
        Ok(Document {
            out,
            format,
            shape,
            rows: 0,
            is_silent: false,
            files,
            findings,
            abouts,
            fields,
        })
    }

    /// Returns whether the command prints text itself.
    pub fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    /// Adds a row.
    pub fn row(&mut self, row: &impl Serialize) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let before = if self.rows == 0 { "\n  " } else { ",\n  " };
                write!(self.out, "{before}")?;
                json::write(&mut self.out, row)?;
            }
            Format::Ndjson => {
                json::write(&mut self.out, row)?;
                writeln!(self.out)?;
            }
            Format::Csv => csv(&mut self.out, self.shape.columns, &serde_json::to_value(row)?)?,
            Format::Markdown => {
                if self.rows == 0 {
                    markdown_head(&mut self.out, self.shape.columns)?;
                }
                markdown(&mut self.out, self.shape.columns, &serde_json::to_value(row)?)?;
            }
            Format::Text | Format::Github | Format::Sarif | Format::Junit => {}
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds a row about a file, whose name comes first.
    pub fn row_of(&mut self, file: &str, record: &impl Serialize) -> io::Result<()> {
        self.row(&OfFile { file, record })
    }

    /// Adds what is known of a file, before [`looked`](Self::looked) adds its result.
    pub fn about(&mut self, file: &str, about: impl FnOnce() -> Option<About>) {
        if !self.is_text() {
            self.abouts.extend(about().map(|about| (file.to_owned(), about)));
        }
    }

    /// Adds the files of a look with their results, and its findings. Returns the outcome: if something must be there, a
    /// directory in which nothing was seen is an error.
    pub fn looked(&mut self, looked: Looked, needs: bool) -> io::Result<Outcome> {
        if !self.is_text() {
            for (name, seen) in looked.files() {
                self.file(name, seen);
            }
            self.findings(looked.findings(needs))?;
        }
        Ok(if needs { looked.needing() } else { looked.outcome() })
    }

    /// Adds a file with its result.
    pub fn file(&mut self, name: &str, seen: &Seen) {
        // A file may be named twice.
        let about = self.abouts.get(name).cloned();
        let (result, format) = match seen {
            Seen::Nothing => return,
            Seen::Unread(format) => ("not-read", Some(format.clone())),
            Seen::Well if about.as_ref().is_some_and(|about| !about.has_code) => ("no-code", None),
            Seen::Well => ("ok", None),
            Seen::Faults => ("faults", None),
        };
        let (size, known) = about.map(|about| (about.size, about.format)).unzip();
        let (file, format) = (name.to_owned(), known.or(format));
        self.files.push(FileRecord { file, size, format, result });
    }

    /// Adds a finding.
    pub fn finding(&mut self, finding: Finding) -> io::Result<()> {
        if self.shape.has_findings() && !self.format.is_for_ci() {
            self.row(&finding)?;
        }
        self.findings.push(finding);
        Ok(())
    }

    /// Adds findings.
    pub fn findings(&mut self, findings: impl IntoIterator<Item = Finding>) -> io::Result<()> {
        findings.into_iter().try_for_each(|finding| self.finding(finding))
    }

    /// Takes the files of another one.
    pub fn take_files(&mut self, other: &mut Document) {
        self.files.append(&mut other.files);
    }

    /// Takes the findings out.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Makes findings with this code warnings.
    pub fn soften(&mut self, code: &str) {
        let found = self.findings.iter_mut().filter(|one| one.code == code);
        found.for_each(|one| one.level = Level::Warning);
    }

    /// Returns the findings so far.
    pub fn all_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Adds a field of the document.
    pub fn field(&mut self, name: &'static str, value: &impl Serialize) -> io::Result<()> {
        if self.format.is_json() {
            self.fields.push((name, serde_json::to_value(value)?));
        }
        Ok(())
    }

    /// Ends the output.
    pub fn end(self, outcome: Outcome) -> io::Result<Outcome> {
        let ok = outcome == Outcome::Clean;
        let Document { mut out, format, shape, rows, files, findings, fields, .. } = self;
        let out = &mut out;
        match format {
            Format::Text => return Ok(outcome),
            Format::Json => {
                write!(out, "{}]", if rows == 0 { "" } else { "\n" })?;
                if shape.rows != FILES {
                    write_rows(out, FILES, &files)?;
                }
                if !shape.has_findings() {
                    write_rows(out, "findings", &findings)?;
                }
                for (name, value) in &fields {
                    write!(out, ",\"{name}\":")?;
                    json::write(out, value)?;
                }
                writeln!(out, ",\"ok\":{ok}}}")?;
            }
            Format::Ndjson => {
                write!(out, "{{\"ok\":{ok}")?;
                if shape.rows != FILES {
                    write!(out, ",\"{FILES}\":")?;
                    json::write(out, &files)?;
                }
                if !shape.has_findings() {
                    write!(out, ",\"findings\":")?;
                    json::write(out, &findings)?;
                }
                for (name, value) in &fields {
                    write!(out, ",\"{name}\":")?;
                    json::write(out, value)?;
                }
                writeln!(out, "}}")?;
            }
            Format::Csv => {}
            Format::Markdown => {
                if !shape.has_findings() && !findings.is_empty() {
                    if rows > 0 {
                        writeln!(out)?;
                    }
                    markdown_head(out, FINDINGS)?;
                    for finding in &findings {
                        markdown(out, FINDINGS, &serde_json::to_value(finding)?)?;
                    }
                }
            }
            Format::Github => ci::github(out, &findings)?,
            Format::Sarif => {
                // Findings about all files together are at the first one.
                let first = files.first().map_or(".", |file| &file.file);
                ci::sarif(out, &findings, first)?;
            }
            Format::Junit => {
                let files = files.iter().map(|file| &*file.file);
                ci::junit(out, shape.command, files, &findings)?;
            }
        }
        out.flush()?;
        Ok(outcome)
    }
}

/// Prints rows that are all there.
pub fn print(
    format: Format,
    shape: &'static Shape,
    rows: impl IntoIterator<Item = impl Serialize>,
    outcome: Outcome,
) -> io::Result<Outcome> {
    print_with(format, shape, rows, Vec::new(), outcome)
}

/// Prints rows and findings that are all there.
pub fn print_with(
    format: Format,
    shape: &'static Shape,
    rows: impl IntoIterator<Item = impl Serialize>,
    findings: Vec<Finding>,
    outcome: Outcome,
) -> io::Result<Outcome> {
    let mut document = Document::start(format, shape)?;
    rows.into_iter().try_for_each(|row| document.row(&row))?;
    document.findings(findings)?;
    document.end(outcome)
}

/// A row: a record with the name of its file, which comes first.
#[derive(Debug, Serialize)]
pub struct OfFile<'a, R> {
    /// The name of the file.
    pub file: &'a str,
    /// The record.
    #[serde(flatten)]
    pub record: &'a R,
}

/// Writes a field of a JSON document, each value on a line of its own.
fn write_rows(out: &mut dyn Write, name: &str, rows: &[impl Serialize]) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (n, row) in rows.iter().enumerate() {
        write!(out, "{}", if n == 0 { "\n  " } else { ",\n  " })?;
        json::write(out, row)?;
    }
    write!(out, "{}]", if rows.is_empty() { "" } else { "\n" })
}

/// Returns a value as one cell.
fn cell(value: &Value) -> io::Result<String> {
    Ok(match value {
        Value::Null => String::new(),
        Value::String(text) => printable(text).into_owned(),
        value => {
            let mut text = Vec::new();
            json::write(&mut text, value)?;
            String::from_utf8_lossy(&text).into_owned()
        }
    })
}

/// Writes a line of CSV, as RFC 4180 has it.
fn csv(out: &mut dyn Write, columns: &'static str, row: &Value) -> io::Result<()> {
    for (n, column) in Column::all(columns).enumerate() {
        let text = cell(column.of(row))?;
        let comma = if n == 0 { "" } else { "," };
        if text.contains([',', '"']) {
            write!(out, "{comma}\"{}\"", text.replace('"', "\"\""))?;
        } else {
            write!(out, "{comma}{text}")?;
        }
    }
    writeln!(out)
}

fn markdown_head(out: &mut dyn Write, columns: &'static str) -> io::Result<()> {
    for column in Column::all(columns) {
        write!(out, "| {} ", column.name.replace('_', " "))?;
    }
    writeln!(out, "|")?;
    for column in Column::all(columns) {
        write!(out, "{}", if column.is_bytes { "|--:" } else { "|---" })?;
    }
    writeln!(out, "|")
}

fn markdown(out: &mut dyn Write, columns: &'static str, row: &Value) -> io::Result<()> {
    for column in Column::all(columns) {
        let value = column.of(row);
        let text = match value.as_u64().filter(|_| column.is_bytes) {
            Some(bytes) => style::size(bytes),
            None => in_markdown(&cell(value)?),
        };
        write!(out, "| {text} ")?;
    }
    writeln!(out, "|")
}

/// Returns a text of a file for Markdown: as code, if it may mean something else there, such as a mention of somebody.
pub fn in_markdown(text: &str) -> String {
    let text = printable(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " .,:;/+-%()'".contains(c);
    if text.chars().all(is_plain) {
        return text.into_owned();
    }
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const SHAPE: Shape = Shape::new("ls", "images", "file size/B a.b");

    fn written(format: Format, rows: usize) -> String {
        let shared = Shared::default();
        let mut document = Document::to(Box::new(shared.clone()), format, &SHAPE).unwrap();
        for n in 0..rows {
            let row = serde_json::json!({ "size": 2048 * n, "a": { "b": ["x,\u{202e}", null] } });
            document.row_of("f|`\n,\"@x", &row).unwrap();
        }
        document.file("f", &Seen::Unread("rpm".to_owned()));
        document.finding(Finding::error("file/unknown", "f", "not read")).unwrap();
        document.field("gpus", &[1]).unwrap();
        assert_eq!(document.end(Outcome::Faults).unwrap(), Outcome::Faults);
        let bytes = shared.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_document_has_rows_files_findings_and_a_verdict() {
        for rows in 0..3 {
            let text = written(Format::Json, rows);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["images"].as_array().unwrap().len(), rows);
            assert_eq!(value["version"], VERSION);
            assert_eq!(value["files"][0]["result"], "not-read");
            assert_eq!(value["findings"][0]["code"], "file/unknown");
            assert_eq!((&value["gpus"][0], &value["ok"]), (&1.into(), &false.into()));
            let lines = written(Format::Ndjson, rows);
            let lines: Vec<Value> =
                lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.len(), rows + 2);
            assert_eq!(lines[0]["command"], "ls");
            assert_eq!(lines[rows + 1]["findings"], value["findings"]);
        }
    }

    #[test]
    fn tables_have_the_columns_of_the_command() {
        assert_eq!(
            written(Format::Csv, 2),
            "file,size,a.b\n\
             \"f|`\\n,\"\"@x\",0,\"[\"\"x,\\u202e\"\",null]\"\n\
             \"f|`\\n,\"\"@x\",2048,\"[\"\"x,\\u202e\"\",null]\"\n"
        );
        assert_eq!(
            written(Format::Markdown, 1),
            "| file | size | a.b |\n|---|--:|---|\n\
             | ``f\\|`\\n,\"@x`` | 0 B | `[\"x,\\u202e\",null]` |\n\n\
             | level | code | file | message | help |\n|---|---|---|---|---|\n\
             | error | file/unknown | f | not read |  |\n"
        );
        assert_eq!(written(Format::Text, 1), "");
    }
}
