#!/usr/bin/env python3
"""One engine beside one process: `spark.py DIR N ENGINE`, called by spark.sh. Exit code 1 when the files differ, or when an engine takes more
CPU than was promised for so many URLs."""
import ctypes
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import time

THREADS, MEMORY = 2, 1 << 30
# CPU of one process over that of the engine, everything included, from this many URLs on: with fewer, starting the engine is most of it.
PROMISED = {"sail": (20_000_000, 0.85), "spark": (100_000_000, 0.80)}
# Little of the JVM: what is measured is Trawl on Spark, not the JIT.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK = {
    "spark.ui.enabled": "false", "spark.sql.adaptive.enabled": "false", "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
}


def make(path, urls):
    """About 50 URLs a domain, with a few large domains, in no order."""
    chance = random.Random(22)
    domains = max(1, urls // 50)
    with path.open("w") as out:
        for first in range(0, urls, 100_000):
            lines = []
            for n in range(first, min(urls, first + 100_000)):
                domain = int(domains * chance.random() ** 2)
                lines.append(f"https://www.site{domain * 2654435761 % 2**32:x}.com/articles/{n % 1000}/{chance.getrandbits(40):x}?page={n % 7}\n")
            out.writelines(lines)


def cpu_of(command):
    """CPU and clock seconds of a command and of all that it started, whoever ended last."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what outlives its parent is waited for here
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    wall = time.monotonic() - began
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def spark_home(work):
    """`local-cluster` writes into SPARK_HOME: a directory of links to the package."""
    import pyspark

    home = work / "spark-home"
    home.mkdir(exist_ok=True)
    for entry in pathlib.Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work" and not (home / entry.name).exists():
            (home / entry.name).symlink_to(entry)
    return home


def session(engine, work):
    from pyspark.sql import SparkSession

    if engine == "sail":
        from pysail.spark import SparkConnectServer

        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        return SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate(), server
    os.environ["SPARK_HOME"] = str(spark_home(work))
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    builder = SparkSession.builder.master(f"local-cluster[{THREADS},1,1024]")
    for key, value in SPARK.items():
        builder = builder.config(key, value)
    return builder.getOrCreate(), None


def engine_run(work, urls, engine):
    """The measured process."""
    import trawl

    settings = {"threads": 1, "memory_bytes": MEMORY // THREADS, "map_tasks": max(2, urls // 2_500_000)}
    list_, lake = work / "urls.txt", work / engine
    began = time.monotonic()
    if engine == "pool":
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(THREADS) as pool:
            trawl.jobs.run(trawl.jobs.plan(lake, "d", list_, **settings), pool)
        return
    import trawl.spark

    spark, server = session(engine, work)
    cpu = time.process_time()
    print(f"    session: {time.monotonic() - began:.1f} s, {cpu:.1f} CPU-s of the driver's Python", flush=True)
    trawl.spark.ingest(spark, list_, lake, "d", **settings)
    spark.stop()
    if server:
        server.stop()


def versions(engine):
    """Of Python, of the package and of what runs its tasks."""
    from importlib.metadata import version

    packages = {"sail": ["pysail", "pyspark-client"], "spark": ["pyspark"]}.get(engine, [])
    return ", ".join([f"Python {sys.version.split()[0]}", *(f"{name} {version(name)}" for name in ["trawl", *packages])])


def parts(lake):
    return subprocess.run([os.environ["TRAWL"], "lake", "parts", "--hashes", "--lake", lake], check=True, capture_output=True).stdout


def main():
    work, urls, engine = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if len(sys.argv) > 4:
        return engine_run(work, urls, engine)
    list_, local = work / "urls.txt", work / "local"
    if not list_.exists():
        make(list_, urls)
    shutil.rmtree(local, ignore_errors=True)
    shutil.rmtree(work / engine, ignore_errors=True)
    alone = [os.environ["TRAWL"], "lake", "ingest", "--lake", local, "--dataset", "d", "--threads", str(THREADS), "--memory", "1GiB", "-q", list_]
    cpu, wall = cpu_of(alone)
    engine_cpu, engine_wall = cpu_of([sys.executable, __file__, *sys.argv[1:], "run"])
    same = parts(local) == parts(work / engine)
    print(f"{urls:,} URLs: alone {cpu:.1f} CPU-s, {wall:.1f} s; {engine} {engine_cpu:.1f} CPU-s, {engine_wall:.1f} s:"
          f" {cpu / engine_cpu:.2f} of CPU, {wall / engine_wall:.2f} of clock; files {'are equal' if same else 'DIFFER'}", flush=True)
    urls_from, least = PROMISED.get(engine, (0, 0.0))
    kept = urls < urls_from or cpu / engine_cpu >= least
    print(f"    {versions(engine)}; settings {SPARK if engine == 'spark' else {}}", flush=True)
    if not kept:
        print(f"    BROKEN: {cpu / engine_cpu:.2f} of CPU, at least {least} promised", flush=True)
    sys.exit(not (same and kept))


main()
