//! Files on servers: the same answers as of local files, in few requests, and precise errors.

use std::fs;
use std::net::TcpListener;
use std::process::Output;
use std::thread;

use samples::packages::{self, Around, Made};
use samples::server::{Endless, Manner, Server};

use crate::common::{all_data, data, new_command, stderr, stdout, tool};

fn run(args: &[&str]) -> Output {
    new_command(tool("offload")).args(args).output().unwrap()
}

/// Returns the output for a file on a server, and for the same file here, without the notes about the server and with one name.
fn both(
    args: &[&str],
    name: &str,
    bytes: &[u8],
    manner: Manner,
) -> [(Option<i32>, String, String); 2] {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    let server = Server::start(bytes.to_vec(), manner);
    let urls = [server.url(&format!("/{name}")), path.to_str().unwrap().to_owned()];
    urls.map(|url| {
        let output = run(&[args, &[&url]].concat());
        let here = |text: String| text.replace(&url, "FILE");
        let said = here(stderr(&output));
        let said = said
            .lines()
            .filter(|line| !line.contains("FILE: read "))
            .map(|line| format!("{line}\n"));
        (output.status.code(), here(stdout(&output)), said.collect())
    })
}

#[test]
fn a_file_on_a_server_gives_the_output_of_a_local_one() {
    let mut count = 0;
    for path in all_data() {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Files that a thin archive names are read here only: see below.
        if name.contains("thin") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for args in [
            &["ls", "--json", "--scan"][..],
            &["match", "--gpu=gfx1100", "--gpu=sm_90", "--scan"],
            &["size", "--scan"],
            &["kernels", "--scan"],
        ] {
            for manner in [Manner::Right, Manner::Whole] {
                let [there, here] = both(args, name, &bytes, manner.clone());
                assert_eq!(there, here, "{args:?} {name} {manner:?}");
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn packages_on_a_server_give_the_output_of_local_ones() {
    let hip = fs::read(data("hip.o")).unwrap();
    let members = [("foo/hip.o", &hip[..]), ("foo/x.bin", b"x"), ("foo/__init__.py", b"1\n")];
    let tar = packages::tar(&members);
    let kinds = [
        ("foo.tar", tar.clone()),
        ("foo.tar.gz", packages::gzip(&tar)),
        ("foo.deb", packages::deb(&members, "gz", packages::gzip)),
        ("foo.conda", packages::conda(tar.clone(), tar)),
        ("foo.whl", packages::zip(&packages::wheel(&members), &Around::default())),
    ];
    for (name, bytes) in kinds {
        for args in [&["ls"][..], &["match", "--gpu=gfx1100"], &["ls", "--tree"]] {
            for manner in [Manner::Right, Manner::Chunked, Manner::Whole] {
                let [there, here] = both(args, name, &bytes, manner.clone());
                assert_eq!(there, here, "{args:?} {name} {manner:?}");
            }
        }
    }
}

/// Bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_le_bytes()[6]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// The members of a wheel with two objects, a library of 1 MiB that is mostly zeros, and 3 MiB of text.
fn members(stored: bool) -> Vec<Made> {
    let [hip, cuda, library] =
        ["hip.o", "cuda-fatbin.o", "hip-two-units.so"].map(|name| fs::read(data(name)).unwrap());
    let (text, mut large) = (noise(1 << 20), library);
    large.resize(1 << 20, 0);
    let files: [(&str, &[u8]); 6] = [
        ("foo/__init__.py", &text),
        ("foo/hip.o", &hip),
        ("foo/data.json", &text),
        ("foo/lib/cuda.o", &cuda),
        ("foo/lib/libfoo.so.1", &large),
        ("foo/more.txt", &text),
    ];
    let members = packages::wheel(&files).into_iter();
    members.map(|made| Made { method: if stored { 0 } else { 8 }, ..made }).collect()
}

/// A wheel of 1,000 members that all have the same data: an object, in the last one.
fn hostile() -> Vec<u8> {
    let hip = fs::read(data("hip.o")).unwrap();
    let made: Vec<Made> = (0..1000).map(|_| Made::new("foo/hip.o", &hip[..])).collect();
    let all = packages::zip(&made, &Around::default());
    let directory = all.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let (first, mut rest) = (all[..directory].len() / 1000, all[directory..].to_vec());
    let mut at = 0;
    while rest[at..].starts_with(b"PK\x01\x02") {
        // All local headers are the first one.
        samples::put(&mut rest, at + 42, &[0; 4]);
        let len = |at: usize| usize::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
        at += 46 + len(at + 28) + len(at + 30) + len(at + 32);
    }
    let end = rest.len() - 6;
    samples::put(&mut rest, end, &(first as u32).to_le_bytes());
    [&all[..first], &rest].concat()
}

#[test]
fn a_question_costs_what_the_table_says() {
    let page = include_str!("../../../../docs/performance.md");
    let table = page.split("\n## Over the network").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| ") && line.ends_with("KiB |"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    library.resize(65 << 20, 0);
    let in_place = [Made { method: 0, ..Made::new("libfoo.so", &library[..]) }];
    let files = [
        ("foo.whl", packages::zip(&members(false), &Around::default())),
        ("stored.whl", packages::zip(&members(true), &Around::default())),
        ("libfoo.zip", packages::zip(&in_place, &Around::default())),
        ("hostile.whl", hostile()),
        ("libfoo.so", library),
    ];
    assert_eq!(rows.len(), files.len());
    let mut wrong = String::new();
    for (row, (name, bytes)) in rows.iter().zip(files) {
        let [_, most_requests, most_bytes] = row[..] else { panic!("{row:?}") };
        let most_bytes =
            most_bytes.trim_end_matches(" KiB").replace(',', "").parse::<u64>().unwrap() << 10;
        let server = Server::start(bytes, Manner::Right);
        let output = run(&["match", "--gpu=gfx1100", &server.url(&format!("/{name}"))]);
        let (requests, read) = (server.asked().len() as u64, server.bytes());
        let said = format!("{row:?}: {requests} requests, {read} bytes\n{}", stderr(&output));
        assert_eq!(output.status.code(), Some(i32::from(name == "hostile.whl")), "{said}");
        let most_requests = most_requests.parse().unwrap();
        let is_kept = requests <= most_requests && read <= most_bytes;
        // Limits are near to what is measured.
        if !is_kept || requests * 2 <= most_requests || read * 2 <= most_bytes {
            wrong.push_str(&said);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_was_not_read_is_said() {
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    library.resize(65 << 20, 0);
    let mut members = members(true);
    members.push(Made { method: 0, ..Made::new("libfoo.so", library) });
    let wheel = Server::start(packages::zip(&members, &Around::default()), Manner::Right);
    let url = wheel.url("/a/foo.whl?signature=secret#sha256=0");
    let output = run(&["ls", "--json", &url]);
    let (out, said) = (stdout(&output), stderr(&output));
    let name = wheel.url("/a/foo.whl?...");
    let left_out = "not read, by their names (--scan); 1 file not searched outside of device sections (--scan)";
    assert!(said.contains(&format!("note: {name}: read ")) && said.contains(left_out), "{said}");
    assert!(said.contains(" requests; "), "{said}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let finding = &document["findings"][0];
    let of = |field: &str| finding[field].as_str().unwrap().to_owned();
    assert_eq!([of("code"), of("level"), of("file")], ["network/not-read", "note", &name]);
    assert!(of("message").ends_with(left_out), "{finding}");
    assert_eq!(document["images"][0]["file"], format!("{name}:foo/hip.o"));
    assert!(!out.contains("secret") && !said.contains("secret"));
    // The server gets it.
    assert!(wheel.asked().iter().all(|(path, _)| path == "/a/foo.whl?signature=secret"));
    let whole = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Whole);
    let said = stderr(&run(&["ls", &whole.url("/hip.o")]));
    assert!(said.contains("in 1 request: the server has no ranges\n"), "{said}");
}

#[test]
fn several_urls_and_files_are_listed_in_order() {
    let server = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Right);
    let gone = Server::start(Vec::new(), Manner::Status(404));
    let [a, b, gone] = [server.url("/a"), server.url("/b"), gone.url("/gone?key")];
    let file = data("host.o").to_str().unwrap().to_owned();
    let output = run(&["ls", "-l", "--threads=4", &b, &gone, &file, &a]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), format!("{b}\n{a}\n"));
    let gone = gone.replace("?key", "?...");
    let error = format!("{gone}: status 404 (not found): expected 206 or 200\n");
    assert!(stderr(&output).contains(&error), "{}", stderr(&output));
}

#[test]
fn a_server_that_lies_is_an_error() {
    // A library that is longer than what is read at first.
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    library.resize(1 << 20, 0);
    for manner in [
        Manner::ChunkedMore,
        Manner::Status(500),
        Manner::ContentRange("bytes 0-1/1048576".to_owned()),
        Manner::FirstRange("bytes 0-16383/9223372036854775807".to_owned()),
        Manner::Header("Content-Encoding: gzip".to_owned()),
        Manner::EndsEarly,
        Manner::WholeEndsEarly,
        Manner::Changes,
        Manner::Grows,
        Manner::WholeLater,
        Manner::Redirects("ftp://example.com/".to_owned()),
        Manner::Noise,
    ] {
        for command in ["ls", "match --gpu=gfx1100", "size", "kernels"] {
            let server = Server::start(library.clone(), manner.clone());
            let url = server.url("/libfoo.so");
            let args: Vec<&str> = command.split(' ').chain([&*url]).collect();
            let output = run(&args);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{manner:?} {command}: {said}");
            assert!(said.starts_with(&format!("offload: error: {url}: ")), "{manner:?}: {said}");
        }
    }
}

#[test]
fn urls_that_are_refused() {
    for (url, name, why) in [
        ("s3://bucket/foo.whl", "s3://...", "URL with the scheme s3: expected http or https"),
        (
            "https://me:secret@example.com/foo.whl",
            "https://...",
            "URL with a user name or a password: expected none",
        ),
        ("file:///etc/passwd", "file://...", "not a URL"),
    ] {
        let output = run(&["ls", url]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("offload: error: {name}: ")), "{said}");
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
    }
}

#[test]
fn commands_that_read_no_urls_say_so() {
    let server = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Right);
    let url = server.url("/hip.o");
    let place = tempfile::tempdir().unwrap();
    for command in [
        "extract",
        "verify",
        "diff hip.o",
        "report -o out.html",
        "thin -o out.o --keep gfx1100",
        "compress -o out.o",
        "decompress -o out.o",
        "shrink --gpu gfx1100 -o out",
        "remove -o out.o --id gfx1100",
        "unbundle gfx1100=out",
        "split --group g -o out",
    ] {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.insert(if command.starts_with("diff") { 2 } else { 1 }, &url);
        let mut command = new_command(tool("offload"));
        fs::copy(data("hip.o"), place.path().join("hip.o")).unwrap();
        let output = command.args(&args).current_dir(place.path()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("is a URL: expected a file; download it first"), "{args:?}: {said}");
    }
    assert_eq!(server.asked(), []);
}

#[test]
fn a_thin_archive_on_a_server_opens_no_local_file() {
    let place = tempfile::tempdir().unwrap();
    let local = place.path().join("local.o");
    fs::copy(data("hip.o"), &local).unwrap();
    let mut names = format!("{}/\n", local.display()).into_bytes();
    names.resize(names.len().next_multiple_of(2), b'\n');
    let header = |name: &str, size: usize| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).into_bytes()
    };
    let size = fs::metadata(&local).unwrap().len() as usize;
    let archive =
        [b"!<thin>\n".to_vec(), header("//", names.len()), names, header("/0", size)].concat();
    let here = place.path().join("lib.a");
    fs::write(&here, &archive).unwrap();
    let output = run(&["match", "--gpu=gfx1100", here.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let server = Server::start(archive, Manner::Right);
    for args in [&["ls"][..], &["match", "--gpu=gfx1100"]] {
        let output = run(&[args, &[&server.url("/lib.a")]].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains("cannot be read: unsupported"), "{}", stderr(&output));
        assert!(!stdout(&output).contains("gfx1100"));
    }
}

/// A library without its device code, and its kernel pack for gfx1100.
fn split() -> [Vec<u8>; 2] {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let output = run(&[
        "split",
        data("hip-two-units.so").to_str().unwrap(),
        "--group",
        "g",
        "-o",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    ["hip-two-units.so", ".kpack/g_gfx1100.kpack"].map(|name| fs::read(out.join(name)).unwrap())
}

#[test]
fn kernel_packs_on_a_server_are_those_that_are_named() {
    let [library, pack] = split().map(|bytes| Server::start(bytes, Manner::Right));
    let [library_url, own] =
        [library.url("/lib/libfoo.so?a"), library.url("/lib/.kpack/g_gfx1100.kpack?b")];
    let place = tempfile::tempdir().unwrap();
    let [_, bytes] = split();
    // Neither a directory with the name of the URL nor the variables of this machine lead to packs.
    let named_as_url = own.trim_end_matches("?b").replace("//", "/");
    let path = place.path().join(named_as_url);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &bytes).unwrap();
    let ask = |urls: &[&str], variable: &str| {
        let mut command = new_command(tool("offload"));
        let command = command.args(["match", "--json", "--gpu=gfx1100"]).args(urls);
        command.env("ROCM_KPACK_PATH", variable).current_dir(place.path()).output().unwrap()
    };
    for variable in ["", path.to_str().unwrap()] {
        let output = ask(&[&library_url], variable);
        let (code, out) = (output.status.code(), stdout(&output));
        assert_eq!(code, Some(1), "{out}");
        assert!(out.contains("\"targets/unknown\"") && out.contains("network/not-read"), "{out}");
        assert!(out.contains("not looked for") && !out.contains("not there"), "{out}");
    }
    // A pack on another server is not one of this library.
    let output = ask(&[&library_url, &pack.url("/lib/.kpack/g_gfx1100.kpack")], "");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    // One beside it is, whatever comes first.
    let [bytes, other] = split();
    let both = Server::start(bytes, Manner::Pair(other));
    let [library, pack] = [both.url("/lib/libfoo.so?a"), both.url("/lib/.kpack/g_gfx1100.kpack")];
    for urls in [[&*library, &pack], [&pack, &library]] {
        let output = ask(&urls, "");
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    }
}

#[test]
fn each_request_that_fails_is_an_error() {
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    library.resize(1 << 20, 0);
    let [mut host, pack] = split();
    host.resize(1 << 20, 0);
    let wheel = packages::zip(&members(false), &Around::default());
    let prefix = noise(100_000);
    let behind = packages::zip(&members(false), &Around { prefix, ..Around::default() });
    let program = Around { prefix: library.clone(), ..Around::default() };
    let program = packages::zip(&members(false), &program);
    let mut archive = fs::read(data("libhip.a")).unwrap();
    archive.resize(archive.len() + 200_000, b'\n');
    let files = [
        ("libfoo.so", library),
        ("libbar.so", host),
        ("g_gfx1100.kpack", pack),
        ("foo.whl", wheel),
        ("foo.pyz", behind),
        ("foo", program),
        ("libfoo.a", archive),
    ];
    let (mut count, mut marked) = (0, 0);
    for (name, bytes) in files {
        for command in ["ls", "match --gpu=gfx1100"] {
            let ask = |manner| {
                let server = Server::start(bytes.clone(), manner);
                let url = server.url(&format!("/{name}"));
                let args: Vec<&str> = command.split(' ').chain(["--threads=1", &url]).collect();
                let output = run(&args);
                let shown = stdout(&output);
                (output.status.code(), stderr(&output), server.asked().len(), shown)
            };
            let (_, _, requests, _) = ask(Manner::Right);
            for failing in 0..requests {
                let (code, said, _, shown) = ask(Manner::FailsAt(failing));
                // The answer counts the members that were read, and says so.
                let answer = shown.lines().find(|line| line.contains("/foo.whl: "));
                if let Some(answer) = answer.filter(|_| command != "ls") {
                    assert!(answer.contains(PART), "{failing}: {answer}");
                    marked += usize::from(answer.contains("has code for"));
                }
                assert_eq!(code, Some(1), "{name} {command} {failing}: {said}");
                assert!(said.contains("status 500"), "{name} {command} {failing}: {said}");
                count += 1;
            }
        }
    }
    assert!(count > 30 && marked > 0, "{count}, {marked}");
}

#[test]
fn urls_that_differ_in_their_queries_are_several_packages() {
    let hip = fs::read(data("hip.o")).unwrap();
    let with = Server::start(
        packages::zip(&packages::wheel(&[("foo/hip.o", &hip[..])]), &Around::default()),
        Manner::Right,
    );
    let [a, b] = ["a", "b"].map(|query| with.url(&format!("/foo.whl?{query}")));
    let output = run(&["match", "--json", "--gpu=gfx1100", &a, &b]);
    let name = with.url("/foo.whl?...");
    let document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let verdicts = document["verdicts"].as_array().unwrap().iter();
    let names: Vec<&str> = verdicts.map(|verdict| verdict["file"].as_str().unwrap()).collect();
    assert_eq!(names, [&*name, &format!("{name} (2)")], "{document}");
}

#[test]
fn members_of_archives_that_were_not_searched_are_counted() {
    let server = Server::start(fs::read(data("libhip.a")).unwrap(), Manner::Right);
    let url = server.url("/libhip.a");
    let not_searched = "not searched outside of device sections (--scan)";
    assert!(stderr(&run(&["ls", &url])).contains(not_searched));
    assert!(!stderr(&run(&["ls", "--scan", &url])).contains(not_searched));
}

/// Returns the verdicts of `match --json`: the answer and the message of each, without findings.
fn verdicts(output: &Output) -> Vec<(String, String)> {
    let document: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let verdicts = document["verdicts"].as_array().unwrap().iter();
    verdicts.map(|verdict| (text(&verdict["answer"]), text(&verdict["message"]))).collect()
}

fn asked(gpu: &str, arguments: &[&str]) -> Vec<(String, String)> {
    let gpu = format!("--gpu={gpu}");
    verdicts(&run(&[&["match", "--json", &gpu][..], arguments].concat()))
}

const PART: &str = "was not read as a whole; what was read ";

#[test]
fn code_may_be_in_what_was_not_read() {
    let hip = fs::read(data("hip.o")).unwrap();
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    library.resize(65 << 20, 0);
    let host = fs::read(data("host.o")).unwrap();
    let wheel =
        |members: &[(&str, &[u8])]| packages::zip(&packages::wheel(members), &Around::default());
    let large = Made { method: 0, ..Made::new("libfoo.so", &library[..]) };
    let model = noise(100_000);
    for (name, bytes, expected) in [
        ("hip.o", hip.clone(), "unknown"),
        ("host.o", host.clone(), "unknown"),
        // A library in place is not searched.
        ("foo.zip", packages::zip(&[large], &Around::default()), "unknown"),
        // All of a member that is compressed is read, and these names are not those of code.
        ("foo.whl", wheel(&[("foo/hip.o", &hip), ("foo/x.py", b"x"), ("foo/x.txt", b"x")]), "no"),
        // These are: models have them.
        ("bar.whl", wheel(&[("foo/hip.o", &hip), ("foo/model.pth", &model)]), "unknown"),
        ("baz.whl", wheel(&[("foo/hip.o", &hip), ("foo/model.ts", &model)]), "unknown"),
        // A small one is text, and is read.
        (
            "qux.whl",
            wheel(&[("foo/hip.o", &hip), ("foo/x.pth", b"import x"), ("foo/x.d.ts", &model)]),
            "no",
        ),
    ] {
        let server = Server::start(bytes, Manner::Right);
        let url = server.url(&format!("/{name}"));
        let found = asked("gfx1201", &[&url]);
        let [(answer, message)] = &found[..] else { panic!("{name}: {found:?}") };
        assert_eq!(
            (&**answer, message.starts_with(PART)),
            (expected, expected == "unknown"),
            "{name}: {message}"
        );
        let said = stderr(&run(&["match", "--gpu=gfx1201", &url]));
        assert_eq!(
            said.contains("outside of device sections")
                || said.contains("(1 may hold device code)"),
            expected == "unknown",
            "{name}: {said}"
        );
        // The part that was read is enough.
        if name != "host.o" {
            let found = asked("gfx1100", &[&url]);
            assert_eq!(found[0].0, "yes", "{name}: {found:?}");
            assert_eq!(asked("gfx1201", &["--scan", &url])[0].0, "no", "{name}");
        }
    }
    // Each input is judged by itself.
    let server = Server::start(hip, Manner::Right);
    let local = data("hip.o").to_str().unwrap().to_owned();
    let found = asked("gfx1201", &[&local, &server.url("/a"), &local]);
    let answers: Vec<&str> = found.iter().map(|(answer, _)| &**answer).collect();
    assert_eq!(answers, ["no", "unknown", "no"], "{found:?}");
}

#[test]
fn a_package_with_a_damaged_member_is_not_known() {
    let hip = fs::read(data("hip.o")).unwrap();
    let large = noise(100_000);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("foo.whl");
    let members = [("foo/hip.o", &hip[..]), ("foo/large.so", &large[..])];
    fs::write(&path, packages::zip(&packages::wheel(&members), &Around::default())).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(asked("gfx1201", &[path])[0].0, "no");
    // One that is damaged.
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(12).position(|found| found == b"foo/large.so").unwrap();
    bytes[at + 50_000] ^= 1;
    fs::write(path, bytes).unwrap();
    let output = run(&["match", "--json", "--gpu=gfx1201,gfx1100", path]);
    let found = verdicts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(found[0].0 == "unknown" && found[0].1.starts_with(PART), "{found:?}");
    assert!(found[1].0 == "yes" && found[1].1.starts_with(PART), "{found:?}");
    // The same for a limit.
    let output = run(&["match", "--max-decompressed=50K", "--gpu=gfx1201", path]);
    let (out, said) = (stdout(&output), stderr(&output));
    assert!(out.contains(&format!("foo.whl: {PART}lacks code for gfx1201")), "{out}{said}");
}

#[test]
fn variables_of_proxies_that_are_wrong_are_errors() {
    let server = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Right);
    let url = server.url("/hip.o");
    for (name, value) in [
        ("HTTPS_PROXY", "htp://me:secret@proxy:1"),
        ("http_proxy", "http://me:secret@proxy:port"),
        ("ALL_PROXY", "socks5://me:secret@proxy:1"),
        ("HTTP_PROXY", "http://:80"),
    ] {
        let output =
            new_command(tool("offload")).args(["ls", &url]).env(name, value).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with(&format!("offload: error: {url}: {name}: not the URL of a proxy")),
            "{said}"
        );
        assert!(!said.contains("secret"), "{said}");
    }
    assert_eq!(server.asked(), []);
    let output =
        new_command(tool("offload")).args(["ls", &url]).env("HTTPS_PROXY", "").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn errors_of_a_proxy_name_it_and_its_variable() {
    let server = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Right);
    let (url, public) = (server.url("/hip.o"), "http://files.example.com/hip.o");
    // Nothing listens at a port that was free.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let down = format!("http://me:secret@127.0.0.1:{port}");
    for (name, value, expected) in [
        ("HTTP_PROXY", &*down, format!("127.0.0.1:{port} of HTTP_PROXY: Connection refused")),
        ("all_proxy", &*down, format!("127.0.0.1:{port} of all_proxy: Connection refused")),
        ("HTTP_PROXY", "no.invalid", "no.invalid:80 of HTTP_PROXY: host not found".to_owned()),
    ] {
        let output =
            new_command(tool("offload")).args(["ls", public]).env(name, value).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("offload: error: {public}: proxy {expected}")), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
    // A proxy that is not asked is not named.
    let mut direct = new_command(tool("offload"));
    direct.args(["ls", &url]).env("HTTP_PROXY", &down).env("NO_PROXY", "127.0.0.1");
    let output = direct.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_redirect_from_a_public_host_to_this_machine_is_refused() {
    let victim = Server::start(fs::read(data("hip.o")).unwrap(), Manner::Right);
    let own = victim.url("/hip.o?secret");
    for to in [&*own, "http://169.254.169.254/latest", "http://[::1]:8080/", "http://10.0.0.1/x"] {
        let proxy = Server::start(Vec::new(), Manner::ProxyRedirects(to.to_owned()));
        let public = "http://files.example.com/hip.o";
        let command = |url: &str| {
            let mut command = new_command(tool("offload"));
            command.args(["match", "--gpu=gfx1100", url]).env("HTTP_PROXY", proxy.url(""));
            command.output().unwrap()
        };
        let output = command(public);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let error = format!("offload: error: {public}: redirect: ");
        assert!(said.starts_with(&error) && said.contains("expected a public address"), "{said}");
        assert!(!said.contains("secret"), "{said}");
        assert_eq!(proxy.asked().len(), 1, "{to}");
    }
    assert_eq!(victim.asked(), []);
    // The user may name such an address.
    let redirect = Server::start(Vec::new(), Manner::Redirects(own));
    let output = run(&["match", "--gpu=gfx1100", &redirect.url("/hip.o")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Returns the output of a command, without the notes, and with one name of the file.
fn answer_of(server: &Server, name: &str, command: &str) -> (Option<i32>, String, String) {
    let url = server.url(&format!("/{name}"));
    let args: Vec<&str> = command.split(' ').chain([&*url]).collect();
    let output = run(&args);
    (output.status.code(), stdout(&output).replace(&url, "FILE"), stderr(&output).to_owned())
}

#[test]
fn no_server_brings_about_a_sure_and_wrong_answer() {
    let mut library = fs::read(data("hip-two-units.so")).unwrap();
    library.resize(1 << 20, 0);
    let files =
        [("libfoo.so", library), ("foo.whl", packages::zip(&members(false), &Around::default()))];
    let commands = [
        "ls --json --scan",
        "match --json --gpu=gfx1100",
        "match --json --gpu=gfx1201",
        "match --json --scan --gpu=gfx1201",
        "size --json --scan",
        "kernels --json --scan",
    ];
    // Clients wait for most servers, before they ask again.
    let count: usize = thread::scope(|scope| {
        let asked = files.iter().flat_map(|file| commands.map(|command| (file, command)));
        let asked = asked.map(|((name, bytes), command)| {
            scope.spawn(move || servers_with_right_answers(name, bytes, command))
        });
        let asked: Vec<_> = asked.collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(count > 300, "{count}");
}

/// Fails if a server of some manner brings about a wrong answer; returns how many there are.
fn servers_with_right_answers(name: &str, bytes: &[u8], command: &str) -> usize {
    let right = [Manner::Right, Manner::Whole].map(|manner| {
        let (code, out, _) = answer_of(&Server::start(bytes.to_vec(), manner), name, command);
        (code, out)
    });
    // These take the time that a server has for an answer: the tests of the client have them.
    let waits = |manner: &Manner| {
        let endless = [Endless::Trailers, Endless::Trailer, Endless::Chunk];
        *manner == Manner::Silent || endless.map(Manner::Endless).contains(manner)
    };
    let mut count = 0;
    for manner in Manner::all().filter(|manner| !waits(manner)) {
        let server = Server::start(bytes.to_vec(), manner.clone());
        let (code, out, said) = answer_of(&server, name, command);
        let what = format!("{manner:?} {name} {command}: {said}{out}");
        count += 1;
        if right.iter().any(|(right, text)| (*right, text) == (code, &out)) {
            continue;
        }
        // Without the right answer there is an error, and no verdict but "unknown".
        assert_eq!(code, Some(1), "{what}");
        assert!(said.contains("error: "), "{what}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["ok"], false, "{what}");
        let verdicts = document["verdicts"].as_array().into_iter().flatten();
        for verdict in verdicts {
            let is_right = verdict["answer"] == "yes" && command.contains("gfx1100");
            assert!(verdict["answer"] == "unknown" || is_right, "{what}");
        }
    }
    count
}
