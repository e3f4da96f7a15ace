//! LLVM's names of the members of device archives.

/// Returns `<stem>-<ID><stem><extension>` with `_` for `:`, as `clang-offload-bundler` 22 names a member.
///
/// `target_id` is the target ID in `id`: code for AMD gets the extension `.bc`, code for NVIDIA `.cubin`, whatever
/// its format.
pub(crate) fn device_member_name(member: &[u8], id: &str, target_id: &str) -> Vec<u8> {
    let (stem, extension) = split_extension(file_name(member));
    let extension = if target_id.contains("gfx") {
        b".bc"
    } else if target_id.contains("sm_") {
        b".cubin"
    } else {
        extension
    };
    let mut name = [stem, b"-", id.as_bytes(), stem, extension].concat();
    for byte in &mut name {
        if *byte == b':' {
            *byte = b'_';
        }
    }
    name
}

/// Returns the last part of a path. Thin archives have paths for names.
fn file_name(path: &[u8]) -> &[u8] {
    let Some(last) = path.iter().rposition(|&byte| byte != b'/') else {
        // Nothing but slashes, or nothing.
        return path.get(..1).unwrap_or_default();
    };
    if last + 1 < path.len() {
        return b".";
    }
    match path.iter().rposition(|&byte| byte == b'/') {
        // Two slashes at the start of a name are part of it.
        Some(1) if path.starts_with(b"//") => path,
        Some(slash) => path.split_at(slash + 1).1,
        None => path,
    }
}

/// Returns a file name before its last dot, and the rest.
fn split_extension(name: &[u8]) -> (&[u8], &[u8]) {
    if name == b"." || name == b".." {
        return (name, b"");
    }
    let dot = name.iter().rposition(|&byte| byte == b'.').unwrap_or(name.len());
    name.split_at_checked(dot).unwrap_or((name, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(member: &str, id: &str) -> String {
        let target_id = id.splitn(6, '-').nth(5).unwrap_or_default();
        String::from_utf8(device_member_name(member.as_bytes(), id, target_id)).unwrap()
    }

    // Each as clang-offload-bundler 22 names it.
    #[test]
    fn names_are_those_of_llvm() {
        let amd = "openmp-amdgcn-amd-amdhsa--gfx906";
        for (member, id, name) in [
            ("func_1.o", amd, "func_1-openmp-amdgcn-amd-amdhsa--gfx906func_1.bc"),
            (
                "func_2.o",
                "openmp-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+",
                "func_2-openmp-amdgcn-amd-amdhsa--gfx906_sramecc+_xnack+func_2.bc",
            ),
            (
                "func.three.o",
                "openmp-nvptx64-nvidia-cuda-unknown-sm_70",
                "func.three-openmp-nvptx64-nvidia-cuda-unknown-sm_70func.three.cubin",
            ),
            ("a.o", "host-x86_64-unknown-linux-gnu-", "a-host-x86_64-unknown-linux-gnu-a.o"),
            (
                "noext",
                "host-x86_64-unknown-linux-gnu-",
                "noext-host-x86_64-unknown-linux-gnu-noext",
            ),
            (".o", amd, "-openmp-amdgcn-amd-amdhsa--gfx906.bc"),
            ("sub/x.o", amd, "x-openmp-amdgcn-amd-amdhsa--gfx906x.bc"),
            ("..x", "host-x86_64-unknown-linux-gnu-", ".-host-x86_64-unknown-linux-gnu-..x"),
            ("c:d.o", amd, "c_d-openmp-amdgcn-amd-amdhsa--gfx906c_d.bc"),
        ] {
            assert_eq!(named(member, id), name);
        }
    }

    #[test]
    fn odd_paths_have_file_names() {
        for (path, name) in [
            ("", ""),
            ("/", "/"),
            ("a/", "."),
            ("a/b", "b"),
            ("/a", "a"),
            ("//a", "//a"),
            ("//a/b", "b"),
            ("../..", ".."),
        ] {
            assert_eq!(file_name(path.as_bytes()), name.as_bytes(), "{path}");
        }
        assert_eq!(split_extension(b".."), (&b".."[..], &b""[..]));
        assert_eq!(split_extension(b"a."), (&b"a"[..], &b"."[..]));
    }
}
