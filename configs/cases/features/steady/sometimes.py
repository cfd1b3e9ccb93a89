"""Run the engineer, and let every fourth repetition forget its tool calls."""

import os
import sys
from pathlib import Path

engineer = str(Path(__file__).parents[1] / "engineer.py")
repetition = int(sys.argv[1].rsplit("/", 1)[1].partition("-")[0])
os.execv(sys.executable, [sys.executable, engineer, *(["--broken"] if repetition % 4 == 0 else [])])
