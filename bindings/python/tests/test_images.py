from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from conftest import DATA, run_json, tool, zipped

import offload

# Files with device code, of several producers and containers.
FILES = sorted(path for path in DATA.iterdir() if path.is_file() and path.name not in ("README.md", "regenerate.sh"))


def rows(source: Path, **wanted: bool) -> list[dict[str, object]]:
    return [image.to_dict() for image in offload.images(source, on_error="collect", **wanted)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rows_are_those_of_the_tool(path: Path) -> None:
    assert rows(path) == run_json("ls", str(path))["images"]
    assert rows(path, hash=True, needs=True) == run_json("ls", "--hash", "--needs", str(path))["images"]


def test_rows_of_a_directory_are_those_of_the_tool() -> None:
    listed = run_json("ls", str(DATA))
    images = offload.images(DATA, on_error="collect")
    assert [image.to_dict() for image in images] == listed["images"]
    errors = [one for one in images.findings if one.level == "error"]
    told = [one for one in listed["findings"] if one["level"] == "error"]
    assert [(one.code, one.file, one.message) for one in errors] == [
        (one["code"], one["file"], one["message"]) for one in told
    ]


def test_attributes_are_the_fields(hip: Path) -> None:
    none = offload.images(hip, gpu="gfx1031")
    assert not list(none)
    (note,) = none.findings
    assert (note.level, note.code) == ("note", "file/nothing")
    images = list(offload.images(hip, hash=True, kernels=True, needs=True))
    assert [image.target for image in images] == [
        None, "gfx1100", "gfx9-generic", "gfx906:xnack+", "gfx90a:sramecc+:xnack-",
    ]
    image = images[1]
    fields = image.to_dict()
    for name in fields.keys() - {"compression", "sycl", "hcf", "platform", "holds", "disagreement", "found_by"}:
        assert getattr(image, name) == fields[name], name
    assert image.vendor == "AMD" and image.kind == "hipv4" and image.member is None
    assert image.kernel_count == len(image.kernels()) > 0
    assert "name" in image.kernels()[0]
    assert image.file == str(hip) and "gfx1100" in repr(image)
    compressed = next(one for one in offload.images(DATA / "hip-ccob-v3.o") if one.target)
    assert compressed.compression is not None and compressed.compression.uncompressed_size > 0
    assert compressed.offset is None and compressed.stored_size is None


def test_a_gpu_chooses(hip: Path) -> None:
    assert [image.target for image in offload.images(hip, gpu="gfx900")] == ["gfx9-generic"]


def test_bytes_are_those_that_the_tool_extracts(hip: Path, tmp_path: Path) -> None:
    for name in ("hip.o", "hip-ccob-v3.o", "kernels.fatbin", "libhip.a", "cuda-fatbin.o"):
        for image in offload.images(DATA / name, hash=True):
            data = image.extract()
            assert data is not None
            path = tmp_path / "image"
            assert image.extract(path) is None
            assert path.read_bytes() == data
            again = next(iter(offload.images(path, hash=True, on_error="collect")), None)
            if again is not None and again.size == len(data):
                assert again.hash == image.hash


def test_members_of_packages(hip: Path, tmp_path: Path) -> None:
    wheel = zipped(tmp_path / "foo-1.0-py3-none-any.whl", {"foo/a.txt": b"text", "foo/hip.o": hip.read_bytes()})
    images = list(offload.images(wheel))
    assert [image.to_dict() for image in images] == run_json("ls", str(wheel))["images"]
    assert {image.member for image in images} == {"foo/hip.o"}
    only = list(offload.images(f"{wheel}:foo/hip.o"))
    assert [image.extract() for image in only] == [image.extract() for image in offload.images(hip)]


def test_bytes_and_open_files(hip: Path, tmp_path: Path) -> None:
    wanted = [(image.target, image.size, image.extract()) for image in offload.images(hip)]
    data = hip.read_bytes()
    with open(hip, "rb") as file:
        for source in (data, bytearray(data), memoryview(data), io.BytesIO(data), file):
            images = list(offload.images(source))
            assert [(image.target, image.size, image.extract()) for image in images] == wanted
    assert {image.file for image in offload.images(data)} == {"<bytes>"}
    wheel = zipped(tmp_path / "a.whl", {"x/hip.o": data}).read_bytes()
    assert {image.file for image in offload.images(wheel)} == {"<bytes>:x/hip.o"}


COPIES = """
import io, os, signal, sys
import offload
data = open(sys.argv[1], "rb").read()
images = [offload.images(source) for source in (data, bytearray(data), io.BytesIO(data), open(sys.argv[1], "rb"))]
assert [len([image.extract() for image in one]) for one in images] == [5] * 4
os.kill(os.getpid(), getattr(signal, sys.argv[2]))
signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_signal_leaves_no_copies(hip: Path, tmp_path: Path, name: str) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COPIES, str(hip), name], env=environment, check=False)
    assert done.returncode == -getattr(signal, name)
    assert list(tmp_path.iterdir()) == []


def test_bytes_are_not_copied(hip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    data = hip.read_bytes()
    before = sys.getrefcount(data)
    scan = offload.scan([data] * 100)
    assert sys.getrefcount(data) == before + 100
    del scan
    assert sys.getrefcount(data) == before
    assert len(list(offload.images(data))) == 5
    with pytest.raises(OSError, match="TMPDIR"):
        offload.images(io.BytesIO(data))


def test_bytes_that_have_no_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kernel packs in the current directory are not those of bytes.
    split = [tool(), "split", str(DATA / "hip-two-units.so"), "--group", "g", "-o", str(tmp_path)]
    subprocess.run(split, check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    library = tmp_path / "hip-two-units.so"
    assert offload.match(library, "gfx1100").verdict == "yes"
    answer = offload.match(library.read_bytes(), "gfx1100")
    assert answer.verdict == "unknown" and answer.reason


def test_errors_have_classes_and_places(hip: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        list(offload.images(tmp_path / "none"))
    assert missing.value.filename == str(tmp_path / "none")
    junk = tmp_path / "junk"
    junk.write_bytes(b"\x01\x02junk" * 100)
    with pytest.raises(offload.NotReadError) as unread:
        list(offload.images(junk))
    assert unread.value.file == str(junk) and unread.value.kind == "file/unknown"
    damaged = tmp_path / "damaged.hipfb"
    damaged.write_bytes((DATA / "hip-ccob-v3.hipfb").read_bytes()[:-100])
    images = offload.images(damaged, formats=True)
    with pytest.raises(offload.DamagedError) as error:
        list(images)
    assert error.value.offset == 0 and error.value.kind.startswith("verify/")
    assert str(damaged) in str(error.value)
    assert list(images) == []
    collected = offload.images(damaged, formats=True, on_error="collect")
    list(collected)
    assert any(one.level == "error" and one.offset == 0 for one in collected.findings)
    with pytest.raises(offload.UnknownGpuError, match="unknown processor"):
        offload.images(hip, gpu="gfx 11000 nonsense")
    with pytest.raises(ValueError, match="on_error"):
        offload.images(hip, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a path"):
        offload.images(3)  # type: ignore[arg-type]
    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="expected a path"):
            offload.images(name)


def test_an_image_of_a_changed_file_is_not_read(hip: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.o"
    path.write_bytes(hip.read_bytes())
    image = list(offload.images(path))[-1]
    path.write_bytes((DATA / "kernels.hipfb").read_bytes())
    with pytest.raises(offload.OffloadError, match="changed"):
        image.extract()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        image.extract()


def test_hostile_files_raise_and_nothing_crashes(tmp_path: Path) -> None:
    path = tmp_path / "hostile"
    count = 0
    for name in ("hip.o", "hip-ccob-v3.hipfb", "packages.offload", "kernels.fatbin", "hip.dll", "libhip.a"):
        data = (DATA / name).read_bytes()
        step = max(1, len(data) // 40)
        for at in range(0, len(data), step):
            for bad in (data[:at], data[:at] + b"\xff" * 8 + data[at + 8:]):
                path.write_bytes(bad)
                images = offload.images(path, hash=True, kernels=True, on_error="collect")
                for image in images:
                    assert image.size >= 0
                assert not [one for one in images.findings if one.code == "internal"]
                count += 1
    assert count > 400


def test_iterators_can_be_left(hip: Path) -> None:
    for _ in range(50):
        images = offload.images(DATA, on_error="collect")
        assert next(images).size > 0 or True
        images.close()
        assert list(images) == []
        del images


def test_two_threads(hip: Path) -> None:
    wanted = rows(DATA)
    results: list[object] = []

    def work() -> None:
        results.append(rows(DATA) == wanted)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def count_targets(path: str) -> int:
    return sum(1 for _ in offload.images(path, on_error="collect"))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(hip: Path, method: str) -> None:
    list(offload.images(hip))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(count_targets, [str(hip)] * 4) == [5] * 4


def test_an_iterator_does_not_go_through_a_fork(hip: Path) -> None:
    images = offload.images(hip)
    next(images)
    pid = os.fork()
    if pid == 0:
        try:
            # Images of the same file are there already.
            list(images)
            os._exit(1)
        except RuntimeError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(list(images)) == 4


def test_nothing_leaks(hip: Path) -> None:
    def work() -> None:
        for image in offload.images(hip, hash=True):
            image.to_dict()
            image.kernels()
            image.extract()
        offload.match(hip, "gfx1100").containers
        offload.scan([hip]).__arrow_c_stream__()

    work()
    before = (sys.getrefcount(None), sys.getrefcount(offload.Image), threading.active_count())
    tracemalloc.start()
    for _ in range(5):
        work()
    first, _ = tracemalloc.get_traced_memory()
    for _ in range(20):
        work()
    last, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last - first < 20_000
    after = (sys.getrefcount(None), sys.getrefcount(offload.Image), threading.active_count())
    assert abs(after[1] - before[1]) < 10 and after[2] == before[2]


def test_ctrl_c_interrupts(tmp_path: Path, hip: Path) -> None:
    # Far more work than the wait for the signal.
    data = (DATA / "hip-ccob-v3.o").read_bytes()
    wheel = zipped(tmp_path / "a.whl", {f"x/{n}.o": data for n in range(6000)})
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            for _ in offload.images(wheel, hash=True, kernels=True, threads=1):
                pass
    timer.join()


def working_threads() -> int:
    """Returns the number of threads that work for the module."""
    tasks = Path("/proc/self/task").iterdir()
    return sum((task / "comm").read_text().strip() == "offload" for task in tasks)


@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_stops_an_edit(tmp_path: Path, signals: int) -> None:
    data = (DATA / "hip-ccob-v3.o").read_bytes()
    wheel = zipped(tmp_path / "a.whl", {f"x/{n}.o": data for n in range(4000)})
    small = tmp_path / "new" / "small.whl"
    small.parent.mkdir()
    small.write_bytes(b"old")

    def interrupt() -> None:
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        try:
            while True:
                offload.thin(wheel, small, keep=["gfx1100"], threads=2)
        finally:
            # A second signal comes in here at the latest.
            timer.join()
    for _ in range(500):
        if working_threads() == 0:
            break
        time.sleep(0.01)
    assert working_threads() == 0
    assert [path.name for path in small.parent.iterdir()] == ["small.whl"]
    assert small.read_bytes() == b"old"


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    data = (DATA / "hip-ccob-v3.o").read_bytes()
    wheel = zipped(tmp_path / "a.whl", {f"x/{n}.o": data for n in range(300)})
    steps = 0
    done = threading.Event()

    def work() -> None:
        offload.match(wheel, "gfx1100", check=True, threads=1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        steps += 1
        time.sleep(0.0005)
    thread.join()
    assert steps > 1
