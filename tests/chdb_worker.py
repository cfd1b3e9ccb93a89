"""A ClickHouse engine (chDB) in a separate process: one JSON command a line on stdin, one JSON answer a line on stdout.

Commands: ``{"statements": [sql, …]}`` and ``{"query": sql, "params": {name: text}}``. An engine error is
``{"error": text}``. chDB allows one store a process, which is why tests talk to it through a pipe.
"""

import json
import sys
import tempfile

from chdb import session

SETTINGS = "SET join_use_nulls = 1, aggregate_functions_null_for_empty = 1, output_format_json_quote_64bit_integers = 0"


def main() -> None:
    """Serve commands until stdin ends."""
    with tempfile.TemporaryDirectory() as folder:
        store = session.Session(folder)
        store.query(SETTINGS)
        for line in sys.stdin:
            command = json.loads(line)
            try:
                answer = {}
                for statement in command.get("statements", ()):
                    store.query(statement)
                if "query" in command:
                    answer = json.loads(str(store.query(command["query"], "JSONCompact", params=command["params"])))
            except Exception as error:
                answer = {"error": str(error)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
        store.close()


if __name__ == "__main__":
    main()
