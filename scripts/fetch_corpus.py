"""Fetch the CUDA sources of packages that people build, to test the reader against code that nobody wrote for it.

Usage: ``python scripts/fetch_corpus.py [FOLDER]``; the folder is ``build/corpus``, which git ignores.

``pip download`` would run each package's setup to learn what it needs, and these need PyTorch and a CUDA compiler for
that. So this goes one level deeper: pip finds the archive and fetches it with its own settings (index, proxy,
certificates), and nothing of the package is run.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.models.format_control import FormatControl
from pip._internal.models.target_python import TargetPython
from pip._vendor.packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
SUFFIXES = (".cu", ".cuh", ".h", ".hpp")

PACKAGES = (
    ("mamba-ssm", "2.2.6.post3"),
    ("causal-conv1d", "1.5.2"),
)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "corpus"
    for name, version in PACKAGES:
        archive = fetch(name, version)
        count = unpack(archive, folder / f"{name}-{version}")
        print(f"{name} {version}: {count} files in {folder / f'{name}-{version}'}")


def fetch(name: str, version: str) -> bytes:
    """Return the source archive of a package; exit with a message when the index doesn't have it."""
    command = create_command("download")
    options, _ = command.parse_args(["--no-deps"])
    options.format_control = FormatControl({":all:"}, set())
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session, target_python=TargetPython())
        found = finder.find_best_candidate(name, SpecifierSet(f"=={version}")).best_candidate
        if found is None:
            raise SystemExit(f"{name} {version}: the package index has no source archive of it")
        answer = session.get(found.link.url_without_fragment, headers={"Accept-Encoding": "identity"})
        answer.raise_for_status()
    digest = hashlib.sha256(answer.content).hexdigest()
    if found.link.hash is not None and digest != found.link.hash:
        raise SystemExit(f"{name} {version}: the archive isn't the one that the index names; fetch it again")
    return bytes(answer.content)


def unpack(archive: bytes, folder: Path) -> int:
    """Write the C++ and CUDA files of a source archive below a folder and return how many there are."""
    count = 0
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            inside = Path(*Path(member.name).parts[1:])
            content = files.extractfile(member) if member.isfile() and inside.suffix in SUFFIXES else None
            if content is None or ".." in inside.parts:
                continue
            (folder / inside).parent.mkdir(parents=True, exist_ok=True)
            (folder / inside).write_bytes(content.read())
            count += 1
    return count


if __name__ == "__main__":
    main()
