# One image for every role: `corevaultd up` (say COREVAULT_BEHIND_TLS=1), `corevaultd api`, `corevault-worker`.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/corevault \
 && /opt/corevault/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY app app
COPY workers workers
COPY migrations migrations
RUN /opt/corevault/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 corevault && install -d -o corevault -m 0700 /data
COPY --from=build /opt/corevault /opt/corevault
ENV PATH=/opt/corevault/bin:$PATH OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 COREVAULT_DATA_DIR=/data
USER corevault
WORKDIR /data
VOLUME /data
EXPOSE 8000
CMD ["corevaultd", "up", "--host", "0.0.0.0", "--data-dir", "/data", "--bootstrap-key", "/data/admin.key"]
