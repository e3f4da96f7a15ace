#!/usr/bin/env bash
# Builds the example files from src/ with LLVM's own tools, and records in expected/ what those
# tools say about each file.
#
#   regenerate.sh [DIRECTORY]   build into DIRECTORY (default: the directory of this script)
#   regenerate.sh --check       build elsewhere and compare with what is here; exit 1 on a difference
#
# LLVM=PREFIX selects the installation. The same LLVM gives the same bytes in any directory; another
# release gives other bytes, so --check only makes sense with the release named in README.md.
set -euo pipefail
export LC_ALL=C
unset "${!OFFLOAD_BUNDLER_@}" COMPRESSED_BUNDLE_FORMAT_VERSION SOURCE_DATE_EPOCH

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "${LLVM:-/usr/lib/llvm-22}/bin" && pwd)

check=no
if [[ $# -eq 1 && $1 == --check ]]; then
  check=yes
elif [[ $# -gt 1 || ${1-} == -* ]]; then
  echo "usage: regenerate.sh [--check | DIRECTORY]" >&2
  exit 2
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [[ $check == yes ]]; then
  out=$scratch/out
else
  out=${1-$here}
fi
mkdir -p "$out/expected"
out=$(cd "$out" && pwd)

# Everything is compiled under relative names in a directory of its own, so that no path of this
# machine can reach the outputs.
build=$scratch/build
cp -r "$here/src" "$build"
cd "$build"

# ---- tools -------------------------------------------------------------------------------------

# Host code for Linux. Neither tool versions (-fno-ident) nor frames (-fno-...-unwind-tables) are
# needed here; leaving them out keeps the files small.
host_flags=(-Os -fno-ident -fPIC -fno-asynchronous-unwind-tables -fno-exceptions)

# A fixed compilation unit ID: the default one is a hash of paths and options.
hip() {
  "$bin/clang" --target=x86_64-pc-linux-gnu -x hip -nogpuinc -nogpulib "${host_flags[@]}" \
    -cuid=example "$@"
}

# "Old driver": one bundle per translation unit, made by clang-offload-bundler. Device code is
# linked without symbol table.
hip_bundle() { hip --no-offload-new-driver "$@"; }
linked=(-Xoffload-linker -s)

# "New driver": packager format, device code left as bitcode for the link step.
hip_package() { hip --offload-new-driver -fgpu-rdc "$@"; }

archive() {
  local format=$1 name=$2
  shift 2
  rm -f "$name"
  "$bin/llvm-ar" --format="$format" rcsD "$name" "$@"
}

# ---- HIP fat objects: section .hip_fatbin --------------------------------------------------------

hip_bundle "${linked[@]}" --offload-arch=gfx906:xnack+ --offload-arch=gfx90a:sramecc+:xnack- \
  --offload-arch=gfx1100 --offload-arch=gfx9-generic -c scale.hip -o hip.o

hip_bundle "${linked[@]}" --offload-arch=gfx906:xnack+ --offload-arch=gfx90a:sramecc+:xnack- \
  --offload-arch=gfx1100 --offload-arch=gfx9-generic --offload-compress -c scale.hip \
  -o hip-ccob-v3.o

# Two translation units in a shared library. The HIP runtime stays an undefined dependency.
two=(--offload-arch=gfx906 --offload-arch=gfx1100)
for unit in scale shift; do
  hip_bundle "${linked[@]}" --offload-arch=gfx1100 -cuid="$unit" -c "$unit.hip" -o "$unit.o"
  hip_bundle "${linked[@]}" "${two[@]}" -cuid="$unit" --offload-compress -c "$unit.hip" \
    -o "$unit-ccob.o"
done
"$bin/ld.lld" -shared -s -soname=hip-two-units.so scale.o shift.o -o hip-two-units.so
"$bin/ld.lld" -shared -s -soname=hip-two-units-ccob.so scale-ccob.o shift-ccob.o \
  -o hip-two-units-ccob.so

# ---- packager format: section .llvm.offloading ---------------------------------------------------

hip_package --offload-arch=gfx1100 -c scale.hip -o hip-packager.o

# Without a CUDA installation clang assumes PTX 4.2, too old for sm_70.
#
# An OpenMP kernel is named after device and inode number of its file, which no two builds share. If
# the file system has no file of that name, clang takes a hash of the name instead; so the region
# lies in a header that only exists through -remap-file.
"$bin/clang" --target=x86_64-pc-linux-gnu "${host_flags[@]}" -fopenmp -nogpulib \
  --offload-arch=gfx90a,sm_70 -foffload-lto --cuda-feature=+ptx63 \
  -Xclang -remap-file -Xclang "./target-region.h;target-region.txt" -c sum.c -o openmp-packager.o

"$bin/ld.lld" -r hip-packager.o openmp-packager.o -o merged-packager.o

# Host bitcode: the images are operands of the metadata llvm.embedded.objects.
hip_package --offload-arch=gfx90a -flto -c scale.hip -o hip-embedded.bc

# ---- packager format: raw ------------------------------------------------------------------------

hip_bundle "${linked[@]}" --offload-arch=gfx90a --cuda-device-only --no-gpu-bundle-output \
  -c scale.hip -o scale-gfx90a.o
hip_bundle --offload-arch=gfx1100 --cuda-device-only --no-gpu-bundle-output -emit-llvm \
  -c scale.hip -o scale-gfx1100.bc

ptx() {
  "$bin/clang" --target=x86_64-pc-linux-gnu -x cuda -nocudainc -nocudalib --cuda-device-only -Os \
    --cuda-gpu-arch="$1" --cuda-feature=+"$2" -S scale.cu -o "$3"
}
ptx sm_70 ptx63 scale.ptx
ptx sm_80 ptx70 scale-sm_80.ptx
cp scale.ptx scale-ptx.s # the tool takes the image kind from the extension

"$bin/clang" -x cl --target=spirv64 -Os -c scale.cl -o scale.spv
"$bin/yaml2obj" cubin-stand-in.yaml -o scale.cubin
# yaml2obj knows no processor flags for this machine: sm_70, PTX for sm_70, 64-bit addresses,
# unified texture mode.
printf '\x46\x05\x46\x00' | dd of=scale.cubin bs=1 seek=48 conv=notrunc status=none

"$bin/llvm-offload-binary" -o packages.offload \
  --image=file=scale-gfx90a.o,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip \
  --image=file=scale-gfx1100.bc,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip \
  --image=file=scale-ptx.s,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda,feature=+ptx63 \
  --image=file=scale.cubin,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda \
  --image=file=scale.spv,triple=spirv64-unknown-unknown,arch=generic,kind=sycl

# ---- bundles: raw, text and object form ----------------------------------------------------------

raw=(--cuda-device-only --gpu-bundle-output)
hip_bundle "${linked[@]}" --offload-arch=gfx1100 "${raw[@]}" -c scale.hip -o hip.hipfb
for version in 2 3; do
  COMPRESSED_BUNDLE_FORMAT_VERSION=$version hip_bundle "${linked[@]}" "${two[@]}" "${raw[@]}" \
    --offload-compress -c scale.hip -o "hip-ccob-v$version.hipfb"
done

# Kernels with resources of many kinds, of two releases.
many=(--offload-arch=gfx90a --offload-arch=gfx1030 "${raw[@]}" --offload-compress)
hip_bundle "${linked[@]}" "${many[@]}" -c kernels.hip -o kernels.hipfb
hip_bundle "${linked[@]}" "${many[@]}" -DOLD -c kernels.hip -o kernels-old.hipfb

rdc=(-fgpu-rdc --offload-arch=gfx906:xnack-)
hip_bundle "${rdc[@]}" -emit-llvm -c scale.hip -o bundle.bc
hip_bundle "${rdc[@]}" -c scale.hip -o bundle.o
hip_bundle "${rdc[@]}" --offload-arch=gfx906:xnack+ -E -P scale.hip -o bundle.hipi

# The other two comment leaders of text bundles, over short texts.
"$bin/clang" --target=x86_64-pc-linux-gnu "${host_flags[@]}" -S host.c -o host.s
"$bin/clang" --target=x86_64-pc-linux-gnu "${host_flags[@]}" -S -emit-llvm host.c -o host.ll
"$bin/clang" --target=nvptx64-nvidia-cuda -march=sm_70 -Xclang -target-feature -Xclang +ptx63 -Os \
  -S -emit-llvm host.c -o host-sm_70.ll
openmp=host-x86_64-unknown-linux-gnu,openmp-nvptx64-nvidia-cuda--sm_70
"$bin/clang-offload-bundler" --type=s --targets="$openmp" --input=host.s --input=scale.ptx \
  --output=bundle.s
"$bin/clang-offload-bundler" --type=ll --targets="$openmp" --input=host.ll \
  --input=host-sm_70.ll --output=bundle.ll

# ---- no device code ------------------------------------------------------------------------------

"$bin/clang" --target=x86_64-pc-linux-gnu "${host_flags[@]}" -c host.c -o host.o

# ---- archives ------------------------------------------------------------------------------------

archive gnu libhip.a hip-packager.o host.o
"$bin/llvm-ar" --thin --format=gnu rcsD libhip-thin.a hip.o hip-ccob-v3.o host.o

# A heterogeneous device archive: every member is a bundle. Targets as an OpenMP library has them.
nv() {
  "$bin/clang" --target=x86_64-pc-linux-gnu -x cuda -nocudainc -nocudalib --cuda-device-only -Os \
    --cuda-gpu-arch=sm_70 --cuda-feature=+ptx63 -emit-llvm -c scale.cu -o "$1"
}
nv scale-sm_70.bc
for unit in scale shift; do
  hip_bundle --offload-arch=gfx906 --cuda-device-only --no-gpu-bundle-output -emit-llvm \
    -c "$unit.hip" -o "$unit-gfx906.bc"
done
"$bin/clang-offload-bundler" --type=bc \
  --targets=host-x86_64-unknown-linux-gnu,openmp-amdgcn-amd-amdhsa--gfx906,openmp-nvptx64-nvidia-cuda--sm_70 \
  --input=/dev/null --input=scale-gfx906.bc --input=scale-sm_70.bc --output=bundled-scale.bc
"$bin/clang-offload-bundler" --type=bc \
  --targets=host-x86_64-unknown-linux-gnu,openmp-amdgcn-amd-amdhsa--gfx906:sramecc-:xnack+ \
  --input=/dev/null --input=shift-gfx906.bc --output=bundled-shift.bc
archive gnu libbundles.a bundled-scale.bc bundled-shift.bc

# ---- Windows and macOS ---------------------------------------------------------------------------

windows=(--target=x86_64-pc-windows-msvc -Os -fno-ident -fno-exceptions
  -mno-incremental-linker-compatible)
"$bin/clang" "${windows[@]}" -x hip -nogpuinc -nogpulib -cuid=example --no-offload-new-driver \
  "${linked[@]}" "${two[@]}" --offload-compress -c scale.hip -o hip.obj
"$bin/clang" "${windows[@]}" -w -c hip-runtime-stub.c -o hip-runtime-stub.obj
"$bin/lld-link" /dll /noentry /nodefaultlib /timestamp:0 /out:hip.dll hip.obj hip-runtime-stub.obj
archive coff hip.lib hip.obj hip-runtime-stub.obj

cp hip-ccob-v3.hipfb macho-payload.hipfb
for arch in x86_64 arm64; do
  "$bin/clang" --target="$arch-apple-macosx11" -c hip-section-macho.s -o "macos-$arch.o"
done
cp macos-x86_64.o hip-macos.o
"$bin/llvm-lipo" -create macos-x86_64.o macos-arm64.o -segalign x86_64 8 -segalign arm64 8 \
  -output hip-macos-universal.o

"$bin/clang" --target=x86_64-apple-macosx11 -Os -fno-ident -c host.c -o host-macos.o
archive darwin libhip-darwin.a hip-macos.o host-macos.o

# ---- CUDA ----------------------------------------------------------------------------------------

# The length of the literals of the compressed payload: the PTX text and three characters.
literals=$(($(wc -c <scale-sm_80.ptx) + 3))
"$bin/clang" --target=x86_64-pc-linux-gnu -Wa,--defsym,LITERALS="$literals" -c cuda-fatbin.s \
  -o cuda-fatbin.o

# ---- the files, and what LLVM's tools say of them -------------------------------------------------

# Name and type for `clang-offload-bundler --list --type=`.
files=(
  hip.o:o hip-ccob-v3.o:o hip-two-units.so:o hip-two-units-ccob.so:o
  hip-packager.o:o openmp-packager.o:o merged-packager.o:o hip-embedded.bc:bc packages.offload:o
  hip.hipfb:o kernels.hipfb:o kernels-old.hipfb:o hip-ccob-v2.hipfb:o hip-ccob-v3.hipfb:o
  bundle.bc:bc bundle.o:o
  bundle.hipi:hipi bundle.ll:ll bundle.s:s
  libhip.a:a libhip-thin.a:a libhip-darwin.a:a libbundles.a:a
  hip.obj:o hip.dll:o hip.lib:a hip-macos.o:o hip-macos-universal.o:o
  cuda-fatbin.o:o host.o:o
)

show=$scratch/show
mkdir "$show"
for entry in "${files[@]}"; do
  cp "${entry%:*}" "$show/"
  cp "${entry%:*}" "$out/"
done
cd "$show"

# Runs a tool and prints its command line, its output and a status that is not 0. Crash reports lose
# their stack frames, and nothing keeps the path of the tools.
run() {
  local text status=0
  text=$(LLVM_DISABLE_SYMBOLIZATION=1 "$bin/$1" "${@:2}" 2>&1 </dev/null) || status=$?
  echo "\$ $*"
  sed -E -e '/^ *#[0-9]+ /d' -e '/^(PLEASE submit|Stack dump)/d' -e '/^[0-9]+\.\s+Program arg/d' \
    -e '/^$/d' <<<"${text//"$bin/"/}"
  if [[ $status -ne 0 ]]; then
    echo "[exit status $status]"
  fi
}

for entry in "${files[@]}"; do
  file=${entry%:*}
  {
    run clang-offload-bundler --list "--type=${entry#*:}" "--input=$file"
    echo
    run llvm-readobj --offloading "$file"
    echo
    find . -type f | sort >"$scratch/before"
    run llvm-objdump --offloading "$file"
    find . -type f | sort >"$scratch/after"
    comm -13 "$scratch/before" "$scratch/after" | while read -r extracted; do
      first=$(od -An -tx1 -N4 "$extracted")
      echo "wrote ${extracted#./}, $(wc -c <"$extracted") bytes${first:+, first:$first}"
      rm "$extracted"
    done
    # The way from a library to its bundles without this project's tools.
    if [[ $file == hip-two-units* ]]; then
      echo
      run llvm-objcopy -O binary --only-section=.hip_fatbin "$file" section.bin
      run clang-offload-bundler --list --type=o --input=section.bin
      rm section.bin
    fi
    if [[ $file == libbundles.a ]]; then
      for target in gfx906 gfx906:sramecc-:xnack+; do
        echo
        run clang-offload-bundler --unbundle --type=a "--input=$file" \
          "--targets=openmp-amdgcn-amd-amdhsa--$target" --output=device.a
        run llvm-ar t device.a
        rm device.a
      done
    fi
  } >"$out/expected/$file.txt"
done

# ---- --check -------------------------------------------------------------------------------------

if [[ $check == yes ]]; then
  different=0
  cd "$out"
  while read -r file; do
    if ! cmp "$file" "$here/$file"; then
      different=1
    fi
  done < <(find . -type f | sort)
  exit "$different"
fi
