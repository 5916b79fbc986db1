"""JUnit XML, checked against the schema and with an XML reader."""

from __future__ import annotations

from importlib.resources import files
from xml.etree import ElementTree

import pytest
import xmlschema

from harness.gate.model import Allowance, Severity, State
from harness.report.formats import FORMATS, load_formats
from scenarios.units.report_events import RUNTIMES, clean_run, finding, judgement, pull_request_run, rules, stream

XSD = xmlschema.XMLSchema((files("harness.report") / "schemas/junit.xsd").read_text("utf-8"))


def suite_of(events) -> ElementTree.Element:
    load_formats()
    text = FORMATS["junit"](events, rules)
    XSD.validate(text)
    (suite,) = ElementTree.fromstring(text)  # noqa: S314 - written by ourselves
    return suite


def cases_of(*findings, judgements=()):
    return {case.get("name"): case for case in suite_of(stream(*findings, judgements=judgements)).iter("testcase")}


def test_the_schema_refuses_a_case_without_a_name():
    with pytest.raises(xmlschema.XMLSchemaException, match="name"):
        XSD.validate('<testsuites><testsuite name="x" tests="1"><testcase classname="x"/></testsuite></testsuites>')


def test_every_entry_is_a_case_on_every_runtime():
    suite = suite_of(clean_run())
    cases = [case for case in suite.iter("testcase") if " on " in case.get("name", "")]
    assert len(cases) == 16 * len(RUNTIMES)
    assert {case.get("classname") for case in cases} == {"mcp.json"}
    assert cases[1].get("name") == "playwright-custom on codex@0.146.0"


def test_an_error_fails_the_cases_of_the_runtimes_concerned():
    cases = cases_of(finding(runtimes=RUNTIMES[:1]), judgements=(judgement("acme-search"), judgement("other")))
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed == ["acme-search on claude@2.1.268"]
    assert len(cases) == 6


def test_an_error_without_runtimes_fails_the_entry_on_all():
    cases = cases_of(finding(), judgements=(judgement("acme-search"),))
    assert [case.find("failure") is not None for case in cases.values()] == [True] * 3


def test_several_errors_of_a_case_are_one_failure_with_all_their_lines():
    cases = cases_of(finding(), finding("MH9", message="again."), judgements=(judgement("acme-search"),))
    (failure,) = next(iter(cases.values())).iter("failure")
    assert failure.get("message") == "the runtime refuses the entry. (and 1 more finding)"
    assert failure.get("type") == "MH203"
    assert (failure.text or "").splitlines()[1] == "mcp.json:48:7 error MH9 acme-search: again."


def test_warnings_notes_and_allowed_findings_stand_in_the_output():
    allowed = finding("MH8", allowance=Allowance("mcp-harness.toml:4", "known", None))
    others = (finding("MH2", Severity.WARNING), finding("MH3", Severity.NOTE), allowed)
    cases = cases_of(*others, judgements=(judgement("acme-search"),))
    for case in cases.values():
        assert case.find("failure") is None
        output = case.findtext("system-out") or ""
        assert all(rule in output for rule in ("warning MH2", "note MH3", "error MH8"))
        assert "(allowed by mcp-harness.toml:4, known)" in output


def test_a_finding_about_a_file_is_a_case_of_its_own():
    cases = cases_of(finding("MH1", entry=None), finding("MH2", Severity.NOTE, entry="gone"))
    assert list(cases) == ["MH1 at mcp.json:48:7", "MH2 at mcp.json:48:7"]
    assert [case.find("failure") is not None for case in cases.values()] == [True, False]


def test_an_entry_that_its_catalog_declares_unavailable_is_skipped():
    ((*_, case),) = (cases_of(judgements=(judgement("a", state=State.UNAVAILABLE),)).values(),)
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "unavailable"


def test_waiting_for_consent_is_no_failure_and_no_skip():
    for case in cases_of(judgements=(judgement("a", state=State.AUTHORIZE),)).values():
        assert [child.tag for child in case] == ["system-out"]


def test_the_counts_are_those_of_the_cases():
    suite = suite_of(pull_request_run())
    cases = list(suite.iter("testcase"))
    assert suite.get("tests") == str(len(cases))
    assert suite.get("failures") == str(sum(case.find("failure") is not None for case in cases)) == "4"
    assert (suite.get("errors"), suite.get("skipped"), suite.get("time")) == ("0", "0", "1.940")


@pytest.mark.parametrize("char", ["\x00", "\x08", "\x1b", "\x7f", "\ufffe", "\uffff", "\ud800", "\n", "]]>", "\x85"])
def test_characters_that_xml_forbids_are_replaced(char):
    hurt = finding(entry=f"a{char}b", message=f"c{char}d <&> \"'", fix=char, runtimes=())
    cases = cases_of(hurt, judgements=(judgement(f"a{char}b"),))
    assert len(cases) == 3
    assert all(case.find("failure") is not None for case in cases.values())
