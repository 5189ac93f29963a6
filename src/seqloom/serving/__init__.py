"""Models over HTTP: an app process that never computes, and worker processes that hold the models.

```
client --HTTP--> app (FastAPI, uvicorn) --batches over a socket--> worker (the models, one thread)
                 limits, queue, metrics <----------answers--------- worker
```

`settings` has what may be set, `requests` and `answers` what is asked and answered, `jobs` how a
model answers, `worker` and `framing` the other process, `batching` and `service` the queue and who
works on it, `guard`, `connections` and `app` the HTTP side, `server` how all of it runs and ends.
"""

from __future__ import annotations
