"""OTLP in, raw rows out: decode, redact, decide the run, commit, acknowledge; and know when a run is closed.

Start-up matters, so this package imports nothing by itself: `clawtrace.receiver.receiver` brings the servers,
`clawtrace.receiver.recordings.recording` reads files without them.
"""
