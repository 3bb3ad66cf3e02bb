"""Post-processing of released or noised values: Laplace approximations, gradients, optimisers, diagnostics."""
