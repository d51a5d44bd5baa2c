from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from profiles.hardware import ProfileError
from profiles.models import MODELS, endpoint_names, load_endpoint, read_endpoint

NAMES = ["gemini", "lm-studio", "mlx-lm", "ollama", "openai", "openrouter", "vllm"]
PAGE = Path(__file__).parents[2] / "docs" / "models.md"

OWN = """\
name = "mine"
title = "Mine"
base_url = "http://127.0.0.1:9000/v1"
key_env = ""
billed = true
structured = ["object", "fenced"]
strict = false
object_as = "json_object"
token_limit = "max_tokens"
reply_tokens = 4096
usage = "unknown"
first_token_seconds = 60
selector = "a"
generator = "b"
setup = ["one", "two", "three"]
refuses = ["stream_options"]

[request]
seed = 7

[confidence]
usage = "low"

[[models]]
name = "a"
context = 32768
reply_tokens = 4096
input_usd = 0
output_usd = 1.5
read = 2026-11-30
confidence = "low"
"""


def own(tmp_path: Path, text: str = OWN) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_the_endpoints_of_the_package_load_under_their_names():
    assert endpoint_names() == NAMES
    assert [load_endpoint(name).name for name in NAMES] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_endpoint_that_is_billed_wants_a_key_and_has_prices_for_its_default_models(name: str):
    endpoint = load_endpoint(name)
    assert endpoint.billed == bool(endpoint.key_env) == (not endpoint.local)
    for model in (endpoint.selector, endpoint.generator):
        facts = endpoint.facts(model)
        assert not endpoint.billed or (facts is not None and facts.input_usd and facts.output_usd)


@pytest.mark.parametrize("name", NAMES)
def test_every_price_has_a_day_and_a_confidence(name: str):
    for facts in load_endpoint(name).models:
        assert date(2026, 1, 1) < facts.read <= date(2026, 11, 30)
        assert facts.confidence in ("high", "medium", "low")


def test_the_page_gives_the_set_up_of_every_endpoint_in_the_lines_of_its_profile():
    sections = dict(re.findall(r"^### (.+?)\n.*?```sh\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    profiles = [load_endpoint(name) for name in NAMES]
    assert {profile.title: "\n".join(profile.setup) for profile in profiles} == {
        title: lines.replace("# ", "").strip() for title, lines in sections.items()
    }


@pytest.mark.parametrize("whole", [False, True])
def test_the_profile_on_the_page_reads_with_and_without_its_optional_lines(tmp_path: Path, whole: bool):
    text = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    mine = read_endpoint(own(tmp_path, re.sub("^# ", "", text, flags=re.MULTILINE) if whole else text))
    assert (mine.title, bool(mine.request), bool(mine.models), mine.cuts_prompts) == ("My server", whole, whole, whole)


def test_a_person_s_own_endpoint_is_read_from_a_path(tmp_path: Path):
    mine = load_endpoint(str(own(tmp_path)))
    assert (mine.title, mine.structured, mine.request) == ("Mine", ("object", "fenced"), {"seed": 7})
    assert (mine.local, mine.refuses) == (True, ("stream_options",))
    facts = mine.facts("a")
    assert facts is not None
    assert (facts.context, facts.input_usd, facts.output_usd, facts.cached_usd) == (32768, 0, 1.5, None)
    assert mine.facts("b") is None


def test_a_person_s_folder_adds_endpoints_and_goes_before_the_package(tmp_path: Path):
    own(tmp_path)
    (tmp_path / "ollama.toml").write_text((MODELS / "ollama.toml").read_text().replace("11434", "9999"))
    assert endpoint_names(tmp_path) == sorted([*NAMES, "mine"])
    assert load_endpoint("mine", tmp_path).title == "Mine"
    assert load_endpoint("ollama", tmp_path).base_url == "http://localhost:9999/v1"
    assert load_endpoint("ollama").base_url == "http://localhost:11434/v1"


def test_a_folder_that_is_not_there_adds_nothing(tmp_path: Path):
    assert endpoint_names(tmp_path / "none") == NAMES


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("olama", "unknown endpoint 'olama': did you mean 'ollama'?"),
        ("zzz", "unknown endpoint 'zzz': there are gemini, lm-studio, mlx-lm"),
        ("../ollama", "unknown endpoint '../ollama'"),
        ("./none.toml", "none.toml: there is no such file"),
    ],
)
def test_an_endpoint_that_is_not_there_is_told(name: str, message: str):
    with pytest.raises(ProfileError, match=re.escape(message)):
        load_endpoint(name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Mine"\n', "", "title missing"),
        ("billed", "biled", "unknown key 'biled'; did you mean 'billed'?"),
        ("billed = true", "billed = 1", "billed must be true or false, and it is 1"),
        ("reply_tokens = 4096\nusage", "reply_tokens = 0\nusage", "reply_tokens must be a positive whole number"),
        ("first_token_seconds = 60", "first_token_seconds = inf", "first_token_seconds must be a positive number"),
        ('["one", "two", "three"]', '["one", 2, "three"]', "setup must be a list of texts"),
        ('["one", "two", "three"]', '["one"]', "setup must be three lines, and it has 1"),
        (
            '["object", "fenced"]',
            '["object"]',
            "structured must list some of schema, object, fenced, once each, fenced last",
        ),
        ('["object", "fenced"]', '["object", "object", "fenced"]', "structured must list"),
        ('["object", "fenced"]', '["grammar", "fenced"]', "structured must list"),
        ('"json_object"', '"json"', "object_as must be json_object or schema, and it is 'json'"),
        ('token_limit = "max_tokens"', 'token_limit = "limit"', "token_limit must be max_tokens or"),
        ('usage = "unknown"', 'usage = "no"', "usage must be on_request or always or unknown"),
        ("seed = 7", 'model = "other"\nstream = false', "request can't set model, stream; the program does"),
        ("seed = 7", "stream_options = 1", "request can't set stream_options"),
        ('refuses = ["stream_options"]', 'refuses = ["seed"]', "request sets seed, which refuses says is never sent"),
        ('usage = "low"', 'usage = "sure"', "confidence of usage must be high, medium or low"),
        ('usage = "low"', 'prices = "low"', "confidence of an unknown key 'prices'"),
        ('usage = "low"', "usage = 1", "confidence must be a table of texts"),
        ('"mine"', '"yours"', "name must be 'mine', like the file, and it is 'yours'"),
        ("http://127.0.0.1:9000/v1", "127.0.0.1:9000", "base_url must start with https:// or http://"),
        ("http://127.0.0.1:9000/v1", "file:///etc/passwd", "base_url must start with https:// or http://"),
        ("http://127.0.0.1:9000/v1", "http://host:port/v1", "base_url isn't an address"),
        ("http://127.0.0.1:9000/v1", "http://[::1/v1", "base_url isn't an address"),
        ("context = 32768", "", "model 1 ('a'): context missing"),
        ("context = 32768", "context = 4096", "model 1 ('a'): reply_tokens must be less than context"),
        ("output_usd = 1.5\n", "", "model 1 ('a'): input_usd and output_usd go together"),
        ("input_usd = 0", "input_usd = -1", "model 1 ('a'): input_usd must be a number, 0 or more"),
        ("read = 2026-11-30", 'read = "today"', "model 1 ('a'): read must be a day, such as 2026-11-30"),
        ("read = 2026-11-30", "read = 2026-11-30T12:00:00", "read must be a day"),
        ('confidence = "low"', 'confidence = "some"', "model 1 ('a'): confidence must be high, medium or low"),
        ("output_usd", "output_eur", "model 1 ('a'): unknown key 'output_eur'; did you mean 'output_usd'?"),
        ('title = "Mine"', "title = ", "mine.toml: "),
    ],
)
def test_a_file_that_is_not_right_says_which_key(tmp_path: Path, old: str, new: str, message: str):
    assert old in OWN
    with pytest.raises(ProfileError, match=re.escape(message)) as caught:
        read_endpoint(own(tmp_path, OWN.replace(old, new, 1)))
    assert "mine.toml" in str(caught.value)


def test_the_same_model_twice_is_refused(tmp_path: Path):
    with pytest.raises(ProfileError, match="models lists the same name twice"):
        read_endpoint(own(tmp_path, OWN + OWN[OWN.index("[[models]]") :]))


# -- keys and addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address", ["http://me:secret-key@host/v1", "https://host/v1?key=secret-key", "https://host/v1#secret-key"]
)
def test_a_key_within_the_address_is_refused_and_not_shown(tmp_path: Path, address: str):
    with pytest.raises(ProfileError, match="a key belongs into key_env") as caught:
        read_endpoint(own(tmp_path, OWN.replace("http://127.0.0.1:9000/v1", address)))
    assert "secret-key" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-secret-key", "MY KEY", "$MY_KEY", "1KEY"])
def test_a_key_in_place_of_its_variable_is_refused_and_not_shown(tmp_path: Path, key: str):
    with pytest.raises(ProfileError, match="key_env must be the name of an environment variable") as caught:
        read_endpoint(own(tmp_path, OWN.replace('key_env = ""', f'key_env = "{key}"')))
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://192.168.1.20:8000/v1", True),
        ("http://mac-studio.local:8000/v1", True),
        ("http://gpubox:8000/v1", True),
        ("http://api.example.com/v1", False),
        ("http://8.8.8.8/v1", False),
        ("https://api.example.com/v1", True),
    ],
)
def test_a_key_does_not_travel_over_the_internet_in_the_clear(tmp_path: Path, address: str, near: bool):
    keyed = OWN.replace("http://127.0.0.1:9000/v1", address).replace('key_env = ""', 'key_env = "MY_KEY"')
    if near:
        assert read_endpoint(own(tmp_path, keyed)).base_url == address
    else:
        with pytest.raises(ProfileError, match=r"a key would travel to .+ in the clear"):
            read_endpoint(own(tmp_path, keyed))
