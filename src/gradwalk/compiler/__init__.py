"""Compiled functions: run once to record the scalar graph, roll it up into vector instructions, replay those.

The order of the files is the order of the data: `trace`, then the passes `dead_code`, `constants`, `subexpressions`,
`sums`, `softmaxes`, `signs`, `levels`, `grouping`, `matrices`, `sources`, `holes`, `layout`, then a `program`, run by
the native executor or by `interpret`.
"""
