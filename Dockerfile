# One image for every role: `corevaultd up` (say COREVAULT_BEHIND_TLS=1), `corevaultd api`, `corevault-worker`.
# The first stage fetches what the service's lock names, checked by its hashes; the second takes only the outcome.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements-service.lock ./
RUN python -m venv /opt/corevault \
 && /opt/corevault/bin/pip install --no-cache-dir --require-hashes --requirement requirements-service.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY workers workers
COPY migrations migrations
RUN /opt/corevault/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/corevault/bin/pip uninstall --yes hatchling pip

FROM python:3.11-slim
# Two users, so that what only workers may read is closed to the API; their group shares what both need.
# A new volume takes owner and mode of the folder that it is mounted on.
RUN groupadd --gid 10000 corevault \
 && useradd --no-create-home --uid 10001 --gid corevault api \
 && useradd --no-create-home --uid 10002 --gid corevault worker \
 && install -d -o api -g corevault -m 2770 /areas/incoming /areas/wrapped-keys \
 && install -d -o worker -g corevault -m 2750 /areas/released /areas/mark /api-keys \
 && install -d -o worker -g corevault -m 0700 /areas/vault /keys \
 && install -d -o api -g corevault -m 0700 /data
COPY --from=build /opt/corevault /opt/corevault
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
