"""Frank-Wolfe on Hilbert vectors (method id ``frank-wolfe``); see :mod:`app.inference.hilbert.frank_wolfe`."""

from app.inference.hilbert.frank_wolfe import frank_wolfe
from app.inference.methods.hilbert import HilbertMethod

FRANK_WOLFE = HilbertMethod("frank-wolfe", "Hilbert coreset by Frank-Wolfe steps (2019). Not private.", frank_wolfe)
