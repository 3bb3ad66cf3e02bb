"""Risk that movements identify people: a report for the owner of the data, on the owner's machine.

Sequences of places identify people, even without names. :func:`report` measures how well, for rows of a person, a place
and a time. It needs no server, and sends nothing. Its results are exact, so keep them as safe as the rows.

>>> import numpy as np
>>> from corevault import risk
>>> rows = risk.simulate(people=60, places=40, visits=120, rng=np.random.default_rng(1))
>>> found = risk.report(rows, user="user", place="place", time="time", sizes=(4, 8))
>>> found.people
60
>>> found.anonymity[0]["places"], found.anonymity[0]["directed"]
(4, False)
"""

from corevault.risk.anonymity import count_graphs, group_by_shape
from corevault.risk.kernels import KERNELS, compare_networks
from corevault.risk.linkage import Linkage, link
from corevault.risk.networks import Network, make_network
from corevault.risk.reports import RiskReport, report
from corevault.risk.simulation import simulate
from corevault.risk.traces import Traces, read_traces

__all__ = [
    "KERNELS",
    "Linkage",
    "Network",
    "RiskReport",
    "Traces",
    "compare_networks",
    "count_graphs",
    "group_by_shape",
    "link",
    "make_network",
    "read_traces",
    "report",
    "simulate",
]
