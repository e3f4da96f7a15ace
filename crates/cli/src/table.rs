//! Plain tables: columns as wide as their widest cell, two spaces between.

use std::io::{self, Write};

use anstyle::Style;

use crate::style::{COLUMN, printable};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

#[derive(Debug)]
struct Column {
    title: &'static str,
    align: Align,
    style: Style,
}

/// Rows of text cells under titles.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn column(mut self, title: &'static str, align: Align, style: Style) -> Self {
        self.columns.push(Column {
            title,
            align,
            style,
        });
        self
    }

    /// Adds a row: one cell for each column.
    pub(crate) fn row(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(
            cells
                .iter()
                .map(|cell| printable(cell).into_owned())
                .collect(),
        );
    }

    /// Prints the rows that have content in at least one cell; columns that are empty in all rows are left out.
    pub(crate) fn print(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let shown: Vec<(usize, &Column, usize)> = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(i, column)| {
                let widest = self
                    .rows
                    .iter()
                    .filter_map(|row| row.get(i))
                    .map(|cell| width(cell))
                    .max()?;
                (widest > 0).then(|| (i, column, widest.max(width(column.title))))
            })
            .collect();
        let titles: Vec<_> = self
            .columns
            .iter()
            .map(|column| column.title.to_owned())
            .collect();
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
        let padding = " ".repeat(widest - width(cell).min(widest));
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
    fn aligns_and_drops_empty_columns() {
        let plain = Style::new();
        let mut table = Table::default()
            .column("ID", Align::Left, plain)
            .column("NOTHING", Align::Left, plain)
            .column("SIZE", Align::Right, plain)
            .column("IN", Align::Left, plain);
        table.row(&["gfx90a".into(), String::new(), "1".into(), "a".into()]);
        table.row(&["x".into(), String::new(), "12345".into(), "bc".into()]);
        let mut out = Vec::new();
        table.print(&mut out, "  ").unwrap();
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        let expected = "  ID       SIZE  IN\n  gfx90a      1  a\n  x       12345  bc\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
