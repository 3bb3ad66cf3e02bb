"""Private weights of declared groups (method id ``dp-groups``).

- ``method``: plan, the one query, and the clipping norm.
- ``laws``: the belief that a request states, and draws from it.
- ``weighing``: weights from the noised answer, with its noise taken out.
- ``state``: the state of a run.
"""
