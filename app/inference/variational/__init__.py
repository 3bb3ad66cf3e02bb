"""Mean-field variational inference from noised scores: what :mod:`app.inference.methods.dp_vi` is made of."""
