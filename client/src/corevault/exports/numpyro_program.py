"""NumPyro models of weighted pseudopoints."""

from collections.abc import Callable

from corevault._arguments import import_extra
from corevault.exports.density import Operations, make_log_density
from corevault.exports.whitening import Whitening
from corevault.weighted_model import WeightedModel


def make_numpyro_model(model: WeightedModel, whitening: Whitening) -> Callable[[], None]:
    """A model function without arguments; see ``Pseudocoreset.numpyro_model``."""
    numpyro = import_extra("numpyro", "numpyro", "for its models")
    jnp = import_extra("jax.numpy", "numpyro", "for NumPyro models")
    special = import_extra("jax.scipy.special", "numpyro", "for NumPyro models")
    distributions = numpyro.distributions
    centre, root, noise_root = (jnp.asarray(each) for each in (whitening.centre, whitening.root, whitening.noise_root))
    log_density = make_log_density(
        model,
        Operations(
            array=jnp.asarray,
            exp=jnp.exp,
            log1p=jnp.log1p,
            softplus=lambda x: jnp.logaddexp(0.0, x),
            log_ndtr=special.log_ndtr,
            log_sum_exp=lambda x: special.logsumexp(jnp.pad(x, ((0, 0), (1, 0))), axis=1),
        ),
    )
    free = distributions.ImproperUniform(distributions.constraints.real_vector, (), (len(model.names),))

    def released_model() -> None:
        theta = numpyro.deterministic("theta", centre + root @ numpyro.sample("z", free))
        numpyro.factor("log_density", log_density(theta))
        if noise_root.shape[1]:
            unit = distributions.Normal(0.0, 1.0).expand([noise_root.shape[1]]).to_event(1)
            theta = theta + noise_root @ numpyro.sample("noise", unit)
        numpyro.deterministic("coefficients", theta)

    return released_model
