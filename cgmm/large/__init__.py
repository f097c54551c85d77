"""Support for large data: blocks that fit into the cache, threads, memmaps, Dask, and batches.

A fit uses two methods of its data, wherever they are stored. ``each`` maps a function over blocks
of points, and ``gather`` also sorts the rows of the results in the order of the points. Arrays in
memory and on disk become ``Blocks`` (:mod:`cgmm.large.blocks`), a dask.array becomes a ``Cluster``
(:mod:`cgmm.large.chunks`). The book's page on large data measures both.
"""
