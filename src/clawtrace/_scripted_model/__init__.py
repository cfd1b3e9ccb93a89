"""The parts of the scripted model server; its public face is `clawtrace.testing`."""
