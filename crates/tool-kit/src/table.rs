//! Plain tables: columns as wide as their widest cell, two spaces between. A cell that is far too long does not make
//! the others as long.

use std::borrow::Cow;
use std::io;

use crate::style::{COLUMN, Out, PLAIN, Style, is_ascii, part, printable, show};
use crate::width::{cells, width};

/// Limit of the width of columns: one ID of a megabyte would make a megabyte of every line.
const WIDEST: usize = 256;

/// Columns shrink no further.
const NARROWEST: usize = 12;

/// The side at which the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

#[derive(Debug)]
struct Column {
    title: Cow<'static, str>,
    align: Align,
    style: Style,
    /// When the column is left out of a table that is too wide for the terminal: 1 is the first to go.
    leaves: Option<u8>,
    /// The end at which cells are cut where even that does not help.
    shrinks: Option<End>,
    /// The width to which cells are cut before other columns are left out.
    prefers: usize,
}

/// An end of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Start,
    Last,
}

/// Rows of text cells under titles.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a column.
    pub fn column(
        mut self,
        title: impl Into<Cow<'static, str>>,
        align: Align,
        style: Style,
    ) -> Self {
        let (title, leaves, shrinks, prefers) = (title.into(), None, None, usize::MAX);
        self.columns.push(Column { title, align, style, leaves, shrinks, prefers });
        self
    }

    /// Adds plain columns of text.
    pub fn texts<const N: usize>(self, titles: [&'static str; N]) -> Self {
        titles.into_iter().fold(self, |table, title| table.column(title, Align::Left, PLAIN))
    }

    /// Adds plain columns of numbers.
    pub fn numbers<const N: usize>(self, titles: [&'static str; N]) -> Self {
        titles.into_iter().fold(self, |table, title| table.column(title, Align::Right, PLAIN))
    }

    /// Makes the last column one that narrow terminals go without, in this order.
    pub fn optional(mut self, leaves: u8) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.leaves = Some(leaves);
        }
        self
    }

    /// Lets cells of the last column lose their start on narrow terminals, which go without the optional ones first.
    pub fn shrinks(self) -> Self {
        self.shrinks_at(End::Start)
    }

    /// Lets cells of the last column lose their end.
    pub fn shrinks_at_end(self) -> Self {
        self.shrinks_at(End::Last)
    }

    /// Cuts cells of the last column to this width before other columns are left out.
    pub fn before_others(mut self, width: usize) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.prefers = width;
        }
        self
    }

    fn shrinks_at(mut self, end: End) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.shrinks = Some(end);
        }
        self
    }

    /// Adds a row: one cell for each column.
    pub fn row(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.iter().map(|cell| printable(cell).into_owned()).collect());
    }

    /// Prints titles and rows. Columns that are empty in all rows are left out, and optional ones until a line fits into
    /// `fit` cells.
    pub fn print(&self, out: &mut Out<'_>, indent: &str, fit: usize) -> io::Result<()> {
        let shown = self.fitted(indent, fit);
        let titles: Vec<_> =
            self.columns.iter().map(|column| column.title.clone().into_owned()).collect();
        line(out, indent, &shown, &titles, Some(COLUMN))?;
        for row in &self.rows {
            line(out, indent, &shown, row, None)?;
        }
        Ok(())
    }

    /// Returns whether a column is printed where a line has `fit` cells.
    pub fn shows(&self, title: &str, indent: &str, fit: usize) -> bool {
        self.fitted(indent, fit).iter().any(|shown| shown.column.title == title)
    }

    /// Returns the columns that are printed, as wide as they are then.
    fn fitted(&self, indent: &str, fit: usize) -> Vec<Shown<'_>> {
        let mut shown = self.widths();
        let least = |shown: &[Shown<'_>]| {
            let widths = shown.iter().map(|shown| shown.width.min(shown.column.prefers) + 2);
            indent.len() + widths.sum::<usize>()
        };
        let fit = with_gap(fit);
        while least(&shown) > fit
            && let Some(at) = (0..shown.len())
                .filter(|at| shown.get(*at).is_some_and(|shown| shown.column.leaves.is_some()))
                .min_by_key(|at| shown.get(*at).and_then(|shown| shown.column.leaves))
        {
            shown.remove(at);
        }
        let too_much = line_width(indent, &shown).saturating_sub(fit);
        if too_much == 0 {
            return shown;
        }
        if !shown.iter().any(|shown| shown.shrinks.is_some()) {
            // The widest text gives way where no column is meant to.
            let texts = shown.iter_mut().filter(|shown| shown.column.align == Align::Left);
            if let Some(widest) = texts.max_by_key(|shown| shown.width) {
                widest.shrinks = Some(End::Last);
            }
        }
        // The widest columns give way first.
        for _ in 0..too_much {
            let texts =
                shown.iter_mut().filter(|one| one.shrinks.is_some() && one.width > NARROWEST);
            let Some(widest) = texts.max_by_key(|shown| shown.width) else { break };
            widest.width -= 1;
        }
        shown
    }

    /// Returns whether all columns fit into a terminal of this width.
    pub fn fits(&self, indent: &str, fit: usize) -> bool {
        line_width(indent, &self.widths()) <= with_gap(fit)
    }

    /// Returns whether all columns fit if the last one is as narrow as it may be.
    pub fn fits_but_for_last(&self, indent: &str, fit: usize) -> bool {
        let mut shown = self.widths();
        if let Some(last) = shown.last_mut() {
            last.width = last.width.min(NARROWEST);
        }
        line_width(indent, &shown) <= with_gap(fit)
    }

    /// Returns the columns that are not empty.
    fn widths(&self) -> Vec<Shown<'_>> {
        let widest =
            |i: usize| self.rows.iter().filter_map(|row| row.get(i)).map(|c| width(c)).max();
        self.columns
            .iter()
            .enumerate()
            .filter_map(|(index, column)| {
                let widest = widest(index).filter(|&widest| widest > 0)?;
                let width = widest.max(width(&column.title)).min(WIDEST);
                Some(Shown { index, column, width, shrinks: column.shrinks })
            })
            .collect()
    }
}

/// A column that is printed.
struct Shown<'t> {
    index: usize,
    column: &'t Column,
    width: usize,
    /// The end at which cells are cut that are wider.
    shrinks: Option<End>,
}

/// Returns the width of a line, with a gap after each column.
fn line_width(indent: &str, shown: &[Shown<'_>]) -> usize {
    indent.len() + shown.iter().map(|shown| shown.width + 2).sum::<usize>()
}

/// Returns the width that a line may have with the gap after its last column, which is not printed.
fn with_gap(fit: usize) -> usize {
    // All cells there can be, where there is no terminal.
    fit.saturating_add(2)
}

fn line(
    out: &mut Out<'_>,
    indent: &str,
    columns: &[Shown<'_>],
    cells: &[String],
    style: Option<Style>,
) -> io::Result<()> {
    part!(out, "{indent}");
    for (nth, &Shown { index, column, width: widest, shrinks }) in columns.iter().enumerate() {
        let cell = cells.get(index).map_or("", String::as_str);
        let cell = match shrinks {
            Some(end) => cut(cell, widest, end),
            None => cell.into(),
        };
        let style = style.unwrap_or(column.style);
        let gap = if nth == 0 { "" } else { "  " };
        let padding = " ".repeat(widest.saturating_sub(width(&cell)));
        let last = nth + 1 == columns.len();
        match column.align {
            Align::Right => part!(out, "{gap}{padding}{style}{cell}{style:#}"),
            Align::Left if last => part!(out, "{gap}{style}{cell}{style:#}"),
            Align::Left => part!(out, "{gap}{style}{cell}{style:#}{padding}"),
        }
    }
    show!(out)
}

/// Returns a cell without the start or the end that its column, which shrank, has no place for.
fn cut(cell: &str, widest: usize, end: End) -> Cow<'_, str> {
    if width(cell) <= widest || widest >= WIDEST {
        return cell.into();
    }
    let mark = if is_ascii() { ".." } else { "…" };
    let mut place = widest.saturating_sub(width(mark));
    let mut fits = |c: char| {
        place.checked_sub(cells(c)).map(|left| {
            place = left;
            c.len_utf8()
        })
    };
    match end {
        End::Start => {
            let kept: usize = cell.chars().rev().map_while(&mut fits).sum();
            format!("{mark}{}", cell.get(cell.len() - kept..).unwrap_or(cell))
        }
        End::Last => {
            let kept: usize = cell.chars().map_while(&mut fits).sum();
            format!("{}{mark}", cell.get(..kept).unwrap_or(cell))
        }
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_cell_does_not_make_all_lines_long() {
        let plain = PLAIN;
        let mut table =
            Table::default().column("A", Align::Right, plain).column("B", Align::Left, plain);
        table.row(&["a".repeat(1 << 20), "b".into()]);
        (0..1000).for_each(|_| table.row(&["a".into(), "b".into()]));
        let mut out = Vec::new();
        table.print(&mut Out::new(&mut out), "", 80).unwrap();
        assert!((1 << 20..(1 << 20) + 1000 * 300).contains(&out.len()), "{}", out.len());
    }

    #[test]
    fn narrow_tables_lose_columns_in_order_and_then_starts_of_cells() {
        let plain = PLAIN;
        let mut table = Table::default()
            .column("A", Align::Left, plain)
            .column("B", Align::Left, plain)
            .optional(2)
            .column("C", Align::Left, plain)
            .optional(1)
            .column("D", Align::Left, plain)
            .shrinks();
        let place = "member:long-name.o section:.hip_fatbin bundle:0";
        table.row(&["aa".into(), "bb".into(), "cc".into(), place.into()]);
        let last = |fit| {
            let mut out = Vec::new();
            table.print(&mut Out::new(&mut out), "", fit).unwrap();
            let text = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap();
            text.lines().last().unwrap().to_owned()
        };
        assert!(table.fits("", 59) && !table.fits("", 58));
        assert_eq!(last(59), format!("aa  bb  cc  {place}"));
        assert_eq!(last(58), format!("aa  bb  {place}"));
        assert_eq!(last(54), format!("aa  {place}"));
        assert_eq!(last(40), "aa  …name.o section:.hip_fatbin bundle:0");
        assert_eq!(last(3), "aa  …in bundle:0");
    }

    #[test]
    fn cells_may_shrink_before_columns_are_left_out() {
        let plain = PLAIN;
        let mut table = Table::default()
            .column("A", Align::Left, plain)
            .column("B", Align::Left, plain)
            .optional(1)
            .column("C", Align::Left, plain)
            .shrinks_at_end()
            .before_others(30);
        table.row(&["aa".into(), "bb".into(), "c".repeat(50)]);
        let last = |fit| {
            let mut out = Vec::new();
            table.print(&mut Out::new(&mut out), "", fit).unwrap();
            let text = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap();
            text.lines().last().unwrap().to_owned()
        };
        assert_eq!(last(58), format!("aa  bb  {}", "c".repeat(50)));
        assert_eq!(last(38), format!("aa  bb  {}…", "c".repeat(29)));
        assert_eq!(last(37), format!("aa  {}…", "c".repeat(32)));
    }

    #[test]
    fn aligns_and_drops_empty_columns() {
        let plain = PLAIN;
        let mut table = Table::default()
            .column("ID", Align::Left, plain)
            .column("NOTHING", Align::Left, plain)
            .column("SIZE", Align::Right, plain)
            .column("IN", Align::Left, plain)
            .optional(1);
        table.row(&["gfx90a".into(), String::new(), "1".into(), "a".into()]);
        table.row(&["x".into(), String::new(), "12345".into(), "bc".into()]);
        let mut out = Vec::new();
        table.print(&mut Out::new(&mut out), "  ", usize::MAX).unwrap();
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        let narrow = |fit| {
            let mut out = Vec::new();
            table.print(&mut Out::new(&mut out), "  ", fit).unwrap();
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
