"""silkline's workers on a job in Redis that is seeded already, as `silkline work` runs them.

Usage: silkline_workers.py list|site URLS OUT PROCESSES PORT FETCHER
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import redis

from silkline import Crawler
from silkline import seed as produce

workload, urls, out, processes, port, fetcher = sys.argv[1:]
frontier = f"redis://127.0.0.1:{port}/0"
redis.Redis(port=int(port)).flushall()

crawler = Crawler(
    "bench",
    outputs=[out],
    frontier=frontier,
    concurrency=100,
    per_host=1_000,
    adaptive=False,
    quiet=True,
    robots=False,
    allow_private=True,  # the site is on this machine
    fetcher=fetcher,
)


@crawler.handler
def page(page):
    yield {"url": page.url, "title": page.text("title"), "price": page.text("span.price")}
    if workload == "site":
        yield page.follow("a")


produce(frontier, Path(urls), job="bench")
started, used = time.perf_counter(), time.process_time()
crawler.run(processes=int(processes))
seconds, cpu = time.perf_counter() - started, time.process_time() - used
export = ["export", "--job", "bench", "--frontier", frontier, "-o", out]
subprocess.run([sys.executable, "-m", "silkline", *export], check=True, stdout=sys.stderr)
print(json.dumps({"seconds": seconds, "cpu": cpu}))  # cpu: of this process alone
