"""Scrapy. Usage: scrapy_spider.py list|site|heavy URLS OUT"""

import json
import sys
import time
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess

workload, urls, out = sys.argv[1:]
seeds = Path(urls).read_text().split()


class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for url in seeds:
            yield scrapy.Request(url)

    def parse(self, response):
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "price": response.css("span.price::text").get(),
        }
        if workload == "site":
            yield from response.follow_all(css="a")
        elif workload == "heavy":
            for href in response.css("a::attr(href)").getall():
                response.urljoin(href)


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": 100,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "FEEDS": {out: {"format": "jsonlines", "overwrite": True}},
    }
)
process.crawl(Pages)
started = time.perf_counter()
process.start()
print(json.dumps({"seconds": time.perf_counter() - started}))
