//! Findings: what a command that judges found, with a code.

use serde::Serialize;

/// Level of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Does not fail.
    Note,
    /// Does not fail, and should be looked at.
    Warning,
    /// Fails.
    Error,
}

impl Level {
    /// Returns the name in outputs.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Something that was found, with a code that `offload explain` explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The code: `targets/missing`.
    pub code: &'static str,
    /// The level.
    pub level: Level,
    /// The file or package; empty for all files together.
    pub file: String,
    /// One sentence.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
}

impl Finding {
    /// Creates an error.
    pub fn error(code: &'static str, file: &str, message: impl Into<String>) -> Self {
        let (file, message) = (file.to_owned(), message.into());
        Finding { code, level: Level::Error, file, message, help: None }
    }

    /// Sets the level.
    pub fn with_level(self, level: Level) -> Self {
        Finding { level, ..self }
    }

    /// Adds advice.
    pub fn with_help(self, help: Option<String>) -> Self {
        Finding { help, ..self }
    }
}
