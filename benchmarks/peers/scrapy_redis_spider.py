"""scrapy-redis, with its scheduler and its dedup filter in Redis.

Usage: scrapy_redis_spider.py list URLS OUT PROCESSES PORT
"""

import json
import multiprocessing
import sys
import time
from pathlib import Path

import redis

_, urls, out, processes, port = sys.argv[1:]
seeds = Path(urls).read_text().split()


def consumer(number):
    from scrapy.crawler import CrawlerProcess
    from scrapy_redis.spiders import RedisSpider

    class Pages(RedisSpider):
        name = "pages"
        redis_key = "pages:start_urls"
        redis_batch_size = 100
        max_idle_time = 3

        def parse(self, response):
            yield {
                "url": response.url,
                "title": response.css("title::text").get(),
                "price": response.css("span.price::text").get(),
            }

    process = CrawlerProcess(
        {
            "LOG_LEVEL": "ERROR",
            "CONCURRENT_REQUESTS": 100,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
            "DOWNLOAD_DELAY": 0,
            "ROBOTSTXT_OBEY": False,
            "REDIS_URL": f"redis://127.0.0.1:{port}/0",
            "TELNETCONSOLE_ENABLED": False,
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "SCHEDULER_PERSIST": True,
            "FEEDS": {f"{out}.{number}": {"format": "jsonlines", "overwrite": True}},
        }
    )
    process.crawl(Pages)
    process.start()


if __name__ == "__main__":
    store = redis.Redis(port=int(port))
    store.flushall()
    for start in range(0, len(seeds), 10_000):
        store.lpush("pages:start_urls", *seeds[start : start + 10_000])
    consumers = [multiprocessing.Process(target=consumer, args=(number,)) for number in range(int(processes))]
    started = time.perf_counter()
    for process in consumers:
        process.start()
    for process in consumers:
        process.join()
    seconds = time.perf_counter() - started - 3  # the time that it idles before it believes it is finished
    parts = [Path(f"{out}.{number}") for number in range(int(processes))]
    Path(out).write_text("".join(part.read_text() for part in parts if part.exists()))
    print(json.dumps({"seconds": seconds}))
