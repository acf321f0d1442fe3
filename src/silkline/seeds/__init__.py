"""Where a crawl starts: sources of requests, read in batches."""

from __future__ import annotations

from silkline.seeds.seeds import Seed, Seeds
from silkline.seeds.source import SeedSource

__all__ = ["Seed", "SeedSource", "Seeds"]
