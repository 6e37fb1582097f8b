"""Is the package what it says: light to import, one version, whole as source, as its stub describes it?"""

from __future__ import annotations

import ast
import configparser
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import latpcap
from latpcap import _core

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("pandas", "pyarrow", "matplotlib", "numpy", "typer", "dpkt", "http", "email", "fsspec")
REGISTRIES = ("pypi|org", "pythonhosted|org", "crates|io", "rust-lang|org", "rustup|rs", "anaconda|org")
GENERATED = {".git", "target", "build", "dist", "__pycache__", ".ipynb_checkpoints"}


def python(code: str, cwd: Path) -> str:
    """What a new interpreter prints, started where no folder `latpcap` lies in its way."""
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light(tmp_path: Path) -> None:
    loaded = python("import sys, latpcap; print(*sys.modules)", tmp_path).split()
    assert "latpcap.views.capture" in loaded
    assert not set(HEAVY) & {name.partition(".")[0] for name in loaded}
    assert not {"latpcap.findings", "latpcap.reading.text_formats", "dataclasses", "tempfile"} & set(loaded)


def test_one_version() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    cargo = tomllib.loads((ROOT / "core" / "Cargo.toml").read_text(encoding="utf-8"))
    lock = tomllib.loads((ROOT / "core" / "Cargo.lock").read_text(encoding="utf-8"))
    locked = next(p["version"] for p in lock["package"] if p["name"] == cargo["package"]["name"])
    assert {setup["metadata"]["version"], cargo["package"]["version"], locked} == {latpcap.__version__}


def test_all_is_complete_and_sorted() -> None:
    public = [n for n, v in vars(latpcap).items() if not n.startswith("_") and not isinstance(v, ModuleType)]
    assert latpcap.__all__ == sorted(public)


def sources() -> set[str]:
    """Every file that a build from source needs."""
    found = [*(ROOT / "core" / "src").rglob("*.rs"), *(ROOT / "latpcap").rglob("*.py")]
    named = ["setup.cfg", "pyproject.toml", "README.md", "LICENSE", "core/Cargo.toml", "core/Cargo.lock"]
    named += ["latpcap/py.typed", "latpcap/_core.pyi", "latpcap/samples/nginx-latency.pcap"]
    return {path.relative_to(ROOT).as_posix() for path in found} | set(named)


def test_sdist_is_whole(tmp_path: Path) -> None:
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("needs setuptools, which this environment does not have")
    # of a copy: setuptools writes beside what it packs, and remembers what it packed before
    tree = tmp_path / "tree"
    for folder in ("core", "latpcap"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns(*GENERATED, "*.so"))
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, tree)
    python(f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})", tree)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        packed = {name.partition("/")[2] for name in tar.getnames()}
    assert sorted(sources() - packed) == []


def test_the_sample_comes_along(tmp_path: Path) -> None:
    """`lp.read()` and `latpcap why --sample` need nothing but the package; the sample is the repository's own."""
    ours = latpcap.read()
    assert Path(ours.name).read_bytes() == (ROOT / "sample_pcaps" / "nginx-latency.pcap").read_bytes()
    assert str(ours.why()) == str(latpcap.read(ROOT / "sample_pcaps" / "nginx-latency.pcap").why())
    program = "import sys; from latpcap.cli import main; sys.argv = ['latpcap', 'why', '--sample']; main()"
    drawn = "  picture   latpcap flow --sample --exchange 753 -o flow.png\n"
    assert python(program, tmp_path) == f"{ours.why()}\n{drawn}"


def members(node: ast.Module | ast.ClassDef) -> set[str]:
    found = set()
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            found.add(item.name)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.add(item.target.id)
    return {name for name in found if not name.startswith("_")}


def test_stub_and_module_agree(tmp_path: Path) -> None:
    stub = ast.parse((ROOT / "latpcap" / "_core.pyi").read_text(encoding="utf-8"))
    assert members(stub) == {name for name in vars(_core) if not name.startswith("_")}
    for item in stub.body:
        if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
            real = vars(getattr(_core, item.name))
            assert members(item) == {name for name in real if not name.startswith("_")}, item.name
    if importlib.util.find_spec("mypy") is not None:
        stubtest = [
            sys.executable,
            "-m",
            "mypy.stubtest",
            "--mypy-config-file",
            str(ROOT / "pyproject.toml"),
            "latpcap._core",
        ]
        checked = subprocess.run(stubtest, cwd=tmp_path, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


def test_what_workflows_use_is_pinned() -> None:
    """Actions by commit, tools by version: what builds a release today builds the same tomorrow."""
    workflows = [*(ROOT / ".github").rglob("*.yml")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in workflows)
    uses = re.findall(r"^\s*-? ?uses: (\S+)", text, re.MULTILINE)
    assert uses and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in uses), uses
    assert not re.search(r"pip install (?!.*(==|\$LATPCAP|dist/))", text)


def test_citation_and_version_agree() -> None:
    said = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert said is not None and said.group(1) == latpcap.__version__


def test_package_carries_its_types() -> None:
    package = Path(latpcap.__file__).parent
    assert (package / "py.typed").exists() and (package / "_core.pyi").exists()


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / name for name in listed.stdout.split("\0") if name]
    return [p for p in ROOT.rglob("*") if not GENERATED & set(p.relative_to(ROOT).parts)]


def test_no_registry_is_named() -> None:
    """Where packages come from is the machine's business (Cargo.lock is cargo's own and has to say it)."""
    hosts = [host.replace("|", ".").encode() for host in REGISTRIES]
    files = [path for path in tracked() if path.is_file() and path.name != "Cargo.lock"]
    naming = [
        f"{path.relative_to(ROOT)} names {host.decode()}"
        for path in files
        if path.suffix not in (".pcap", ".pcapng", ".png", ".so")
        for host in hosts
        if host in path.read_bytes()
    ]
    assert not naming


def script(name: str) -> ModuleType:
    """One of the programs of .ci as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT OR Apache-2.0", True), ("MIT/Apache-2.0", True), ("GPL-3.0-only OR MIT", True), ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False), ("(MIT OR Apache-2.0) AND Unicode-3.0", True), ("", False), ("MIT (", False),
        ("(MIT AND GPL-2.0-only) OR ISC", True), ("Apache-2.0 WITH LLVM-exception", True), ("MIT GPL-2.0-only", False),
    ],
)  # fmt: skip
def test_licences_are_read_as_spdx_means_them(expression: str, allowed: bool) -> None:
    checked = script("check_licences")
    assert checked.passes(expression) is allowed


def test_a_program_that_fails_shows_what_it_printed(tmp_path: Path) -> None:
    fails = "import sys; print('so far'); sys.exit('a reason')"
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n"
        f"def test_it(): subprocess.run([sys.executable, '-c', {fails!r}], check=True, capture_output=True)\n"
    )
    words = ["-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "LATPCAP_TESTS": "all"}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=here, check=False)
    assert done.returncode == 1 and "so far" in done.stdout and "a reason" in done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder whose `latpcap` has the source and no build, as a clone has after `pip install .`."""
    (tmp_path / "latpcap").mkdir()
    shutil.copy(ROOT / "latpcap" / "__init__.py", tmp_path / "latpcap")
    return tmp_path


def test_a_clone_without_a_build_uses_what_was_installed(clone: Path) -> None:
    sample = ROOT / "sample_pcaps" / "more" / "lost-tail.pcap"
    code = f"import latpcap as lp; print(lp.__file__, len(lp.read({str(sample)!r}).exchanges))"
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(clone)!r}); {code}"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=clone, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(clone / "latpcap" / "__init__.py"), str(len(latpcap.read(sample).exchanges))]


def test_an_editable_install_is_found_where_a_finder_knows_it(clone: Path, tmp_path: Path) -> None:
    """No folder of the path has its source."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "latpcap").symlink_to(Path(latpcap.__path__[0]), target_is_directory=True)
    code = f"""
import sys
from importlib.machinery import PathFinder
class Finder:
    find_spec = lambda name, path=None, target=None: PathFinder.find_spec(name, [{str(tmp_path / "source")!r}])
sys.meta_path.append(Finder)
sys.path.insert(0, {str(clone)!r})
import latpcap
print(*latpcap._installed(), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=clone, check=False)
    assert str(tmp_path / "source" / "latpcap") in done.stdout.splitlines(), done.stderr


def test_a_clone_that_was_never_installed_says_so(clone: Path) -> None:
    alone = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(clone)!r}); import latpcap"]
    done = subprocess.run(alone, capture_output=True, text=True, cwd=clone, check=False)
    assert f"latpcap is not built in {clone / 'latpcap'}: run pip install . there first" in done.stderr
