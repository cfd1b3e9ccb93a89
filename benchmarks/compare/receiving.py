"""Receiving: spans per second of the server's CPU until they are in its database, memory, and what a kill loses."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path

from ingest import LOADED, http_sender, load, request
from kills import SPANS, Load, produce
from peers import Peer
from serving import TICKS, NotRunError, Served

LOADS = tuple((spans, clients) for spans in (512, 5) for clients in (1, 4, 32))
WARM_UP = 100
MOST_SECONDS = 60.0
"""CPU time of a server above which a load is left out."""
IDLE_SHARE = 0.05
"""Of a core: what a server that has nothing to do may use."""
WAIT_SECONDS = 60.0
"""How long the next of the rows that were acknowledged may take to be in the database."""
FEWEST = 200
"""Acknowledgements before a kill."""

Figures = dict[str, list[float]]


def receive(server: Served, times: int, seconds: float) -> Figures:
    """Measure each load `times` times, each of so much work that it takes the server so many seconds of CPU.

    A load of one request a client, or 100 spans, comes first: it warms up and says how much that is. Where it takes the server longer than
    that already, it is the figure.
    """
    LOADED[0], total = 1, 0
    extra = server.attributes()
    figures: Figures = {"memory, idle (MB)": [server.usage()[1]]}

    def loaded(requests: int) -> tuple[float, float]:
        """Send so many requests, or one a client; return spans and CPU seconds until they are in the database."""
        address = f"http://{server.address}"
        senders = [http_sender(address, "application/x-protobuf", server.server.headers) for _ in range(clients)]
        stored, before = server.count(), server.usage()[0]
        sent = spans * load(senders, template, lambda so_far: so_far >= requests, as_json=False)
        if not sent:
            raise NotRunError("it acknowledged nothing")
        wait_for(server, stored + sent)
        return sent, max(server.usage()[0] - before, 1 / TICKS)

    cost = 0.0
    for spans, clients in LOADS:
        if cost * spans * clients > MOST_SECONDS:  # one request a client, as dear as those of the load before
            continue
        template = request(spans, as_json=False, extra=extra)
        sent, cpu = loaded(max(1, WARM_UP // spans))
        done = [(sent, cpu)]
        if cpu < seconds:
            done += [loaded(round(sent / cpu * seconds / spans)) for _ in range(times)]
            del done[0]
            total += round(sent)
        total += round(sum(count for count, _ in done))
        cost = min(used / count for count, used in done)
        figures[f"receiving, {spans} × {clients} (spans/CPU s)"] = [count / used for count, used in done]
    figures["spans received"], figures["memory after them (MB)"] = [total], [server.usage()[1]]
    return figures


def wait_for(server: Served, stored: int) -> None:
    """Wait until so many spans are in the database; of a peer without one, until it does nothing more.

    Raises:
        NotRunError: no more of them come.
    """
    seen, last, used = -1, time.monotonic(), -1.0
    while not server.server.database and (busy := server.usage()[0]) - used > IDLE_SHARE:
        used = busy
        time.sleep(1)
    while server.server.database and (now := server.count()) < stored:
        if now > seen:
            seen, last = now, time.monotonic()
        if time.monotonic() - last > WAIT_SECONDS:
            raise NotRunError(f"{stored - now} acknowledged spans did not come into its database in {WAIT_SECONDS:g} s")
        time.sleep(0.1)


def kill(peer: Peer, folder: Path, server: Served, times: int) -> Figures:
    """Kill a server under the load of four clients, requests of 5 spans; return what was acknowledged, and lost of it."""
    acknowledged = lost = 0
    started = []
    for turn in range(times):
        if turn:
            server = Served(peer, folder)
            started.append(server.started)
        shared = Load(server.server.headers)
        shared.address = server.address
        template = request(SPANS, as_json=False, extra=server.attributes())
        producers = [(place, template, shared, LOADED[0]) for place in range(4)]
        LOADED[0] += 1 << 26  # no two requests to one database have the same number
        threads = [threading.Thread(target=produce, args=given, daemon=True) for given in producers]
        for thread in threads:
            thread.start()
        shared.up.set()
        shared.wait_for_more(FEWEST)
        server.kill()
        shared.over.set()
        for thread in threads:
            thread.join()
        kept = server.kept() if server.server.database else {}
        acknowledged += SPANS * len(shared.acknowledged)
        lost += sum(SPANS - min(kept.get(number, 0), SPANS) for number in shared.acknowledged)
    return {
        "lost of acknowledged at kill -9 (%)": [100 * lost / acknowledged],
        "start of the server, again (s, wall)": started or [math.nan],
    }
