"""A receiver with a store in a separate process, to be killed or starved.

Arguments: the store's file; the largest size of a file in bytes, 0 for any. Prints its endpoints as JSON. A line on
standard input lifts the limit; the end of standard input stops it.
"""

from __future__ import annotations

import json
import resource
import signal
import sys

from clawtrace.receiver.receiver import Receiver
from clawtrace.store.duckdb import DuckStore

path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = DuckStore(path)
with Receiver(store, environ={}) as receiver:
    print(json.dumps({"grpc": receiver.endpoints.grpc, "http": receiver.endpoints.http}), flush=True)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for _ in sys.stdin:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("lifted", flush=True)
store.close()
