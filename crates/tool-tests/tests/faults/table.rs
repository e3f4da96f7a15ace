//! Everything that writes files: the one list that all tests here go through.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use samples::ar;
use samples::bundle::{self, GFX1100};
use samples::images::{self, Layer, Packed};

use crate::common::machine::{stops_while_writing, wait_for};
use crate::common::{data, new_command};

/// A way to have files written.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub tool: &'static str,
    /// Words; `OUT` and `OUT2` are the outputs, `HOST` and `HIP-` IDs.
    pub args: &'static str,
    /// The input that an output may take the place of.
    pub input: &'static str,
}

const fn writer(tool: &'static str, args: &'static str, input: &'static str) -> Writer {
    Writer { tool, args, input }
}

const OFFLOAD: &str = "offload";
const BUNDLER: &str = "clang-offload-bundler";

/// Returns the writers for tests that run each of them many times: every third, or all if tests are thorough.
pub fn some_writers() -> impl Iterator<Item = &'static Writer> {
    WRITERS.iter().step_by(if samples::faulty::is_thorough() { 1 } else { 3 })
}

pub static WRITERS: &[Writer] = &[
    writer(OFFLOAD, "bundle -o OUT HOST=/dev/null HIP-gfx1100=new", "new"),
    writer(OFFLOAD, "bundle --compress -o OUT HOST=/dev/null HIP-gfx1100=new", "new"),
    writer(OFFLOAD, "bundle -o OUT HOST=host.o HIP-gfx1100=new", "host.o"),
    writer(OFFLOAD, "bundle --type s -o OUT HOST=text HIP-gfx1100=text", "text"),
    writer(OFFLOAD, "unbundle four HIP-gfx1100=OUT HIP-gfx90a:sramecc+:xnack-=OUT2", "four"),
    writer(
        OFFLOAD,
        "unbundle four.ccob HIP-gfx1100=OUT HIP-gfx90a:sramecc+:xnack-=OUT2",
        "four.ccob",
    ),
    writer(OFFLOAD, "pack -o OUT kind=hip,triple=amdgcn-amd-amdhsa,arch=gfx1100,file=new", "new"),
    writer(OFFLOAD, "compress four -o OUT", "four"),
    writer(OFFLOAD, "decompress four.ccob -o OUT", "four.ccob"),
    writer(OFFLOAD, "thin four -o OUT --keep gfx1100", "four"),
    writer(OFFLOAD, "shrink four -o OUT --gpu gfx1100", "four"),
    writer(OFFLOAD, "thin four.ccob -o OUT --keep gfx1100", "four.ccob"),
    writer(OFFLOAD, "thin image.tar -o OUT --keep gfx1100", "image.tar"),
    writer(OFFLOAD, "remove four -o OUT --id HIP-gfx1100", "four"),
    writer(OFFLOAD, "replace four -o OUT HIP-gfx1100=new", "four"),
    writer(OFFLOAD, "add four -o OUT --any-image HIP-gfx1201=new", "four"),
    writer(OFFLOAD, "join lib.so g.kpack -o OUT", "lib.so"),
    writer(
        OFFLOAD,
        "wrap --kind hip --triple x86_64-unknown-linux-gnu --emit ll -o OUT four",
        "four",
    ),
    writer(
        OFFLOAD,
        "wrap --kind hip --triple x86_64-unknown-linux-gnu --emit obj -o OUT four",
        "four",
    ),
    writer(
        BUNDLER,
        "-type=bc -targets=HOST,HIP-gfx1100 -input=/dev/null -input=new -output=OUT",
        "new",
    ),
    writer(
        BUNDLER,
        "-type=bc -unbundle -targets=HIP-gfx1100,HIP-gfx90a:sramecc+:xnack- -input=four -output=OUT -output=OUT2",
        "four",
    ),
    writer(
        BUNDLER,
        "-type=o -targets=HOST,HIP-gfx1100 -input=host.o -input=new -output=OUT",
        "host.o",
    ),
    writer(
        BUNDLER,
        "-type=o -unbundle -targets=host-x86_64-pc-linux-gnu-,hip-amdgcn-amd-amdhsa--gfx906:xnack- -input=bundle.o -output=OUT -output=OUT2",
        "bundle.o",
    ),
    writer(
        BUNDLER,
        "-type=a -unbundle -targets=openmp-amdgcn-amd-amdhsa--gfx906,openmp-nvptx64-nvidia-cuda--sm_70 -input=libbundles.a -output=OUT -output=OUT2",
        "libbundles.a",
    ),
    writer(
        "llvm-offload-binary",
        "-o OUT --image=file=new,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip",
        "new",
    ),
    writer(
        "llvm-offload-binary",
        "packages.offload --image=file=OUT,arch=gfx90a --image=file=OUT2,arch=gfx1100",
        "packages.offload",
    ),
    writer(
        "clang-offload-packager",
        "packages.offload --archive --image=file=OUT,arch=sm_70",
        "packages.offload",
    ),
    writer(
        "llvm-offload-wrapper",
        "--kind=hip --triple=x86_64-unknown-linux-gnu -o OUT four",
        "four",
    ),
    writer("clang-offload-wrapper", "-target x86_64-unknown-linux-gnu -o OUT four", "four"),
    writer("fatbinary", "--create OUT --compress=false --image3=kind=ptx,sm=90,file=asm", "asm"),
    writer(OFFLOAD, "fatbin -o OUT --mode none --image compute_90=asm", "asm"),
    writer(OFFLOAD, "report four -o OUT", "four"),
];

/// The command line of some words.
pub fn words(tool: &str, args: &str, outputs: [&str; 2]) -> Vec<String> {
    let mut words = vec![crate::common::tool(tool).to_owned()];
    let word = |word: &str| {
        let word = word.replace("HIP-", "hipv4-amdgcn-amd-amdhsa--");
        let word = word.replace("HOST", "host-x86_64-unknown-linux-gnu-");
        word.replace("OUT2", outputs[1]).replace("OUT", outputs[0])
    };
    words.extend(args.split(' ').map(word));
    words
}

impl Writer {
    pub fn has_two_outputs(&self) -> bool {
        self.args.contains("OUT2")
    }

    /// Returns whether the output is a page about the input.
    pub fn is_page(&self) -> bool {
        self.args.starts_with("report ")
    }

    /// Returns whether the output may be a directory, in which the new file gets the name of the old one.
    pub fn takes_a_directory(&self) -> bool {
        let edits = ["thin ", "shrink ", "compress ", "decompress ", "remove ", "add ", "replace "];
        self.tool == "offload" && edits.iter().any(|edit| self.args.starts_with(edit))
    }

    pub fn words(&self, outputs: [&str; 2]) -> Vec<String> {
        words(self.tool, self.args, outputs)
    }
}

/// A directory with what the writers read.
pub struct Inputs(tempfile::TempDir);

impl Inputs {
    pub fn new() -> Self {
        Self::in_directory(tempfile::tempdir().unwrap())
    }

    pub fn in_directory(directory: tempfile::TempDir) -> Self {
        let inputs = Inputs(directory);
        for name in ["host.o", "bundle.o", "libbundles.a", "packages.offload", "hip.o"] {
            fs::copy(data(name), inputs.path(name)).unwrap();
        }
        fs::write(inputs.path("text"), "a line\n".repeat(300)).unwrap();
        fs::write(inputs.path("asm"), ".version 8.7\n.target sm_90\n".repeat(300)).unwrap();
        let extracted = inputs.run(&words(OFFLOAD, "extract hip.o -o images", ["", ""]));
        assert!(extracted.status.success());
        let mut bundle = String::from("bundle -o four HOST=/dev/null");
        for entry in fs::read_dir(inputs.path("images")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let target = name.split("amdhsa-").nth(1).unwrap().strip_suffix(".hsaco").unwrap();
            bundle += &format!(" HIP-{}=images/{name}", target.replace('_', ":"));
            if target == "gfx1100" {
                fs::copy(inputs.path("images").join(&name), inputs.path("new")).unwrap();
            }
        }
        for name in ["lib.so", "hip.so"] {
            fs::copy(data("hip-two-units.so"), inputs.path(name)).unwrap();
        }
        let split = "split lib.so --group g -o .";
        for args in [&*bundle, "compress four -o four.ccob", split] {
            let done = inputs.run(&words(OFFLOAD, args, ["", ""]));
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let four = fs::read(inputs.path("four")).unwrap();
        let layer = Layer::new(&[("lib/four", &four)], Packed::Gzip);
        let image = images::archive(&images::layout(&[layer]));
        fs::write(inputs.path("image.tar"), image).unwrap();
        fs::remove_dir_all(inputs.path("images")).unwrap();
        fs::rename(inputs.path(".kpack/g_gfx1100.kpack"), inputs.path("g.kpack")).unwrap();
        fs::remove_dir(inputs.path(".kpack")).unwrap();
        inputs
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Runs a command line there.
    pub fn run(&self, words: &[String]) -> Output {
        self.command(words).output().unwrap()
    }

    pub fn command(&self, words: &[String]) -> Command {
        let mut command = new_command(&words[0]);
        command.args(&words[1..]).current_dir(self.root()).stdin(Stdio::null());
        command
    }

    pub fn make_fifo(&self) {
        assert!(new_command("mkfifo").arg(self.path("fifo")).status().unwrap().success());
    }

    /// Makes a socket. Its path is given by a short one: the name of a socket has at most 107 bytes.
    pub fn make_socket(&self) -> UnixListener {
        let root = File::open(self.root()).unwrap();
        UnixListener::bind(format!("/proc/self/fd/{}/socket", root.as_raw_fd())).unwrap()
    }

    /// Opens the fifo for writing as soon as a tool has opened it: the tool waits there for bytes or the end.
    pub fn open_fifo(&self, tool: &mut Child) -> File {
        const O_NONBLOCK: i32 = 0o4000;
        wait_for("the tool reads the pipe", || {
            let end = tool.try_wait().unwrap();
            assert!(end.is_none(), "the tool did not read the pipe: {end:?}");
            // Fails as long as nobody reads.
            let mut options = OpenOptions::new();
            options.write(true).custom_flags(O_NONBLOCK).open(self.path("fifo")).ok()
        })
    }

    /// Has `write` write to the fifo as soon as the tool has opened it, and closes it.
    pub fn feed(&self, tool: &mut Child, write: impl FnOnce(&mut File)) {
        // All bytes fit into a pipe.
        write(&mut self.open_fifo(tool));
    }

    /// Starts a tool and stops it while it has an output open. `prepare` makes the files for each run.
    ///
    /// An output is open until it has a name, and the tool looks again at what the output replaces after that. A tool
    /// that ends before its output was seen proves nothing, and runs once more.
    pub fn stopped_while_writing(
        &self,
        words: &[String],
        stderr: fn() -> Stdio,
        prepare: impl Fn(),
    ) -> Child {
        for _ in 0..1000 {
            prepare();
            let mut command = self.command(words);
            let mut tool = command.stdout(Stdio::null()).stderr(stderr()).spawn().unwrap();
            if stops_while_writing(&mut tool, self.root()) {
                return tool;
            }
        }
        panic!("{words:?}: its output was never seen while it was open");
    }

    /// Returns the outputs of a writer in an ordinary place.
    pub fn right(&self, writer: &Writer) -> Vec<Vec<u8>> {
        let names = ["right", "right2"];
        let done = self.run(&writer.words(names));
        assert!(done.status.success(), "{writer:?}: {}", String::from_utf8_lossy(&done.stderr));
        let names = &names[..1 + usize::from(writer.has_two_outputs())];
        let take = |name: &&str| {
            let bytes = fs::read(self.path(name)).unwrap();
            fs::remove_file(self.path(name)).unwrap();
            bytes
        };
        names.iter().map(take).collect()
    }
}

/// A thin archive that names one file of this size in bytes.
pub fn thin_archive(member: &[u8], size: u64) -> Vec<u8> {
    let table = ar::member("//", &[member, b"/\n"].concat());
    [&ar::THIN[..], &table, &ar::header("/0", size)].concat()
}

/// Writes a bundle with one image of this many bytes, all holes.
pub fn large_bundle(inputs: &Inputs, size: u64) {
    let header = bundle::header(&[(GFX1100, 4096, size)]);
    let mut file = File::create(inputs.path("large")).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(4096 + size).unwrap();
}
