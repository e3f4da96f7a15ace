//! Findings as CI systems read them: annotations of GitHub Actions, SARIF 2.1.0, the XML of JUnit.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use crate::finding::{Finding, Level};
use crate::json;
use crate::style::printable;

/// Writes an annotation for each finding: `::error file=F,title=CODE::MESSAGE`.
pub(crate) fn github(out: &mut dyn Write, findings: &[Finding]) -> io::Result<()> {
    let escape = |text: &str, more: &[(char, &str)]| {
        let text = printable(text).replace('%', "%25");
        more.iter().fold(text, |text, (c, code)| text.replace(*c, code))
    };
    for finding in findings {
        let Finding { code, level, file, message, help } = finding;
        let command = match level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "notice",
        };
        write!(out, "::{command} ")?;
        if !file.is_empty() {
            write!(out, "file={},", escape(file, &[(':', "%3A"), (',', "%2C")]))?;
        }
        write!(out, "title=offload {code}::")?;
        if !file.is_empty() {
            write!(out, "{}: ", escape(file, &[]))?;
        }
        write!(out, "{}", escape(message, &[]))?;
        match help {
            Some(help) => writeln!(out, " ({})", escape(help, &[]))?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// A log of SARIF.
#[derive(Serialize)]
struct Log<R> {
    version: &'static str,
    #[serde(rename = "$schema")]
    schema: &'static str,
    runs: R,
}

/// Writes a log of one run.
pub(crate) fn sarif(out: &mut dyn Write, findings: &[Finding], all: &str) -> io::Result<()> {
    let mut codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules = codes.iter().map(|code| {
        let text = format!("Run `offload explain {code}` to learn what it means and what helps.");
        json!({ "id": code, "help": { "text": text } })
    });
    let results = findings.iter().map(|finding| {
        let Finding { code, level, file, message, help } = finding;
        let text = match help {
            Some(help) => format!("{message} ({help})"),
            None => message.clone(),
        };
        // GitHub takes no log in which a result has no place.
        let file = if file.is_empty() { all } else { file };
        let place = json!({ "physicalLocation": { "artifactLocation": { "uri": uri(file) } } });
        json!({
            "ruleId": code,
            "level": level.as_str(),
            "message": { "text": text },
            "locations": [place],
        })
    });
    let driver = json!({
        "name": "offload",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules.collect::<Vec<_>>(),
    });
    let run = json!({
        "tool": { "driver": driver },
        "results": results.collect::<Vec<_>>(),
    });
    let schema = "https://json.schemastore.org/sarif-2.1.0.json";
    json::write_pretty(out, &Log { version: "2.1.0", schema, runs: [run] })
}

/// Returns a path as a reference of a URI.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    // A backslash is a letter of a name elsewhere.
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// Writes a test for each file, and for each other place with findings. Only errors fail.
pub(crate) fn junit<'f>(
    out: &mut dyn Write,
    name: &str,
    files: impl Iterator<Item = &'f str>,
    findings: &'f [Finding],
) -> io::Result<()> {
    let mut order: Vec<&str> = Vec::new();
    let mut tests: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    let found = findings.iter().map(|finding| (&*finding.file, Some(finding)));
    for (file, finding) in files.map(|file| (file, None)).chain(found) {
        let test = tests.entry(file).or_insert_with(|| {
            order.push(file);
            Vec::new()
        });
        test.extend(finding);
    }
    let is_error = |finding: &&&Finding| finding.level == Level::Error;
    let failures = tests.values().filter(|test| test.iter().any(|one| is_error(&one))).count();
    let count = order.len();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"offload\" tests=\"{count}\" failures=\"{failures}\">")?;
    let suite = escaped(&format!("offload {name}"));
    writeln!(
        out,
        "  <testsuite name=\"{suite}\" tests=\"{count}\" failures=\"{failures}\" errors=\"0\">"
    )?;
    for file in order {
        let name = if file.is_empty() { "all files" } else { file };
        let of_file = tests.get(file).map_or(&[][..], Vec::as_slice);
        write!(out, "    <testcase classname=\"{suite}\" name=\"{}\"", escaped(name))?;
        if of_file.is_empty() {
            writeln!(out, "/>")?;
            continue;
        }
        writeln!(out, ">")?;
        let line = |one: &Finding| match &one.help {
            Some(help) => format!("{}: {} ({help})", one.code, one.message),
            None => format!("{}: {}", one.code, one.message),
        };
        // A test fails once: readers take the first failure only.
        if let Some(first) = of_file.iter().find(is_error) {
            let texts: Vec<_> = of_file.iter().filter(is_error).map(|one| line(one)).collect();
            writeln!(
                out,
                "      <failure type=\"{}\" message=\"{}\">{}</failure>",
                escaped(first.code),
                escaped(&first.message),
                texts.iter().map(|text| escaped(text)).collect::<Vec<_>>().join("\n")
            )?;
        }
        let others: Vec<_> = of_file.iter().filter(|one| !is_error(one)).collect();
        if !others.is_empty() {
            let texts: Vec<_> = others
                .iter()
                .map(|one| escaped(&format!("{}: {}", one.level.as_str(), line(one))))
                .collect();
            writeln!(out, "      <system-out>{}</system-out>", texts.join("\n"))?;
        }
        writeln!(out, "    </testcase>")?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

/// Returns a text for XML, which has no control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn findings() -> [Finding; 3] {
        let odd = "d/a b:<\u{1b}\u{ffff}&\"\n%,é";
        [
            Finding::error("targets/missing", odd, "no 100% <code>\r\n::error::x"),
            Finding::error("kernel/spill", odd, "spills").with_help(Some("a > b".to_owned())),
            Finding::error("size/growth", "", "grows").with_level(Level::Note),
        ]
    }

    #[test]
    fn names_cannot_forge_annotations() {
        let text = written(|out| github(out, &findings()));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with(
            "::error file=d/a b%3A<\\u{1b}\u{ffff}&\"\\n%25%2Cé,title=offload targets/missing::"
        ));
        assert!(lines[0].ends_with(": no 100%25 <code>\\r\\n::error::x"), "{text}");
        assert_eq!(lines[2], "::notice title=offload size/growth::grows");
    }

    #[test]
    fn sarif_has_rules_and_places() {
        let log: serde_json::Value =
            serde_json::from_str(&written(|out| sarif(out, &findings(), "first.so"))).unwrap();
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 3);
        let place = &run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(place["uri"], "d/a%20b%3A%3C%1B%EF%BF%BF%26%22%0A%25%2C%C3%A9");
        let place = &run["results"][2]["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(place["uri"], "first.so");
        assert_eq!(run["results"][2]["level"], "note");
    }

    #[test]
    fn junit_has_a_test_for_each_file() {
        let text = written(|out| junit(out, "check", ["good.so"].into_iter(), &findings()));
        assert!(text.contains("tests=\"3\" failures=\"1\""), "{text}");
        assert!(text.contains("name=\"good.so\"/>"), "{text}");
        assert!(text.contains("targets/missing: no 100% &lt;code&gt;\\r\\n::error::x\nkernel/spill: spills (a &gt; b)</failure>"), "{text}");
        assert!(text.contains("<system-out>note: size/growth: grows</system-out>"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{ffff}']));
    }
}
