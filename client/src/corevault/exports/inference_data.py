"""ArviZ containers: ``InferenceData`` of ArviZ 0.x, ``DataTree`` of ArviZ 1.x."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import import_extra
from corevault.errors import InvalidArgument
from corevault.replies.release import Release

Array = NDArray[np.float64]
NO_LOG_LIKELIHOOD: Final = (
    "The container has no log_likelihood. PSIS-LOO and WAIC treat each weighted pseudopoint as one observation, so "
    "they would be wrong without a warning."
)


def make_inference_data(
    release: Release,
    samples: Array,
    names: tuple[str, ...],
    rows: dict[str, Array],
    columns: tuple[str, ...],
) -> Any:
    """The container of ``samples`` ``(chains, draws, D)`` and of the points; see ``to_inference_data``."""
    arviz = import_extra("arviz", "arviz", "for InferenceData")
    if samples.ndim != 3 or samples.shape[2] != len(names):
        raise InvalidArgument(
            f"samples must have the shape (chains, draws, {len(names)}), in the order of core.posterior().names; got "
            f"{samples.shape}."
        )
    attrs = {"release_id": release.id, "method": release.method, "family": release.model.family}
    dims = {"coefficients": ["parameter"], "u": ["point", "column"], "weight": ["point"], "y": ["point"]}
    coords = {"parameter": list(names), "column": list(columns)}
    observed = {"y": rows["y"]} if "y" in rows else {}
    constant = {name: rows[name] for name in ("u", "weight")}
    groups = {"posterior": {"coefficients": samples}, "constant_data": constant}
    groups |= {"observed_data": observed} if observed else {}
    attrs |= {"log_likelihood": NO_LOG_LIKELIHOOD}
    if str(arviz.__version__).startswith("0."):
        container = arviz.from_dict(**groups, coords=coords, dims=dims)
    else:
        container = arviz.from_dict(groups, coords=coords, dims=dims)
    container["posterior"].attrs.update(attrs)
    return container
