"""The list of cases is the one that is committed, and each exception to it stands for something."""

from __future__ import annotations

from conformance import support


def test_the_committed_list_names_every_case() -> None:
    assert support.cases_of_the_tests() == support.read().cases


def test_the_page_shows_the_committed_list() -> None:
    assert support.read().to_page(support.runtimes()) == support.PAGE.read_text()


def test_what_a_runtime_cannot_have_is_a_case_and_has_a_reason() -> None:
    committed = support.read()

    assert set(support.runtimes()) >= {support.runtime_of(requirement) for requirement in committed.cannot}
    for reasons in committed.cannot.values():
        assert set(committed.cases) >= reasons.keys()
        assert all(reasons.values())


def test_an_older_version_has_reasons_of_its_own() -> None:
    known = support.Support(
        ["a case"], {"pytest<0.1": {"a case": "too old"}, "pytest<1000": {"a case": "old"}}
    )

    assert "old" == known.reason("pytest", "a case")
    assert known.reason("pytest", "another case") is None
    assert known.reason("hypothesis", "a case") is None
    assert "| a case | yes; no for pytest<0.1: too old; no for pytest<1000: old |" in known.to_page(
        ["pytest"]
    )
