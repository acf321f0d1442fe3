"""The demo shop: a small local site to crawl, for `silkline demo`, for tests and for first steps."""

from silkline.demo.catalogue import Product
from silkline.demo.server import DemoServer, serve_in_thread
from silkline.demo.shop import Expected, Shop

__all__ = ["DemoServer", "Expected", "Product", "Shop", "serve_in_thread"]
