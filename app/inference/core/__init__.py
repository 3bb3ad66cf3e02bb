"""Contracts of the pure core: facts, plans, queries, releases, models, methods, designs and priors."""
