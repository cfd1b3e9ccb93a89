"""Run the engineer with a model that claims, in every fourth repetition, that the tests pass, and has run none."""

import os
import sys
from pathlib import Path

here = Path(__file__).parent
repetition = int(sys.argv[1].rsplit("/", 1)[1].partition("-")[0])
script = here / ("claims.yaml" if repetition % 4 == 0 else "script.yaml")
engineer = [sys.executable, str(here.parent / "engineer.py")]
os.execv(sys.executable, [sys.executable, "-m", "clawtrace", "model-server", str(script), "--", *engineer])
