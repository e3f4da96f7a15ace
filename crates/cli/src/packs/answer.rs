//! The kernel packs in which ROCm's loader finds the code of a split library for a GPU, printed.

use std::io;

use tool_answers::matching::SplitAnswer;
use tool_kit::input;
use tool_kit::style::{self, ERROR, HEADING, Out, PLAIN, TARGET, WARNING, show};
use tool_kit::table::{Align, Table};

/// Prints where the loader looks, in its order.
pub(crate) fn print_tried(answer: &SplitAnswer, out: &mut Out<'_>) -> io::Result<()> {
    let mut table = Table::default()
        .column(format!("KERNEL PACKS FOR {}", answer.gpu()), Align::Left, PLAIN)
        .column("RESULT", Align::Left, PLAIN);
    for (path, result) in answer.tried() {
        table.row(&[input::display(path), result.clone()]);
    }
    table.print(out, "  ", style::terminal_width())?;
    show!(out)
}

/// Prints the conclusion for a library.
pub(crate) fn print(answer: &SplitAnswer, out: &mut Out<'_>, file: &str) -> io::Result<()> {
    let style = match (answer.is_served(), answer.conditions().is_empty()) {
        (true, true) => TARGET,
        (true, false) => WARNING,
        (false, _) => ERROR,
    };
    let words = answer.words(|path| input::display(path));
    show!(out, "{HEADING}{file}{HEADING:#}: {style}{words}{style:#}")?;
    if answer.is_later() {
        let text = "  ROCm up to 7.14.0 finds less: its loader stops at the first pack that is there, and one for a GPU with features hides others";
        show!(out, "{WARNING}{text}{WARNING:#}")?;
    }
    Ok(())
}
