"""The contracts of the pure core: facts, plans, queries, releases, models and methods; design and priors."""
