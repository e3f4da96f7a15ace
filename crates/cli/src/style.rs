//! Colours, sizes and bars. `anstream` removes the colours if the output is not a terminal or `NO_COLOR` is set.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice, StripStream};
use anstyle::{AnsiColor, Style};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const NOTE: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const COLUMN: Style = Style::new().dimmed();
pub(crate) const TARGET: Style = AnsiColor::Green.on_default();
pub(crate) const BAR: Style = AnsiColor::Blue.on_default();
pub(crate) const PLAIN: Style = Style::new();

/// Has colours always or never, whatever the output is; `None` leaves it to `anstream`.
pub(crate) fn choose_colors(choice: Option<bool>) {
    match choice {
        Some(true) => ColorChoice::AlwaysAnsi.write_global(),
        Some(false) => ColorChoice::Never.write_global(),
        None => {}
    }
}

/// Returns standard output for text with colours, which are kept if it is a terminal. Writes in large pieces: flush it
/// at the end, and before writing to standard error.
pub(crate) fn stdout() -> Box<dyn Write> {
    match AutoStream::choice(&io::stdout()) {
        // `anstream` writes what lies between colours piece by piece.
        ColorChoice::Never => {
            let out: Box<dyn Write> = Box::new(plain_stdout());
            Box::new(StripStream::new(out))
        }
        _ => Box::new(BufWriter::new(anstream::stdout().lock())),
    }
}

/// Returns standard output for text without colours, as [`stdout`].
pub(crate) fn plain_stdout() -> impl Write {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Returns a number of files: `1 file`.
pub(crate) fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Returns a size like `1.4 MiB`: three digits at most, binary units, exact below 1024.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 999.95 would round to 1000.0
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    format!("{value:.1} {unit}")
}

const BAR_CELLS: u128 = 8;

/// Returns a bar of eight cells for a part of a whole, in steps of an eighth of a cell; never empty for a part
/// above 0.
pub(crate) fn bar(part: u64, whole: u64) -> String {
    const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let steps = u128::from(part) * (BAR_CELLS * 8) / u128::from(whole.max(1));
    let mut left = steps.clamp(u128::from(part > 0), BAR_CELLS * 8);
    let mut bar = String::new();
    for _ in 0..BAR_CELLS {
        let eighths = left.min(8);
        left -= eighths;
        bar.extend(usize::try_from(eighths).ok().and_then(|eighths| EIGHTHS.get(eighths)));
    }
    bar
}

/// Returns a share like `12.3 %`; empty for a part of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}

/// Cells in a line of the terminal that standard output is; without one, lines may be of any width.
pub(crate) fn terminal_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

/// Returns the number of lines of the terminal, or `usize::MAX` if standard output is not a terminal.
pub(crate) fn terminal_height() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(usize::MAX, |(_, height)| usize::from(height.0))
}

/// Returns text from a file without deceptive characters: those that move a terminal's cursor or fake a line, and those
/// that are invisible or change the order of others, so that one name looks like another.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
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
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
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
pub(crate) fn deceives(c: char) -> bool {
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
        assert_eq!(percent(1, 8), "12.5 %");
    }
}
