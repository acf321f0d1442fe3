"""What the demo shop sells: made-up goods, the same for the same seed."""

from __future__ import annotations

import itertools
import random
import re

import msgspec


class Category(msgspec.Struct, frozen=True):
    """A shelf of the shop. pence: the lowest and highest usual price."""

    slug: str
    name: str
    goods: tuple[str, ...]
    traits: tuple[str, ...]
    blurb: str
    pence: tuple[int, int]

    @property
    def path(self) -> str:
        return f"/category/{self.slug}"


class Product(msgspec.Struct, frozen=True):
    """One article. pence: its price; stock: pieces left, 0 for sold out."""

    sku: str
    slug: str
    name: str
    pence: int
    stock: int
    category: Category
    description: str

    @property
    def path(self) -> str:
        return f"/product/{self.slug}"

    @property
    def price(self) -> str:
        """As written in the shop, for instance "£24.50"."""
        return f"£{self.pence // 100}.{self.pence % 100:02}"

    @property
    def availability(self) -> str:
        if self.stock == 0:
            return "Sold out"
        return f"Only {self.stock} left" if self.stock < 4 else "In stock"


MAKERS = (
    "Alder", "Bracken", "Corrie", "Dunnock", "Eider", "Fernway", "Garnock", "Heather", "Islay", "Juniper",
    "Kestrel", "Lomond", "Merlin", "Nevis", "Orchy", "Petrel", "Rowan", "Skerry", "Tarn", "Wren",
)  # fmt: skip

CATEGORIES = (
    Category(
        "shelter",
        "Tents & Shelter",
        ("Ridge Tent", "Bivvy Bag", "Tarp", "Hammock", "Geodesic Tent", "Groundsheet", "Storm Shelter"),
        ("for One", "for Two", "for Three", "Ultralight", "Four-Season", "in Moss Green"),
        "Pitches in minutes, stands through the night and packs down to the size of a loaf of bread.",
        (2_900, 48_000),
    ),
    Category(
        "packs",
        "Packs & Bags",
        ("Daypack", "Trail Pack", "Roll-Top", "Duffel", "Hip Pack", "Satchel", "Dry Bag"),
        ("12 L", "18 L", "24 L", "36 L", "48 L", "60 L"),
        "Waxed cloth, honest buckles and straps that can be sewn again when they finally give up.",
        (1_800, 18_500),
    ),
    Category(
        "kitchen",
        "Camp Kitchen",
        ("Enamel Mug & Lid", "Café Press", '8" Skillet', "Kettle", "Spirit Stove", "Spork", "Mess Tin"),
        ("in Cream", "in Navy", "in Rust", "Large", "Small", "for Two"),
        "Made for porridge at dawn and chilli at dusk, and none the worse for a fall on the rocks.",
        (450, 6_900),
    ),
    Category(
        "light",
        "Lamps & Light",
        ("Lantern", "Head Torch", "Pocket Torch", "Candle Lamp", "Bike Light", "String Lights"),
        ("Mini", "200 lm", "350 lm", "600 lm", "Solar", "Rechargeable"),
        "A warm, even light that lasts the whole evening and charges from any old plug.",
        (750, 8_900),
    ),
    Category(
        "wear",
        "Hats, Socks & Layers",
        ("Merino Socks", "Fisherman's Beanie", "Rain Shell", "Down Gilet", "Wool Shirt", "Mittens"),
        ("XS", "S", "M", "L", "XL", "in Oat"),
        "Knitted and stitched within thirty miles of our door, from wool that knows about weather.",
        (1_200, 21_000),
    ),
    Category(
        "rope",
        "Rope & Repair",
        ("Guy Line", "Climbing Rope", "Paracord", "Tape & Patch Kit", "Sewing Kit", "Karabiner", "Fid"),
        ("5 m", "10 m", "20 m", "40 m", "in Orange", "Reflective"),
        "Because the day always comes when something frays, snaps or needs holding together.",
        (250, 15_900),
    ),
)  # fmt: skip


def make_products(count: int, seed: int) -> tuple[Product, ...]:
    """`count` products with names of their own, dealt out evenly to the categories."""
    dice = random.Random(seed)
    names = {category: _names(category, dice) for category in CATEGORIES}
    shelves = itertools.islice(itertools.cycle(CATEGORIES), count)
    return tuple(
        _product(number, category, next(names[category]), dice)
        for number, category in enumerate(shelves, start=1)
    )


def _names(category: Category, dice: random.Random) -> itertools.chain[str]:
    combinations = list(itertools.product(MAKERS, category.goods, category.traits))
    dice.shuffle(combinations)
    plain = [" ".join(parts) for parts in combinations]
    marks = (f"{name} Mk {mark}" for mark in itertools.count(2) for name in plain)
    return itertools.chain(plain, marks)


def _product(number: int, category: Category, name: str, dice: random.Random) -> Product:
    low, high = category.pence
    pence = int(low + (high - low) * dice.random() ** 3)
    ending = dice.choice((0, 50, 95, 99))
    return Product(
        sku=f"{category.slug[:2].upper()}-{10_000 + number}",
        slug=re.sub(r"[^a-z0-9]+", "-", name.lower().replace("é", "e")).strip("-"),
        name=name,
        pence=pence // 100 * 100 + ending,
        stock=dice.choice((0, 1, 3, 8, 12, 20, 35, 60)),
        category=category,
        description=f"The {name}. {category.blurb}",
    )
