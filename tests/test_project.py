"""The files around the course agree with each other: extras, pins, make targets, README."""

import re
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

COURSE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((COURSE / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
NEEDED = [Requirement(r) for r in [*PROJECT["dependencies"], *EXTRAS["notebooks"], *EXTRAS["dev"]]]
README = (COURSE / "README.md").read_text()
MAKEFILE = (COURSE / "Makefile").read_text()
PHONY = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split()


@pytest.fixture
def pins():
    """The pinned version of each package of constraints.txt, by canonical name."""
    lines = (COURSE / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): pinned for name, pinned in pairs}


@pytest.fixture
def environment():
    """environment.yml: the conda packages, and what pip installs."""
    document = yaml.safe_load((COURSE / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in document["dependencies"] if isinstance(entry, dict))
    return [entry for entry in document["dependencies"] if isinstance(entry, str)], pip


def test_the_environment_installs_extras_that_exist(environment):
    _, pip = environment
    (editable,) = [line for line in pip if line.startswith("-e ")]
    named = re.fullmatch(r"-e \.\[(.+)\]", editable)[1].split(",")
    assert set(named) <= set(EXTRAS)
    assert {"notebooks", "gpu", "dev", "compare"} <= set(named)


def test_the_environment_names_what_people_look_for(environment):
    conda, pip = environment
    assert {"pip", "numpy", "jupyter", "ipywidgets", "pytest"} <= set(conda)
    assert "python=3.12" in conda
    extras = {Requirement(line).name for extra in ("gpu", "compare") for line in EXTRAS[extra]}
    assert extras == {line for line in pip if not line.startswith("-e ")}
    assert {"cupy-cuda13x", "torch"} == extras


def test_the_readme_says_how_to_enter_the_environment():
    name = yaml.safe_load((COURSE / "environment.yml").read_text())["name"]
    assert f"conda activate {name}" in README


@pytest.mark.parametrize("requirement", NEEDED, ids=lambda requirement: requirement.name)
def test_every_direct_dependency_is_pinned_within_its_limits(pins, requirement):
    assert pins[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_pins_are_the_versions_under_test(pins):
    installed = {name: _installed(name) for name in pins}
    other = {n: v for n, v in installed.items() if v is not None and v != pins[n]}
    assert not other, f"pinned otherwise in constraints.txt: {other}"


def _installed(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def test_make_alone_lists_every_target():
    done = subprocess.run(["make"], cwd=COURSE, capture_output=True, text=True, timeout=60)
    listed = re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE)
    assert listed == PHONY


def test_every_test_target_says_why_tests_are_skipped():
    runs = [line for line in MAKEFILE.splitlines() if "-m pytest" in line]
    assert len(runs) > 1
    assert [line for line in runs if "-rs" not in line] == []


def test_make_says_when_python_is_too_old(tmp_path):
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((COURSE / name).read_bytes())
    done = subprocess.run(
        ["make", "demo", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_readme_names_make_targets_that_exist():
    named = set(re.findall(r"`?make ([a-z-]+)`?", "\n".join(_code(README))))
    assert {"demo", "test", "start", "lab"} <= named <= set(PHONY)


def _code(text):
    """Inline code and fenced blocks of a Markdown text."""
    return re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)


def test_the_readme_links_to_files_that_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (COURSE / link).exists()] == []


def test_the_readme_lists_the_lessons_that_exist():
    listed = re.findall(r"\]\(lessons/(\d\d_\w+)\.ipynb\)", README)
    assert listed == sorted(path.stem for path in (COURSE / "solutions").glob("*.py"))


def test_the_report_in_the_readme_is_what_the_demo_prints(capsys):
    from autograder.demo import demo

    demo()
    printed = _without_figures(capsys.readouterr().out)
    (report,) = re.findall(r"```text\n((?:PASS|FAIL) .*?)```", README, re.DOTALL)
    shown = [line for line in report.splitlines() if line.strip() not in ("", "...")]
    assert len(shown) > 5
    assert [line for line in shown if _without_figures(line) not in printed] == []


def _without_figures(text):
    """Rounding differs between machines, and so do seconds: compare everything else."""
    text = re.sub(r"\(\d+:\d+[^)]*\)", "(rows)", text)
    return re.sub(r"\d[\d.,]*(e[+-]\d+)?", "#", text)
