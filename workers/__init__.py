"""The workers: the only processes that open rows.

Runs are many small matrix products, and several runs may share a machine: one thread each is fastest. The numerical
libraries read this once, when NumPy is first imported, so it is said here, before any module of ours imports it.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
