"""The registry of methods and models."""

from typing import Any, Final

from app.errors import InvalidRequest
from app.inference.core.facts import DeclaredFacts
from app.inference.core.method import Method, PrivateMethod, PublicMethod
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.methods.dp_psvi.method import DpPsvi
from app.inference.methods.dp_vi.method import DpVi
from app.inference.methods.hilbert import FRANK_WOLFE, GIGA, OMP
from app.inference.methods.psvi.incremental import IncrementalPsvi
from app.inference.methods.psvi.psvi import Psvi
from app.inference.methods.psvi.sparse_vi import SparseVi
from app.inference.methods.surrogate.method import OneBelief
from app.inference.methods.uniform import Uniform
from app.inference.models import find_family, list_families

__all__ = [
    "DEFAULT",
    "compute_smallest_exact",
    "find_family",
    "find_method",
    "find_private_method",
    "find_public_method",
    "list_families",
    "list_methods",
]

DEFAULT: Final = OneBelief.id
"""The method of a request that does not name one."""

_PRIVATE: dict[str, PrivateMethod[Any]] = {method.id: method for method in (OneBelief(), DpPsvi(), DpVi())}
_PUBLIC: dict[str, PublicMethod] = {
    method.id: method for method in (Psvi(), IncrementalPsvi(), SparseVi(), GIGA, FRANK_WOLFE, OMP, Uniform())
}


def find_method(method_id: str) -> Method:
    """Find the method with this id.

    Raises:
        InvalidRequest: there is none; the error points at ``/method``.
    """
    registered: Method | None = _PRIVATE.get(method_id) or _PUBLIC.get(method_id)
    if registered is None:
        raise InvalidRequest.at("/method", "Unknown method; GET /v1/methods lists the methods.")
    return registered


def find_private_method(method_id: str) -> PrivateMethod[Any]:
    """Find the private method with this id; any other id is refused."""
    if method_id not in _PRIVATE:
        raise InvalidRequest.at("/method", "This is not a private method.")
    return _PRIVATE[method_id]


def find_public_method(method_id: str) -> PublicMethod:
    """Find the method for public tables with this id; any other id is refused."""
    if method_id not in _PUBLIC:
        raise InvalidRequest.at("/method", "This is not a method for public tables.")
    return _PUBLIC[method_id]


def list_methods() -> tuple[Method, ...]:
    """List every registered method."""
    return (*_PRIVATE.values(), *_PUBLIC.values())


def compute_smallest_exact(spec: ModelSpec, facts: DeclaredFacts) -> int:
    """Compute the least number of points that can represent every posterior of this model.

    Raises:
        InvalidRequest: the model is not valid for these facts. The error points into ``/model``.
    """
    return make_problem(spec, facts).model.smallest_exact
