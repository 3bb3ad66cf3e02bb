"""Settings of audited runs: a private method with its parameters, a model, a canary, and the rows of other people.

The canary is a person of many equal rows, whose sum is longer than the clipping norm. Its neighbours are known to the
attacker. They are chosen so that the canary stays surprising through the whole run: no parameter near the iterates
explains it, so each of its contributions reaches the clipping norm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.inference.audit.subjects import COLUMNS, PLACE
from app.inference.audit.tables import CanaryTable, Row, make_facts
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import GROUPS, Mechanism, MechanismPlan, ModelSpec, PlanRequest, PriorSpec
from app.inference.registry import DEFAULT, find_method
from app.privacy.audit.composed import compute_separation

SLOTS: Final = 20
ROWS: Final = 256
"""Rows of each person."""
QUERIES: Final = 12
SIZE: Final = 6
_SPEC: Final = ModelSpec("logistic-regression", ("a", "b"), "flag")
_NARROW: Final = ModelSpec("logistic-regression", ("a", "b"), "flag", PriorSpec(scale=0.03))
"""A prior so narrow that no coefficient moves far. Statistics shrink where a row is explained."""
_WORDS: Final = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=2)
_CANARY: Final = {"a": 1.0, "b": -1.0, "flag": 1.0, "word": 1.0}
_SHORTER: Final = _CANARY | {"a": 0.88, "b": -0.88}
"""A canary about as long as the radius that ``vips`` chooses. Longer rows weigh less."""
_OPPOSITE: Final = _CANARY | {"flag": 0.0}
_FEW: Final = 2
_BALANCED: Final = (_CANARY, _OPPOSITE)


@dataclass(frozen=True, slots=True)
class Scenario:
    """An audited run of ``method``: the canary has :data:`ROWS` rows like ``canary``.

    Every other person has the rows ``others``.
    """

    name: str
    method: str
    spec: ModelSpec = _SPEC
    parameters: Mapping[str, Any] = field(default_factory=dict)
    canary: Row = field(default_factory=lambda: _CANARY)
    others: tuple[Row, ...] = ()
    queries: int = QUERIES

    @property
    def facts(self) -> DeclaredFacts:
        """The declaration of the table."""
        return make_facts(COLUMNS, SLOTS, ROWS)

    def make_table(self, *, present: bool) -> CanaryTable:
        """Make the table with the canary or without it."""
        table = CanaryTable(self.facts, PLACE, [self.canary] * ROWS, self.others)
        return table if present else table.without()

    def make_plan(self, separation: float) -> MechanismPlan:
        """Plan a run at rate 1 whose composed events have the separation ``separation``."""
        plan = self._plan(1.0)
        return self._plan(compute_separation(plan.events) / separation)

    def _plan(self, noise: float) -> MechanismPlan:
        if self.method == DEFAULT:
            request = PlanRequest(self.method, SIZE, self.spec, self.parameters, noise_multiplier=noise)
        else:
            mechanism = Mechanism(noise, 1.0, self.queries)
            request = PlanRequest(self.method, SIZE, self.spec, self.parameters, mechanism)
        return find_method(self.method).plan(request, self.facts)


def list_scenarios() -> tuple[Scenario, ...]:
    """List a scenario for every private method, and for its variants with other queries."""
    return (
        Scenario(DEFAULT, DEFAULT, others=_BALANCED * _FEW),
        Scenario(f"{DEFAULT}, beta", DEFAULT, parameters={"beta": 0.1}, others=_BALANCED * _FEW),
        Scenario("dp-psvi", "dp-psvi"),
        Scenario("dp-psvi, beta", "dp-psvi", parameters={"beta": 0.3}),
        Scenario("dp-vi", "dp-vi", others=(_OPPOSITE,) * ROWS),
        Scenario("dp-groups", "dp-groups", parameters={GROUPS: ["word"]}, queries=1),
        Scenario("dp-groups, beta", "dp-groups", parameters={GROUPS: ["word"], "beta": 0.3}, queries=1),
        Scenario("vips", "vips", _NARROW, canary=_SHORTER, others=_BALANCED * (ROWS // 2)),
        Scenario("vips, topics", "vips", _WORDS),
    )
