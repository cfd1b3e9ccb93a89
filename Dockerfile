# clawtrace in a container: docker build -t clawtrace . && docker run --rm --user "$(id -u)" -v "$PWD:/work" clawtrace eval --suite smoke
# To judge what other containers export, run `clawtrace serve` in it (docs/sidecar.md).
# The base is pinned; `docker buildx imagetools inspect python:3.13-slim` prints the digest of the newest.
FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN pip wheel --no-cache-dir --require-hashes --wheel-dir /wheels -r requirements.lock
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels clawtrace-eval && rm -r /wheels \
  && useradd --create-home --uid 1000 clawtrace && mkdir /work && chown clawtrace /work
USER clawtrace
WORKDIR /work
EXPOSE 4317 4318
ENTRYPOINT ["clawtrace"]
