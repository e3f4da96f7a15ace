//! `--format`: the options that choose the format of an output.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and sentences.
    Text,
    /// One JSON document.
    Json,
    /// One JSON value in each line.
    Ndjson,
    /// Comma-separated values, with a line of names.
    Csv,
    /// A table in Markdown.
    Markdown,
    /// Annotations of GitHub Actions.
    Github,
    /// SARIF 2.1.0, which code scanning reads.
    Sarif,
    /// The XML of JUnit, which CI systems read as tests.
    Junit,
}

impl Format {
    /// Returns whether the format has findings only, and no rows.
    pub fn is_for_ci(self) -> bool {
        matches!(self, Format::Github | Format::Sarif | Format::Junit)
    }

    /// Returns whether all fields of rows are printed.
    pub fn is_json(self) -> bool {
        matches!(self, Format::Json | Format::Ndjson)
    }
}

/// Reads the name of one of the formats.
fn parser(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let names = formats.iter().filter_map(Format::to_possible_value);
    PossibleValuesParser::new(names).try_map(|name| Format::from_str(&name, false))
}

const LISTS: &[Format] =
    &[Format::Text, Format::Json, Format::Ndjson, Format::Csv, Format::Markdown];

/// The options of a command that lists.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct ListFormat {
    /// Print text, json, ndjson (a line for each row), csv or markdown
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = parser(LISTS))]
    format: Option<Format>,
    /// Print one JSON document: short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl ListFormat {
    /// Returns the format.
    pub fn get(self) -> Format {
        get(self.format, self.json)
    }

    /// Returns whether the output is text.
    pub fn is_text(self) -> bool {
        self.get() == Format::Text
    }
}

/// The options of a command that judges.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct JudgeFormat {
    /// Print text, json, ndjson, csv, markdown, github, sarif or junit
    ///
    /// ndjson has a line for each row. github (annotations of GitHub Actions), sarif and junit have findings only.
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = parser(Format::value_variants()))]
    format: Option<Format>,
    /// Print one JSON document: short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print only problems; the exit status is the answer
    #[arg(long, short, conflicts_with_all = ["json", "format"])]
    quiet: bool,
}

impl JudgeFormat {
    /// Returns the format.
    pub fn get(self) -> Format {
        get(self.format, self.json)
    }

    /// Returns whether errors and findings only are printed, as text.
    pub fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Returns whether the output is text with notes.
    pub fn has_notes(self) -> bool {
        self.get() == Format::Text && !self.quiet
    }
}

fn get(format: Option<Format>, json: bool) -> Format {
    if json { Format::Json } else { format.unwrap_or(Format::Text) }
}
