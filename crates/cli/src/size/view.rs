//! The tables of `offload size`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use device_account::{Amount, Copies, Row};
use device_code::demangled;
use tool_kit::style::{self, BAR, HEADING, Out, TARGET, show};
use tool_kit::table::{Align, Table};

/// Returns a number of bytes, or a dash for none.
fn size(bytes: u64) -> String {
    if bytes == 0 { "-".to_owned() } else { style::size(bytes) }
}

/// Prints rows, the largest GPU first, and their sum: all of the file, unless rows are a part of it.
pub(super) fn table(
    out: &mut Out<'_>,
    (name, whole): (&str, u64),
    rows: &[Row],
    title: &'static str,
    (is_part, top): (bool, Option<usize>),
) -> io::Result<()> {
    let mut targets: HashMap<&str, u64> = HashMap::new();
    for row in rows {
        *targets.entry(&row.target).or_default() += row.amount.stored;
    }
    let mut sorted: Vec<&Row> = rows.iter().collect();
    let by_target = top.is_none();
    sorted.sort_by_cached_key(|row| {
        let of_target = targets.get(&*row.target).filter(|_| by_target);
        let target = by_target.then_some(&*row.target);
        (Reverse(of_target), target, Reverse((row.amount.stored, row.amount.plain)))
    });
    show!(out, "{HEADING}{name}{HEADING:#}  {}", style::size(whole))?;
    let mut table = Table::default().column("GPU", Align::Left, TARGET);
    table = if title.is_empty() { table } else { table.texts([title]).shrinks_at_end() };
    table = table.numbers(["SIZE", "SHARE"]).column("", Align::Left, BAR).optional(1);
    table = table.numbers(["PLAIN"]);
    let mut add = |target: &str, text: &str, amount: Amount| {
        let text = if title == "KERNEL" { demangled(text.as_bytes()) } else { text.into() };
        let target = if target.is_empty() && text.is_empty() { "-" } else { target };
        let mut cells = vec![target.to_owned(), text.into_owned()];
        cells.truncate(if title.is_empty() { 1 } else { 2 });
        let share = style::percent(amount.stored, whole);
        let bar = style::bar(amount.stored, whole);
        // Empty where nothing is compressed.
        let plain = Some(amount.plain).filter(|&plain| plain != amount.stored);
        cells.extend([size(amount.stored), share, bar, plain.map_or_else(String::new, size)]);
        table.row(&cells);
    };
    let shown = top.unwrap_or(sorted.len()).min(sorted.len());
    let (largest, others) = sorted.split_at(shown);
    largest.iter().for_each(|row| add(&row.target, &row.name, row.amount));
    if !others.is_empty() {
        let text = format!("{} more", style::count(others.len(), "row"));
        let amount = others.iter().map(|row| row.amount).sum();
        if title.is_empty() { add(&text, "", amount) } else { add("", &text, amount) }
    }
    let all = rows.iter().map(|row| row.amount).sum();
    let text = if is_part { "loaded by none of these GPUs" } else { "all" };
    if title.is_empty() || is_part {
        add(text, "", all);
    } else {
        add("", text, all);
    }
    table.print(out, "  ", style::terminal_width())?;
    out.flush()
}

/// Prints things that are there several times, and what that wastes.
pub(super) fn copies(
    out: &mut Out<'_>,
    all: &[Copies],
    whole: u64,
    top: Option<usize>,
) -> io::Result<()> {
    /// Places of one thing that are printed.
    const MOST: usize = 4;
    for what in ["image", "kernel"] {
        let of_kind = all.iter().filter(|it| it.function.is_some() == (what == "kernel"));
        let of_kind: Vec<_> = of_kind.collect();
        let wasted: Amount = of_kind.iter().map(|it| it.wasted()).sum();
        let number = style::count(of_kind.len(), what);
        let (stored, plain) = (style::size(wasted.stored), style::size(wasted.plain));
        let share = style::percent(wasted.stored, whole);
        show!(
            out,
            "{HEADING}{number} with copies{HEADING:#}, which waste {stored} ({share}), plain {plain}"
        )?;
        for it in of_kind.iter().take(top.unwrap_or(of_kind.len())) {
            let name = it.function.as_deref().map(|name| demangled(name.as_bytes()));
            let name = name.map_or(String::new(), |name| format!(" {name}"));
            let (wasted, copies) = (it.wasted(), it.copies.len());
            let (stored, plain) = (size(wasted.stored), size(wasted.plain));
            let target = &it.target;
            show!(
                out,
                "  {TARGET}{target}{TARGET:#}{name}: {copies} copies waste {stored}, plain {plain}"
            )?;
            // Kernels of one image can be equal.
            let mut places: Vec<_> = it.copies.chunk_by(|a, b| a.place == b.place).collect();
            let more = places.split_off(places.len().min(MOST)).len();
            for same in places {
                let Some(first) = same.first() else { continue };
                let times =
                    if same.len() > 1 { format!(" ({} times)", same.len()) } else { String::new() };
                show!(out, "    {}{times}", first.place)?;
            }
            if more > 0 {
                show!(out, "    and {more} more")?;
            }
        }
    }
    out.flush()
}
