# A server of models: docker build -t seqloom . ; then, with models in ./models,
#   docker run --rm -p 127.0.0.1:8000:8000 -e SEQLOOM_TOKEN=... -v ./models:/models:ro seqloom /models/NAME
# Inside, it listens on all addresses, and so it needs the token; requests bring it.
# Without torch (counted models and extractive summaries): --build-arg EXTRAS=serve
FROM python:3.12-slim AS build
ARG EXTRAS=serve,neural
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
# What is compiled on first use is kept by the times of its sources, and layers keep whole seconds.
# (Some packages hold files that do not compile, on purpose.)
RUN python -m venv /opt/seqloom \
 && /opt/seqloom/bin/pip install --no-cache-dir --no-compile --extra-index-url "$TORCH_INDEX" ".[$EXTRAS]" \
 && find /opt/seqloom -name '*.py' -exec touch -d '2026-01-01 00:00:00' {} + \
 && (/opt/seqloom/bin/python -m compileall -q /opt/seqloom/lib || true)

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home seqloom
COPY --from=build /opt/seqloom /opt/seqloom
ENV PATH=/opt/seqloom/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/home/seqloom/.cache
USER seqloom
WORKDIR /home/seqloom
# Load every shipped model once, so that all that is compiled on first use is compiled now.
RUN python -c "from importlib.util import find_spec; \
from seqloom.serving.models import find_served; \
from seqloom.serving.worker import load_all; \
names = [] if find_spec('torch') else ['english-ngram', 'textrank']; \
load_all([model.to_dict() for model in find_served(names)])"
EXPOSE 8000
# SIGTERM, which `docker stop` sends, lets running requests end; they may take 30 s: --stop-timeout.
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s --timeout=5s CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=4); c.request('GET', '/ready'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["seqloom", "serve", "--host", "0.0.0.0", "--port", "8000"]
