"""Nothing that is loaded can execute, and no file can make us allocate what it merely claims."""

from __future__ import annotations

import ast
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from rhirl.costs import CostFileError, load_cost
from rhirl.demos import DemonstrationError, load_demos, read_demos, write_demos
from rhirl.experiments.checkpoint import CheckpointError, latest, load_checkpoint, save_checkpoint
from rhirl.rl import Policy

SOURCE = Path(__file__).parents[1] / "src" / "rhirl"


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return Path.touch, (self.canary,)


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npz(**entries: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=True, **entries)
    return buffer.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def disguises(canary: Path) -> dict[str, bytes]:
    """A pickle that creates `canary`, in every wrapping we can think of."""
    bomb = Bomb(canary)
    plain = pickle.dumps(bomb)
    objects = np.array([bomb], dtype=object)
    with np.load(Path(SOURCE / "demos" / "data" / "pendulum-noise0.npz")) as archive:
        good = {name: archive[name] for name in archive.files}
    header = json.dumps({"__metadata__": {"rhirl": "{}"}, "a": {"dtype": "U8", "shape": [len(plain)]}}).encode()
    return {
        "pickle": plain,
        "old pickle": pickle.dumps(bomb, protocol=0),
        "npy of objects": npy(objects),
        "npz of objects": npz(observations=objects, lengths=objects, metadata=objects),
        "good npz with metadata of objects": npz(**(good | {"metadata": objects})),
        "good npz with lengths of objects": npz(**(good | {"lengths": objects})),
        "good npz with controls of objects": npz(**(good | {"controls": objects})),
        "npz whose entries are pickles": zipped({f"{name}.npy": plain for name in good}),
        "npz whose entries have no suffix": zipped(dict.fromkeys(good, plain)),
        "torch archive": zipped({"archive/data.pkl": plain, "archive/version": b"3"}),
        "safetensors header before a pickle": len(header).to_bytes(8, "little") + header + plain,
        "safetensors with a pickle as bytes": save({"a": np.frombuffer(plain, np.uint8)}, {"rhirl": "{}"}),
    }


NAMES = ("file.npz", "file.safetensors", "0000000001.safetensors", "file.npy", "file.pkl", "file.pt")
LOADERS: dict[str, tuple[type[Exception], Callable[[Path], Any]]] = {
    "demonstrations": (DemonstrationError, lambda path: read_demos(path, everything=True, force=True)),
    "cost": (CostFileError, load_cost),
    "checkpoint": (CheckpointError, lambda path: load_checkpoint(path, {"a": np.zeros(3)})),
    "latest checkpoint": (CheckpointError, lambda path: latest(path.parent, {"a": np.zeros(3)})),
    "expert": (Exception, Policy.load),
}


def test_the_bomb_goes_off_where_pickles_are_loaded(tmp_path: Path) -> None:
    pickle.loads(disguises(tmp_path / "canary")["pickle"])
    assert (tmp_path / "canary").exists()
    (tmp_path / "canary").unlink()
    np.load(io.BytesIO(disguises(tmp_path / "canary")["npy of objects"]), allow_pickle=True)
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize("what", LOADERS)
def test_pickle_is_refused_in_any_disguise(tmp_path: Path, what: str) -> None:
    canary = tmp_path / "canary"
    refusal, load = LOADERS[what]
    for disguise, content in disguises(canary).items():
        for name in NAMES:
            path = tmp_path / name
            path.write_bytes(content)
            with pytest.raises(refusal):
                load(path)
            assert not canary.exists(), (disguise, name)
            path.unlink()


def npy_claiming(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    """An array file that claims a shape and holds four bytes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0\0\0\0"


@pytest.mark.parametrize("shape", [(10**12,), (10**18,), (2**31, 2**31, 2**31), (10**9, 101, 3), (-1, 4)])
def test_arrays_that_claim_to_be_huge_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "demos.npz"
    write_demos(load_demos("pendulum").take(1), path)
    with np.load(path) as archive:
        entries = {f"{name}.npy": npy(archive[name]) for name in archive.files}
    path.write_bytes(zipped(entries | {"observations.npy": npy_claiming(shape)}))
    with pytest.raises(DemonstrationError, match="not a readable demonstration file"):
        read_demos(path)


def test_an_archive_that_claims_to_unpack_to_gigabytes_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    content = bytearray(zipped({"observations.npy": npy(np.zeros(4, np.float32))}))
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (2**32 - 2).to_bytes(4, "little")  # its size once unpacked
    twice = content[:directory] + 2 * content[directory:-22]
    twice += b"PK\x05\x06" + bytes(4) + b"\x02\0\x02\0" + (len(twice) - directory).to_bytes(4, "little")
    twice += directory.to_bytes(4, "little") + bytes(2)
    (tmp_path / "bomb.npz").write_bytes(twice)
    with pytest.raises(DemonstrationError, match=r"unpacks to \d+ bytes, more than the \d+ allowed"):
        read_demos(tmp_path / "bomb.npz")


@pytest.mark.parametrize(
    ("shape", "end", "length"),
    [
        ([10**12], 4 * 10**12, None),
        ([10**12], 4, None),
        ([2**62, 2**62], 4, None),
        ([1], 4, 2**60),
        ([1], 4, 10**8),
    ],
)
@pytest.mark.parametrize("what", ["cost", "checkpoint", "expert"])
def test_safetensors_that_claim_to_be_huge_are_refused(
    tmp_path: Path, what: str, shape: list[int], end: int, length: int | None
) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}).encode()
    path = tmp_path / "file.safetensors"
    path.write_bytes((length or len(header)).to_bytes(8, "little") + header + bytes(4))
    refusal, load = LOADERS[what]
    with pytest.raises(refusal):
        load(path)


def test_a_checkpoint_of_another_learner_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint({"a": np.zeros(3), "b": np.zeros(2)}, tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"other fields than this learner: \['b', 'c'\]"):
        load_checkpoint(path, {"a": np.zeros(3), "c": np.zeros(2)})


FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "torch"}
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "torch.load",
    "pd.read_pickle",
    "pandas.read_pickle",
    "os.system",
    "os.popen",
    "tarfile.open",
    "shutil.unpack_archive",
}


def violations(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"imports {m}" for m in modules if m and m.split(".")[0] in FORBIDDEN_MODULES)
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FORBIDDEN_CALLS:
            yield f"calls {name}"
        for keyword in node.keywords:
            value = keyword.value
            safe = isinstance(value, ast.Constant) and value.value is False
            if keyword.arg in ("allow_pickle", "shell") and not safe:
                yield f"calls {name} with {keyword.arg}={ast.unparse(value)}"
        if name.endswith(("np.load", "numpy.load")) and not any(k.arg == "allow_pickle" for k in node.keywords):
            yield f"calls {name} without allow_pickle=False"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_source_loads_nothing_that_can_execute(path: Path) -> None:
    assert list(violations(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.externals as j",
        "eval('1')",
        "exec(x)",
        "yaml.load(f)",
        "torch.load(f)",
        "np.load(f)",
        "np.load(f, allow_pickle=True)",
        "np.load(f, allow_pickle=trust)",
        "numpy.load(f)",
        "subprocess.run(x, shell=True)",
    ],
)
def test_the_search_finds_what_it_looks_for(text: str) -> None:
    assert len(list(violations(ast.parse(text)))) == 1
