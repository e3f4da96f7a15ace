from __future__ import annotations

import hashlib
import os
import signal
import struct
import threading
from pathlib import Path

import pytest
from conftest import DATA, unread, zipped

import offload

pa = pytest.importorskip("pyarrow")

COLUMNS = (
    "source package version file_sha256 member container place kind vendor target format compression stored size "
    "image_hash kernels needs error"
).split()


def table(*arguments: object, **wanted: object):  # type: ignore[no-untyped-def]
    scan = offload.scan(*arguments, **wanted)  # type: ignore[arg-type]
    return pa.table(scan), scan


def test_rows_are_those_of_images(hip: Path, tmp_path: Path) -> None:
    wheel = zipped(tmp_path / "foo-1.0-py3-none-any.whl", {"foo/hip.o": hip.read_bytes()})
    sources = [hip, wheel, DATA / "hip-ccob-v3.o", DATA / "kernels.fatbin"]
    rows, scan = table(sources, hash=True, kernels=True, needs=True, sha256=True)
    assert rows.column_names == COLUMNS
    images = [image for source in sources for image in offload.images(source, hash=True, kernels=True, needs=True)]
    assert rows.num_rows == len(images)
    for row, image in zip(rows.to_pylist(), images):
        assert (row["member"], row["container"], row["place"]) == (image.member, image.container, image.place)
        assert (row["target"], row["kind"], row["vendor"]) == (image.target, image.kind, image.vendor)
        assert (row["size"], row["stored"]) == (image.size, image.stored_estimate)
        assert (row["image_hash"], row["kernels"]) == (image.hash, image.kernel_count)
        assert row["format"] == image.image_format and row["error"] is None
        assert len(row["needs"]) == len(image.needs or [])
        assert row["compression"] == (image.compression and image.compression.method)
    first = rows.to_pylist()[0]
    assert first["source"] == str(hip) and first["package"] is None
    assert first["file_sha256"] == hashlib.sha256(hip.read_bytes()).hexdigest()
    of_wheel = next(row for row in rows.to_pylist() if row["source"] == str(wheel))
    assert (of_wheel["package"], of_wheel["version"], of_wheel["member"]) == ("foo", "1.0", "foo/hip.o")
    assert [(one.source, one.ok) for one in scan.results] == [(str(source), True) for source in sources]
    assert sum(one.images for one in scan.results) == len(images)


def test_what_was_not_asked_for_is_null(hip: Path) -> None:
    rows, _ = table(hip)
    assert rows.num_rows == 5
    for name in ("image_hash", "kernels", "needs", "file_sha256"):
        assert rows[name].null_count == 5


def test_nothing_is_lost(hip: Path, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_bytes(b"\x01\x02junk" * 100)
    empty = tmp_path / "empty"
    empty.mkdir()
    sources = [hip, tmp_path / "none", junk, empty, hip]
    rows, scan = table(sources)
    errors = [row for row in rows.to_pylist() if row["error"]]
    assert [(row["source"], row["target"]) for row in errors] == [(str(tmp_path / "none"), None), (str(junk), None)]
    assert "No such file" in errors[0]["error"] and errors[1]["error"].startswith("file/unknown: ")
    assert rows.num_rows == 12
    assert [one.images for one in scan.results] == [5, 0, 0, 0, 5]
    assert [one.ok for one in scan.results] == [True, False, False, True, True]
    assert [one.file for one in scan.errors] == [str(tmp_path / "none"), str(junk)]
    with pytest.raises(Exception, match="No such file"):
        table(sources, on_error="raise")
    only, _ = table(tmp_path / "none")
    assert only.num_rows == 1


def test_formats_that_are_not_read_are_rows(tmp_path: Path) -> None:
    rows, scan = table(unread(tmp_path / "foo-1.0-py3-none-any.whl"))
    assert [row["member"] for row in rows.to_pylist()] == ["a/k.7z", "a/k.plan"]
    assert all(row["error"].startswith("file/unknown: ") for row in rows.to_pylist())
    assert [one.ok for one in scan.results] == [False]


def test_rows_before_an_error_are_kept(hip: Path, tmp_path: Path) -> None:
    sources = [hip, hip, tmp_path / "none", hip]
    scan = offload.scan(sources, on_error="raise")
    reader = pa.RecordBatchReader.from_stream(scan)
    assert reader.read_next_batch().num_rows == 10
    with pytest.raises(Exception, match="No such file"):
        reader.read_next_batch()
    assert [(one.images, one.ok) for one in scan.results] == [(5, True), (5, True), (0, False)]
    with pytest.raises(StopIteration):
        reader.read_next_batch()


def test_results_are_those_of_the_last_stream(hip: Path) -> None:
    scan = offload.scan([hip] * 3000)
    old = pa.RecordBatchReader.from_stream(scan)
    first = old.read_next_batch()
    done = scan.results
    assert sum(one.images for one in done) <= first.num_rows and len(done) < 3000
    new = pa.RecordBatchReader.from_stream(scan)
    assert scan.results == []
    old.read_all()
    assert scan.results == []
    new.read_all()
    assert len(scan.results) == 3000


def test_one_source_is_no_list_of_them(hip: Path) -> None:
    data = hip.read_bytes()
    with open(hip, "rb") as file:
        for source in (file, data, bytearray(data), memoryview(data), hip, str(hip)):
            rows, scan = table(source)
            assert rows.num_rows == 5 and len(scan.results) == 1


def test_a_file_of_many_images_is_several_batches(tmp_path: Path) -> None:
    # A name of the member that is as long as can be, in a column of each row.
    count, head = 5000, b"__CLANG_OFFLOAD_BUNDLE__"
    entries = [b"hipv4-amdgcn-amd-amdhsa--gfx%d" % (10000 + n) for n in range(count)]
    start = len(head) + 8 + sum(24 + len(name) for name in entries)
    table = b"".join(struct.pack("<QQQ", start, 0, len(name)) + name for name in entries)
    bundle = head + struct.pack("<Q", count) + table + b"x" * 64
    scan = offload.scan(zipped(tmp_path / "long.zip", {"n" * 60000 + ".hipfb": bundle}))
    batches = [batch.num_rows for batch in pa.RecordBatchReader.from_stream(scan)]
    assert sum(batches) >= count and max(batches) < 2000
    assert [one.images for one in scan.results] == [count]


def test_each_stream_starts_again(hip: Path) -> None:
    scan = offload.scan([hip])
    assert pa.table(scan) == pa.table(scan)
    assert len(scan.results) == 1
    assert pa.schema(scan).names == COLUMNS
    empty = pa.table(offload.scan([]))
    assert empty.num_rows == 0 and empty.column_names == COLUMNS


def test_many_sources_are_several_batches(hip: Path) -> None:
    scan = offload.scan([hip] * 3000, threads=2)
    reader = pa.RecordBatchReader.from_stream(scan)
    batches = list(reader)
    assert len(batches) > 2 and sum(batch.num_rows for batch in batches) == 15000
    # A stream that is left ends.
    left = pa.RecordBatchReader.from_stream(scan)
    left.read_next_batch()
    del left


def test_polars_and_duckdb(hip: Path) -> None:
    scan = offload.scan([hip, DATA / "kernels.fatbin"], kernels=True)
    wanted = pa.table(scan).num_rows
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(scan).height == wanted
    duckdb = pytest.importorskip("duckdb")
    rows = pa.RecordBatchReader.from_stream(scan)
    assert duckdb.sql("select count(*) from rows").fetchall() == [(wanted,)]


def test_threads_scan_at_once(hip: Path) -> None:
    wanted = pa.table(offload.scan(DATA))
    results = []
    threads = [threading.Thread(target=lambda: results.append(pa.table(offload.scan(DATA)) == wanted)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 3


def test_ctrl_c_ends_a_stream() -> None:
    scan = offload.scan([DATA] * 100_000, hash=True, threads=1)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        try:
            pa.table(scan)
        except Exception:
            # The consumer has an exception of its own; the signal follows.
            for _ in range(100):
                pass
            raise
    timer.join()


def test_ctrl_c_loses_no_rows_of_results() -> None:
    scan = offload.scan([DATA] * 100_000, hash=True, threads=1)
    reader = pa.RecordBatchReader.from_stream(scan)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    images = 0
    with pytest.raises(KeyboardInterrupt):
        try:
            while True:
                images += reader.read_next_batch()["error"].null_count
        except Exception:
            for _ in range(100):
                pass
            raise
    timer.join()
    assert images >= sum(one.images for one in scan.results)
