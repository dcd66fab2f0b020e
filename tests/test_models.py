"""Models by name, in the folders of other tools: each store's layout, and everything that can be wrong with it."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ggtok
import gguf
import pytest
from conftest import VOCABULARIES
from ggtok import GgtokError, GGUFError, ModelNotFoundError, Tokenizer, TokenizerWarning
from ggtok.stores import docker, ollama, quantization
from ggtok.stores.find import names_from, stores
from ggtok.stores.tools import STORES
from hypothesis import given
from hypothesis import strategies as st
from store_trees import COMMIT, OLDER, Home, isolated, vocabulary

CHAT = [{"role": "user", "content": "Hi"}]
LIBRARY = "manifests/registry.ollama.ai/library"
GGUF = "application/vnd.docker.ai.gguf.v3"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(isolated(tmp_path, monkeypatch))


def names() -> dict[str, str]:
    """All models: the file of each, or what its problem is."""
    return {model.name: model.path or model.problem for each in stores() for model in each.models()}


def problem(name: str) -> str:
    with pytest.raises(ModelNotFoundError) as caught:
        ggtok.find(name)
    assert caught.value.name == name
    return str(caught.value)


def test_every_store(home: Home) -> None:
    paths = home.all()
    assert {name: Path(path) for name, path in names().items()} == paths
    assert {name.partition(":")[0] for name in paths} <= set(STORES)
    for name, path in paths.items():
        assert ggtok.find(name) == path
        assert ggtok.find(name.upper().replace(name.upper().partition(":")[0], name.partition(":")[0], 1)) == path
        assert Tokenizer.from_model(name) == Tokenizer.from_gguf(path)
    assert Tokenizer.from_model("ollama:llama3.2", overrides={"tokenizer.ggml.add_bos_token": True}).vocab.add_bos


def test_empty_stores(home: Home) -> None:
    assert names() == {}
    for prefix in STORES:
        assert "(not there)" in problem(f"{prefix}:owner/name")
        for strange in ("", ":", "/", "//", "a/b/c/d:", "../..", "..:..", "a\0b", "x" * 5000, "\udc80", "@"):
            problem(f"{prefix}:{strange}")


@given(name=st.text(st.sampled_from("aZ09:/.-_\0@ \\é"), max_size=20), prefix=st.sampled_from(list(STORES)))
def test_any_name_is_found_or_a_typed_error(name: str, prefix: str) -> None:
    with pytest.raises(ModelNotFoundError):
        ggtok.find(f"{prefix}:no-such-model-{name}")


# paths


def test_a_path_wins(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = home.ollama_model(f"{LIBRARY}/m/latest", "bpe")
    monkeypatch.chdir(home.folder)
    assert ggtok.find("ollama:m") == blob
    shutil.copy(VOCABULARIES / "spm.gguf", "ollama:m")
    assert ggtok.find("ollama:m") == Path("ollama:m")
    assert Tokenizer.from_model("ollama:m").vocab.kind == "spm"
    assert Tokenizer.from_model(Path("ollama:m")).vocab.kind == "spm"


def test_paths_that_do_not_exist(home: Home) -> None:
    for path in ("no/such/file", "model.gguf", home.folder / "x.gguf"):
        with pytest.raises(ModelNotFoundError) as caught:
            ggtok.find(path)
        assert isinstance(caught.value, FileNotFoundError)
        assert caught.value.name == str(path)
    with pytest.raises(IsADirectoryError):
        Tokenizer.from_model(home.folder)
    for other in (None, 3, b"bytes"):
        with pytest.raises(TypeError, match="name of a model must be str or a path"):
            ggtok.find(other)  # type: ignore[arg-type]


def test_split_files_lead_to_the_first_part(home: Home) -> None:
    parts = [home.write(home.folder / f"m-0000{part}-of-00002.gguf", vocabulary("spm")) for part in (1, 2)]
    assert ggtok.find(parts[0]) == ggtok.find(parts[1]) == parts[0]
    parts[0].unlink()
    assert ggtok.find(parts[1]) == parts[1]
    folder = home.lmstudio / "pub/big"
    for part in (1, 2, 3):
        home.write(folder / f"big-Q8_0-0000{part}-of-00003.gguf", vocabulary("bpe") if part == 1 else b"")
    assert names() == {"lmstudio:pub/big": str(folder / "big-Q8_0-00001-of-00003.gguf")}
    assert ggtok.find("lmstudio:pub/big/big-Q8_0-00002-of-00003.gguf").name == "big-Q8_0-00001-of-00003.gguf"


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ({"general.architecture": "clip", "general.type": "mmproj"}, "a projector (mmproj)"),
        ({"general.architecture": "clip"}, "a projector (mmproj)"),
        ({"general.architecture": "llama", "general.type": "adapter"}, "an adapter (LoRA)"),
        ({"general.architecture": "controlvector"}, "a control vector"),
        ({"general.type": "imatrix"}, "an importance matrix"),
        ({"split.no": 1, "split.count": 3}, "part 2 of 3 of a split file"),
    ],
)
def test_files_that_are_not_models(home: Home, keys: dict[str, str | int], kind: str) -> None:
    path = home.folder / "other.gguf"
    writer = gguf.GGUFWriter(path, arch=str(keys.pop("general.architecture", "llama")))
    for key, value in keys.items():
        writer.add_string(key, value) if isinstance(value, str) else writer.add_uint16(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(GGUFError) as caught:
        Tokenizer.from_model(path)
    assert kind in str(caught.value)
    assert caught.value.path == str(path)


def test_damaged_files_keep_their_errors(home: Home) -> None:
    path = home.write(home.folder / "damaged.gguf", vocabulary("bpe")[:1000])
    with pytest.raises(GgtokError) as caught:
        Tokenizer.from_model(path)
    with pytest.raises(type(caught.value)) as expected:
        Tokenizer.from_gguf(path)
    assert str(caught.value) == str(expected.value)


# unknown names


def test_unknown_names_show_the_nearest(home: Home) -> None:
    home.all()
    home.ollama_model(f"{LIBRARY}/llama3.1/8b", "spm")
    with pytest.raises(ModelNotFoundError) as caught:
        Tokenizer.from_model("ollama:lama3.2")
    assert caught.value.nearest[0] == "ollama:llama3.2"
    assert caught.value.places == (str(home.ollama), str(home.folder / "service"))
    assert "did you mean ollama:llama3.2" in str(caught.value)
    assert f"looked in {home.ollama}, {home.folder / 'service'} (not there)" in str(caught.value)
    with pytest.raises(FileNotFoundError) as everywhere:
        ggtok.find("llama3.2")
    assert isinstance(everywhere.value, ModelNotFoundError)
    assert everywhere.value.nearest[0] == "ollama:llama3.2"
    assert len(everywhere.value.places) >= len(STORES)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.nearest, copy.places) == (str(caught.value), caught.value.nearest, caught.value.places)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read every folder")
def test_folders_that_cannot_be_read_are_named(home: Home) -> None:
    home.ollama.mkdir(parents=True)
    home.ollama.chmod(0)
    try:
        assert f"{home.ollama} (Permission denied)" in problem("ollama:x")
    finally:
        home.ollama.chmod(0o755)


def test_names_to_complete(home: Home) -> None:
    paths = home.all()
    assert names_from("ollama:l") == ["ollama:llama3.2"]
    assert names_from("ol") == ["ollama:llama3.2"]
    assert names_from("hf:owner/") == ["hf:owner/repo-GGUF"]
    assert names_from("") == [*paths]
    assert names_from("x") == names_from("x:") == []


# Ollama


@pytest.mark.parametrize(
    ("place", "spelled"),
    [
        (f"{LIBRARY}/llama3.2/latest", ["llama3.2", "llama3.2:latest", "library/llama3.2", "LLAMA3.2:Latest"]),
        (f"{LIBRARY}/llama3.2/1b", ["llama3.2:1b", "registry.ollama.ai/library/llama3.2:1b"]),
        ("manifests/registry.ollama.ai/user/m/latest", ["user/m", "ollama.com/user/m:latest"]),
        ("manifests-v2/ollama.com/library/m/latest", ["m", "registry.ollama.ai/library/m"]),
        ("manifests/ollama.com/library/m/latest", ["m"]),
        ("manifests/hf.co/bartowski/L-GGUF/Q4_K_M", ["hf.co/bartowski/L-GGUF:Q4_K_M", "hf.co/bartowski/l-gguf:q4_k_m"]),
        ("manifests/10.0.0.1:5000/ns/m/latest", ["10.0.0.1:5000/ns/m"]),
        ("manifests-v2/10.0.0.1%3A5000/ns/m/latest", ["10.0.0.1:5000/ns/m"]),
    ],
)
def test_names_of_ollama(home: Home, place: str, spelled: list[str]) -> None:
    blob = home.ollama_model(place, "bpe")
    home.ollama_model(f"{LIBRARY}/other/latest", "spm")
    for name in spelled:
        assert ggtok.find(f"ollama:{name}") == blob
    assert f"ollama:{spelled[0]}" in names()


def test_the_newer_manifest_of_ollama_wins(home: Home) -> None:
    home.ollama_model(f"{LIBRARY}/m/latest", "bpe")
    newer = home.ollama_model("manifests-v2/ollama.com/library/m/latest", "spm")
    assert ggtok.find("ollama:m") == newer
    assert names() == {"ollama:m": str(newer)}


def test_the_places_of_ollama(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = home.ollama_model(f"{LIBRARY}/m/latest", "bpe")
    shutil.move(home.ollama, ollama.SERVICE)
    moved = ollama.SERVICE / blob.relative_to(home.ollama)
    assert ggtok.find("ollama:m") == moved
    monkeypatch.setenv("OLLAMA_MODELS", str(ollama.SERVICE))
    assert ggtok.find("ollama:m") == moved
    monkeypatch.setenv("OLLAMA_MODELS", str(home.folder / "elsewhere"))
    problem("ollama:m")


def test_lists_of_manifests(home: Home) -> None:
    digest, blob = home.ollama_blob(vocabulary("bpe"))
    tensors = {"runner": "mlx", "layers": [{"mediaType": "application/vnd.ollama.image.tensor", "digest": digest}]}
    model = {"runner": "ollama", "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": digest}]}
    home.write(home.ollama / LIBRARY / "inside/latest", {"manifests": [tensors, model]})
    child, _ = home.ollama_blob(json.dumps(model).encode())
    home.write(home.ollama / LIBRARY / "blob/latest", {"manifests": [{"digest": child, "runner": "llamacpp"}]})
    home.write(home.ollama / LIBRARY / "tensors/latest", {"manifests": [tensors]})
    home.write(home.ollama / LIBRARY / "nested/latest", {"manifests": [{"manifests": [model]}]})
    assert ggtok.find("ollama:inside") == ggtok.find("ollama:blob") == blob
    assert "has no GGUF file" in problem("ollama:tensors")
    assert "its manifest is empty" in problem("ollama:nested")


def test_models_of_ollama_without_a_file(home: Home) -> None:
    def config(text: str) -> dict[str, object]:
        return {"config": {"digest": home.ollama_blob(text.encode())[0]}}

    zeros = f"sha256:{'0' * 64}"
    home.ollama_manifest(f"{LIBRARY}/missing/latest", ("model", zeros))
    home.ollama_manifest(f"{LIBRARY}/outside/latest", ("model", "sha256:../../../etc/passwd"))
    images = '{"model_format": "safetensors", "capabilities": ["image"]}'
    home.ollama_manifest(f"{LIBRARY}/image/latest", ("tensor", zeros), **config(images))
    home.ollama_manifest(f"{LIBRARY}/cloud/latest", **config('{"remote_host": "https://ollama.com"}'))
    home.ollama_manifest(f"{LIBRARY}/nothing/latest", ("license", zeros))
    home.write(home.ollama / LIBRARY / "damaged/latest", "{")
    home.write(home.ollama / LIBRARY / "deep/latest", "[" * 100_000)
    home.write(home.ollama / LIBRARY / "other/latest", b"\xff\xfe")
    assert f"its blob is missing: {home.ollama}/blobs/sha256-{'0' * 64}" in problem("ollama:missing")
    assert "names no blob" in problem("ollama:outside")
    assert "a model that makes images in single tensors (safetensors)" in problem("ollama:image")
    assert "it runs in Ollama's cloud" in problem("ollama:cloud")
    assert "without a GGUF file" in problem("ollama:nothing")
    for name in ("damaged", "deep", "other"):
        assert "its manifest cannot be read" in problem(f"ollama:{name}")
    assert len(names()) == 8


# Hugging Face


def test_tags_of_a_repository(home: Home) -> None:
    files = {
        f"m-{tag}.gguf": home.hub_file("o/r", f"m-{tag}.gguf", tag.encode()) for tag in ("Q8_0", "Q4_K_M", "IQ2_XS")
    }
    inner = home.hub_file("o/r", "BF16/m-BF16-00001-of-00002.gguf", b"1")
    home.hub_file("o/r", "BF16/m-BF16-00002-of-00002.gguf", b"2")
    for other in ("mmproj-m-Q4_K_M.gguf", "imatrix-Q4_K_M.gguf", "mtp-Q4_K_M.gguf", "readme.md"):
        home.hub_file("o/r", other, other.encode())
    home.hub_ref("o/r")
    assert ggtok.find("hf:o/r") == files["m-Q4_K_M.gguf"]
    assert ggtok.find("hf:o/r:q8_0") == files["m-Q8_0.gguf"]
    assert ggtok.find("hf:o/r:BF16") == inner
    assert ggtok.find("hf:o/r/m-IQ2_XS.gguf") == files["m-IQ2_XS.gguf"]
    assert "it is a projector for images" in problem("hf:o/r/mmproj-m-Q4_K_M.gguf")
    problem("hf:o/r:Q2_K")
    assert set(names()) == {"hf:o/r:BF16", "hf:o/r:IQ2_XS", "hf:o/r:Q4_K_M", "hf:o/r:Q8_0"}
    for name, path in names().items():
        assert ggtok.find(name) == Path(path)


def test_snapshots(home: Home) -> None:
    newer = home.hub_file("o/r", "m-Q4_K_M.gguf", b"new")
    older = home.hub_file("o/r", "m-Q4_K_M.gguf", b"old", commit=OLDER)
    other = home.hub_file("o/r", "m-Q8_0.gguf", b"other", commit=OLDER, links=False)
    home.hub_ref("o/r", "refs-of-a-tag", OLDER)
    assert ggtok.find("hf:o/r") == older
    home.hub_ref("o/r")
    assert ggtok.find("hf:o/r") == newer
    assert ggtok.find("hf:o/r:Q8_0") == other
    home.hub_ref("o/r", "main", "../../..")
    assert ggtok.find("hf:o/r") == older
    newer.resolve().unlink()
    home.hub_ref("o/r")
    assert "is a link that leads nowhere" in problem("hf:o/r")


@pytest.mark.parametrize(
    ("variables", "hub"),
    [
        ({"HF_HOME": "h"}, "h/hub"),
        ({"XDG_CACHE_HOME": "x"}, "x/huggingface/hub"),
        ({"HF_HUB_CACHE": "c", "HF_HOME": "h"}, "c"),
        ({"HUGGINGFACE_HUB_CACHE": "d", "HF_HOME": "h"}, "d"),
        ({"LLAMA_CACHE": "l"}, "l"),
        ({"LLAMA_CACHE": "l"}, ".cache/huggingface/hub"),
    ],
)
def test_caches(home: Home, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], hub: str) -> None:
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(home.folder / folder))
    home.hub = home.folder / hub
    path = home.hub_file("o/r", "m.gguf", b"")
    assert ggtok.find("hf:o/r") == path


def test_tags_are_those_of_llama_cpp() -> None:
    files = ["a-Q4_K_S.gguf", "a-Q4_K_M.gguf", "b/a-Q8_0-00001-of-00002.gguf", "b/a-Q8_0-00002-of-00002.gguf"]
    assert quantization.chosen(files, "") == "a-Q4_K_M.gguf"
    assert quantization.chosen(files, "q4_k") is None
    assert quantization.chosen(files, "q8_0") == files[2]
    assert quantization.chosen(["x.gguf"], "") == "x.gguf"
    assert quantization.chosen(["x.gguf"], "Q4") is None
    assert quantization.chosen(["b/a-Q8_0-00002-of-00002.gguf"], "") is None


@given(st.lists(st.text(st.sampled_from("aQ84_0-./"), min_size=1, max_size=12).map("{}.gguf".format), unique=True))
def test_names_lead_to_their_files(files: list[str]) -> None:
    for file, name in quantization.names("o/r", files).items():
        _, _, rest = name.removeprefix("o/r").partition("/")
        tag = name.removeprefix("o/r").partition(":")[2] if not rest else ""
        same_case = [other for other in files if other.lower() == file.lower()]
        assert quantization.named(files, rest, tag) in same_case


# LM Studio


def test_the_folder_of_lm_studio(home: Home) -> None:
    for folder in (home.folder / ".lmstudio", home.folder / ".cache/lm-studio", home.folder / "pointed"):
        home.write(folder / f"models/pub/{folder.name}/m.gguf", vocabulary("spm"))
    home.without(home.folder / ".cache")
    assert set(names()) == {"lmstudio:pub/.lmstudio"}
    home.write(home.folder / ".cache/lm-studio/models/pub/old/m.gguf", vocabulary("spm"))
    assert set(names()) == {"lmstudio:pub/old"}
    home.write(home.folder / ".lmstudio-home-pointer", f"{home.folder / 'pointed'}\n")
    assert set(names()) == {"lmstudio:pub/pointed"}
    home.write(home.folder / "pointed/settings.json", {"downloadsFolder": str(home.folder / ".lmstudio/models")})
    assert set(names()) == {"lmstudio:pub/.lmstudio"}


def test_models_of_lm_studio(home: Home) -> None:
    for file in ("m-Q4_K_M.gguf", "m-Q8_0.gguf", "mmproj-m-F16.gguf", "config.json"):
        home.write(home.lmstudio / "pub/M-GGUF" / file, vocabulary("spm"))
    home.write(home.lmstudio / "pub/odd/name.gguf", b"")
    home.write(home.lmstudio / "pub/odd/other name.gguf", b"")
    assert set(names()) == {
        *("lmstudio:pub/M-GGUF:Q4_K_M", "lmstudio:pub/M-GGUF:Q8_0"),
        *("lmstudio:pub/odd/name.gguf", "lmstudio:pub/odd/other name.gguf"),
    }
    assert ggtok.find("lmstudio:pub/m-gguf").name == "m-Q4_K_M.gguf"
    assert "it is a projector" in problem("lmstudio:pub/M-GGUF/mmproj-m-F16.gguf")


# Docker Model Runner


def test_tags_of_docker(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (blob,) = home.docker_model(["ai/smollm2:latest", "docker.io/ai/smollm2:135M-Q4_0"], (GGUF, vocabulary("bpe"), ""))
    for name in ("smollm2", "ai/smollm2", "index.docker.io/ai/smollm2:latest", "smollm2:135m-q4_0"):
        assert ggtok.find(f"docker:{name}") == blob
    assert set(names()) == {"docker:smollm2", "docker:smollm2:135m-q4_0"}
    monkeypatch.setenv("MODELS_PATH", str(home.folder / "volume"))
    problem("docker:smollm2")
    shutil.move(home.docker, home.folder / "volume")
    assert ggtok.find("docker:smollm2").read_bytes() == vocabulary("bpe")
    assert docker.shown("hf.co/o/R:Q4_K_M") == docker.shown("huggingface.co/o/r:q4_k_m") == "hf.co/o/r:q4_k_m"


def test_layers_of_docker(home: Home) -> None:
    raw = "application/vnd.cncf.model.weight.v1.raw"
    cncf = home.docker_model(["a/cncf"], (raw, b"readme", "a.md"), (raw, vocabulary("spm"), "m.gguf"))
    split = home.docker_model(["a/split"], (GGUF, b"2", "m-00002-of-00002.gguf"), (GGUF, b"1", "m-00001-of-00002.gguf"))
    home.docker_model(["a/safe"], ("application/vnd.docker.ai.safetensors", b"s", "m.safetensors"))
    home.docker_model(["a/lora"], (f"{GGUF}.lora", b"l", ""), ("application/vnd.docker.ai.mmproj", b"m", ""))
    home.docker_model(["a/gone"], (GGUF, b"gone", ""), write=False)
    home.docker_model([], (GGUF, b"untagged", ""))
    assert ggtok.find("docker:a/cncf") == cncf[1]
    assert ggtok.find("docker:a/split") == split[1]
    assert "it has no GGUF file, but application/vnd.docker.ai.safetensors" in problem("docker:a/safe")
    assert "it has no GGUF file" in problem("docker:a/lora")
    assert "its blob is missing" in problem("docker:a/gone")
    (untagged,) = (name for name in names() if name.startswith("docker:sha256:"))
    assert ggtok.find(untagged).read_bytes() == b"untagged"
    home.write(home.docker / "models.json", '{"models": [{"id": 3, "tags": "x"}, {"tags": [1]}, 5]}')
    assert all("cannot be read" in each for each in names().values())


# RamaLama


def test_names_of_ramalama(home: Home) -> None:
    blob = ("gguf", "model.gguf", vocabulary("bpe"))
    (path,) = home.ramalama_model("hf/owner/repo", "latest", blob)
    (deep,) = home.ramalama_model("oci/registry/owner/name", "v1", blob)
    for name in ("hf://owner/repo", "hf://owner/repo:latest", "owner/repo", "repo", "REPO:latest"):
        assert ggtok.find(f"ramalama:{name}") == path
    assert ggtok.find("ramalama:name:v1") == deep
    assert set(names()) == {"ramalama:hf://owner/repo:latest", "ramalama:oci://registry/owner/name:v1"}


def test_refs_of_ramalama(home: Home) -> None:
    home.ramalama_model("hf/o/safe", "latest", ("other", "model.safetensors", b""), ("mmproj", "p", b""))
    (gone,) = home.ramalama_model("hf/o/gone", "latest", ("gguf", "m", b""))
    gone.unlink()
    home.write(home.ramalama / "hf/o/bad/refs/latest.json", "[]")
    outside = {"hash": "../..", "files": [{"type": "gguf", "name": "/etc/passwd"}]}
    home.write(home.ramalama / "hf/o/outside/refs/latest.json", outside)
    assert "it has no GGUF file, but mmproj, other" in problem("ramalama:safe")
    assert "its file is missing" in problem("ramalama:gone")
    assert "its ref cannot be read" in problem("ramalama:bad")
    assert "its ref names no file" in problem("ramalama:outside")


# Jan and GPT4All


@pytest.mark.parametrize(
    "yml",
    [
        "embedding: false\nmodel_path: llamacpp/models/o/m/model.gguf\nname: m\n",
        "model_path: {absolute}\n",
        "model_path: '{absolute}'   # where it is\r\n",
        'model_path: "{absolute}"\n',
        "name: m\nmodel_path: >-\n  {absolute}\nsize: 3\n",
        "model_path:   {absolute}   # a comment",
    ],
)
def test_model_yml(home: Home, yml: str) -> None:
    path = home.write(home.jan / "llamacpp/models/o/m/model.gguf", vocabulary("spm"))
    home.write(home.jan / "llamacpp/models/o/m/model.yml", yml.replace("{absolute}", str(path)))
    assert ggtok.find("jan:o/m") == path
    assert names() == {"jan:o/m": str(path)}


@pytest.mark.parametrize("yml", ["", "name: x", "model_path:\n", 'model_path: "\\q"', "  model_path: x"])
def test_model_yml_without_a_path(home: Home, yml: str) -> None:
    home.write(home.jan / "llamacpp/models/m/model.yml", yml)
    assert "names no file (model_path)" in problem("jan:m")


@pytest.mark.skipif(sys.platform != "linux", reason="the folders differ by system")
def test_the_data_folder_of_jan(home: Home) -> None:
    home.write(home.folder / ".local/share/Jan/settings.json", {"data_folder": str(home.folder / "moved")})
    home.write(home.folder / "moved/llamacpp/models/m/model.yml", "model_path: m.gguf")
    assert "its file is missing" in problem("jan:m")
    path = home.write(home.folder / "moved/m.gguf", vocabulary("spm"))
    assert ggtok.find("jan:m") == path


def test_gpt4all(home: Home) -> None:
    path = home.write(home.gpt4all / "Mistral 7B.Q4_0.gguf", vocabulary("spm"))
    python = home.write(home.folder / ".cache/gpt4all/orca.gguf", vocabulary("spm"))
    home.write(home.gpt4all / "localdocs_v3.db", b"")
    assert names() == {"gpt4all:Mistral 7B.Q4_0": str(path), "gpt4all:orca": str(python)}
    assert ggtok.find("gpt4all:mistral 7b.q4_0.GGUF") == path
    assert "is a draft model" in problem_of(home, home.gpt4all / "mtp-x.gguf", "gpt4all:mtp-x")


def problem_of(home: Home, path: Path, name: str) -> str:
    home.write(path, b"")
    return problem(name)


# folders that are strange


@pytest.mark.parametrize("store", ["hub", "lmstudio", "ramalama", "jan", "gpt4all", "ollama"])
def test_circles_of_links_end(home: Home, store: str) -> None:
    folder: Path = getattr(home, store)
    inside = {"jan": "llamacpp/models", "ollama": "manifests", "hub": f"models--o--r/snapshots/{COMMIT}"}.get(store, "")
    (folder / inside / "a").mkdir(parents=True)
    (folder / inside / "a/a").symlink_to(folder / inside, target_is_directory=True)
    (folder / inside / "b").symlink_to("b")
    home.write(folder / inside / "x", b"")
    names()


CALLS: list[Callable[[str], object]] = [ggtok.find, Tokenizer.from_model]


@pytest.mark.parametrize("call", CALLS)
def test_names_without_a_prefix(home: Home, call: Callable[[str], object]) -> None:
    with pytest.raises(ModelNotFoundError, match="starts with its store \\(ollama:, hf:"):
        call("bpe")


def test_corpora_take_names(home: Home) -> None:
    home.ollama_model(f"{LIBRARY}/m/latest", "bpe")
    home.write(home.folder / "texts/a.txt", "What is LoRA?")
    sources = [home.folder / "texts"]
    info = ggtok.corpus.build(sources, home.folder / "out", tokenizer="ollama:m", format="flat", threads=1)
    assert info.tokens == Tokenizer.builtin("bpe").count("What is LoRA?")


# What writes prompts


@pytest.mark.parametrize(
    ("layers", "text", "config", "writer"),
    [
        ((), "", {}, ""),
        (("template",), "", {}, "template layer"),
        (("prompt",), "", {}, "template layer"),
        (("template",), "", {"renderer": "r"}, "renderer 'r'"),
        (("template",), "", {"renderer": "r", "parser": "p"}, "renderer 'r' and parser 'p'"),
        ((), "", {"parser": "p"}, "parser 'p'"),
        (("template",), "<|start|>{{ . }}<|end|>", {"model_family": "gptoss"}, "Harmony format"),
        (("template",), "<|start|>{{ . }}<|end|>", {"model_family": "llama"}, "template layer"),
        (("template",), "{{ . }}", {"model_family": "gpt-oss"}, "template layer"),
        (("template",), "", {"renderer": 7, "model_family": ["gptoss"]}, "template layer"),
    ],
)
def test_what_writes_the_prompts_of_ollama(
    home: Home, layers: tuple[str, ...], text: str, config: dict[str, Any], writer: str
) -> None:
    home.ollama_model(f"{LIBRARY}/m/latest", "bpe", layers, text, **config)
    tok = Tokenizer.from_model("ollama:m")
    assert tok.encode("Hi") == Tokenizer.builtin("bpe").encode("Hi")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tok.encode_chat(CHAT)
        pickle.loads(pickle.dumps(tok)).chat(CHAT)
        tok.encode_chat(CHAT, template_text="{{ messages[0].content }}")
    found = [warning.message.finding for warning in caught if isinstance(warning.message, TokenizerWarning)]
    assert [finding.code for finding in found] == ["ollama-prompt"] * 2 * bool(writer)
    assert all(f"with its own {writer}, not" in finding.message for finding in found)


def test_what_ollama_adds(home: Home) -> None:
    home.ollama_model(f"{LIBRARY}/m/latest", "bpe", ("messages", "system"))
    with pytest.warns(TokenizerWarning, match="Ollama adds a system message and messages") as caught:
        Tokenizer.from_model("ollama:m").count_messages(CHAT)
    assert len(caught) == 1
    assert caught[0].filename == __file__
