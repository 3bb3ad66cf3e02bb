# One image for every role: `corevaultd up` (say COREVAULT_BEHIND_TLS=1), `corevaultd api`, `corevault-worker`.
# How each role is watched is said where roles are given, in docker-compose.yml.
# The tag moves with fixes; --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:... holds it still.
ARG PYTHON_IMAGE=python:3.11-slim

# What the service's lock names, checked by its hashes. No pip of its own: what needs none cannot be made to install.
FROM ${PYTHON_IMAGE} AS locked
WORKDIR /src
COPY requirements-service.lock ./
RUN python -m venv --without-pip /opt/corevault \
 && pip --python /opt/corevault/bin/python install --no-cache-dir --require-hashes --requirement requirements-service.lock

# Our own code, below /made as it will lie below /.
FROM locked AS made
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY workers workers
COPY migrations migrations
RUN pip --python /opt/corevault/bin/python install --no-cache-dir --no-deps --no-build-isolation --root /made .

# The lock's packages without what only builds.
FROM locked AS packages
RUN pip --python /opt/corevault/bin/python uninstall --yes hatchling pathspec pluggy tomlkit trove-classifiers

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="corevault-server" \
      org.opencontainers.image.description="Differentially private Bayesian pseudocoresets as a service" \
      org.opencontainers.image.licenses="MIT"
# Two users, so that what only workers may read is closed to the API; their group shares what both need.
# A new volume takes owner and mode of the folder that it is mounted on.
RUN groupadd --gid 10000 corevault \
 && useradd --no-create-home --uid 10001 --gid corevault api \
 && useradd --no-create-home --uid 10002 --gid corevault worker \
 && install -d -o api -g corevault -m 2770 /areas/incoming /areas/wrapped-keys \
 && install -d -o worker -g corevault -m 2750 /areas/released /areas/mark /api-keys \
 && install -d -o worker -g corevault -m 0700 /areas/vault /keys \
 && install -d -o api -g corevault -m 0700 /data \
 && pip uninstall --yes --root-user-action ignore setuptools wheel pip
# Hundreds of MB that change with the lock, then a few that change with the code.
COPY --from=packages /opt/corevault /opt/corevault
COPY --from=made /made/opt/corevault /opt/corevault
ENV PATH=/opt/corevault/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    OPENBLAS_NUM_THREADS=1 \
    COREVAULT_DATA_DIR=/data
USER 10001:10000
WORKDIR /data
VOLUME /data
EXPOSE 8000
CMD ["corevaultd", "up", "--host", "0.0.0.0", "--data-dir", "/data", "--bootstrap-key", "/data/admin.key"]
