"""The registry of methods and models."""

from typing import Any, Final

from app.errors import InvalidRequest
from app.inference.conjugate import has_statistics
from app.inference.core.capabilities import LIKELIHOOD, Artefact, Capability
from app.inference.core.facts import DeclaredFacts
from app.inference.core.method import Method, PrivateMethod, PublicMethod
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.methods.dp_groups.method import DpGroups
from app.inference.methods.dp_psvi.method import DpPsvi
from app.inference.methods.dp_vi.method import DpVi
from app.inference.methods.hilbert import FRANK_WOLFE, GIGA, OMP
from app.inference.methods.psvi.beta_cores import BetaCores
from app.inference.methods.psvi.incremental import IncrementalPsvi
from app.inference.methods.psvi.psvi import Psvi
from app.inference.methods.psvi.sparse_vi import SparseVi
from app.inference.methods.robust_surrogate import RobustBelief
from app.inference.methods.scmc.method import Scmc
from app.inference.methods.uniform import Uniform
from app.inference.methods.vips.method import Vips
from app.inference.models import find_family, list_families
from app.inference.models.definition import Family

__all__ = [
    "DEFAULT",
    "USUAL_SIZE",
    "choose_size",
    "compute_smallest_exact",
    "count_needed_points",
    "find_family",
    "find_method",
    "find_private_method",
    "find_public_method",
    "list_capabilities",
    "list_families",
    "list_methods",
    "make_plan",
    "takes",
]

DEFAULT: Final = RobustBelief.id
"""The method of a request that does not name one."""
USUAL_SIZE: Final = 20
"""Least number of points that is chosen for a request: fewer save nothing, and have larger weights."""

_PRIVATE: dict[str, PrivateMethod[Any]] = {
    method.id: method for method in (RobustBelief(), DpPsvi(), DpVi(), Vips(), DpGroups())
}
_PUBLIC: dict[str, PublicMethod] = {
    method.id: method
    for method in (Psvi(), IncrementalPsvi(), SparseVi(), BetaCores(), GIGA, FRANK_WOLFE, OMP, Scmc(), Uniform())
}


def find_method(method_id: str) -> Method:
    """Find the method with this id.

    Raises:
        InvalidRequest: there is none; the error points at ``/method``.
    """
    registered: Method | None = _PRIVATE.get(method_id) or _PUBLIC.get(method_id)
    if registered is None:
        raise InvalidRequest.at("/method", f"Unknown method. Use one of {', '.join((*_PRIVATE, *_PUBLIC))}.")
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


def list_capabilities(family: Family) -> frozenset[Capability]:
    """List the capabilities that the models of ``family`` offer."""
    statistics = {Capability.STATISTICS} if has_statistics(family.name) else set()
    return (LIKELIHOOD if family.bind is not None else frozenset()) | statistics


def takes(method: Method, family: Family) -> bool:
    """Whether ``method`` takes models of ``family``."""
    return method.needs <= list_capabilities(family)


def make_plan(request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
    """Plan ``request`` by its method.

    Raises:
        InvalidRequest: there is no such method or family, the method does not take the family, or a member of the
            request is not valid. The error points at this member.
        MethodNotAllowedOnPrivateData: the table is private, and the method is not.
    """
    method, family = find_method(request.method), find_family(request.model.family)
    if not takes(method, family):
        others = ", ".join(other.id for other in list_methods() if takes(other, family))
        raise InvalidRequest.at("/method", f"This method does not take this model. Use one of: {others}.")
    return method.plan(request, facts)


def choose_size(spec: ModelSpec, facts: DeclaredFacts) -> int:
    """Choose the number of points of a request that states none: the least exact one, but at least :data:`USUAL_SIZE`.

    Raises:
        InvalidRequest: the model is not valid for these facts. The error points into ``/model``.
    """
    return max(USUAL_SIZE, compute_smallest_exact(spec, facts))


def count_needed_points(plan: MechanismPlan, facts: DeclaredFacts) -> int:
    """Count the least points that represent every posterior of the plan's model; 1 if a release has no points."""
    if find_method(plan.method).leaves is Artefact.GROUPS:
        return 1
    return compute_smallest_exact(plan.model, facts)


def compute_smallest_exact(spec: ModelSpec, facts: DeclaredFacts) -> int:
    """Compute the least number of points that can represent every posterior of this model.

    It is 1 for a model whose releases have no points.

    Raises:
        InvalidRequest: the model is not valid for these facts. The error points into ``/model``.
    """
    if find_family(spec.family).bind is None:
        return 1
    return make_problem(spec, facts).model.smallest_exact
