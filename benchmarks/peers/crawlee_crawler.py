"""Crawlee, everything in memory. Usage: crawlee_crawler.py list|site|heavy URLS OUT"""

import asyncio
import json
import logging
import sys
import time
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

workload, urls, out = sys.argv[1:]
seeds = Path(urls).read_text().split()


async def main(items):
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(
            min_concurrency=50, desired_concurrency=100, max_concurrency=100
        ),
        storage_client=MemoryStorageClient(),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        item = {
            "url": context.request.url,
            "title": context.selector.css("title::text").get(),
            "price": context.selector.css("span.price::text").get(),
        }
        items.write(json.dumps(item) + "\n")
        if workload == "site":
            await context.enqueue_links()
        elif workload == "heavy":
            await context.extract_links()

    await crawler.run(seeds)


logging.disable(logging.CRITICAL)
started = time.perf_counter()
with open(out, "w") as items:
    asyncio.run(main(items))
print(json.dumps({"seconds": time.perf_counter() - started}))
