"""The workers: the only processes that open rows.

A run is many small matrix products, and several runs may share a machine, so one thread each is fastest. The numerical
libraries read these variables once, when NumPy is first imported. So they are set here, before any other module.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
