"""numpy, pandas and pyarrow, imported upon first use so that `import latpcap` and the command's help start fast.

For the same reason modules of latpcap that draw or answer are imported in the methods that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    import pyarrow.fs as fs
    import pyarrow.parquet as pq
else:

    class _Module:
        """Stands for a module, and imports it upon the first use of one of its names."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self._name), name)
            setattr(self, name, value)  # further uses find it without a call
            return value

    np = _Module("numpy")
    pd = _Module("pandas")
    pa = _Module("pyarrow")
    pc = _Module("pyarrow.compute")
    ds = _Module("pyarrow.dataset")
    fs = _Module("pyarrow.fs")
    pq = _Module("pyarrow.parquet")

__all__ = ["ds", "fs", "np", "pa", "pc", "pd", "pq"]
