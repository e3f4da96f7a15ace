//! Screens of commands on terminals of 80 and 140 columns: a wheel with 15 libraries, and a library with 888 images.
//!
//! `BLESS=1 cargo test -p tool-tests --test tools screens::` writes the golden files again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use samples::linked::{Linked, Style};
use samples::packages::{Around, wheel, zip};
use samples::{bundle, device, example};
use unicode_width::UnicodeWidthStr;

use crate::common::{new_command, tool};

const WHEEL: &str = "quickkernels-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl";
const LIBRARY: &str = "librocsparse.so.1.0";

/// Name of the golden file, and arguments. `WHEEL` and `LIBRARY` are the files.
const SCREENS: &[(&str, &str)] = &[
    ("ls-wheel", "ls WHEEL"),
    ("ls-rows", "ls --rows --hash WHEEL"),
    ("ls-tree", "ls --tree WHEEL"),
    ("ls-totals", "ls --totals WHEEL"),
    ("ls-by-package", "ls --by-package WHEEL"),
    ("ls-same", "ls --same WHEEL"),
    ("ls-needs", "ls --needs WHEEL"),
    ("ls-library", "ls LIBRARY"),
    ("match-wheel", "match --gpu gfx1102 WHEEL"),
    ("match-gpus", "match --gpu gfx906,sm_89,gfx1102 WHEEL"),
    ("match-library", "match --gpu gfx1102 LIBRARY"),
    ("kernels-wheel", "kernels --top 2 WHEEL"),
    ("diff-wheel", "diff OLD WHEEL"),
    ("verify-wheel", "verify WHEEL LIBRARY"),
    ("extract-wheel", "extract --target gfx90a WHEEL -o DIR/images"),
    ("thin-wheel", "thin --keep sm_70,gfx1100 WHEEL -o DIR/small/"),
    ("thin-library", "thin --keep gfx90a LIBRARY --dry-run"),
    ("remove-library", "remove --index 3 LIBRARY --dry-run"),
    ("compress-wheel", "compress --dry-run --allow-uneditable WHEEL"),
    ("decompress-wheel", "decompress --dry-run --allow-uneditable WHEEL"),
    ("shrink-wheel", "shrink --plan --gpu sm_70 WHEEL"),
    ("shrink-why", "shrink --plan --why --gpu gfx1100 WHEEL LIBRARY"),
    ("gpus", "gpus 7600 3060"),
    ("why", "why no kernel image is available for execution on the device"),
    ("doctor", "doctor --prefix DIR --gpu gfx1102"),
    ("usage-output", "thin --keep gfx90a LIBRARY"),
    ("usage-option", "ls --offload-arch gfx90a WHEEL"),
    ("usage-file", "WHEEL"),
];

/// Returns the library: 111 bundles of 8 entries.
fn library() -> Vec<u8> {
    let gpus = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100"];
    let flags = [0x2c, 0x2f, 0x30, 0x3f, 0x4c, 0x36, 0x41];
    let bundle = |unit: usize| {
        let images = gpus.iter().zip(flags);
        let entries = images.map(|(gpu, flags)| {
            (format!("hipv4-amdgcn-amd-amdhsa--{gpu}"), device::amd_of(flags, 512 + unit))
        });
        let host = ("host-x86_64-unknown-linux-gnu-".to_owned(), Vec::new());
        let entries: Vec<_> = [host].into_iter().chain(entries).collect();
        bundle::bundle_of(&entries, 4096)
    };
    Linked::new(Style::First, (0..111).map(bundle).collect()).build()
}

/// Returns the wheel: libraries for CUDA, ROCm and both, with a long name and wide characters among them.
fn package(is_old: bool) -> Vec<u8> {
    let [cuda, hip, ccob] = ["cuda-fatbin.o", "kernels.hipfb", "hip-ccob-v3.o"].map(example);
    let old = example("kernels-old.hipfb");
    let mut files: Vec<(String, &[u8])> = Vec::new();
    for version in ["118", "121", "124", "126", "128", "130", "132"] {
        files.push((format!("quickkernels/lib/libquickkernels_cuda{version}.so"), &cuda));
    }
    for version in ["64", "70", "71", "714", "72"] {
        let hip = if is_old { &old } else { &hip };
        files.push((format!("quickkernels/lib/libquickkernels_rocm{version}.hipfb"), hip));
    }
    files.push(("quickkernels/ops/a_name_of_a_library_that_takes_more_than_the_columns_of_a_small_terminal.so".to_owned(), &ccob));
    files.push(("quickkernels/ops/名前がとても長いライブラリ.so".to_owned(), &ccob));
    files.push(("quickkernels/ops/libplain.so".to_owned(), &ccob));
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    zip(&wheel(&files), &Around::default())
}

/// Returns what a command prints on a terminal with this number of columns, without its styles.
fn screen(columns: u16, directory: &Path, arguments: &str) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let mut options = OpenOptions::new();
    let end = options.read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&end, size).unwrap();
    let words = arguments.split(' ').map(|word| match word {
        "WHEEL" => WHEEL.to_owned(),
        "OLD" => format!("old/{WHEEL}"),
        "LIBRARY" => LIBRARY.to_owned(),
        word => word.replace("DIR", "."),
    });
    let mut command = new_command(tool("offload"));
    command.args(words).current_dir(directory).env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    let mut child = command.stdout(end.try_clone().unwrap()).stderr(end).spawn().unwrap();
    // The command has the only copies of the terminal's end.
    drop(command);
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let mut terminal = fs::File::from(terminal);
    // Linux ends with an error.
    while let Ok(read @ 1..) = terminal.read(&mut piece) {
        bytes.extend_from_slice(&piece[..read]);
    }
    let status = child.wait().unwrap().code().unwrap();
    let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    let mut screen = String::new();
    for line in text.split_inclusive('\n') {
        // A line of progress is erased before anything else is written.
        let line = match line.rsplit_once("\r\x1b[K") {
            Some((progress, line)) => {
                assert!(progress.starts_with("\roffload: "), "{progress:?}");
                line
            }
            None => line,
        };
        assert!(!line.contains('\r'), "{arguments}: {line:?}");
        screen.push_str(&anstream::adapter::strip_str(line).to_string());
    }
    format!("{screen}--- exit status {status}\n")
}

#[test]
fn screens_fit_their_terminals() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    fs::create_dir(directory.join("old")).unwrap();
    fs::write(directory.join("old").join(WHEEL), package(true)).unwrap();
    fs::write(directory.join(WHEEL), package(false)).unwrap();
    fs::write(directory.join(LIBRARY), library()).unwrap();
    let site = directory.join("lib/python3.12/site-packages");
    fs::create_dir_all(site.join("quickkernels-2.11.0.dist-info")).unwrap();
    fs::write(site.join("hip.o"), example("hip.o")).unwrap();
    let info = |name: &str| site.join("quickkernels-2.11.0.dist-info").join(name);
    fs::write(info("METADATA"), "Name: quickkernels\nVersion: 2.11.0\n").unwrap();
    fs::write(info("RECORD"), "hip.o,,\n").unwrap();
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let mut names = BTreeSet::new();
    let mut faults = Vec::new();
    for (name, arguments) in SCREENS {
        let mut all = format!("$ offload {arguments}\n");
        for columns in [80, 140] {
            let screen = screen(columns, directory, arguments);
            for line in screen.lines().filter(|line| line.width() > usize::from(columns)) {
                // Names are not broken.
                if line.trim().contains(' ') {
                    faults.push(format!("{name}: {columns} columns: {line}"));
                }
            }
            all += &format!("--- {columns} columns\n{screen}");
            for made in ["images", "small"] {
                let _ = fs::remove_dir_all(directory.join(made));
            }
        }
        let path: PathBuf = goldens.join(format!("{name}.txt"));
        names.insert(format!("{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, all).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if all != expected {
            faults.push(format!("{}: expected\n{expected}\nfound\n{all}", path.display()));
        }
    }
    for entry in fs::read_dir(goldens).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "{name}: no command prints it");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
