"""Pipeline steps that ship: each of these makes one, for `Crawler(steps=[...])`.

A step is a function of an item, or of an item and its page, that gives back the item, another one, or None to
drop it. Those here leave the item that they get as it is, pass over fields that it does not have, and take
dicts, dataclasses, msgspec structs, attrs and pydantic objects.
"""

from silkline.errors import Drop
from silkline.steps.choose import keep, required, route, unique
from silkline.steps.dates import date, date_time
from silkline.steps.fields import Step
from silkline.steps.numbers import number, price
from silkline.steps.text import absolute_urls, html_to_text, squeeze, strip

__all__ = [
    "Drop",
    "Step",
    "absolute_urls",
    "date",
    "date_time",
    "html_to_text",
    "keep",
    "number",
    "price",
    "required",
    "route",
    "squeeze",
    "strip",
    "unique",
]
