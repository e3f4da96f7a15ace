//! Arguments as Python's `argparse` takes them, in the form that the tables of options have.

use crate::llvm_cl::{Kind, Tool, split_at_equals};

/// Gives options with any number of values one for each, the values of options their `=`, and shortened names their ends. As there,
/// the last use of an option counts.
pub(super) fn joined(tool: &Tool, args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut joined: Vec<(String, Vec<u8>)> = Vec::new();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let Some((name, value)) = option(tool, &arg) else {
            joined.push((String::new(), arg));
            continue;
        };
        let kind = tool.options.iter().find(|option| option.name == name).map(|option| option.kind);
        let with = |value: &[u8]| [b"--", name.as_bytes(), b"=", value].concat();
        let is_value = |arg: &Vec<u8>| !arg.starts_with(b"-");
        if kind == Some(Kind::List) {
            joined.retain(|(other, _)| *other != name);
        }
        match (kind, value) {
            (Some(Kind::List), None) => {
                let before = joined.len();
                while let Some(value) = args.next_if(is_value) {
                    joined.push((name.clone(), with(&value)));
                }
                if joined.len() == before {
                    joined.push((name.clone(), with(b"")));
                }
            }
            (Some(Kind::Bool), None) | (None, _) => joined.push((name, arg)),
            (Some(_), Some(value)) => joined.push((name.clone(), with(&value))),
            (Some(_), None) => match args.next_if(is_value) {
                Some(value) => joined.push((name.clone(), with(&value))),
                None => joined.push((name, arg)),
            },
        }
    }
    joined.into_iter().map(|(_, arg)| arg).collect()
}

/// Returns the name of an option, and the value after it in the same argument.
fn option(tool: &Tool, arg: &[u8]) -> Option<(String, Option<Vec<u8>>)> {
    if let Some(value) = arg.strip_prefix(b"-j") {
        let value = value.strip_prefix(b"=").unwrap_or(value);
        return Some(("jobs".to_owned(), Some(value.to_vec()).filter(|value| !value.is_empty())));
    }
    let (typed, value) = split_at_equals(arg.strip_prefix(b"--")?);
    let typed = std::str::from_utf8(typed).ok().filter(|typed| !typed.is_empty())?;
    let mut names = tool.options.iter().map(|option| option.name);
    let is_whole = names.clone().any(|name| name == typed);
    let mut longer = names.by_ref().filter(|name| name.starts_with(typed));
    let name = match (is_whole, longer.next(), longer.next()) {
        (false, Some(name), None) => name,
        _ => typed,
    };
    Some((name.to_owned(), value.map(<[u8]>::to_vec)))
}

#[cfg(test)]
mod tests {
    use super::joined;
    use crate::split_python_wheels::TOOL;

    fn line(text: &str) -> String {
        let args = text.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
        let joined = joined(&TOOL, args);
        let words = joined.iter().map(|arg| String::from_utf8_lossy(arg).into_owned());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn arguments_are_those_of_argparse() {
        for (typed, expected) in [
            ("--input a.whl", "--input=a.whl"),
            ("--inp=a.whl", "--input=a.whl"),
            ("-j 4", "--jobs=4"),
            ("-j4 --verbose", "--jobs=4 --verbose"),
            ("--databases miopen rocblas --verb", "--databases=miopen --databases=rocblas --verb"),
            ("--databases --verbose", "--databases= --verbose"),
            ("--databases a --databases b", "--databases=b"),
            // Two options start so.
            ("--output x", "--output x"),
            ("--unknown x", "--unknown x"),
            ("--input", "--input"),
        ] {
            assert_eq!(line(typed), expected);
        }
    }
}
