"""The Redis consumer of many tutorials: BLPOP a task, fetch, parse, SADD done. A crash loses what it holds.

Usage: tutorial_redis.py list URLS OUT PROCESSES PORT
"""

import asyncio
import json
import multiprocessing
import sys
import time
from pathlib import Path

import aiohttp
import redis
import redis.asyncio
from lxml import html

_, urls, out, processes, port = sys.argv[1:]
seeds = Path(urls).read_text().split()
TASKS, DONE = "spider:task:wait", "spider:url:done"


async def worker(store, session, items):
    while task := await store.blpop(TASKS, timeout=1):
        url = json.loads(task[1])["url"]
        async with session.get(url) as response:
            tree = html.fromstring(await response.text())
        item = {
            "url": url,
            "title": tree.findtext(".//title"),
            "price": tree.findtext(".//span[@class='price']"),
        }
        items.write(json.dumps(item) + "\n")
        await store.sadd(DONE, url)


async def consume(items):
    store = redis.asyncio.Redis(port=int(port), decode_responses=True, max_connections=105)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100)) as session:
        await asyncio.gather(*(worker(store, session, items) for _ in range(100)))
    await store.aclose()


def consumer(number):
    with open(f"{out}.{number}", "w") as items:
        asyncio.run(consume(items))


store = redis.Redis(port=int(port))
store.flushall()
for start in range(0, len(seeds), 10_000):
    store.rpush(
        TASKS,
        *(json.dumps({"url": url, "retry_count": 0, "extra": {}}) for url in seeds[start : start + 10_000]),
    )
consumers = [multiprocessing.Process(target=consumer, args=(number,)) for number in range(int(processes))]
started = time.perf_counter()
for process in consumers:
    process.start()
while store.scard(DONE) < len(seeds):
    time.sleep(0.02)
seconds = time.perf_counter() - started  # they wait for one more second before they believe it
for process in consumers:
    process.join()
Path(out).write_text("".join(Path(f"{out}.{number}").read_text() for number in range(int(processes))))
print(json.dumps({"seconds": seconds}))
