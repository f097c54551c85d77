"""Test that the pages of the package list its public names."""

import api_names

import api


def test_every_public_name_has_one_entry():
    text = "\n".join(api.pages().values())
    for room in api_names.rooms():
        for one in [*room.classes, *room.others]:
            assert sum(line.endswith(f":: {one.name}") for line in text.splitlines()) == 1, one
