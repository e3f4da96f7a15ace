"""Asks the parts of a scan with DuckDB: `python ask.py OUT [QUESTION...]`. The questions are in `questions.sql`."""

import re
import sys
from pathlib import Path

import duckdb

# The newest version is the one with the greatest numbers: enough for releases.
VIEWS = """
create view rows as from read_parquet('{out}/part-*.parquet', union_by_name = true);
create macro release(version) as list_transform(regexp_extract_all(version, '[0-9]+'), lambda part: part::bigint);
create view versions as
    select package, version, row_number() over (partition by package order by release(version)) as rank
    from (select distinct package, version from rows where status = 'done' and package is not null);
create view newest as from versions qualify rank = max(rank) over (partition by package);
create view gpus as
    select distinct package, version, rank, split_part(target, ':', 1) as gpu
    from rows join versions using (package, version)
    where status is null and target is not null and kind <> 'host';
"""


def questions():
    """Returns the questions of the file: name, words, SQL."""
    text = (Path(__file__).parent / "questions.sql").read_text()
    return re.findall(r"^-- (\w+): (.*)\n((?:.*\n)*?.*;)$", text, re.MULTILINE)


def database(out):
    connection = duckdb.connect()
    connection.execute(VIEWS.format(out=str(out).replace("'", "''")))
    return connection


def main():
    out, *names = sys.argv[1:]
    connection = database(out)
    for name, words, sql in questions():
        if not names or name in names:
            print(f"{name}: {words}")
            connection.sql(sql).show(max_rows=40)


if __name__ == "__main__":
    main()
