"""Scans a list of files with Spark: `spark-submit with_spark.py LIST OUT`, or `python with_spark.py LIST OUT` on this machine."""

import os
import sys

import fleet
import pyarrow as pa
from pyspark.sql import SparkSession


def scan(batches):
    """Scans the parts of a partition: the function for `mapInArrow`."""
    for batch in batches:
        for work in batch.to_pylist():
            yield pa.RecordBatch.from_pylist([fleet.scan_part(work)])


def main():
    args = fleet.arguments()
    work = fleet.work(args)
    if not work:
        return print("nothing is left")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("fleet").config("spark.task.maxFailures", "8")
    if not os.environ.get("SPARK_ENV_LOADED"):  # Without spark-submit. The second number is of failures, as above.
        builder = builder.master(f"local[{args.workers},8]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.addPyFile(fleet.__file__)
    # A partition for each part: a task whose worker dies is run again, and nothing else is.
    tasks = spark.sparkContext.parallelize([(one["part"], one["sources"]) for one in work], len(work))
    parts = spark.createDataFrame(tasks, "part string, sources array<string>")
    for part in parts.mapInArrow(scan, "part string, done long, failed long").collect():
        print(f"{part.part}: {part.done} done, {part.failed} failed", flush=True)
    spark.stop()


main()
