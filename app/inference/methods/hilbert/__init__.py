"""Hilbert coresets of public tables (method ids ``giga``, ``frank-wolfe``, ``omp``)."""

from app.inference.methods.hilbert.frank_wolfe import frank_wolfe
from app.inference.methods.hilbert.giga import giga
from app.inference.methods.hilbert.method import HilbertMethod
from app.inference.methods.hilbert.omp import omp

GIGA = HilbertMethod("giga", "Hilbert coreset by greedy iterative geodesic ascent (GIGA, 2018). Not private.", giga)
FRANK_WOLFE = HilbertMethod("frank-wolfe", "Hilbert coreset by Frank-Wolfe steps (2019). Not private.", frank_wolfe)
OMP = HilbertMethod("omp", "Hilbert coreset by non-negative orthogonal matching pursuit. Not private.", omp)
