"""What many tutorials teach: asyncio.Queue, aiohttp, lxml. Nothing is kept, retried or limited.

Usage: tutorial.py list|site|heavy URLS OUT
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
from lxml import html

workload, urls, out = sys.argv[1:]
seeds = Path(urls).read_text().split()


async def worker(queue, seen, session, items):
    while True:
        url = await queue.get()
        try:
            async with session.get(url) as response:
                tree = html.fromstring(await response.text())
            item = {
                "url": url,
                "title": tree.findtext(".//title"),
                "price": tree.findtext(".//span[@class='price']"),
            }
            items.write(json.dumps(item) + "\n")
            for href in tree.xpath("//a/@href") if workload != "list" else ():
                link = urljoin(url, href)
                if workload == "site" and link not in seen:
                    seen.add(link)
                    queue.put_nowait(link)
        finally:
            queue.task_done()


async def main(items):
    queue = asyncio.Queue()
    seen = set(seeds)
    for url in seeds:
        queue.put_nowait(url)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100)) as session:
        workers = [asyncio.create_task(worker(queue, seen, session, items)) for _ in range(100)]
        await queue.join()
        for task in workers:
            task.cancel()


started = time.perf_counter()
with open(out, "w") as items:
    asyncio.run(main(items))
print(json.dumps({"seconds": time.perf_counter() - started}))
