"""Every algorithm of the book in about a dozen lines of plain NumPy, short enough to memorise.

The functions have no checks and no options, and are not optimised: they sum over all components,
nodes and edges exactly as the equations do. The other subpackages solve the same problems on real
data, and tests compare their functions with those here. The primer and the other subpackages do not
import each other.

=================================  =================================================================
:mod:`~cgmm.primer.mixtures`       chapter 1: sampling, density and responsibilities of a mixture
:mod:`~cgmm.primer.fitting`        chapter 2: lower bound, M-steps of four covariance types, EM
:mod:`~cgmm.primer.practice`       chapter 3: initialisation, stopping, prior, model selection
:mod:`~cgmm.primer.evidence`       chapter 4: labels
:mod:`~cgmm.primer.chunklets`      chapters 5 and 6: must-links, two sampling assumptions
:mod:`~cgmm.primer.networks`       chapter 7: variable elimination, marginals, two components
:mod:`~cgmm.primer.normaliser`     chapter 8: update of the weights, and EM with any relations
:mod:`~cgmm.primer.preferences`    chapters 9 and 14: certainty of relations, and their support
:mod:`~cgmm.primer.sampling`       chapter 10: Gibbs sampling
:mod:`~cgmm.primer.variational`    chapter 10: mean field, belief propagation, approximate EM
:mod:`~cgmm.primer.kmeans`         chapter 11: K-means, COP-K-means, PCK-means
:mod:`~cgmm.primer.metrics`        chapter 12: metric of Xing et al., relevant component analysis
:mod:`~cgmm.primer.reruns`         chapter 13: standard errors of means over realisations
:mod:`~cgmm.primer.questions`      chapter 15: choice of the next question
:mod:`~cgmm.primer.error_rates`    chapter 16: error rates of annotators
=================================  =================================================================
"""

from cgmm.primer.chunklets import (
    cannot_edges, chunklet_em, closure, if_chunklets_are_sampled, if_points_are_sampled,
    node_unaries,
)  # fmt: skip
from cgmm.primer.error_rates import annotator_em, new_rates, p_wrong
from cgmm.primer.evidence import allowed, label_means, labelled_em, masked, shares
from cgmm.primer.fitting import (
    diag, em, fold, full, lower_bound, m_step, moments, spherical, statistics, tied,
)  # fmt: skip
from cgmm.primer.kmeans import cheapest, cop_rule, costs, lloyd, objective, pck_rule
from cgmm.primer.metrics import (
    ascent_step, cfld, deviations, information, likelihood_criterion, online_step, project,
    spread, squares, uphill, whitening, within_covariance, within_distance,
)  # fmt: skip
from cgmm.primer.mixtures import (
    Theta, log_densities, log_gaussian, log_joint, responsibilities, sample,
)  # fmt: skip
from cgmm.primer.networks import (
    clique_log_z, contract, derivative, eliminate, factors, fill_ins, given_later,
    induced_width, log_z, marginal, marginals, marginals_by_slope, min_fill, mirror_images,
    most_probable, multiply, neighbours, spanning_tree, take_out,
)  # fmt: skip
from cgmm.primer.normaliser import (
    constrained_em, newton, prior_counts, prior_log_z, pseudo_counts, pseudo_log_z,
)  # fmt: skip
from cgmm.primer.practice import (
    aic, bic, far_points, map_covariances, n_parameters, nearest, occupied, until,
)  # fmt: skip
from cgmm.primer.preferences import certainty, log_p_of_answers, log_weights, p_together, support
from cgmm.primer.questions import answer_information, choose_pairs, coin_entropy, farthest
from cgmm.primer.reruns import mean_and_error, realisations_needed, wrong_order
from cgmm.primer.sampling import around, cluster_move, gibbs, given_others, r_hat, single_moves, tie
from cgmm.primer.variational import (
    approximate_em, beliefs, bethe_log_z, log_belief, mean_field, mean_field_bound, messages,
    tree_bound,
)  # fmt: skip

__all__ = [
    "Theta", "aic", "allowed", "annotator_em", "answer_information", "approximate_em", "around",
    "ascent_step", "beliefs", "bethe_log_z", "bic", "cannot_edges", "certainty", "cfld", "cheapest",
    "choose_pairs", "chunklet_em", "clique_log_z", "closure", "cluster_move", "coin_entropy",
    "constrained_em", "contract", "cop_rule", "costs", "derivative", "deviations", "diag",
    "eliminate", "em", "factors", "far_points", "farthest", "fill_ins", "fold", "full", "gibbs",
    "given_later", "given_others", "if_chunklets_are_sampled", "if_points_are_sampled",
    "induced_width", "information", "label_means", "labelled_em", "likelihood_criterion", "lloyd",
    "log_belief", "log_densities", "log_gaussian", "log_joint", "log_p_of_answers", "log_weights",
    "log_z", "lower_bound", "m_step", "map_covariances", "marginal", "marginals",
    "marginals_by_slope", "masked", "mean_and_error", "mean_field", "mean_field_bound", "messages",
    "min_fill", "mirror_images", "moments", "most_probable", "multiply", "n_parameters", "nearest",
    "neighbours", "new_rates", "newton", "node_unaries", "objective", "occupied", "online_step",
    "p_together", "p_wrong", "pck_rule", "prior_counts", "prior_log_z", "project",
    "pseudo_counts", "pseudo_log_z",
    "r_hat", "realisations_needed", "responsibilities", "sample", "shares", "single_moves",
    "spanning_tree", "spherical", "spread", "squares", "statistics", "support", "take_out", "tie",
    "tied", "tree_bound", "until", "uphill", "whitening", "within_covariance", "within_distance",
    "wrong_order",
]  # fmt: skip
