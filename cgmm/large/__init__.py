"""Large tables: blocks that fit the cache, threads, memory maps, dask.array, and batches in turn.

A fit asks two things of its points, wherever they lie: ``each`` maps a function over blocks of
them, and ``gather`` puts rows of results in the order of the points.
``Blocks`` of :mod:`cgmm.large.blocks` do this for arrays in memory and on disk,
``Cluster`` of :mod:`cgmm.large.chunks` for a dask.array.
The book's page on large data measures both.
"""
