"""The canary: what a runtime really does, asked of the program itself, of its fake, and of what the reference assumes.

A *claim* is one measurable statement about a runtime. A *probe* runs a program once or a few times and answers several
claims. Observations are plain values with nothing of the moment in them (ports, paths, times), so that those of two
programs, or of two versions, can be compared.
"""
