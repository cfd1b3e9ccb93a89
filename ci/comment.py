"""Write what `clawtrace report --to comment=FILE` wrote as a comment on the pull request that a GitHub workflow runs for.

The comment begins with a hidden mark, by which the next push finds and replaces it. Standard library only; the address of the API,
the repository and the event are in the variables that each workflow has; the token is in `GH_TOKEN`.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

_MOST_PAGES = 30


def _ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Authorization": f"Bearer {os.environ['GH_TOKEN']}", "Accept": "application/vnd.github+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _earlier(number: int, mark: str) -> list[int]:
    """Return the comments that begin with the mark, the newest first."""
    found: list[int] = []
    for page in range(1, _MOST_PAGES + 1):
        comments = _ask("GET", f"issues/{number}/comments?per_page=100&page={page}")
        found += [one["id"] for one in comments if (one["body"] or "").startswith(mark)]
        if len(comments) < 100:
            break
    return found[::-1]


def _replaced(comment: int, body: str) -> bool:
    """Replace a comment; return False where it is of an author whose comments the token may not edit, or is gone."""
    try:
        _ask("PATCH", f"issues/comments/{comment}", {"body": body})
    except urllib.error.HTTPError as error:
        if error.code in (403, 404):
            return False
        raise
    return True


def _body(file: Path) -> str:
    """Return the mark, what was written, or that nothing was, and a link to the workflow run."""
    mark = quote(f"{os.environ.get('DIRECTORY', '.')} {os.environ.get('SUITE', '')}")
    text = "### 💥 Nothing was judged\nA file or a flag is wrong: see the workflow run.\n"
    if file.is_file():
        text = file.read_text("utf-8")
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    run = f"{server}/{os.environ['GITHUB_REPOSITORY']}/actions/runs/{os.environ['GITHUB_RUN_ID']}"
    return f"<!-- clawtrace {mark} -->\n{text}\n[Workflow run]({run})\n"


def main(file: str) -> None:
    """Replace the comment of an earlier push, or write the first."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    if number is None:
        sys.stdout.write("This workflow does not run for a pull request: there is nothing to comment on.\n")
        return
    body = _body(Path(file))
    try:
        if not any(_replaced(one, body) for one in _earlier(number, body.partition("\n")[0])):
            _ask("POST", f"issues/{number}/comments", {"body": body})
    except OSError as error:
        sys.stdout.write(
            f"::warning title=clawtrace::The comment was not written ({error}). It needs `permissions: "
            "{pull-requests: write}`, which pull requests from forks do not get. The step's summary has the results.\n"
        )


if __name__ == "__main__":
    main(sys.argv[1])
