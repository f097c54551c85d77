"""Grade notebooks with checks that the code of students can neither read nor change."""
