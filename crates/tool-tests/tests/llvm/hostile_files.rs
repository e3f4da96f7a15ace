//! Hostile files, read by LLVM 22's tools and by ours.
//!
//! Ours must refuse malformed files, with a line that names the place, and read odd files exactly. The results of
//! LLVM's tools are counted, not asserted, with `HOSTILE_SIDE=both`; otherwise only ours are asked, about an eighth of the files.
//! `HOSTILE=full` has more files (minutes), `HOSTILE_ONLY=words` only those whose family or name contains the words; the result of each run
//! is in `target/tmp/hostile.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hostile::{self, Form, Hostile, Scale, Truth, held};
use crate::judge::{Claim, VERDICTS, Verdict, verdict};
use crate::library;
use crate::questions::{Question, Side, questions};
use crate::runs::{End, LIMITS, Limits, Run, run};

/// Result of one question about one file.
struct Asked {
    file: usize,
    side: Side,
    name: &'static str,
    verdict: Verdict,
    /// A short form of the output; for ours, the fault of the complaint.
    said: String,
    bad_complaint: Option<String>,
}

fn ask(index: usize, file: &Hostile, question: &Question) -> Asked {
    let mut inputs = vec![("input", &*file.bytes)];
    inputs.extend(file.beside.iter().map(|(name, bytes)| (&**name, &**bytes)));
    let run = run(&question.program, &question.args, &inputs, LIMITS);
    let mut verdict = verdict(file, &run, || question.claim(file, &run));
    if question.side == Side::Ours {
        verdict = ours_by_its_own_rules(file, question, &run, verdict);
    }
    // To read a file and not to know how to link what is in it is all right.
    if verdict == Verdict::RefusedLegal
        && question.name == "clang-linker-wrapper"
        && run.stderr.contains("is not supported")
    {
        verdict = Verdict::Right;
    }
    let is_of_ours = question.side == Side::Ours
        && matches!(file.truth, Truth::Refused)
        && file.form != Form::Targets;
    let bad_complaint = question.complaint(&run).err().filter(|_| is_of_ours);
    let stderr: String = run.stderr.lines().next().unwrap_or_default().chars().take(200).collect();
    let said = format!("{:?} {stderr}", run.end);
    Asked { file: index, side: question.side, name: question.name, verdict, said, bad_complaint }
}

fn holds_compressed(file: &Hostile) -> bool {
    file.bytes.windows(4).any(|bytes| bytes == b"CCOB")
}

/// Returns whether nothing is complained about: a note says what the code needs.
fn only_notes(run: &Run) -> bool {
    run.stderr.lines().all(|line| line.starts_with("offload: note: "))
}

/// Some of our tools fail on purpose for files in which nothing is wrong.
fn ours_by_its_own_rules(file: &Hostile, question: &Question, run: &Run, v: Verdict) -> Verdict {
    let holds = matches!(file.truth, Truth::Holds(_));
    let is_damage = |line: &str| line.contains("error: ") && line.contains("at byte 0x");
    let no_error = !run.stderr.lines().any(is_damage);
    match question.name {
        // Warnings are findings.
        "offload verify" if v == Verdict::RefusedLegal => {
            let (_, errors) = library::walked(&file.bytes, &file.beside);
            if errors.is_empty() { Verdict::Right } else { v }
        }
        // Compressed bundles are read to the end of their tables: what is wrong after them is for `verify`.
        "offload match" | "clang-offload-bundler -list" | "clang-offload-bundler -type=a -list"
            if (v == Verdict::Wrong || v == Verdict::Refused && only_notes(run))
                && run.end == End::Exit(0)
                && holds_compressed(file) =>
        {
            Verdict::Right
        }
        // Nothing for this GPU, or nothing at all, to edit or to extract.
        "offload match" | "offload extract" | "offload thin" if holds && no_error => match v {
            Verdict::RefusedLegal => Verdict::Right,
            v => v,
        },
        // Files with malformed IDs are edited only where that is allowed.
        "offload thin" if v == Verdict::RefusedLegal && run.stderr.contains("--allow-findings") => {
            Verdict::Right
        }
        // A malformed file is named, and no other written.
        "offload thin" if v == Verdict::Refused && run.files.contains_key("thinned") => {
            Verdict::Wrong
        }
        // A warning is enough for IDs that are unknown, and for bytes after a bundle.
        _ if file.form == Form::Targets => v,
        _ if question.name.starts_with("clang-offload-bundler")
            && run.stderr.contains("at byte 0x") =>
        {
            v
        }
        _ if v == Verdict::Refused && run.end == End::Exit(0) => Verdict::Wrong,
        _ => v,
    }
}

fn everything(files: &[Hostile], side: Option<Side>) -> Vec<Asked> {
    let asked = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index) else { return };
                    if index % 500 == 499 {
                        eprintln!("{} of {} files", index + 1, files.len());
                    }
                    let all = questions(file);
                    for question in all.into_iter().filter(|q| side.is_none_or(|s| s == q.side)) {
                        let answer = ask(index, file, &question);
                        asked.lock().unwrap().push(answer);
                    }
                }
            });
        }
    });
    let mut asked = asked.into_inner().unwrap();
    asked.sort_by_key(|asked| (asked.file, asked.side, asked.name));
    asked
}

type Counts = BTreeMap<Verdict, usize>;

/// A table for Markdown: a row for each key, LLVM's verdicts, then those of ours.
fn table<'a>(asked: &'a [Asked], what: &str, key: impl Fn(&'a Asked) -> &'a str) -> String {
    let mut order: Vec<&str> = Vec::new();
    let mut counts: BTreeMap<(&str, Side), Counts> = BTreeMap::new();
    for one in asked {
        let key = key(one);
        if !order.contains(&key) {
            order.push(key);
        }
        *counts.entry((key, one.side)).or_default().entry(one.verdict).or_default() += 1;
    }
    let mut text = format!(
        "| {what} | right | refused | legal refused | silently wrong | crash | hang | memory | ours: right | refused | else |\n|---|"
    );
    text.push_str(&"---:|".repeat(10));
    text.push('\n');
    let mut row = |name: &str, of: &dyn Fn(Side) -> Counts| {
        let (llvm, ours) = (of(Side::Llvm), of(Side::Ours));
        let count = |counts: &Counts, verdict: &Verdict| counts.get(verdict).copied().unwrap_or(0);
        write!(text, "| {name} |").unwrap();
        let asked_llvm = llvm.values().sum::<usize>() > 0;
        for verdict in &VERDICTS {
            let shown = match count(&llvm, verdict) {
                _ if !asked_llvm => String::new(),
                number => number.to_string(),
            };
            write!(text, " {shown} |").unwrap();
        }
        let other: usize = VERDICTS[2..].iter().map(|verdict| count(&ours, verdict)).sum();
        let shown =
            |number: usize| if ours.is_empty() { String::new() } else { number.to_string() };
        let (right, refused) = (count(&ours, &VERDICTS[0]), count(&ours, &VERDICTS[1]));
        writeln!(text, " {} | {} | {} |", shown(right), shown(refused), shown(other)).unwrap();
    };
    for name in &order {
        row(name, &|side| counts.get(&(*name, side)).cloned().unwrap_or_default());
    }
    row("all", &|side| {
        let mut all = Counts::new();
        for ((_, of), counts) in &counts {
            for (verdict, number) in counts.iter().filter(|_| *of == side) {
                *all.entry(*verdict).or_default() += number;
            }
        }
        all
    });
    text
}

#[test]
fn ours_refuse_or_are_right_where_llvm_crashes() {
    let full = std::env::var_os("HOSTILE").is_some_and(|value| value == "full");
    let only = std::env::var("HOSTILE_ONLY").unwrap_or_default();
    let mut files = hostile::all(if full { Scale::Long } else { Scale::Short });
    files.retain(|file| format!("{}: {}", file.family, file.name).contains(&only));
    let both = std::env::var_os("HOSTILE_SIDE").is_some_and(|value| value == "both");
    if !full && !both && only.is_empty() {
        // The gate asks about every eighth file of each family, `.ci/run llvm_slow` about all.
        let mut seen = BTreeMap::new();
        files.retain(|file| {
            let count: &mut usize = seen.entry(file.family).or_default();
            *count += 1;
            *count % 8 == 1
        });
    }
    let asked = everything(&files, (!both).then_some(Side::Ours));

    let mut report = String::new();
    for one in &asked {
        let file = &files[one.file];
        let truth = match &file.truth {
            Truth::Refused => "malformed",
            Truth::Holds(_) => "legal",
            Truth::Part(_) => "part",
            Truth::Any => "unknown",
        };
        let (side, bad) = (one.side, one.bad_complaint.as_deref().unwrap_or_default());
        writeln!(
            report,
            "{:?}\t{side:?}\t{}\t{truth}\t{}: {}\t{}\t{bad}",
            one.verdict,
            one.name,
            file.family,
            file.name.escape_debug(),
            one.said
        )
        .unwrap();
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile.txt");
    std::fs::write(&place, &report).unwrap();

    println!("{} files, {} runs; {}\n", files.len(), asked.len(), place.display());
    println!("{}", table(&asked, "files", |one| files[one.file].family));
    println!("{}", table(&asked, "tool", |one| one.name));

    let wrong: Vec<&str> = asked
        .iter()
        .zip(report.lines())
        .filter(|(one, _)| one.side == Side::Ours)
        .filter(|(one, _)| {
            !matches!(one.verdict, Verdict::Right | Verdict::Refused) || one.bad_complaint.is_some()
        })
        .map(|(_, line)| line)
        .collect();
    let shown = &wrong[..wrong.len().min(80)];
    assert!(wrong.is_empty(), "{} of ours:\n{}", wrong.len(), shown.join("\n"));
}

/// Tools that crash, hang, lie and take memory are told apart.
#[test]
fn faulty_tools_are_detected() {
    let place = tempfile::tempdir().unwrap();
    let (bytes, images) = (b"some image, and more".to_vec(), [held("x", b"image")]);
    let file = |truth| Hostile {
        family: "",
        name: String::new(),
        form: Form::Bundle,
        bytes: bytes.clone(),
        beside: vec![],
        truth,
        sound_outside: false,
    };
    let (malformed, legal) = (file(Truth::Refused), file(Truth::Holds(images.to_vec())));
    let (part, any) = (file(Truth::Part(images.to_vec())), file(Truth::Any));
    let lines = |run: &Run| {
        Claim::Ids(String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect())
    };
    let output = |run: &Run| Claim::Bytes(run.files.values().cloned().collect());
    let judged = |script: &str, file: &Hostile, claim: &dyn Fn(&Run) -> Claim| {
        let tool = place.path().join("tool");
        std::fs::write(&tool, script).unwrap();
        let args = [tool.display().to_string()];
        let limits = Limits { seconds: 1, memory: 512, file: 8 };
        let run = run(Path::new("/bin/sh"), &args, &[("input", &file.bytes)], limits);
        verdict(file, &run, || claim(&run))
    };
    for (script, file, expected) in [
        ("echo x", &legal, Verdict::Right),
        ("echo y", &legal, Verdict::Wrong),
        ("echo x; echo y", &legal, Verdict::Wrong),
        ("", &legal, Verdict::Wrong),
        ("echo x", &malformed, Verdict::Wrong),
        ("echo x; echo 'input: malformed' >&2", &malformed, Verdict::Refused),
        ("echo 'input: malformed' >&2; exit 1", &malformed, Verdict::Refused),
        ("echo 'input: malformed' >&2; exit 1", &legal, Verdict::RefusedLegal),
        ("exit 1", &malformed, Verdict::Wrong),
        ("echo y", &part, Verdict::Wrong),
        ("", &part, Verdict::Right),
        ("kill -SEGV $$", &malformed, Verdict::Crash),
        ("kill -ABRT $$", &legal, Verdict::Crash),
        ("echo 'Stack dump:' >&2; exit 1", &malformed, Verdict::Crash),
        ("while :; do :; done", &malformed, Verdict::Hang),
        ("yes >&1", &malformed, Verdict::Hang),
        ("echo 'LLVM ERROR: out of memory' >&2; kill -ABRT $$", &malformed, Verdict::Memory),
        ("dd if=/dev/zero of=/dev/null bs=1G count=1", &malformed, Verdict::Memory),
    ] {
        assert_eq!(judged(script, file, &lines), expected, "{script}");
    }
    for (script, file, expected) in [
        ("printf image >out", &legal, Verdict::Right),
        ("printf imag >out", &legal, Verdict::Wrong),
        ("printf imag >out", &any, Verdict::Right),
        ("printf 'image of something else' >out", &any, Verdict::Wrong),
        ("printf 'image' >out; printf secret >out2", &part, Verdict::Wrong),
    ] {
        assert_eq!(judged(script, file, &output), expected, "{script}");
    }
}
