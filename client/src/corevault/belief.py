"""The belief of a release: named distributions of the model's parameters."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corevault.errors import UnexpectedReply
from corevault.gaussian import Gaussian

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block:
    """One distribution: its ``name``, its ``family`` and its ``arrays`` by name.

    A ``normal`` block has ``names`` ``(D,)`` of the parameters, ``mean`` ``(D,)``, and ``covariance`` ``(D, D)`` or
    ``variance`` ``(D,)``. This version does not interpret other families.
    """

    name: str
    family: str
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Belief:
    """The distributions that a release states, in the design's coordinates."""

    blocks: tuple[Block, ...]

    @property
    def posterior(self) -> Gaussian | None:
        """The normal posterior that the method releases, without noise; None if it releases none."""
        return self._normal("posterior")

    @property
    def noise(self) -> Gaussian | None:
        """The error in the posterior's mean: normal with mean zero; None if the release does not state it.

        It covers the noise of the answers, bounds on contributions and a search that ended early. Its covariance may be
        singular, and is zero for public tables.
        """
        return self._normal("noise")

    def _normal(self, name: str) -> Gaussian | None:
        block = next((each for each in self.blocks if each.name == name and each.family == "normal"), None)
        if block is None:
            return None
        spread = block.arrays["covariance"] if "covariance" in block.arrays else np.diag(block.arrays["variance"])
        return Gaussian(tuple(str(each) for each in block.arrays["names"]), block.arrays["mean"], spread)


def read_belief(content: bytes) -> Belief:
    """Reads the npz representation. Raises ``UnexpectedReply`` if it is not a belief."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        names = zip(arrays["blocks"].tolist(), arrays["families"].tolist(), strict=True)
        blocks = tuple(_read_block(str(name), str(family), arrays) for name, family in names)
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UnexpectedReply("The belief is not an npz archive with blocks and their arrays.") from error
    if not all(_is_consistent(block) for block in blocks):
        raise UnexpectedReply("The arrays of the belief do not have the shapes of a normal distribution.")
    return Belief(blocks)


def _read_block(name: str, family: str, arrays: Mapping[str, NDArray[Any]]) -> Block:
    prefix = f"{name}."
    return Block(name, family, {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)})


def _is_consistent(block: Block) -> bool:
    if block.family != "normal":
        return True
    arrays = block.arrays
    if not {"names", "mean"} <= arrays.keys() or ("covariance" in arrays) is ("variance" in arrays):
        return False
    size, spread = arrays["names"].size, arrays.get("covariance", arrays.get("variance"))
    assert spread is not None, "checked above"
    shapes = {(size, size)} if "covariance" in arrays else {(size,)}
    numeric = all(
        np.issubdtype(each.dtype, np.floating) and np.isfinite(each).all() for each in (arrays["mean"], spread)
    )
    return numeric and arrays["mean"].shape == (size,) and spread.shape in shapes
