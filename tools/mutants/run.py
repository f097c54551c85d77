"""Runs the tests of a module against mutants of it, each in a forked process of its own.

Importing the package and collecting its tests takes longer than most mutants live. So it is done
once, in one session of pytest that never runs a test itself: for each mutant it forks.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from .forks import Forks
from .table import ROOT, Mutant, Verdict, path_of, source

ENVIRONMENT = {
    # The same examples in each run, and threads that do not fight for cores.
    **dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"),
    "CI": "true",
    "MPLBACKEND": "agg",
}
PYTEST = [
    "-q", "-s", "--no-header", "--tb=no", "--doctest-modules", "--ignore-glob=*/conftest.py",
    "--continue-on-collection-errors", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "no:nbval", "--disable-warnings",
]  # fmt: skip
# Which tests guard a module, those that are likely to notice first; its doctests come before them.
# A module that others use is guarded by theirs, too, but only the quick ones are named.
TESTS: dict[str, list[str]] = {
    "numerics": ["numerics", "network", "gaussian", "side_information", "metrics"],
    "given": ["given", "rows", "misreadings", "bad_input", "side_information"],
    "network.classes": ["classes", "bad_input", "classifier"],
    "network.engine": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.errors": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.evidence": ["side_information", "bad_input", "em_side_information", "weights"],
    "network.graph": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.messages": ["network", "pairs", "clique", "inference", "auto", "junction_tree"],
    "network.misreadings": ["misreadings"],
    "network.relations": ["side_information", "bad_input", "em_side_information", "weights"],
    "network.rows": ["rows", "misreadings"],
    "network.side_information": ["side_information", "bad_input", "em_side_information", "weights"],
    "inference.arc_consistency": ["reductions", "arc_consistency", "belief_propagation"],
    "inference.assignment_search": ["best_assignment", "joint_labels"],
    "inference.auto": ["auto", "inference"],
    "inference.belief_propagation": ["belief_propagation", "tree_reweighted", "inference"],
    "inference.block_tree": ["cut_vertices"],
    "inference.best_assignment": ["best_assignment", "joint_labels"],
    "inference.clique": ["clique", "inference", "auto"],
    "inference.clique_tree": ["inference", "junction_tree"],
    "inference.colour_search": ["colour_search", "feasible", "gibbs", "cop_assignment"],
    "inference.colouring": ["colouring", "mean_field", "inference", "gibbs", "feasible"],
    "inference.composition": ["auto", "reductions", "inference"],
    "inference.contraction": ["inference", "contraction", "junction_tree"],
    "inference.contraction_rounds": ["inference", "contraction", "junction_tree"],
    "inference.convergence": ["convergence"],
    "inference.costs": ["cutset", "auto"],
    "inference.cut_vertices": ["cut_vertices"],
    "inference.cutset": ["cutset"],
    "inference.division": ["auto", "cutset", "inference"],
    "inference.elimination": ["inference", "junction_tree"],
    "inference.enumerate": ["inference", "pairs", "clique", "auto"],
    "inference.evidence_reduction": ["reductions", "auto"],
    "inference.exact": ["cutset", "auto"],
    "inference.exchange": ["exchange", "cop_assignment", "best_assignment"],
    "inference.feasible": ["feasible", "kmeans", "side_information"],
    "inference.gibbs": ["inference", "gibbs"],
    "inference.gibbs_sweeps": ["inference", "gibbs"],
    "inference.independent": ["inference", "auto", "em"],
    "inference.junction_tree": ["inference", "junction_tree"],
    "inference.mean_field": ["mean_field", "inference"],
    "inference.message_passing": ["belief_propagation", "tree_reweighted"],
    "inference.pair_sums": ["pair_tree", "diagnose"],
    "inference.pair_tree": ["pair_tree", "diagnose"],
    "inference.pairs": ["pairs", "inference", "auto"],
    "inference.peeling": ["peeling", "belief_propagation"],
    "inference.mirror": ["reductions", "cutset"],
    "inference.reduction": ["reductions", "auto"],
    "inference.tree_logs": ["inference", "junction_tree"],
    "inference.tree_products": ["inference", "junction_tree"],
    "inference.tree_reweighted": ["tree_reweighted", "inference"],
    "mixture.arranged": ["fold", "sample_weight", "constrained_mixture", "estimators"],
    "mixture.base": [
        "joint_labels",
        "categorical",
        "estimators",
        "bad_input",
        "classifier",
        "constrained_mixture",
    ],
    "mixture.bound": ["em_side_information", "em"],
    "mixture.categorical": ["categorical"],
    "mixture.categorical_mixture": [
        "bad_input",
        "estimators",
        "categorical",
        "classifier",
        "constrained_mixture",
        "guided_starts",
    ],
    "mixture.chunks": ["partitions"],
    "mixture.class_family": ["class_mixture"],
    "mixture.class_mixture": ["class_mixture"],
    "mixture.classifier": [
        "bad_input",
        "estimators",
        "categorical",
        "classifier",
        "constrained_mixture",
        "guided_starts",
        "class_mixture",
    ],
    "mixture.criteria": ["criteria", "estimators", "categorical"],
    "mixture.density": ["estimators", "bad_input", "categorical", "constrained_mixture"],
    "mixture.exponential_form": ["gaussian", "em", "em_side_information"],
    "mixture.gaussian": ["gaussian", "em", "bad_input"],
    "mixture.gaussian_checks": ["bad_input", "extremes"],
    "mixture.gaussian_mixture": [
        "bad_input",
        "estimators",
        "categorical",
        "classifier",
        "constrained_mixture",
        "guided_starts",
    ],
    "mixture.fold": ["fold", "sample_weight", "estimators"],
    "mixture.initialise": ["initialise", "guided_starts", "rca_start", "em"],
    "mixture.loop": ["em_side_information", "em"],
    "mixture.moments": ["gaussian", "em", "bad_input", "stepwise"],
    "mixture.partitions": ["partitions"],
    "mixture.pooling": ["gaussian", "em", "bad_input"],
    "mixture.matching": ["matching", "weights", "safe_weights", "em_side_information"],
    "mixture.mixing": ["joint_labels"],
    "mixture.predictions": ["predict_with_relations"],
    "mixture.prepare": [
        "joint_labels",
        "predict_with_relations",
        "safe_weights",
        "constrained_mixture",
        "estimators",
        "categorical",
    ],
    "mixture.prior": ["weights", "safe_weights", "em_side_information"],
    "mixture.ready": ["fold", "class_mixture"],
    "mixture.reports": ["safe_weights"],
    "mixture.runs": ["joint_labels", "kmeans", "estimators", "categorical", "constrained_mixture"],
    "mixture.seeding": ["initialise", "kmeans_seeds", "guided_starts", "rca_start", "em"],
    "mixture.stepwise": ["stepwise"],
    "mixture.threads": ["fold", "workers"],
    "mixture.tryouts": ["tryouts"],
    "mixture.weights": ["weights", "safe_weights", "em_side_information"],
    "kmeans.base": ["kmeans", "lloyd"],
    "kmeans.branch_and_bound": ["branch_and_bound", "cop_assignment"],
    "kmeans.cop_kmeans": ["kmeans"],
    "kmeans.cop_assignment": ["cop_assignment", "kmeans"],
    "kmeans.engine_assignment": ["engine_assignment", "pck_assignment"],
    "kmeans.loop": ["lloyd", "kmeans", "kmeans_limits", "pck_assignment"],
    "kmeans.pck_kmeans": ["pck_assignment", "kmeans"],
    "kmeans.pck_assignment": ["pck_assignment", "kmeans"],
    "kmeans.runs": ["lloyd", "kmeans"],
    "kmeans.seeds": ["kmeans_seeds", "kmeans_tryouts", "kmeans"],
    "metric_learning.chunklets": ["chunklets", "rca", "rca_theory", "rca_online", "rca_start"],
    "metric_learning.criteria": ["rca_theory"],
    "metric_learning.discriminant": ["discriminant", "rca", "rca_theory"],
    "metric_learning.linear_map": ["rca", "rca_online", "rca_start", "mmc"],
    "metric_learning.mmc": ["mmc", "mmc_ascent", "mmc_space"],
    "metric_learning.mmc_ascent": ["mmc_ascent", "mmc"],
    "metric_learning.mmc_distances": ["mmc_distances", "mmc"],
    "metric_learning.mmc_pairs": ["mmc_pairs", "mmc"],
    "metric_learning.mmc_space": ["mmc_space", "mmc_pairs", "mmc"],
    "metric_learning.online": ["rca_online", "rca"],
    "metric_learning.online_steps": ["online_steps", "rca_online"],
    "metric_learning.rca": ["rca", "rca_theory", "rca_start"],
    "metric_learning.start": ["rca_start"],
    "metric_learning.whiten": ["whiten", "rca", "rca_theory", "rca_online"],
    "metrics.calibration": ["calibration"],
    "metrics.matching": ["metrics"],
    "metrics.neighbours": ["metrics"],
    "metrics.paired": ["paired"],
    "metrics.pairs": ["metrics"],
    "scenarios.answers": ["scenarios"],
    "scenarios.chunklets": ["scenarios"],
    "scenarios.labels": ["scenarios"],
    "scenarios.relations": ["scenarios"],
    "decide.asking": ["asking"],
    "decide.choosing": ["choosing_by_answers"],
    "decide.entropy": ["answer_search"],
    "decide.honest": ["honest"],
    "decide.learning": ["learning"],
    "decide.neighbourhoods": ["asking"],
    "decide.search": ["answer_search"],
    "decide.witnesses": ["witnesses"],
    "decide.workers": ["answer_search"],
    "diagnose": ["diagnose"],
    "primer.chunklets": ["primer_mixtures"],
    "primer.cliques": ["primer_networks"],
    "primer.distances": ["primer_metrics"],
    "primer.evidence": ["primer_mixtures"],
    "primer.fitting": ["primer_mixtures"],
    "primer.kmeans": ["primer_kmeans"],
    "primer.mirrors": ["primer_networks"],
    "primer.mixtures": ["primer_mixtures"],
    "primer.networks": ["primer_networks"],
    "primer.normaliser": ["primer_networks"],
    "primer.orders": ["primer_networks"],
    "primer.practice": ["primer_mixtures"],
    "primer.questions": ["primer_questions"],
    "primer.reruns": ["primer_reruns"],
    "primer.preferences": ["primer_networks"],
    "primer.rulers": ["primer_metrics"],
    "primer.sampling": ["primer_sampling"],
    "primer.variational": ["primer_sampling"],
    "primer.witnesses": ["primer_witnesses"],
}


def tests_of(mutant: Mutant) -> list[str]:
    """Files of the tests that guard the mutated module; one test where it is known to suffice."""
    if mutant.quick:
        return [mutant.quick]
    doctests = path_of(mutant.module).relative_to(ROOT).as_posix()
    return [doctests, *(test_path(name) for name in TESTS[mutant.module])]


def test_path(name: str) -> str:
    """Where the test module of that name lies, below the project."""
    (path,) = (ROOT / "tests").rglob(f"test_{name}.py")
    return path.relative_to(ROOT).as_posix()


def run_all(mutants: list[Mutant], notice: Callable[[Verdict], None], *, jobs: int = 1) -> None:
    """Call ``notice`` with a verdict on each mutant, as they come; interrupting it is harmless."""
    if not hasattr(os, "fork"):
        raise SystemExit("mutants are run by os.fork, which this system does not have.")
    os.environ.update(ENVIRONMENT)
    import pytest

    os.chdir(ROOT)
    wanted = dict.fromkeys(t.partition("::")[0] for mutant in mutants for t in tests_of(mutant))
    for mutant in mutants:
        source(mutant.module)
    pytest.main([*PYTEST, *wanted], plugins=[Forks(mutants, tests_of, notice, jobs)])
