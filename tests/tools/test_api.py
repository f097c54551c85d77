"""The pages of the package name what the doors offer, and are written anew when they change."""

from __future__ import annotations

import ast

import api
import api_names
import imported
import pytest

ROOMS = {room.itself.short: room for room in api_names.rooms()}


def test_every_public_name_has_one_entry():
    text = "\n".join(api.pages().values())
    for room in ROOMS.values():
        for one in [*room.classes, *room.others]:
            assert sum(line.endswith(f":: {one.name}") for line in text.splitlines()) == 1, one


# --------------------------------------------------------------------------- what chapters import


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from cgmm.mixture import em as loop, e_step", {"mixture.em", "mixture.e_step"}),
        ("from cgmm import datasets as d\nd.load(X); X.shape", {"datasets.load"}),
        ("import cgmm\ncgmm.mixture.em; cgmm.RCA().fit", {"mixture.em", "RCA"}),
        ("import numpy as np\nnp.exp(0)", set()),
    ],
)
def test_names_that_code_takes_from_the_package(code, names):
    assert imported.names_from_package(ast.parse(code)) == {f"cgmm.{name}" for name in names}
