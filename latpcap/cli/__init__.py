"""The command `latpcap`. `app` is its root; each other module adds commands or options."""

from latpcap.cli.app import main

__all__ = ["main"]
