"""Scrapling's spiders. Usage: scrapling_spider.py list|site|heavy URLS OUT"""

import json
import logging
import sys
import time
from pathlib import Path

from scrapling.spiders import Spider

workload, urls, out = sys.argv[1:]
items = open(out, "w")  # noqa: SIM115


class Pages(Spider):
    name = "pages"
    start_urls = Path(urls).read_text().split()
    concurrent_requests = 100
    concurrent_requests_per_domain = 100
    download_delay = 0
    robots_txt_obey = False
    logging_level = logging.CRITICAL

    async def parse(self, response):
        item = {
            "url": response.url,
            "title": response.css("title::text").get(),
            "price": response.css("span.price::text").get(),
        }
        items.write(json.dumps(item) + "\n")
        for href in response.css("a::attr(href)").getall() if workload != "list" else ():
            if workload == "site":
                yield response.follow(href, callback=self.parse)
            else:
                response.urljoin(href)


started = time.perf_counter()
Pages().start()
items.close()
print(json.dumps({"seconds": time.perf_counter() - started}))
