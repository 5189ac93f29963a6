# A server of models: docker build -t seqloom . ; then, with models in ./models,
#   docker run --rm -p 127.0.0.1:8000:8000 -e SEQLOOM_TOKEN=... -v ./models:/models:ro seqloom /models/NAME
# Without torch (counted models and extractive summaries): --build-arg EXTRAS=serve
FROM python:3.12-slim AS build
ARG EXTRAS=serve,neural
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN python -m venv /opt/seqloom \
 && /opt/seqloom/bin/pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" ".[$EXTRAS]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home seqloom
COPY --from=build /opt/seqloom /opt/seqloom
ENV PATH=/opt/seqloom/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/home/seqloom/.cache
USER seqloom
# What is compiled on first use is compiled now.
RUN printf 'A cat sat. A dog ran by. The cat saw the dog.' | seqloom summarize --sentences 1
EXPOSE 8000
# SIGTERM, which `docker stop` sends, lets running requests end.
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready')"]
ENTRYPOINT ["seqloom", "serve", "--host", "0.0.0.0", "--port", "8000"]
