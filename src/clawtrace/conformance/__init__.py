"""Whether an instrumentation tells what happened: scenarios that a scripted model plays, and facts compared with their truth."""
