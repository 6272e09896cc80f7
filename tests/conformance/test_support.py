"""The list of cases is the one that is committed, and each exception to it stands for something."""

from __future__ import annotations

from conformance import support


def test_the_committed_list_names_every_case() -> None:
    assert support.cases_of_the_tests() == support.read().cases


def test_the_page_shows_the_committed_list() -> None:
    assert support.read().to_page(support.runtimes()) == support.PAGE.read_text()


def test_what_a_runtime_cannot_have_is_a_case_and_has_a_reason() -> None:
    committed = support.read()

    assert set(support.runtimes()) >= committed.cannot.keys()
    for reasons in committed.cannot.values():
        assert set(committed.cases) >= reasons.keys()
        assert all(reasons.values())
