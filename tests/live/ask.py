"""Sends one message to an agent that already runs, and waits until one that restarts is there again.

Argument: its address. It is told what a runner tells: TRACEPARENT, CLAWTRACE_MESSAGE, CLAWTRACE_SESSION_ID.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

told = {"say": os.environ["CLAWTRACE_MESSAGE"], "session": os.environ["CLAWTRACE_SESSION_ID"]}
headers = {"content-type": "application/json", "traceparent": os.environ["TRACEPARENT"]}
request = urllib.request.Request(sys.argv[1], json.dumps(told).encode(), headers)
end = time.monotonic() + 60
while True:
    try:
        print(urllib.request.urlopen(request, timeout=60).read().decode())
        break
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > end:
            raise
        time.sleep(0.02)
