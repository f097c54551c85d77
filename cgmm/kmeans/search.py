"""The search for an assignment that breaks no cannot-link. Chapter 11."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from cgmm.inference import adjacency, colour_nodes, list_colouring
from cgmm.inference.feasible import Search
from cgmm.kmeans.branch_and_bound import BOUNDED_NODES
from cgmm.kmeans.loop import Hint, Rng, indicators
from cgmm.network import Graph, NetworkError, components
from cgmm.numerics import IntArray

# Nodes from which a clique is grown.
CLIQUE_STARTS = 50

# Steps of the first search for a colouring; each restart has twice as many.
FIRST_STEPS = 500
# Steps of a search for an assignment in which no relation is broken, unless the user says more.
MAX_SEARCH = 1_000_000


class SearchBudgetError(RuntimeError):
    """The search for an assignment that breaks no cannot-link ran out of steps.

    Whether there is one is not known: this is no verdict on the relations. See ``max_search``.
    """


# ---------------------------------------------------------------------------- feasibility


def _peel(matrix: sparse.csr_array, n_clusters: int) -> tuple[IntArray, list[int]]:
    """The core in which every node has K neighbours or more, and the others as they went."""
    degrees = np.diff(matrix.indptr)
    peeled = np.flatnonzero(degrees < n_clusters).tolist()
    gone = degrees < n_clusters
    for j in peeled:
        for other in matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]].tolist():
            degrees[other] -= 1
            if not gone[other] and degrees[other] < n_clusters:
                gone[other] = True
                peeled.append(other)
    return np.flatnonzero(~gone), peeled


class Colourer:
    """A search for an assignment that breaks no cannot-link, and the steps that it has left."""

    def __init__(self, n_clusters: int, max_search: int, rng: Rng, hint: Hint | None):
        self.n_clusters, self.max_search, self.rng, self.hint = n_clusters, max_search, rng, hint
        self.steps_left = max_search

    def assign(self, graph: Graph) -> IntArray:
        """(M,) clusters: greedily, and by search in the components where that needs too many."""
        hard = Graph(graph.n_nodes, graph.edges, np.ones(len(graph.edges)))
        z, of_node = colour_nodes(hard), components(hard)
        short = np.unique(of_node[z >= self.n_clusters])
        if len(short):
            matrix = edges_only(hard)
            hint = None if self.hint is None else self.hint()
            for c in short:
                nodes = np.flatnonzero(of_node == c)
                near = None if hint is None else hint[nodes]
                z[nodes] = self._colour_component(matrix[nodes][:, nodes], nodes, near)
        return z

    def _colour_component(
        self, matrix: sparse.csr_array, nodes: IntArray, near: IntArray | None
    ) -> IntArray:
        """A colouring of one component.

        A node with fewer than K neighbours always finds a colour once they have theirs. Taking
        such nodes away, again and again, leaves the core that the search is about.
        """
        core, peeled = _peel(matrix, self.n_clusters)
        colours = np.full(len(nodes), -1)
        if len(core):
            near = near if near is None else near[core]
            colours[core] = self._colour_core(matrix[core][:, core], nodes[core], near)
        for j in reversed(peeled):
            taken = colours[_neighbours_of(matrix, j)]
            colours[j] = np.setdiff1d(np.arange(self.n_clusters), taken)[0]
        return colours

    def _colour_core(
        self, matrix: sparse.csr_array, names: IntArray, near: IntArray | None
    ) -> IntArray:
        """The colours, or an error that says whether there are none or none was found."""
        clique = _clique(matrix)
        if len(clique) > self.n_clusters:
            raise NetworkError(
                "{nodes} are mutually cannot-linked, so they need a cluster each, but there are "
                f"only {self.n_clusters} clusters: no assignment is possible. Remove a cannot-link "
                f"between them, or ask for {len(clique)} clusters or more.",
                np.sort(names[clique]),
            )
        found = self._take_turns(matrix, clique, near)
        if found.colours is not None:
            return found.colours
        if not found.complete:
            raise SearchBudgetError(
                f"the search for an assignment to {self.n_clusters} clusters that breaks no "
                f"cannot-link stopped after {self.max_search} steps: whether there is one is not "
                f"known. It is about {len(names)} nodes, among them {names[:8].tolist()}. Raise "
                "max_search, use more clusters, or soft relations (PCKMeans)."
            )
        raise NetworkError(
            "{nodes} are tied by cannot-links that no assignment to "
            f"{self.n_clusters} clusters can all honour: that is proved. Remove a cannot-link "
            "between them, or use more clusters.",
            np.sort(names[self._to_blame(matrix)]),
        )

    def _take_turns(
        self, matrix: sparse.csr_array, clique: IntArray, near: IntArray | None
    ) -> Search:
        """By turns backtracking, which can prove that there is none, and a walk, which cannot.

        Large degrees come first, then random orders, and every other walk starts near the hint;
        each turn has twice as many steps as the one before.
        """
        order = np.argsort(-np.diff(matrix.indptr), kind="stable")
        n_steps, start = len(order) + FIRST_STEPS, near
        while self.steps_left > 0:
            n_steps = min(n_steps, self.steps_left)
            found = self._attempt(matrix, clique, order, n_steps)
            self.steps_left -= len(order) if found.complete else n_steps
            if not found.complete:
                if start is None:
                    start = self.rng.randint(self.n_clusters, size=len(order))
                n_walk = min(n_steps, max(self.steps_left, 0))
                found, used = tabu_walk(matrix, start, self.n_clusters, n_walk, self.rng)
                self.steps_left -= used
                start = near if start is not near else None
            if found.complete:
                return found
            order, n_steps = self.rng.permutation(len(order)), 2 * n_steps
        return Search(None, complete=False)

    def _attempt(
        self, matrix: sparse.csr_array, clique: IntArray, order: IntArray, max_steps: int
    ) -> Search:
        """One search; the clique's colours are given, as any other naming would do as well."""
        allowed = np.ones((len(order), self.n_clusters), dtype=bool)
        allowed[clique] = np.eye(self.n_clusters, dtype=bool)[: len(clique)]
        found = list_colouring(matrix[order][:, order], allowed[order], max_steps=max_steps)
        if found.colours is None:
            return found
        colours = np.empty(len(order), dtype=np.intp)
        colours[order] = found.colours
        return Search(colours, complete=True)

    def _to_blame(self, matrix: sparse.csr_array) -> IntArray:
        """Few nodes that cannot be coloured: leave out what is not needed for that."""
        blamed = np.arange(matrix.shape[0])
        for j in range(matrix.shape[0] if matrix.shape[0] <= BOUNDED_NODES else 0):
            rest = blamed[blamed != j]
            rest = rest[_peel(matrix[rest][:, rest], self.n_clusters)[0]]
            if j not in blamed or len(rest) == 0:
                continue
            part = matrix[rest][:, rest]
            order, n_steps = np.arange(len(rest)), len(rest) + FIRST_STEPS
            found = self._attempt(part, _clique(part)[: self.n_clusters], order, n_steps)
            if found.complete and found.colours is None:
                blamed = rest
        return blamed


def tabu_walk(
    matrix: sparse.csr_array, start: IntArray, n_colours: int, n_steps: int, rng: Rng
) -> tuple[Search, int]:
    """Repair a colouring move by move; the colouring, if one is found, and the steps taken.

    Hertz and de Werra (1987): the move, of a node in conflict, that leaves the fewest conflicts,
    where what a node has just left is forbidden to it for a while.
    """
    everyone, z = np.arange(matrix.shape[0]), start.copy()
    # [j, k]: neighbours of j that have colour k
    counts = (matrix @ indicators(z, n_colours)).astype(np.intp)
    forbidden_until = np.zeros(counts.shape, dtype=np.intp)
    fewest = np.inf
    for step in range(n_steps):
        own = counts[everyone, z]
        wrong = np.flatnonzero(own)
        if len(wrong) == 0:
            return Search(z, complete=True), step
        n_conflicts = own.sum() // 2
        fewest = min(fewest, n_conflicts)
        # What moves change, with a lot among equals; forbidden ones must lead to a new best.
        change = counts[wrong] - own[wrong, None] + 0.5 * rng.uniform(size=(len(wrong), n_colours))
        forbidden = forbidden_until[wrong] > step
        change[forbidden & (np.floor(change) + n_conflicts >= fewest)] += len(everyone) ** 2
        change[np.arange(len(wrong)), z[wrong]] = np.inf
        row, k = np.unravel_index(change.argmin(), change.shape)
        j = wrong[row]
        neighbours = _neighbours_of(matrix, j)
        counts[neighbours, z[j]] -= 1
        counts[neighbours, k] += 1
        forbidden_until[j, z[j]] = step + 0.6 * n_conflicts + rng.randint(10)
        z[j] = k
    return Search(None, complete=False), n_steps


def _clique(matrix: sparse.csr_array) -> IntArray:
    """A large set of mutual neighbours, grown greedily from the nodes of largest degree."""
    degrees = np.diff(matrix.indptr)
    largest: list[int] = []
    for start in np.argsort(-degrees, kind="stable")[:CLIQUE_STARTS].tolist():
        clique, candidates = [start], _neighbours_of(matrix, start)
        while len(candidates):
            inside = [np.isin(_neighbours_of(matrix, j), candidates).sum() for j in candidates]
            clique.append(int(candidates[np.argmax(inside)]))
            candidates = np.intersect1d(candidates, _neighbours_of(matrix, clique[-1]))
        largest = max(largest, clique, key=len)
    return np.array(largest, dtype=np.intp)


def _neighbours_of(matrix: sparse.csr_array, j: int) -> IntArray:
    return matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]


def edges_only(graph: Graph) -> sparse.csr_array:
    """The symmetric matrix of ones where there is an edge."""
    return adjacency(Graph(graph.n_nodes, graph.edges, np.ones(len(graph.edges))))
