"""The practical limit of one aiohttp client: fetch, parse, one JSON line, and nothing else at all.

No frontier, nothing durable, no retries, no politeness, no deduplication but a set.
Usage: limit.py list|site|heavy URLS OUT
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import msgspec
import turbohtml
import uvloop

workload, urls, out = sys.argv[1:]
seeds = Path(urls).read_text().split()
encode = msgspec.json.Encoder().encode


async def worker(queue, seen, session, items):
    while True:
        url = await queue.get()
        async with session.get(url) as response:
            document = turbohtml.parse(await response.read())
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
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100, ssl=False)) as session:
        workers = [asyncio.create_task(worker(queue, seen, session, items)) for _ in range(100)]
        await queue.join()
        for task in workers:
            task.cancel()


started = time.perf_counter()
with open(out, "wb") as items:
    uvloop.run(main(items))
print(json.dumps({"seconds": time.perf_counter() - started}))
