"""The method ``dp-psvi-surrogate``: a private pseudocoreset from one belief about the rows.

A run asks a fixed plan of noised queries. It never sees a row, only answers and declared facts. The modules, in the
order in which a run uses them:

- ``method``: the method's protocol (plan, init, step, finish); start reading here.
- ``tuning``: the numbers that were chosen on tables. ``schedule``: regimes and shares of the budget.
- ``planning``: the plan and its texts.
- ``state``: the three states of a run.
- ``openings``: the first queries: lengths of rows, then means, squares and tails of columns.
- ``moments``: units and clipping norms from lengths, moments of columns, and declared facts about them.
- ``column_laws``: a posterior over marginal laws for each column, and draws from it.
- ``rows``: the belief: a number of rows, and correlated draws that represent them.
- ``rounds``: a round: a query for an information matrix, one for a score, and a step to the next parameter.
- ``information``: coordinates and metrics by information, design of a matrix query, and a filter of the answers.
- ``scores``: the part of scores that bounds leave, and the design of a score query.
- ``excess``: residuals that the model does not predict: where to cut them, and how to restore the rest.
- ``regression``: the posterior's mode from the scores, by generalised least squares.
- ``release``: points for the final belief, their error and their reliability.
"""
