"""silkline through its public API, everything durable.

Usage: silkline_crawl.py list|site|heavy URLS OUT [PROCESSES [http|curl]]
"""

import json
import sys
import time
from pathlib import Path

from silkline import Crawler

workload, urls, out = sys.argv[1:4]
processes = int(sys.argv[4]) if len(sys.argv) > 4 else 1
fetcher = sys.argv[5] if len(sys.argv) > 5 else "http"

crawler = Crawler(
    "bench",
    outputs=[out],
    frontier=f"sqlite:///{out}.db",
    concurrency=100,
    per_host=1_000,
    adaptive=False,
    robots=False,  # as the others
    fetcher=fetcher,
    insecure=True,  # the site signs its certificate itself
    quiet=True,
)


@crawler.handler
def page(page):
    yield {"url": page.url, "title": page.text("title"), "price": page.text("span.price")}
    if workload == "site":
        yield page.follow("a")
    elif workload == "heavy":
        page.links()


started = time.perf_counter()
crawler.run(Path(urls), processes=processes, allow_private=True)  # the site is on this machine
print(json.dumps({"seconds": time.perf_counter() - started}))
