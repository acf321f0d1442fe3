"""Measurements of silkline beside other crawlers; see README.md."""
