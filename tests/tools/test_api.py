"""Test that the pages of the package list its public names."""

import api_names

import api


def test_every_public_name_has_one_entry():
    text = "\n".join(api.pages().values())
    for subpackage in api_names.subpackages():
        for one in [*subpackage.classes, *subpackage.others]:
            assert sum(line.endswith(f":: {one.name}") for line in text.splitlines()) == 1, one
