"""What the user's items must be: of the types that their classes declare, and with the key that they name."""

from silkline.items.key import ItemKeys
from silkline.items.routed import To
from silkline.items.types import TypeChecks

__all__ = ["ItemKeys", "To", "TypeChecks"]
