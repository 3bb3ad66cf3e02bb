"""The belief of a release: named distributions of the model's parameters."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corevault.belief_network import BeliefNetwork
from corevault.errors import InvalidArgument, UnexpectedReply
from corevault.gaussian import Gaussian
from corevault.particles import Particles
from corevault.topics import Topics

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """One distribution: its ``name``, its ``family`` and its ``arrays`` by name.

    A ``normal`` block has ``names`` ``(D,)`` of the parameters, ``mean`` ``(D,)``, and ``covariance`` ``(D, D)`` or
    ``variance`` ``(D,)``. Arrays of other families are in the documentation of beliefs.

    >>> sorted(client.releases.belief(release).blocks[0].arrays)
    ['covariance', 'mean', 'names']
    """

    name: str
    family: str
    arrays: Mapping[str, NDArray[Any]]

    def __repr__(self) -> str:
        return f"Block({self.name!r}, {self.family!r}, arrays: {', '.join(self.arrays)})"


@dataclass(frozen=True, eq=False)
class Belief:
    """The distributions that a release states, in the design's coordinates.

    >>> client.releases.belief(release).blocks[0].name
    'noise'
    """

    blocks: tuple[Block, ...]

    def block(self, name: str) -> Block:
        """The block with this name. Raises ``InvalidArgument`` if there is none.

        >>> client.releases.belief(release).block("noise").family
        'normal'
        """
        for each in self.blocks:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in self.blocks)
        raise InvalidArgument(f"This belief has no block of this name; it has {names}.")

    @property
    def posterior(self) -> Gaussian | None:
        """The normal posterior that the method releases, without noise; None if it releases none.

        >>> client.releases.belief(release).posterior is None
        True
        """
        return self._normal("posterior")

    @property
    def noise(self) -> Gaussian | None:
        """The error in the posterior's mean: normal with mean zero; None if the release does not state it.

        It covers the noise of the answers, bounds on contributions and a search that ended early. Its covariance may be
        singular, and is zero for public tables.

        >>> client.releases.belief(release).noise.names
        ('age', 'sex=male', 'intercept')
        """
        return self._normal("noise")

    @property
    def topics(self) -> Topics | None:
        """The topics of ``latent-dirichlet-allocation``; None for other models.

        >>> client.releases.belief(release).topics is None
        True
        """
        found = {block.name: block for block in self.blocks if block.family == "dirichlet"}
        if not {"topics", "document"} <= found.keys():
            return None
        arrays = found["topics"].arrays
        words = tuple(str(word) for word in arrays["values"])
        return Topics(words, arrays["concentration"], found["document"].arrays["concentration"][0])

    @property
    def network(self) -> BeliefNetwork | None:
        """The network of ``sigmoid-belief-network``; None for other models.

        >>> client.releases.belief(release).network is None
        True
        """
        found = {block.name: block for block in self.blocks}
        if "weights" not in found or found["weights"].family != "normal-rows":
            return None
        weights = found["weights"].arrays
        biases = (found[name].arrays["mean"] for name in ("hidden", "visible"))
        names = tuple(str(name) for name in weights["names"])
        return BeliefNetwork(names, weights["mean"], weights["precision"], weights["prior_precision"], *biases)

    @property
    def particles(self) -> Particles | None:
        """The weighted draws that the method ``scmc`` releases; None for other methods.

        >>> client.releases.belief(release).particles is None
        True
        """
        block = next((each for each in self.blocks if each.family == "particles"), None)
        if block is None:
            return None
        return Particles(tuple(map(str, block.arrays["names"])), block.arrays["draws"], block.arrays["weight"])

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
