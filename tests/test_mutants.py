"""The mutator changes one place, keeps lines where they are, and picks by text alone."""

import ast

from benchmarks.mutants import mutants_of, pick

SOURCE = '''"""A module."""

LIMIT = 3


def kept(values: list[float], most: int = 2) -> list[float]:
    """Return a few."""
    found = []
    for value, _ in zip(values, values, strict=True):
        if value < 0 and len(found) <= most:
            continue
        found.append(
            max(value, 1.5)
        )
    return found if not values else found[:-1]
'''


def write(folder, text):
    package = folder / "package"
    (package / "model").mkdir(parents=True, exist_ok=True)
    path = package / "model" / "module.py"
    path.write_text(text)
    return path, package


def test_every_mutant_is_a_change_of_one_line_that_python_can_read(tmp_path):
    path, package = write(tmp_path, SOURCE)
    text = path.read_bytes()
    found = mutants_of(path, package)
    changes = {mutant.change for mutant in found}
    for change in ("< to <=", "and to or", "max to min", "2 to 3", "not gone", "1.5 to 3.0"):
        assert change in changes
    assert {"continue to break", "statement to pass", "condition to True"} <= changes
    assert len({mutant.key for mutant in found}) == len(found)
    for mutant in found:
        made = mutant.apply(text)
        assert made != text
        ast.parse(made)
        assert made.count(b"\n") == text.count(b"\n")
        # What is made when the module is imported stays as it is, and so do asserts.
        assert b"LIMIT = 3" in made
        assert b"strict=True" in made


def test_what_a_seed_picks_does_not_depend_on_where_lines_are(tmp_path):
    _, package = write(tmp_path / "one", SOURCE)
    _, moved = write(tmp_path / "two", SOURCE.replace("LIMIT = 3\n", "LIMIT = 3\nMORE = 4\n\n"))
    first, second = (pick(folder, 4, seed=1) for folder in (package, moved))
    assert [mutant.key for mutant in first] == [mutant.key for mutant in second]
    assert [mutant.line + 2 for mutant in first] == [mutant.line for mutant in second]
