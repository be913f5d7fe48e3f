from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from daemon import config as config_module
from daemon import config_text
from daemon.config import Config, load, packs_folder, section_keys
from daemon.config_problems import KeySchema
from daemon.config_text import config_command, schema, show
from daemon.errors import ConfigError, DaemonError

KEYS = {
    "device": ["name", "groups"],
    "mqtt": [
        "host",
        "port",
        "topic_prefix",
        "keepalive_s",
        "username",
        "username_file",
        "password_file",
        "tls",
        "tls_ca_file",
        "tls_cert_file",
        "tls_key_file",
        "session_expiry_s",
        "max_payload_bytes",
        "reconnect_min_s",
        "reconnect_max_s",
    ],
    "audio": [
        "output",
        "device",
        "lead_ms",
        "lost_wait_s",
        "idle_close_s",
        "wake_ms",
        "wake_after_s",
        "mixer",
        "night",
        "night_volume",
        "duck_db",
        "loudness_lufs",
        "path",
    ],
    "voice": [
        "packs",
        "default",
        "for_languages",
        "speaker",
        "length_scale",
        "noise_scale",
        "noise_w",
        "sentence_gap_ms",
        "paragraph_gap_ms",
        "seed",
        "preload",
    ],
    "text": ["normalize", "emoji", "date_order"],
    "engine": ["backend", "precision", "threads", "plans"],
    "memory": ["pinned_limit_mb", "pool_buffers", "voices_limit_mb"],
    "encoder": ["codec", "bitrate", "frame_ms", "complexity", "rate", "dtx", "drop_warn"],
    "render": ["shared", "folder", "file_format", "max_renders"],
    "journal": ["file", "keep", "speak_after_restart_s"],
    "cache": ["enabled", "folder", "max_mb", "min_free_mb", "phrases"],
    "lexicon": ["folder"],
    "styles": ["named"],
    "limits": ["max_text_chars", "max_queue", "max_queue_bytes", "max_commands_per_s", "phonemes_timeout_s"],
    "power": [
        "enabled",
        "interval_s",
        "protect_c",
        "hysteresis_c",
        "idle_s",
        "battery_low",
        "jtop",
        "helper",
        "root",
    ],
    "telemetry": ["interval_s", "self_check"],
    "alerts": [
        "ttfa_p95_ms",
        "ttfa_p99_ms",
        "gpu_memory_percent",
        "pool_percent",
        "encoder_drops_percent",
        "throttling",
        "card_lost",
        "self_check",
    ],
    "prometheus": ["enabled", "host", "port", "socket"],
    "chimes": ["folder", "overlap_ms", "critical", "important", "message", "notification", "progress"],
    "rtp": ["targets", "ttl", "interface", "payload_type", "loss_percent"],
    "recorder": ["enabled", "folder", "keep"],
    "homeassistant": ["enabled", "discovery_prefix"],
    "hermes": ["enabled", "site_ids", "max_wav_mb"],
    "wyoming": ["enabled", "host", "port"],
}

BOUNDS = {
    "power.interval_s": (0.5, 15),
    "power.protect_c": (40, 120),
    "power.hysteresis_c": (5, 30),
    "power.idle_s": (10, 86_400),
    "power.battery_low": (0, 90),
    "recorder.keep": (1, 1000),
    "rtp.ttl": (1, 255),
    "rtp.payload_type": (96, 126),
    "rtp.loss_percent": (0, 100),
    "encoder.drop_warn": (0.0, 1.0),
    "audio.loudness_lufs": (-40.0, -10.0),
    "chimes.overlap_ms": (0, 200),
    "mqtt.port": (1, 65535),
    "mqtt.keepalive_s": (5, 3600),
    "mqtt.session_expiry_s": (0, 86400),
    "mqtt.max_payload_bytes": (256, 1048576),
    "mqtt.reconnect_min_s": (1, 3600),
    "mqtt.reconnect_max_s": (1, 3600),
    "audio.lead_ms": (20, 120),
    "audio.lost_wait_s": (0, 3600),
    "audio.idle_close_s": (0, 86400),
    "audio.wake_ms": (0, 5000),
    "audio.wake_after_s": (0, 3600),
    "audio.night_volume": (0.0, 2.0),
    "audio.duck_db": (0.0, 60.0),
    "voice.sentence_gap_ms": (0, 10000),
    "voice.paragraph_gap_ms": (0, 10000),
    "render.max_renders": (1, 1000),
    "journal.keep": (100, 1000000),
    "journal.speak_after_restart_s": (0, 86400),
    "voice.speaker": (0, 10000),
    "voice.length_scale": (0.25, 4.0),
    "voice.noise_scale": (0.0, 2.0),
    "voice.noise_w": (0.0, 2.0),
    "voice.seed": (0, 4294967295),
    "engine.threads": (0, 64),
    "memory.pinned_limit_mb": (16, 65536),
    "memory.pool_buffers": (4, 4096),
    "memory.voices_limit_mb": (1, 1048576),
    "encoder.bitrate": (6000, 510000),
    "encoder.complexity": (0, 10),
    "cache.max_mb": (1, 65536),
    "cache.min_free_mb": (0, 1048576),
    "limits.max_text_chars": (1, 100000),
    "limits.max_queue": (1, 10000),
    "limits.max_queue_bytes": (1024, 1073741824),
    "limits.max_commands_per_s": (0.1, 10000.0),
    "limits.phonemes_timeout_s": (1.0, 600.0),
    "telemetry.interval_s": (1, 3600),
    "alerts.ttfa_p95_ms": (1.0, 100000.0),
    "alerts.ttfa_p99_ms": (1.0, 100000.0),
    "alerts.gpu_memory_percent": (1.0, 100.0),
    "alerts.pool_percent": (1.0, 100.0),
    "alerts.encoder_drops_percent": (0.0, 100.0),
    "prometheus.port": (1, 65535),
    "hermes.max_wav_mb": (1, 64),
    "wyoming.port": (1, 65535),
}


def all_keys() -> Iterator[tuple[str, str, KeySchema]]:
    for name, section in Config():
        for key, key_schema in section_keys(type(section)).items():
            yield name, key, key_schema


def rule_of(key: KeySchema) -> KeySchema:
    rule: KeySchema = key["anyOf"][0] if "anyOf" in key else key
    return rule


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "speakd.toml"


def problems_in(file: Path, content: str | bytes) -> list[str]:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        load(file)
    return caught.value.problems


class TestDefaults:
    def test_an_empty_file_means_the_defaults(self, file: Path) -> None:
        file.touch()
        config = load(file)
        assert config == Config()
        assert (config.mqtt.host, config.mqtt.port, config.mqtt.topic_prefix) == ("localhost", 1883, "speakd")
        assert (config.audio.output, config.audio.device) == ("alsa", "default")
        assert (config.memory.pinned_limit_mb, config.memory.pool_buffers) == (1024, 100)
        assert (config.encoder.bitrate, config.encoder.frame_ms, config.encoder.complexity) == (24000, 20, 5)
        assert config.limits.phonemes_timeout_s == 30.0
        assert config.voice.seed is None

    def test_the_default_file_need_not_exist(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(config_module, "DEFAULT_PATH", file)
        assert load(None) == Config()

    def test_the_default_file_is_read_where_it_exists(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(config_module, "DEFAULT_PATH", file)
        file.write_text("[mqtt]\nport = 8883\n")
        assert load(None).mqtt.port == 8883

    @pytest.mark.parametrize(
        ("host_name", "device"),
        [("robot-7.lab", "robot-7.lab"), ("a/b+ #\0c", "abc"), ("x" * 70, "x" * 64), ("", "unnamed"), ("#", "unnamed")],
    )
    def test_the_device_is_named_after_its_host(
        self, host_name: str, device: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("socket.gethostname", lambda: host_name)
        assert Config().device.name == device

    def test_nothing_can_be_changed_afterwards(self) -> None:
        config = Config()
        with pytest.raises(ValidationError, match="frozen"):
            config.mqtt.port = 1
        with pytest.raises(ValidationError, match="frozen"):
            config.mqtt = config.mqtt


class TestProblems:
    def test_all_are_reported_at_once(self, file: Path) -> None:
        problems = problems_in(
            file,
            '[mqtt]\nport = 0\nhosst = "x"\nreconnect_min_s = 9\nreconnect_max_s = 3\n'
            '[audio]\noutput = "wav"\n[encoder]\nframe_ms = 15\n[lodspeaker]\n',
        )
        assert sorted(problems) == [
            '[audio] path: got "", must be the file to write, because output is "wav"',
            "[encoder] frame_ms: got 15, must be one of 10, 20, 40, 60 (milliseconds)",
            "[lodspeaker]: unknown section",
            "[mqtt] hosst: unknown key, did you mean `host`?",
            "[mqtt] port: got 0, must be an integer from 1 to 65535 (port number)",
            "[mqtt] reconnect_max_s: got 3, must be at least reconnect_min_s, which is 9",
        ]

    def test_the_error_tells_the_file_on_each_line(self, file: Path) -> None:
        file.write_text("[memory]\npool_buffers = 1\n[engine]\nthreads = -1\n")
        with pytest.raises(DaemonError) as caught:
            load(file)
        lines = str(caught.value).splitlines()
        assert len(lines) == 2
        assert all(line.startswith(f"{file}: [") for line in lines)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("[encoder]\ncomplexty = 5", "[encoder] complexty: unknown key, did you mean `complexity`?"),
            ("[encoder]\nBITRATE = 5", "[encoder] BITRATE: unknown key, did you mean `bitrate`?"),
            ("[audio]\ncomplexity = 5", "[audio] complexity: unknown key, did you mean `[encoder] complexity`?"),
            ("[audio]\nzzzz = 5", "[audio] zzzz: unknown key"),
            ("[encodr]\nbitrate = 9000", "[encodr]: unknown section, did you mean `[encoder]`?"),
            ("[[limit]]", "[limit]: unknown section, did you mean `[limits]`?"),
            ("port = 5", "port: this key stands outside any section, did you mean `[mqtt] port`?"),
            ("zzzz = 5", "zzzz: this key stands outside any section"),
            ("mqtt = 5", "[mqtt]: got 5, must be one section [mqtt] with keys under it"),
            ("[[mqtt]]", "[mqtt]: got an array, must be one section [mqtt] with keys under it"),
        ],
    )
    def test_the_nearest_known_name_is_suggested(self, file: Path, content: str, problem: str) -> None:
        assert problems_in(file, content) == [problem]

    @pytest.mark.parametrize(
        ("section", "assignment", "got"),
        [
            ("mqtt", "port = true", "true"),
            ("mqtt", 'port = "1883"', '"1883"'),
            ("mqtt", "port = 1883.0", "1883.0"),
            ("mqtt", "tls = 1", "1"),
            ("mqtt", 'tls = "true"', '"true"'),
            ("mqtt", "host = 5", "5"),
            ("mqtt", "host = [1]", "an array"),
            ("mqtt", "host = {a = 1}", "a table"),
            ("mqtt", "host = 1979-05-27", "1979-05-27"),
            ("limits", 'phonemes_timeout_s = "30"', '"30"'),
            ("limits", "phonemes_timeout_s = true", "true"),
            ("limits", "phonemes_timeout_s = nan", "nan"),
            ("voice", "noise_w = inf", "inf"),
            ("voice", "seed = true", "true"),
            ("encoder", "frame_ms = true", "true"),
            ("encoder", 'frame_ms = "20"', '"20"'),
            ("encoder", 'codec = "mp3"', '"mp3"'),
            ("voice", "seed = 0x1" + "0" * 5000, "an integer of 20001 bits"),
            ("voice", f'default = "{"v" * 5000}"', f'"{"v" * 60}…"'),
        ],
    )
    def test_a_wrong_type_is_refused_and_shown(self, file: Path, section: str, assignment: str, got: str) -> None:
        (problem,) = problems_in(file, f"[{section}]\n{assignment}")
        assert problem.startswith(f"[{section}] {assignment.partition(' ')[0]}: got {got}, must be ")

    def test_a_whole_number_will_do_for_a_fraction(self, file: Path) -> None:
        file.write_text("[limits]\nphonemes_timeout_s = 5\n[voice]\nlength_scale = 1\n")
        config = load(file)
        assert (config.limits.phonemes_timeout_s, config.voice.length_scale) == (5.0, 1.0)

    @pytest.mark.parametrize(
        ("section", "key", "low", "high"), [(*name.split("."), *bounds) for name, bounds in BOUNDS.items()]
    )
    def test_bounds_hold_at_both_ends(self, file: Path, section: str, key: str, low: float, high: float) -> None:
        for value in (low, high):
            partner = "reconnect_max_s = 3600\n" if key == "reconnect_min_s" else ""
            partner = "reconnect_min_s = 1\n" if key == "reconnect_max_s" else partner
            file.write_text(f"[{section}]\n{partner}{key} = {value}\n")
            assert getattr(getattr(load(file), section), key) == value
        for value in (low - 1, high + 1):
            (problem,) = problems_in(file, f"[{section}]\n{key} = {value}\n")
            assert f"got {value}, must be " in problem
            assert f" from {low} to {high}" in problem

    @pytest.mark.parametrize("name", ["", "a/b", "a+", "#", "a b", "a\\u0000", "a\\u0085", "a\\n", "x" * 65])
    def test_a_device_name_must_fit_one_topic_level(self, file: Path, name: str) -> None:
        (problem,) = problems_in(file, f'[device]\nname = "{name}"')
        assert problem.endswith("must be text of 1 to 64 characters without / + # or white space")

    @pytest.mark.parametrize("prefix", ["", "/a", "a/", "a//b", "a/+", "a/#", "$SYS", "a b", "x" * 129])
    def test_a_topic_prefix_must_be_a_plain_topic(self, file: Path, prefix: str) -> None:
        (problem,) = problems_in(file, f'[mqtt]\ntopic_prefix = "{prefix}"')
        assert problem.startswith("[mqtt] topic_prefix: got ")

    def test_names_with_any_letters_and_prefixes_of_several_levels_are_fine(self, file: Path) -> None:
        file.write_text('[device]\nname = "küche-1"\n[mqtt]\ntopic_prefix = "hall/2/$v"\n', encoding="utf-8")
        config = load(file)
        assert (config.device.name, config.mqtt.topic_prefix) == ("küche-1", "hall/2/$v")

    def test_a_path_holds_no_nul(self, file: Path) -> None:
        (problem,) = problems_in(file, '[mqtt]\npassword_file = "/a\\u0000b"')
        assert problem == r'[mqtt] password_file: got "/a\u0000b", must be printable text of up to 4096 characters'

    def test_a_minimum_may_clash_with_a_default(self, file: Path) -> None:
        assert problems_in(file, "[mqtt]\nreconnect_min_s = 100") == [
            "[mqtt] reconnect_max_s: got 60, must be at least reconnect_min_s, which is 100"
        ]

    def test_equal_waits_and_a_named_wav_file_are_fine(self, file: Path) -> None:
        file.write_text('[mqtt]\nreconnect_min_s = 60\n[audio]\noutput = "wav"\npath = "/a.wav"\n')
        assert load(file).audio.path == "/a.wav"

    def test_a_name_from_the_file_cannot_write_to_the_terminal(self, file: Path) -> None:
        (problem,) = problems_in(file, '[mqtt]\n"\\u001b[2J\\u202e" = 1')
        assert problem == r'[mqtt] "\u001b[2J\u202e": unknown key'


class TestUnreadable:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("[mqtt]\nhost = = 3\n", "line 2, column 8: Invalid value"),
            ("[mqtt]\nport = ", "line 2, column 8: Invalid value"),
            (b'[mqtt]\nhost = "\xff"\n', "line 2: byte 0xff is not UTF-8"),
            ("a = " + "9" * 5000, "a number has too many digits"),
        ],
    )
    def test_a_mistake_in_the_text_is_located(self, file: Path, content: str | bytes, problem: str) -> None:
        assert problems_in(file, content) == [problem]

    def test_deep_nesting_is_a_problem_like_any_other(self, file: Path) -> None:
        (problem,) = problems_in(file, "a = " + "[" * 100_000)
        assert "nested" in problem

    def test_a_byte_order_mark_is_ignored(self, file: Path) -> None:
        file.write_bytes(b"\xef\xbb\xbf[mqtt]\nport = 5\n")
        assert load(file).mqtt.port == 5

    def test_a_file_that_was_named_must_exist(self, file: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            load(file)
        assert str(caught.value) == f"{file}: there is no such file"

    def test_a_folder_is_not_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            load(tmp_path)
        assert str(caught.value) == f"{tmp_path}: this is a folder, not a file"

    def test_whatever_else_keeps_a_file_from_being_read_is_told(self, file: Path) -> None:
        file.symlink_to(file)
        with pytest.raises(ConfigError, match=r"cannot be read: Too many levels of symbolic links$"):
            load(file)

    def test_an_unreadable_default_file_is_not_skipped(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(config_module, "DEFAULT_PATH", tmp_path)
        with pytest.raises(ConfigError):
            load(None)


def values(key: KeySchema) -> st.SearchStrategy[Any]:
    if "anyOf" in key:
        return st.none() | values(key["anyOf"][0])
    if "const" in key or "enum" in key:
        return st.sampled_from(key.get("enum") or [key["const"]])
    if key["type"] == "string":
        letters = st.characters(exclude_categories=["Cc", "Cs"]).filter(lambda one: bool(re.match(key["pattern"], one)))
        if not re.match(key["pattern"], "é"):
            letters = st.sampled_from([one for one in map(chr, range(32, 127)) if re.match(key["pattern"], one)])
        least = 0 if re.match(key["pattern"], "") else 1
        text = st.text(letters, min_size=least, max_size=key["maxLength"])
        return st.from_regex(key["pattern"], fullmatch=True) if "examples" in key else text
    if key["type"] == "boolean":
        return st.booleans()
    if key["type"] == "array":
        return st.lists(values({**key, **key["items"]}), min_size=key.get("minItems", 0), max_size=3).map(tuple)
    numbers = st.integers if key["type"] == "integer" else st.floats
    return numbers(key["minimum"], key["maximum"])


@st.composite
def configs(draw: st.DrawFn) -> Config:
    table: dict[str, dict[str, Any]] = {name: {} for name in KEYS}
    for section, key, key_schema in all_keys():
        possible = st.just(("239.255.0.1:5004", "[ff15::1]:5006")) if key == "targets" else values(key_schema)
        if (value := draw(possible)) is not None:
            table[section][key] = value
    table["styles"]["named"] = draw(st.sampled_from([(), ("calm = af_heart:0.7+bf_emma rate=0.9", "x = gain=2")]))
    waits = [table["mqtt"]["reconnect_min_s"], table["mqtt"]["reconnect_max_s"]]
    table["mqtt"]["reconnect_min_s"], table["mqtt"]["reconnect_max_s"] = sorted(waits)
    table["audio"]["path"] = table["audio"]["path"] or "a.wav"
    return Config.model_validate(table)


HEADERS = [f"\n[{section}]\n".encode() for section in [*KEYS, "mqtt.port", "encodr", '"\\u001b"']]
NAMES = [f"\n{key} = ".encode() for keys in KEYS.values() for key in [*keys, keys[0] + "x", keys[-1] + ".a"]]
VALUES = [b"1", b"-1", b"0x" + b"f" * 5000, b"9" * 5000, b"1e999", b"nan", b"true", b"1979-05-27", b"[]", b"{a = 1}"]
STRINGS = [b'""', b'"wav"', b'"\\u0000"', b'"\\U0001f600"', b'"' + b"x" * 5000 + b'"', b"'''\n\n'''"]
TOML_LINES = st.sampled_from(HEADERS) | st.builds(
    bytes.__add__, st.sampled_from(NAMES), st.sampled_from(VALUES + STRINGS)
)
NOISE = st.sampled_from(
    [b"[", b"]", b"[[", b"{", b"}", b"=", b".", b'"', b"\r", b"\\", b"\xff", b"\xef\xbb\xbf", b"\0"]
)


class TestRoundTrip:
    @given(config=configs())
    @settings(deadline=None, max_examples=50)
    def test_what_is_shown_loads_to_the_same(self, tmp_path_factory: pytest.TempPathFactory, config: Config) -> None:
        file = tmp_path_factory.getbasetemp() / "shown.toml"
        file.write_bytes(show(config).encode())
        assert load(file) == config

    @given(content=st.binary() | st.lists(TOML_LINES).map(b"".join) | st.lists(TOML_LINES | NOISE).map(b"".join))
    @example(content=b"a" + b".a" * 5000 + b" = 1")
    @example(content=b"[mqtt]\n" + b"k" * 5000 + b" = 1")
    @example(content=b"[mqtt" + b".port" * 5000 + b"]")
    @settings(deadline=None, max_examples=300)
    def test_any_bytes_give_a_config_or_a_config_error(
        self, tmp_path_factory: pytest.TempPathFactory, content: bytes
    ) -> None:
        file = tmp_path_factory.getbasetemp() / "any.toml"
        file.write_bytes(content)
        outcome: Config | list[str]
        try:
            outcome = load(file)
        except ConfigError as error:
            outcome = error.problems
        if isinstance(outcome, list):
            assert outcome
            assert all(problem.isprintable() and len(problem) < 400 for problem in outcome)


class TestDescriptions:
    def test_exactly_the_known_keys_exist(self) -> None:
        assert {name: list(type(section).model_fields) for name, section in Config()} == KEYS

    @pytest.mark.parametrize(("section", "key", "key_schema"), list(all_keys()))
    def test_every_key_says_what_it_is_and_in_which_unit(self, section: str, key: str, key_schema: KeySchema) -> None:
        what, _, unit = key_schema["description"].partition("; ")
        assert len(what) > 10, f"[{section}] {key}"
        if rule_of(key_schema)["type"] in {"integer", "number", "string"} and not {"enum", "const"} & key_schema.keys():
            assert re.match(r"\w{3}", unit), f"[{section}] {key}"
        if rule_of(key_schema)["type"] in {"integer", "number"} and "enum" not in key_schema:
            rule = rule_of(key_schema)
            assert BOUNDS[f"{section}.{key}"] == (rule["minimum"], rule["maximum"])

    def test_each_key_is_shown_with_unit_bounds_and_default(self) -> None:
        shown = show(Config())
        assert (
            "# TCP port of the broker. Allowed: an integer from 1 to 65535 (port number). Default: 1883.\nport = 1883\n"
            in shown
        )
        assert f'Default: "{Config().device.name}".\nname = ' in shown
        for section, key, key_schema in all_keys():
            part = shown.partition(f"[{section}]\n")[2].partition("\n\n")[0]
            assert re.search(rf"^(# )?{key} = ", part, re.MULTILINE), f"[{section}] {key}"
            words = " ".join(part.replace("\n# ", " ").split())
            assert key_schema["description"].partition("; ")[0] in words

    def test_a_key_left_out_is_shown_as_a_comment_that_is_right_without_its_mark(self, file: Path) -> None:
        shown = show(Config())
        assert "Default: left out.\n# seed = 0\n" in shown
        file.write_text(re.sub(r"(?m)^# (\w+ = )", r"\1", shown))
        assert None not in load(file).voice.model_dump().values()

    def test_the_default_stays_the_default_when_another_value_is_set(self) -> None:
        shown = show(Config.model_validate({"encoder": {"complexity": 9}}))
        assert "Default: 5.\ncomplexity = 9\n" in shown

    def test_the_schema_lists_every_key(self) -> None:
        sections: Any = schema()["$defs"]
        assert sorted(sorted(section["properties"]) for section in sections.values()) == sorted(
            sorted(keys) for keys in KEYS.values()
        )


class TestCommand:
    def test_check_tells_that_all_is_well(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.touch()
        assert config_command("check", file) == 0
        assert capsys.readouterr() == (f"{file}: ok\n", "")

    def test_check_tells_that_there_is_no_file(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(config_module, "DEFAULT_PATH", file)
        monkeypatch.setattr(config_text, "DEFAULT_PATH", file)
        assert config_command("check", None) == 0
        assert capsys.readouterr().out == f"{file}: ok, there is none: all defaults\n"

    @pytest.mark.parametrize("action", ["check", "show"])
    def test_problems_go_to_stderr_one_per_line(
        self, file: Path, action: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file.write_text("[engine]\nthreads = 65\nx = 1\n")
        assert config_command(action, file) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert [line.startswith(f"{file}: [engine] ") for line in err.splitlines()] == [True, True]

    def test_show_prints_what_is_in_effect(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("[engine]\nthreads = 3\n")
        assert config_command("show", file) == 0
        assert capsys.readouterr().out == show(load(file))

    def test_schema_prints_json_even_where_the_file_is_wrong(
        self, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert config_command("schema", file) == 0
        assert json.loads(capsys.readouterr().out) == schema()

    def test_an_unknown_action_is_a_mistake_of_the_caller(self) -> None:
        with pytest.raises(ValueError, match="no such action: edit"):
            config_command("edit", None)


class TestPacksFolder:
    @pytest.fixture(autouse=True)
    def _bare_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("STATE_DIRECTORY", raising=False)
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        monkeypatch.setenv("HOME", "/home/me")
        monkeypatch.setattr("os.geteuid", lambda: 1000)

    def test_what_is_configured_comes_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/a")
        assert packs_folder(Config.model_validate({"voice": {"packs": "/voices"}})) == Path("/voices")

    def test_then_the_first_state_folder_of_the_service(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")
        monkeypatch.setattr("os.geteuid", lambda: 0)
        assert packs_folder(Config()) == Path("/var/lib/a/packs")

    def test_root_shares_the_machines_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.geteuid", lambda: 0)
        assert packs_folder(Config()) == Path("/var/lib/speakd/packs")

    @pytest.mark.parametrize(
        ("data", "expected"), [("/data", "/data"), ("", "/home/me/.local/share"), ("data", "/home/me/.local/share")]
    )
    def test_a_user_has_a_folder_of_their_own(self, data: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", data)
        assert packs_folder(Config()) == Path(expected, "speakd/packs")
