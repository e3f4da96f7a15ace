//! Plain tables: columns as wide as their widest cell, two spaces between. A cell that is far too long does not make
//! the others as long.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;

use crate::style::{COLUMN, printable};

/// Columns are no wider: one ID of a megabyte would make a megabyte of every line.
const WIDEST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

#[derive(Debug)]
struct Column {
    title: Cow<'static, str>,
    align: Align,
    style: Style,
    /// Whether the column is left out when the table is too wide for the terminal.
    optional: bool,
}

/// Rows of text cells under titles.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn column(
        mut self,
        title: impl Into<Cow<'static, str>>,
        align: Align,
        style: Style,
    ) -> Self {
        self.columns.push(Column { title: title.into(), align, style, optional: false });
        self
    }

    /// Makes the last column one that narrow terminals go without.
    pub(crate) fn optional(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.optional = true;
        }
        self
    }

    /// Adds a row: one cell for each column.
    pub(crate) fn row(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.iter().map(|cell| printable(cell).into_owned()).collect());
    }

    /// Prints titles and rows. Columns that are empty in all rows are left out, and optional ones, from the
    /// right, until a line fits into `fit` cells.
    pub(crate) fn print(&self, out: &mut dyn Write, indent: &str, fit: usize) -> io::Result<()> {
        let widest =
            |i: usize| self.rows.iter().filter_map(|row| row.get(i)).map(|c| width(c)).max();
        let mut shown: Vec<(usize, &Column, usize)> = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(i, column)| {
                let widest = widest(i).filter(|&widest| widest > 0)?;
                Some((i, column, widest.max(width(&column.title)).min(WIDEST)))
            })
            .collect();
        let line_width = |shown: &[(usize, &Column, usize)]| {
            indent.len() + shown.iter().map(|(_, _, width)| width + 2).sum::<usize>()
        };
        while line_width(&shown) > fit.saturating_add(2)
            && let Some(at) = shown.iter().rposition(|(_, column, _)| column.optional)
        {
            shown.remove(at);
        }
        let titles: Vec<_> =
            self.columns.iter().map(|column| column.title.clone().into_owned()).collect();
        line(out, indent, &shown, &titles, Some(COLUMN))?;
        for row in &self.rows {
            line(out, indent, &shown, row, None)?;
        }
        Ok(())
    }
}

fn line(
    out: &mut dyn Write,
    indent: &str,
    columns: &[(usize, &Column, usize)],
    cells: &[String],
    style: Option<Style>,
) -> io::Result<()> {
    write!(out, "{indent}")?;
    for (nth, &(i, column, widest)) in columns.iter().enumerate() {
        let cell = cells.get(i).map_or("", String::as_str);
        let style = style.unwrap_or(column.style);
        let gap = if nth == 0 { "" } else { "  " };
        let padding = " ".repeat(widest.saturating_sub(width(cell)));
        let last = nth + 1 == columns.len();
        match column.align {
            Align::Right => write!(out, "{gap}{padding}{style}{cell}{style:#}")?,
            Align::Left if last => write!(out, "{gap}{style}{cell}{style:#}")?,
            Align::Left => write!(out, "{gap}{style}{cell}{style:#}{padding}")?,
        }
    }
    writeln!(out)
}

/// Terminal cells, good enough for IDs, sizes and bars: one for each character.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_cell_does_not_make_all_lines_long() {
        let plain = Style::new();
        let mut table =
            Table::default().column("A", Align::Right, plain).column("B", Align::Left, plain);
        table.row(&["a".repeat(1 << 20), "b".into()]);
        (0..1000).for_each(|_| table.row(&["a".into(), "b".into()]));
        let mut out = Vec::new();
        table.print(&mut out, "", 80).unwrap();
        assert!((1 << 20..(1 << 20) + 1000 * 300).contains(&out.len()), "{}", out.len());
    }

    #[test]
    fn aligns_and_drops_empty_columns() {
        let plain = Style::new();
        let mut table = Table::default()
            .column("ID", Align::Left, plain)
            .column("NOTHING", Align::Left, plain)
            .column("SIZE", Align::Right, plain)
            .column("IN", Align::Left, plain)
            .optional();
        table.row(&["gfx90a".into(), String::new(), "1".into(), "a".into()]);
        table.row(&["x".into(), String::new(), "12345".into(), "bc".into()]);
        let mut out = Vec::new();
        table.print(&mut out, "  ", usize::MAX).unwrap();
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        let narrow = |fit| {
            let mut out = Vec::new();
            table.print(&mut out, "  ", fit).unwrap();
            let text = anstream::adapter::strip_bytes(&out).into_vec();
            String::from_utf8(text).unwrap().lines().next().unwrap().to_owned()
        };
        assert_eq!(narrow(19), "  ID       SIZE  IN");
        assert_eq!(narrow(18), "  ID       SIZE");
        assert_eq!(narrow(3), "  ID       SIZE");
        let expected = "  ID       SIZE  IN\n  gfx90a      1  a\n  x       12345  bc\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
