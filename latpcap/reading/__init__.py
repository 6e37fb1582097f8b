"""Bytes of captures: where they come from, what of them is looked at again, and which of them are chosen."""
