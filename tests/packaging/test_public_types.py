"""`make types` finds the public names whose types pyright does not know."""

from scripts.public_types import public, unknown


def symbol(name: str, *messages: str, known: bool = False) -> dict[str, object]:
    return {"name": name, "isTypeKnown": known, "diagnostics": [{"message": text} for text in messages]}


def test_a_public_class_brings_its_definition_and_its_bases() -> None:
    assert {
        "sessionary.NotFound",
        "sessionary.errors.NotFound",
        "sessionary.errors.SessionaryError",
    } <= public()


def test_only_unknown_types_of_public_names_and_members_are_reported() -> None:
    found = [
        symbol("sessionary.a.Store", known=True),
        symbol("sessionary.a.Store.save", "Return type\n  is unknown"),
        symbol("sessionary.a.Store.load", known=True),
        symbol("sessionary.a.Other.save", "Return type is unknown"),
        symbol("sessionary.a.Outer.Store.x", "Type is unknown"),
    ]
    assert unknown(found, {"sessionary.a.Store"}) == ["sessionary.a.Store.save: Return type is unknown"]


def test_a_class_with_an_unknown_member_is_reported_without_a_message_of_its_own() -> None:
    assert unknown([symbol("a.B")], {"a.B"}) == ["a.B: a member has no known type"]
