"""The practical limit of one libcurl client: `limit.py` with the driver of `curl_client.py`.

No frontier, nothing durable, no retries, no limits, no deduplication but a set.
Usage: limit_curl.py list|site|heavy URLS OUT
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

import msgspec
import turbohtml
import uvloop
from curl_client import Client

workload, urls, out = sys.argv[1:]
seeds = Path(urls).read_text().split()
encode = msgspec.json.Encoder().encode


async def worker(queue, seen, client, items):
    while True:
        url = await queue.get()
        document = turbohtml.parse(await client.get(url))
        title, price = document.select_one("title").text, document.select_one("span.price").text
        items.write(encode({"url": url, "title": title, "price": price}) + b"\n")
        for anchor in document.select("a[href]") if workload != "list" else ():
            link = urljoin(url, anchor.attrs["href"])
            if workload == "site" and link not in seen:
                seen.add(link)
                queue.put_nowait(link)
        queue.task_done()


async def main(items):
    queue = asyncio.Queue()
    seen = set(seeds)
    for url in seeds:
        queue.put_nowait(url)
    client = Client()
    workers = [asyncio.create_task(worker(queue, seen, client, items)) for _ in range(100)]
    await queue.join()
    for task in workers:
        task.cancel()


started = time.perf_counter()
with open(out, "wb") as items:
    uvloop.run(main(items))
print(json.dumps({"seconds": time.perf_counter() - started}))
