//! The tools for Windows, made on Linux and run by Wine. All that this takes comes from Debian's packages: compilers of C are
//! installed, Wine and a standard library of Rust are unpacked into `target/windows`.

mod archive;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ci::Ci;
use crate::files;
use crate::machine::{has, has_target, is_x86_64_linux, need, variable};
use crate::process::{self, Result, Stop, command, lacking, read, succeeds};
use crate::workspace::Workspace;

const TRIPLE: &str = "x86_64-pc-windows-gnu";
/// The compiler of Debian whose package has the sources of the standard library.
const RUST: &str = "rustc-web libstd-rust-web-dev rust-web-src";
/// Path of Debian's Wine.
const WINE: &str = "/usr/lib/wine/wine64";

/// Programs for the cases, and a library, by their names.
const PROGRAMS: [(&str, &str, &str); 3] = [
    // Wine before version 9 has no such library, which Rust's standard library asks for random numbers.
    (
        "bcryptprimitives.dll",
        "-shared -ladvapi32",
        "#include <windows.h>\n\
         BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);\n\
         __declspec(dllexport) BOOL ProcessPrng(PBYTE data, SIZE_T size) {\n\
           return SystemFunction036(data, (ULONG)size);\n\
         }\n",
    ),
    // Prints the file that has its name and `.txt`.
    (
        "says.exe",
        "",
        "#include <fcntl.h>\n#include <io.h>\n#include <stdio.h>\n#include <string.h>\n#include <windows.h>\n\
         int main(void) {\n\
           char name[4096];\n\
           GetModuleFileNameA(0, name, sizeof name - 8);\n\
           FILE *file = fopen(strcat(name, \".txt\"), \"rb\");\n\
           _setmode(1, _O_BINARY);\n\
           for (int c; file && (c = getc(file)) != EOF;) putchar(c);\n\
           return !file;\n\
         }\n",
    ),
    // Runs a program while it has a file open, as Windows has libraries that are loaded.
    (
        "holds.exe",
        "",
        "#include <process.h>\n#include <windows.h>\n\
         int main(int count, char **words) {\n\
           HANDLE file = CreateFileA(words[1], GENERIC_READ, FILE_SHARE_READ, 0, OPEN_EXISTING, 0, 0);\n\
           int status = file == INVALID_HANDLE_VALUE ? 99 : (int)_spawnvp(_P_WAIT, words[2], (const char *const *)words + 2);\n\
           return count > 2 ? status : 99;\n\
         }\n",
    ),
];

pub(crate) fn step(ci: &mut Ci) -> Result {
    let end = check(&ci.workspace);
    ci.may_lack("the tools for Windows, run by Wine", end)
}

/// Builds the zip file of the tools in `target/dist`. With `--check`, tries it in Wine.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let checks = match arguments {
        [] => false,
        [only] if only == "--check" => true,
        _ => return Err(Stop::Misused("expected nothing or --check".to_owned())),
    };
    let packed = archive::make(workspace, &compiled(workspace, "release")?)?;
    if checks {
        let (wine, libraries) = (wine(workspace)?, place(workspace).join("tools"));
        make_programs(workspace, &libraries)?;
        archive::check(workspace, &packed, || in_wine(&wine, &libraries))?;
    }
    Ok(())
}

/// Returns Wine with a prefix among these libraries, which it finds.
fn in_wine(wine: &Path, libraries: &Path) -> Command {
    let mut run = Command::new(wine);
    run.env("WINEDEBUG", "-all").env("WINEPREFIX", libraries.join("prefix"));
    run.env("WINEPATH", format!("Z:{}", libraries.display()));
    run
}

fn check(workspace: &Workspace) -> Result {
    let wine = wine(workspace)?;
    let tools = tools(workspace)?;
    // The first start makes the prefix, and may fail on a busy machine, where that takes longer than Wine waits.
    succeeds(in_wine(&wine, &tools).arg(tools.join("offload.exe")).arg("--version"));
    let test = "cargo test --quiet --locked -p tool-tests --test tools cases::windows -- --ignored";
    process::run(command(test).env("WINDOWS_TOOLS", tools).env("WINE", wine))?;
    run(workspace, &["--check".to_owned()])
}

fn place(workspace: &Workspace) -> PathBuf {
    workspace.target.join("windows")
}

/// Returns the path of Wine: `$WINE`, the one that is installed, or one that is unpacked.
pub(crate) fn wine(workspace: &Workspace) -> Result<PathBuf> {
    let installed = variable("WINE", WINE);
    if has(&installed) {
        return Ok(installed);
    }
    if !is_x86_64_linux() {
        return Err(lacking("Wine"));
    }
    let place = place(workspace).join("wine");
    let wine = place.join("usr/lib/wine/wine64");
    if has(&wine) {
        return Ok(wine);
    }
    need("/usr/lib/x86_64-linux-gnu/libunwind.so.8", "libunwind8")?;
    unpack(&place, "wine64 libwine libz-mingw-w64".split(' ').map(str::to_owned))?;
    // A script of this name starts the program of the system.
    let server = place.join("usr/lib/wine/wineserver");
    process::run(command("ln -sf wineserver64").arg(server))?;
    Ok(wine)
}

/// Returns the directories that may have the library that Wine's own programs need: of an unpacked Wine, and of an installed one.
fn zlib_places(workspace: &Workspace) -> [PathBuf; 2] {
    let roots = [place(workspace).join("wine"), PathBuf::from("/")];
    roots.map(|root| root.join("usr/x86_64-w64-mingw32/lib"))
}

/// Returns these directories as `WINEPATH` has them.
pub(crate) fn wine_path(workspace: &Workspace) -> String {
    zlib_places(workspace).map(|place| format!("Z:{}", place.display())).join(";")
}

/// Compiles the tools with a profile, and returns the directory of their programs.
fn compiled(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    if !is_x86_64_linux() {
        return Err(lacking("the tools for Windows"));
    }
    need("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")?;
    let mut build =
        command("cargo build --quiet --locked -p offload-cli -p offload-drop-ins --target");
    build.args([TRIPLE, "--profile", profile]);
    if !has_target(TRIPLE) {
        let rustc = rust(&place(workspace).join("rust"))?;
        build.arg("-Zbuild-std=std,panic_unwind,panic_abort");
        build.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
    }
    process::run(build)?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(workspace.target.join(TRIPLE).join(directory))
}

/// Builds the tools, and the programs for the cases, and returns their directory.
fn tools(workspace: &Workspace) -> Result<PathBuf> {
    let built = compiled(workspace, "dev")?;
    let tools = place(workspace).join("tools");
    fs::create_dir_all(&tools)?;
    for program in files::of(&built)? {
        if program.extension().is_some_and(|extension| extension == "exe") {
            fs::copy(&program, tools.join(files::name(&program)))?;
        }
    }
    make_programs(workspace, &tools)?;
    Ok(tools)
}

/// Makes the programs and libraries that Wine and the cases need, in a directory.
fn make_programs(workspace: &Workspace, tools: &Path) -> Result {
    // Wine's own programs look for it here, too.
    let system = tools.join("prefix/drive_c/windows/system32");
    fs::create_dir_all(&system)?;
    for place in zlib_places(workspace) {
        let zlib = place.join("zlib1.dll");
        if has(&zlib) {
            fs::copy(zlib, system.join("zlib1.dll"))?;
        }
    }
    for (name, options, source) in PROGRAMS {
        let file = tools.join(name).with_extension("c");
        fs::write(&file, source)?;
        let mut compile = command("x86_64-w64-mingw32-gcc -O1 -o");
        compile.arg(tools.join(name)).arg(file).args(options.split_whitespace());
        process::run(compile)?;
    }
    Ok(())
}

/// Returns a compiler that can build the standard library for Windows, and has the objects that start programs there.
fn rust(place: &Path) -> Result<PathBuf> {
    let rustc = place.join("rustc");
    if has(&rustc) {
        return Ok(rustc);
    }
    // The library that the compiler is has its version in its name.
    let listed = read(command("apt-cache depends libstd-rust-web-dev").stderr(Stdio::null()));
    let listed = listed.unwrap_or_default();
    let library = listed.split_whitespace().find(|word| word.starts_with("libstd-rust-web-1"));
    let Some(library) = library else {
        return Err(lacking(
            "a standard library of Rust for Windows: neither rustup nor Debian has it",
        ));
    };
    unpack(place, RUST.split(' ').map(str::to_owned).chain([library.to_owned()]))?;
    let root = place.join("usr");
    let unfinished = place.join("unfinished");
    let library = root.join("lib/x86_64-linux-gnu");
    let script = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}/bin/rustc' \"$@\"\n",
        library.display(),
        root.display()
    );
    fs::write(&unfinished, script)?;
    process::run(command("chmod +x").arg(&unfinished))?;
    let objects = root.join("lib/rustlib").join(TRIPLE).join("lib");
    fs::create_dir_all(&objects)?;
    for name in ["rsbegin", "rsend"] {
        let source = root.join(format!("lib/rustlib/src/rust/library/rtstartup/{name}.rs"));
        let mut compile = Command::new(&unfinished);
        compile.args(["--target", TRIPLE, "--emit=obj", "-o"]);
        compile.arg(objects.join(format!("{name}.o"))).arg(source).env("RUSTC_BOOTSTRAP", "1");
        process::run(compile)?;
    }
    fs::rename(unfinished, &rustc)?;
    Ok(rustc)
}

/// Downloads packages of Debian, and unpacks them into an empty directory.
fn unpack(place: &Path, packages: impl Iterator<Item = String>) -> Result {
    let downloaded = place.join("deb");
    process::run(command("rm -rf").arg(place))?;
    fs::create_dir_all(&downloaded)?;
    process::run(command("apt-get update -qq"))?;
    let download = command("apt-get -qq -oAPT::Sandbox::User=root download")
        .args(packages)
        .current_dir(&downloaded)
        .status()?;
    if !download.success() {
        return Err(lacking("Debian's packages cannot be had"));
    }
    for package in files::of(&downloaded)? {
        process::run(command("dpkg-deb -x").arg(package).arg(place))?;
    }
    process::run(command("rm -r").arg(downloaded))
}
