"""Grade notebooks with checks that the students' code can neither see nor reach."""
