# One image for all roles: `corevaultd up` (set COREVAULT_BEHIND_TLS=1), `corevaultd api`, `corevault-worker`.
# The health check of each role is in docker-compose.yml.
# The tag follows security fixes; pin it with --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim

# The packages of the service's lock file, with verified hashes. The environment has no pip, so nothing can be installed
# at run time.
FROM ${PYTHON_IMAGE} AS locked
WORKDIR /src
COPY requirements-service.lock ./
RUN python -m venv --without-pip /opt/corevault \
 && pip --python /opt/corevault/bin/python install --no-cache-dir --require-hashes --requirement requirements-service.lock

# The project's code, in /made with the paths that it has in the final image.
FROM locked AS made
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip --python /opt/corevault/bin/python install --no-cache-dir --no-deps --no-build-isolation --root /made .

# The packages of the lock file without the build tools.
FROM locked AS packages
RUN pip --python /opt/corevault/bin/python uninstall --yes hatchling pathspec pluggy tomlkit trove-classifiers

# The documentation site. Its packages stay in this stage.
FROM ${PYTHON_IMAGE} AS guide
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/guide \
 && /opt/guide/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md LICENSE CONTRIBUTING.md CHANGELOG.md ./
COPY app app
COPY workers workers
COPY migrations migrations
COPY client client
COPY tools tools
COPY docs docs
RUN /opt/guide/bin/pip install --no-cache-dir --no-deps --no-build-isolation --editable . --editable client \
 && /opt/guide/bin/python -m tools.guide docs/_build/source \
 && /opt/guide/bin/python -m sphinx -q -n -W --keep-going -c docs docs/_build/source /guide \
 && /opt/guide/bin/python -m tools.guide.check /guide

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="corevault-server" \
      org.opencontainers.image.description="Differentially private Bayesian pseudocoresets as a service" \
      org.opencontainers.image.licenses="MIT"
# Two users: the API cannot read the files of the workers. Both share files through their group.
# A new volume takes owner and mode from its mount point.
RUN groupadd --gid 10000 corevault \
 && useradd --no-create-home --uid 10001 --gid corevault api \
 && useradd --no-create-home --uid 10002 --gid corevault worker \
 && install -d -o api -g corevault -m 2770 /areas/incoming /areas/wrapped-keys \
 && install -d -o worker -g corevault -m 2750 /areas/released /areas/mark /api-keys \
 && install -d -o worker -g corevault -m 0700 /areas/vault /keys \
 && install -d -o api -g corevault -m 0700 /data \
 && pip uninstall --yes --root-user-action ignore setuptools wheel pip
# First the large layer, which changes with the lock file, then the small one, which changes with the code.
COPY --from=packages /opt/corevault /opt/corevault
COPY --from=guide /guide /opt/corevault-guide
COPY --from=made /made/opt/corevault /opt/corevault
ENV PATH=/opt/corevault/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    OPENBLAS_NUM_THREADS=1 \
    COREVAULT_DATA_DIR=/data \
    COREVAULT_GUIDE_DIR=/opt/corevault-guide
USER 10001:10000
WORKDIR /data
VOLUME /data
EXPOSE 8000
CMD ["corevaultd", "up", "--host", "0.0.0.0", "--data-dir", "/data", "--bootstrap-key", "/data/admin.key"]
