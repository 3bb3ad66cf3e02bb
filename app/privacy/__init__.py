"""Privacy accounting: events, their Rényi cost, calibration of the noise, and the privacy filter. Pure functions."""
