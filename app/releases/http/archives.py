"""Writes NumPy archives. Equal arrays give equal bytes."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest date of a zip archive; the time of rendering would change the bytes


def write_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write an uncompressed npz archive, without pickled objects."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), _write_npy(array))
    return sink.getvalue()


def _write_npy(array: NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    np.lib.format.write_array(sink, np.ascontiguousarray(array), allow_pickle=False)
    return sink.getvalue()
