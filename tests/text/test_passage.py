"""Sentences with names in them."""

from heckmanfa.text.passage import Name, Passage, join, named, passage


def test_names_are_printable_and_can_be_found_again():
    said = passage("Either ", Name("a\x1b[2Jb"), " predicts, ", passage("or ", Name("c")), " does.")
    assert str(said) == "Either a\\x1b[2Jb predicts, or c does."
    assert [part.text for part in said.parts if isinstance(part, Name)] == ["a\x1b[2Jb", "c"]


def test_lists_are_cut_as_in_other_sentences():
    assert str(named([])) == ""
    assert str(named(["a"])) == "a"
    assert str(named(["a", "b", "c"])) == "a, b and c"
    assert str(named(list("abcdefghij"), 4)) == "a, b and 8 more"


def test_empty_passages_are_left_out():
    assert str(join([passage("One."), Passage(), passage("Two.")])) == "One. Two."
    assert not Passage()
    assert str(Passage() + "x") == "x"
