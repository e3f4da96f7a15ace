//! Lines for terminals: escaped text, colours, sizes and bars.
//!
//! Texts from files reach a terminal through [`Out`] and [`Text`] only, which escape all that deceives, line breaks included.
//! The codes of [`Style`] are the only escape sequences. `anstream` removes them if the output is not a terminal or
//! `NO_COLOR` is set.

use std::borrow::Cow;
use std::cell::Cell;
use std::env;
use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice, StripStream};
use anstyle::AnsiColor;
use terminal_size::{Height, Width};

use crate::erase::Erasing;
use crate::width::{HANGING, wrapped};

/// Errors.
pub const ERROR: Style = Style(AnsiColor::Red.on_default().bold());
/// Warnings.
pub const WARNING: Style = Style(AnsiColor::Yellow.on_default().bold());
/// Notes.
pub const NOTE: Style = Style(AnsiColor::Cyan.on_default().bold());
/// Names of files above what is said of them.
pub const HEADING: Style = Style(anstyle::Style::new().bold());
/// Columns of little interest.
pub const COLUMN: Style = Style(anstyle::Style::new().dimmed());
/// Targets, and good answers.
pub const TARGET: Style = Style(AnsiColor::Green.on_default());
/// Bars.
pub const BAR: Style = Style(AnsiColor::Blue.on_default());
/// All else.
pub const PLAIN: Style = Style(anstyle::Style::new());

thread_local! {
    /// `true` while a [`Style`] or [`Ours`] writes.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// A colour: `{HEADING}` starts it, `{HEADING:#}` ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style(anstyle::Style);

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        as_ours(|| self.0.fmt(f))
    }
}

/// A text of this program that is not escaped.
#[derive(Clone, Copy, Debug)]
pub struct Ours(pub &'static str);

impl fmt::Display for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        as_ours(|| f.write_str(self.0))
    }
}

/// Runs a writer whose text is not escaped.
fn as_ours(write: impl FnOnce() -> fmt::Result) -> fmt::Result {
    IS_OURS.set(true);
    let written = write();
    IS_OURS.set(false);
    written
}

/// Text that is safe to print: [`text!`] makes it, and escapes what it is made of, except for styles.
#[derive(Clone, Debug, Default)]
pub struct Text(String);

impl Text {
    /// Makes a text; [`text!`] calls it.
    pub fn of(text: fmt::Arguments<'_>) -> Self {
        let mut made = Text::default();
        made.add(text);
        made
    }

    fn add(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string succeeds; a failed `Display` leaves what it has written.
        let _ = self.write_fmt(text);
    }

    /// Returns the escaped text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&if IS_OURS.get() { Cow::Borrowed(text) } else { printable(text) });
        Ok(())
    }
}

/// Makes a [`Text`], as `format!` makes a string.
#[macro_export]
macro_rules! text {
    ($($text:tt)*) => { $crate::style::Text::of(format_args!($($text)*)) };
}

/// Prints a line to an [`Out`], as `writeln!` does; all that it is made of is escaped, except for styles.
#[macro_export]
macro_rules! show {
    ($out:expr) => { $out.end_line() };
    ($out:expr, $($text:tt)*) => {{ $out.add(format_args!($($text)*)); $out.end_line() }};
}

/// Adds to the line that [`show!`] ends.
#[macro_export]
macro_rules! part {
    ($out:expr, $($text:tt)*) => { $out.add(format_args!($($text)*)) };
}

pub use crate::{part, show, text};

/// An output for lines of text, which [`show!`] prints.
pub struct Out<'o> {
    out: Box<dyn Write + 'o>,
    /// The line that is not ended.
    line: Text,
    /// The cells that a line has place for.
    fit: usize,
    /// Cells by which the further lines of a broken line are indented more.
    hanging: usize,
}

impl fmt::Debug for Out<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out").field("line", &self.line).finish_non_exhaustive()
    }
}

impl<'o> Out<'o> {
    /// Creates an output that writes to another one.
    pub fn new(out: impl Write + 'o) -> Self {
        Out { out: Box::new(out), line: Text::default(), fit: usize::MAX, hanging: HANGING }
    }

    /// Breaks lines that take more cells between words.
    pub fn fitting(self, fit: usize) -> Self {
        Out { fit, ..self }
    }

    /// Indents all lines of a paragraph alike: no line is the start of a row.
    pub fn as_prose(self) -> Self {
        Out { hanging: 0, ..self }
    }

    /// Adds to the current line.
    pub fn add(&mut self, text: fmt::Arguments<'_>) {
        self.line.add(text);
    }

    /// Ends the current line.
    pub fn end_line(&mut self) -> io::Result<()> {
        if let Cow::Owned(broken) = wrapped(&self.line.0, self.fit, self.hanging) {
            self.line.0 = broken;
        }
        self.line.0.push('\n');
        let written = self.out.write_all(self.line.0.as_bytes());
        self.line.0.clear();
        written
    }

    /// Writes all lines that have ended.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Has colours always or never, whatever the output is. `None` leaves it to `anstream`, and to the variable `FORCE_COLOR`, which it does
/// not know.
pub fn choose_colors(choice: Option<bool>) {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    let choice = choice.or_else(|| (is_set("FORCE_COLOR") && !is_set("NO_COLOR")).then_some(true));
    match choice {
        Some(true) => ColorChoice::AlwaysAnsi.write_global(),
        Some(false) => ColorChoice::Never.write_global(),
        None => {}
    }
}

/// Returns whether the terminal has ASCII characters only, by the locale. Files and pipes have all.
pub(crate) fn is_ascii() -> bool {
    static IS_ASCII: OnceLock<bool> = OnceLock::new();
    *IS_ASCII.get_or_init(|| {
        let variables = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(env::var_os);
        let locale = variables.into_iter().find(|value| !value.is_empty());
        terminal_width() != usize::MAX
            && locale.is_some_and(|locale| locale == "C" || locale == "POSIX")
    })
}

/// Returns standard output for lines. Their colours are kept if it is a terminal, whose width they fit. Writes in large pieces: flush it
/// at the end, and before writing to standard error.
pub fn stdout() -> Out<'static> {
    let out = match AutoStream::choice(&io::stdout()) {
        // `anstream` writes what lies between colours piece by piece.
        ColorChoice::Never => {
            let out: Box<dyn Write> = Box::new(buffered_stdout());
            Out::new(StripStream::new(out))
        }
        _ => Out::new(BufWriter::new(Erasing(anstream::stdout().lock()))),
    };
    out.fitting(terminal_width())
}

/// Prints an empty line before each block of lines but the first.
///
/// # Errors
///
/// The output cannot be written.
pub fn separate(out: &mut Out<'_>, blocks: &mut usize) -> io::Result<()> {
    if *blocks > 0 {
        show!(out)?;
    }
    *blocks += 1;
    Ok(())
}

/// Returns standard output for bytes that need no escapes: JSON has its own, scripts are ours. Text goes to [`stdout`].
pub fn buffered_stdout() -> impl Write {
    BufWriter::with_capacity(1 << 16, Erasing(io::stdout().lock()))
}

/// Returns a number of things: `1 wrapper`, `2 wrappers`.
pub fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// Returns a number of files: `1 file`.
pub fn files(n: usize) -> String {
    count(n, "file")
}

/// Returns a size like `1.4 MiB`: three digits at most, binary units, exact below 1024.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    for unit in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        // 999.95 would round to 1000.0
        if value < 999.95 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} EiB")
}

const BAR_CELLS: u128 = 8;

/// Returns a bar of eight cells for a part of a whole, in steps of an eighth of a cell; never empty for a part
/// above 0.
pub fn bar(part: u64, whole: u64) -> String {
    bar_of(part, whole, is_ascii())
}

fn bar_of(part: u64, whole: u64, is_ascii: bool) -> String {
    const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let steps = u128::from(part) * (BAR_CELLS * 8) / u128::from(whole.max(1));
    let mut left = steps.clamp(u128::from(part > 0), BAR_CELLS * 8);
    if is_ascii {
        // Each began cell counts, as in the other bars.
        let cells = usize::try_from(left.div_ceil(8)).unwrap_or(8);
        return format!("{:8}", "#".repeat(cells));
    }
    let mut bar = String::new();
    for _ in 0..BAR_CELLS {
        let eighths = left.min(8);
        left -= eighths;
        bar.extend(usize::try_from(eighths).ok().and_then(|eighths| EIGHTHS.get(eighths)));
    }
    bar
}

/// Returns a share like `12.3 %`; empty for a part of nothing.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

/// Returns the number of cells in a line of the terminal that standard output is; without one, lines may be of any width.
pub fn terminal_width() -> usize {
    columns(terminal_size::terminal_size_of(io::stdout()))
}

/// Returns whether standard output is a terminal, also one without a size.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns the same for standard error.
pub(crate) fn error_width() -> usize {
    columns(terminal_size::terminal_size_of(io::stderr()))
}

fn columns(size: Option<(Width, Height)>) -> usize {
    size.map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

/// Returns the number of lines of the terminal, or `usize::MAX` if standard output is not a terminal.
pub fn terminal_height() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(usize::MAX, |(_, height)| usize::from(height.0))
}

/// Returns text from a file without deceptive characters: characters that move a terminal's cursor or fake a line, and
/// characters that are invisible or change the order of others, so that one name looks like another.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(deceives) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().flat_map(|c| {
        let (plain, hidden) =
            if deceives(c) { (None, Some(c.escape_default())) } else { (Some(c), None) };
        plain.into_iter().chain(hidden.into_iter().flatten())
    });
    Cow::Owned(escaped.collect())
}

/// Returns the same as [`printable`] for text of several lines, and keeps the line breaks.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && deceives(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split_inclusive('\n').fold(String::new(), |mut lines, line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        lines.push_str(&printable(line));
        lines.push_str(end);
        lines
    }))
}

/// Returns whether a character is a control character, has no width, or changes the direction of text.
pub fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1024 * 1000, "1.0 MiB"),
            (1 << 30, "1.0 GiB"),
            (156_238_912, "149.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("gfx90a:xnack+ ä"), "gfx90a:xnack+ ä");
        assert_eq!(printable("a\n\x1b[31mb"), "a\\n\\u{1b}[31mb");
        assert_eq!(printable("\u{9b}\u{7f}\u{202e}\u{200b}"), "\\u{9b}\\u{7f}\\u{202e}\\u{200b}");
    }

    #[test]
    fn only_styles_are_not_escaped() {
        let name = "\u{1b}[31mred\u{9b}\nforged: ok\u{202e}";
        let mut bytes = Vec::new();
        let mut out = Out::new(&mut bytes);
        part!(out, "{HEADING}{name}{HEADING:#}");
        show!(out, "  {:>3}", "a\n").unwrap();
        show!(out, "{ERROR}{}{ERROR:#}", format_args!("{HEADING}b\r")).unwrap();
        drop(out);
        let escaped = "\\u{1b}[31mred\\u{9b}\\nforged: ok\\u{202e}";
        let expected = format!(
            "\u{1b}[1m{escaped}\u{1b}[0m   a\\n\n\u{1b}[1m\u{1b}[31m\u{1b}[1mb\\r\u{1b}[0m\n"
        );
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        // A text that was made elsewhere loses its colours, not its escapes.
        assert_eq!(text!("{}", format!("{NOTE}c")).as_str(), "\\u{1b}[1m\\u{1b}[36mc");
    }

    #[test]
    fn line_breaks_are_kept() {
        assert_eq!(printable_lines("a\nb\n"), "a\nb\n");
        assert_eq!(printable_lines("a\u{9b}\n\nb\u{202e}"), "a\\u{9b}\n\nb\\u{202e}");
    }

    #[test]
    fn bars_are_eight_cells_wide() {
        assert_eq!(bar(0, 100), "        ");
        assert_eq!(bar(1, u64::MAX), "▏       ");
        assert_eq!(bar(50, 100), "████    ");
        assert_eq!(bar(34, 64), "████▎   ");
        assert_eq!(bar(u64::MAX, u64::MAX), "████████");
        assert_eq!(bar(7, 0), "████████");
        assert_eq!(bar_of(50, 100, true), "####    ");
        assert_eq!(bar_of(1, u64::MAX, true), "#       ");
        assert_eq!(percent(1, 8), "12.5 %");
    }
}
