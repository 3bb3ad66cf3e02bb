"""From scalars to points: a frame at random, or one that settles close to a region.

Settling alternates projections: points move into the region, and the frame to the nearest one that stays exact.
"""

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.frames import isometries
from app.inference.fitting.links import Link
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Region
from app.inference.fitting.scalars import Scalars
from app.inference.fitting.span import Span

_BUDGET = 5e9
"""Floating-point operations that settling may take."""
_MOST_SETTLING = 200


def frame_points(link: Link, span: Span, scalars: Scalars, rng: np.random.Generator, region: Region | None) -> Points:
    """Points of these scalars in the span; in the region as far as being exact allows."""
    k, root, width = len(span.information), np.sqrt(span.information), np.sqrt(scalars.mass)
    pull = np.divide(span.pull, root, out=np.zeros(k), where=root > 0)
    sources, images = [root * span.basis[-1], root * span.mean], [width, width * scalars.a]
    if scalars.ratio is not None:
        scores = width * scalars.ratio
        unseen = np.sqrt(max(float(scores @ scores - pull @ pull), 0.0))
        sources = [np.append(each, 0.0) for each in sources] + [np.append(pull, unseen)]
        images.append(scores)
    every = isometries(np.column_stack(sources), np.column_stack(images))
    frame = every.random(rng)
    shape = np.zeros((frame.shape[1], len(span.basis)))
    shape[:k] = root[:, None] * span.basis.T
    if region is not None:
        for _ in range(_settling(*frame.shape)):
            inside = region.rows(region.coordinates(_rows(frame, shape, width)))
            frame = every.nearest((width[:, None] * inside) @ shape.T, frame)
    ratio = (frame[:, :k] @ pull) / width if scalars.ratio is None else scalars.ratio
    y = link.targets(scalars.a, ratio)
    return Points(_rows(frame, shape, width), y, scalars.mass / link.curve(scalars.a, y).curvature)


def _rows(frame: Array64, shape: Array64, width: Array64) -> Array64:
    u = (frame @ shape) / width[:, None]
    u[:, -1] = 1.0
    return np.asarray(u)


def _settling(size: int, directions: int) -> int:
    return int(np.clip(_BUDGET / (30 * size * directions**2), 5, _MOST_SETTLING))
