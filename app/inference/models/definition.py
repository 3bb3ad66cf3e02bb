"""Families of models: their requirements on tables and requests, and the construction of a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.errors import InvalidRequest
from app.inference.core.facts import Column
from app.inference.core.knobs import Parameter
from app.inference.core.model import Model
from app.inference.core.plan import ModelSpec
from app.inference.models.targets import read_scaling

ColumnType = Literal["integer", "real", "categorical", "binary"]
EVERY_TYPE: Final[tuple[ColumnType, ...]] = ("integer", "real", "categorical", "binary")
LEAST_NOISE, MOST_NOISE = 1e-4, 1e4
LEAST_DEGREES, MOST_DEGREES = 1.0, 100.0
LEAST_DISPERSION, MOST_DISPERSION = 1e-3, 1e3
_FURTHER: Final = ("topics", "document_concentration", "topic_concentration", "hidden_units")
"""Settings that only families with ``settings`` take."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of models, as it is registered.

    ``bind(spec, width, target)`` makes the likelihood for a design of ``width`` columns and a declared target; None:
    the family has statistics only (:mod:`app.inference.conjugate`). ``targets`` are the types that the target may have;
    if empty, the model has no target. ``least_target`` is the least declared lower bound of the target. ``terms``:
    whether features may be terms. ``noise_scale``: whether a request may state one. ``degrees_of_freedom``: the default
    for Student-t noise; None: a request may not state them. ``dispersion``: the same for counts. ``scales_target``:
    whether the model takes targets scaled by their bounds. ``noise_covariance``: whether a request may state one.
    ``settings`` are further settings, each with its range and default.
    ``normal_prior``: whether a request may state the prior of coefficients.
    """

    name: str
    description: str
    bind: Callable[[ModelSpec, int, Column | None], Model] | None
    targets: tuple[ColumnType, ...]
    least_target: float | None = None
    features: tuple[ColumnType, ...] = EVERY_TYPE
    terms: bool = True
    intercept: bool = True
    noise_scale: bool = False
    degrees_of_freedom: float | None = None
    dispersion: float | None = None
    scales_target: bool = False
    noise_covariance: bool = False
    settings: tuple[Parameter, ...] = ()
    normal_prior: bool = True

    def check_target(self, column: Column) -> None:
        """Raise :class:`InvalidRequest` unless ``column`` can be the target."""
        if column.type not in self.targets:
            raise InvalidRequest.at("/model/target", f"This model needs a target of type {' or '.join(self.targets)}.")
        if column.type == "categorical" and len(column.categories) < 2:
            raise InvalidRequest.at("/model/target", "This model needs a target of at least two categories.")
        if self.least_target is not None and not (column.lower is not None and column.lower >= self.least_target):
            raise InvalidRequest.at(
                "/model/target",
                f"This model needs a target with a declared lower bound of {self.least_target:g} or more.",
            )

    def target_transform(self, column: Column) -> dict[str, Any] | None:
        """Describe the transform from a target in the table's units to the model's; None if there is none."""
        if column.type == "categorical":
            return {"kind": "index", "categories": list(column.categories)}
        if not self.scales_target:
            return None
        scaling = read_scaling(column)
        return {"kind": "affine", "center": scaling.center, "scale": scaling.half}

    def check_settings(self, spec: ModelSpec) -> None:
        """Raise :class:`InvalidRequest` for a setting that the family does not allow."""
        if spec.noise_scale is not None and not self.noise_scale:
            raise InvalidRequest.at("/model/noise_scale", "This model has no noise scale; leave it out.")
        if spec.noise_covariance is not None and not self.noise_covariance:
            raise InvalidRequest.at("/model/noise_covariance", "This model has no noise covariance; leave it out.")
        for name, least, most in (
            ("degrees_of_freedom", LEAST_DEGREES, MOST_DEGREES),
            ("dispersion", LEAST_DISPERSION, MOST_DISPERSION),
        ):
            value = getattr(spec, name)
            if value is not None and getattr(self, name) is None:
                raise InvalidRequest.at(f"/model/{name}", "This model has no such setting; leave it out.")
            if value is not None and not least <= value <= most:
                raise InvalidRequest.at(f"/model/{name}", f"Use at least {least:g} and at most {most:g}.")
        self._check_further(spec)

    def _check_further(self, spec: ModelSpec) -> None:
        own = {setting.name: setting for setting in self.settings}
        for name in _FURTHER:
            value = getattr(spec, name)
            if value is not None and name not in own:
                raise InvalidRequest.at(f"/model/{name}", "This model has no such setting; leave it out.")
            if value is not None:
                own[name].check(value, f"/model/{name}")

    def read_setting(self, spec: ModelSpec, name: str) -> float:
        """Read the setting ``name``, or its default."""
        stated = getattr(spec, name)
        chosen = next(each.default for each in self.settings if each.name == name) if stated is None else stated
        assert chosen is not None, "every setting has a default"
        return float(chosen)

    def defaults(self, spec: ModelSpec) -> dict[str, float]:
        """List the family's defaults for settings that ``spec`` leaves out."""
        own = {"degrees_of_freedom": self.degrees_of_freedom, "dispersion": self.dispersion}
        own |= {setting.name: setting.default for setting in self.settings}
        return {name: value for name, value in own.items() if value is not None and getattr(spec, name) is None}


def check_noise(noise: float) -> float:
    """Check that ``noise``, in half ranges, is within the limits of single precision; return it.

    Raises:
        InvalidRequest: at ``/model/noise_scale``.
    """
    if not LEAST_NOISE <= noise <= MOST_NOISE:
        raise InvalidRequest.at(
            "/model/noise_scale", f"Use {LEAST_NOISE:g} to {MOST_NOISE:g} times half of the declared range."
        )
    return noise
