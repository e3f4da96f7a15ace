"""The part of a scan that is the same for every engine: which files are left, and the rows of some of them.

The output is a directory of Parquet files, `part-00007-of-00064.parquet`. The name of a source decides its part, and a part appears
when it is complete. So no retry, and no worker that was taken for dead, can write a source twice. A source has one row for each image
and each error, as `offload.scan` gives them, and one row with a `status`: `done` or `failed`.
"""

import argparse
import os
import uuid
import zlib
from pathlib import Path

import offload
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# A worker that dies while it reads a source is replaced. After this number of deaths the source has failed.
DEATHS = 3


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("list", help="text file with a path or a URL in each line")
    parser.add_argument("out", help="directory of the parts, which all workers see")
    parser.add_argument("--parts", type=int, default=64, help="number of parts; stays the same for a directory")
    parser.add_argument("--workers", type=int, default=2, help="workers on this machine")
    parser.add_argument("--again", action="store_true", help="read the sources again that failed")
    return parser.parse_args()


def name(source):
    """Returns the name of a source in the rows: a URL without its query, which may be a secret."""
    return source.partition("?")[0] if "://" in source else source


def work(args):
    """Returns the parts that are not complete, with the sources that are left."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for part in out.glob("part-*"):
        if not part.stem.endswith(f"-of-{args.parts:05}"):
            raise SystemExit(f"{part}: expected a part of {args.parts}: use the same --parts")
    left = {}
    for source in dict.fromkeys(Path(args.list).read_text().split("\n")):
        if source:
            left.setdefault(zlib.crc32(name(source).encode()) % args.parts, {})[name(source)] = source
    parts = []
    for number, sources in sorted(left.items()):
        path = out / f"part-{number:05}-of-{args.parts:05}.parquet"
        if path.exists():
            for row in pq.read_table(path, columns=["source", "status"]).to_pylist():
                if row["status"] == "done" or row["status"] == "failed" and not args.again:
                    sources.pop(row["source"], None)
        if sources:
            parts.append({"part": str(path), "sources": [sources[one] for one in sorted(sources)]})
    return parts


def scan_part(work):
    """Reads the sources of a part, writes it, and returns the numbers of sources that are done and failed."""
    path, sources = Path(work["part"]), list(work["sources"])
    started = path.with_suffix(".started")
    before = started.read_text().split("\n") if started.exists() else []
    tables = []
    if path.exists():
        old, names = pq.read_table(path), pa.array([name(one) for one in sources])
        tables.append(old.filter(pc.invert(pc.is_in(old["source"], names))))
    for source in sources:
        if before.count("+" + name(source)) - before.count("-" + name(source)) >= DEATHS:
            tables.append(row(source, "failed", error=f"{DEATHS} workers died when they read it"))
            continue
        note(started, "+" + name(source))
        tables.extend(scan_source(source))
        note(started, "-" + name(source))
    # The columns that one lacks are null.
    table = pa.concat_tables(tables, promote_options="default")
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    with temporary.open("wb") as file:
        pq.write_table(table, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    started.unlink(missing_ok=True)
    failed = pc.sum(pc.equal(table["status"], "failed")).as_py() or 0
    return {"part": path.name, "done": pc.count(table["status"]).as_py() - failed, "failed": failed}


def note(started, line):
    """Adds a line to the record of a part: a source that a worker starts to read, or has read. The next worker sees who died of it."""
    with started.open("a") as file:
        file.write(line + "\n")


def scan_source(source):
    """Returns the rows of a source."""
    try:
        scan = offload.scan([source], threads=1)
        rows = pa.table(scan)
        (result,) = scan.results
    except Exception as error:  # Whatever it is, the other sources are read.
        return [row(source, "failed", error=str(error))]
    rows = rows.set_column(0, "source", pa.array([name(source)] * len(rows), pa.string()))
    status = "done" if result.ok else "failed"
    return [rows, row(source, status, images=result.images, package=result.package, version=result.version)]


def row(source, status, **more):
    """Returns the row of a source that is done or failed."""
    texts = {"source": name(source), "package": None, "version": None, "error": None, "status": status}
    texts = {key: pa.array([more.get(key, value)], pa.string()) for key, value in texts.items()}
    return pa.table({**texts, "images": pa.array([more.get("images", 0)], pa.uint64())})
