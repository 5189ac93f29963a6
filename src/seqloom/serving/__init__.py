"""Models over HTTP: an app process that never computes, and worker processes that hold the models.

```
client --HTTP--> app (FastAPI, uvicorn) --batches over a socket--> worker (a fork of the template)
                 limits, queue, metrics <----------answers--------- worker
                                       --------"fork"----------> template (the models, one thread)
```

`settings` has what may be set, `requests` and `answers` what is asked and answered, `jobs` how a
model answers and `readiness` what it is asked first, `worker` and `framing` the other process,
`processes` and `workers` how the app starts and ends it, `batching` and `pace` the queue and who
may wait how long, `service` who works on it, `guard`, `connections` and `app` the HTTP side,
`server` how all of it runs and ends.
"""

from __future__ import annotations
