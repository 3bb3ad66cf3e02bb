"""DP-PSVI by noisy gradient steps (method id ``dp-psvi``)."""
