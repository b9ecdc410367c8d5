"""Training a character model: documents, tokens, the loop, checkpoints and samples, each in a module of its own.

Start with `loop.py`. Nothing is imported here, so that `gradwalk --help` stays quick; `commands.py` is the
command line over it, and `moons.py` is micrograd's demo.
"""
