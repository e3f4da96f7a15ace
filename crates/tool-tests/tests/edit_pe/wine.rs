//! Wine's loader, which is another one than ours.

use std::fs;
use std::path::{Path, PathBuf};

use super::dlls::quiet;
use crate::common::{llvm, new_command, stderr, stdout};

/// Prints the wrappers' bundles, each image as a hash, and what the host function gives.
const PROGRAM: &str = r#"
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned u32; typedef unsigned long long u64;
__declspec(dllimport) void ExitProcess(u32);
__declspec(dllimport) void *LoadLibraryA(const char *);
__declspec(dllimport) void *GetProcAddress(void *, const char *);
__declspec(dllimport) void *GetStdHandle(u32);
__declspec(dllimport) int WriteFile(void *, const void *, u32, u32 *, void *);
__declspec(dllimport) char *GetCommandLineA(void);
static void put(const u8 *text, u32 size) { u32 n; WriteFile(GetStdHandle(-11), text, size, &n, 0); }
static void number(u64 value) {
  u8 text[17];
  for (int i = 0; i < 16; i++) text[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
  text[16] = ' ';
  put(text, 17);
}
static void hash(const u8 *bytes, u64 size) {
  u64 hash = 0xcbf29ce484222325;
  for (u64 i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
  number(hash);
}
void start(void) {
  char *name = GetCommandLineA(), *end = name;
  for (; *end; end++) if (*end == ' ') name = end + 1;
  u8 *image = LoadLibraryA(name);
  if (!image) ExitProcess(1);
  u8 *headers = image + *(u32 *)(image + 60), *section = headers + 24 + *(u16 *)(headers + 20);
  for (int n = *(u16 *)(headers + 6); n > 0; n--, section += 40) {
    u8 *wrapper = image + *(u32 *)(section + 12), *stop = wrapper + *(u32 *)(section + 8);
    if (*(u64 *)section != 0x427461467069682e) continue;
    for (; wrapper < stop; wrapper += 24) {
      u8 *bundle = *(u8 **)(wrapper + 8);
      if (*(u32 *)bundle == 0x424f4343) {
        hash(bundle, *(u32 *)(bundle + 8));
      } else {
        u8 *entry = bundle + 32;
        for (u64 left = *(u64 *)(bundle + 24); left > 0; left--) {
          u64 *fields = (u64 *)entry;
          put(entry + 24, fields[2]);
          put((u8 *)" ", 1);
          hash(bundle + fields[0], fields[1]);
          entry += 24 + fields[2];
        }
      }
      put((u8 *)"\n", 1);
    }
  }
  int (*host)(int) = GetProcAddress(image, "host_one");
  number(host(14));
  ExitProcess(0);
}
"#;
const IMPORTS: &str = "LIBRARY KERNEL32.dll\nEXPORTS\nExitProcess\nLoadLibraryA\nGetProcAddress\n\
                       GetStdHandle\nWriteFile\nGetCommandLineA\n";

/// A directory with the program in it.
pub struct Wine(tempfile::TempDir);

impl Wine {
    pub fn new() -> Self {
        let wine = Wine(tempfile::tempdir().unwrap());
        let place = wine.0.path();
        fs::write(place.join("show.c"), PROGRAM).unwrap();
        fs::write(place.join("kernel32.def"), IMPORTS).unwrap();
        let run = |tool: &str, args: &[&str]| {
            quiet(new_command(llvm(tool)).args(args).current_dir(place));
        };
        run("llvm-dlltool", &["-m", "i386:x86-64", "-d", "kernel32.def", "-l", "kernel32.lib"]);
        let compile = ["--target=x86_64-pc-windows-msvc", "-O1", "-fno-builtin", "-c", "show.c"];
        run("clang", &[&compile[..], &["-o", "show.obj"]].concat());
        run(
            "lld-link",
            &["/entry:start", "/subsystem:console", "/nodefaultlib", "show.obj", "kernel32.lib"],
        );
        wine
    }

    /// Returns the text that the program prints for a file.
    pub fn show(&self, file: &Path) -> String {
        let place = self.0.path();
        fs::copy(file, place.join("it.dll")).unwrap();
        let wine = std::env::var_os("WINE").map_or("/usr/lib/wine/wine64".into(), PathBuf::from);
        let output = new_command(wine)
            .args(["show.exe", "it.dll"])
            .current_dir(place)
            .env("WINEPREFIX", place.join("prefix"))
            .env("WINEDEBUG", "-all")
            .envs(std::env::var_os("WINEPATH").map(|path| ("WINEPATH", path)))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {}", file.display(), stderr(&output));
        stdout(&output)
    }
}
