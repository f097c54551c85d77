"""Test that the API pages list every public name once."""

import api_names

import api


def test_every_public_name_has_exactly_one_entry():
    lines = "\n".join(api.build_pages().values()).splitlines()
    for subpackage in api_names.subpackages():
        for one in [*subpackage.classes, *subpackage.others]:
            assert sum(line.endswith(f":: {one.name}") for line in lines) == 1, one
