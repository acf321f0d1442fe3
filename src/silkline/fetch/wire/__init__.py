"""Seeing the wire: what was sent and received, hop by hop. Nothing of it is there when it is off."""
