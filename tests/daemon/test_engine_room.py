"""The daemon's own path on a GPU: the real GPU context on a simulated driver, a simulated TensorRT, a tiny voice."""

from __future__ import annotations

import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from simulators import tiny_voice
from simulators.cuda_driver import SimulatedDriver
from simulators.driver_gpu import DriverGpu
from simulators.tensorrt import World
from simulators.waiting import wait_until

from daemon import app, plan_rebuild, voice_build
from daemon.cli import main
from daemon.clock import Clock
from daemon.commands import Speak
from daemon.config import Config, load, packs_folder, plans_folder
from daemon.config_styles import StylesConfig
from daemon.engine_room import BUFFER_FRAMES
from daemon.events import Event, Failed, Finished, Synthesized
from daemon.inbox import AudioPage, RenderEnded, SpeakReceived, ThreadDied
from daemon.journal import Journal
from daemon.service import Service
from device import cuda
from device.errors import CudaError, PoolTooLargeError
from device.format import Samples
from device.null import NullSink
from engines import importer, piper, shared_backends
from engines.backends import Gpu, Wanted
from engines.batching import Batcher
from engines.errors import EngineError
from engines.pack_store import PackStore
from engines.runtime.engine import Feeds
from engines.runtime.trt_engine import TrtEngine
from engines.voice_plans import RENDER_ROWS

TIMEOUT_S = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    importer.import_voice(piper.find(str(tiny_voice.write(folder))), PackStore(folder / "packs"))
    return folder / "packs"


@pytest.fixture
def file(packs: Path, tmp_path: Path) -> Path:
    shutil.copytree(packs, tmp_path / "packs", symlinks=True)
    file = tmp_path / "speakd.toml"
    file.write_text(
        f'[audio]\noutput = "null"\n[voice]\npacks = "{tmp_path / "packs"}"\n[memory]\npool_buffers = 6\n'
        f'[engine]\nbackend = "trt"\nthreads = 1\nplans = "{tmp_path / "plans"}"\n[cache]\nenabled = false\n'
    )
    return file


@pytest.fixture
def config(file: Path) -> Config:
    return load(file)


@pytest.fixture
def machine(cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(gpu=DriverGpu(cuda_driver))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorrt", world.module())
    return world


class AddressSink(NullSink):
    def __init__(self) -> None:
        super().__init__(paced=False)
        self.read: list[int] = []

    def write(self, samples: Samples) -> None:
        super().write(samples)
        self.read.append(samples.ctypes.data)


def say(config: Config, sink: NullSink, text: str = "Hello there.") -> list[Event]:
    return app.say(config, sink, Speak(text=text))


def test_a_built_voice_speaks_from_the_gpu_without_a_copy(
    config: Config, machine: World, cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    voice_build.build(config, "", "auto")
    before = cuda_driver.objects, cuda_driver.context_references
    written: list[int] = []
    compute = TrtEngine._compute

    def recording(engine: TrtEngine, feeds: Feeds, name: str, output: Samples) -> None:
        written.append(output.ctypes.data)
        compute(engine, feeds, name, output)

    sink = AddressSink()
    monkeypatch.setattr(TrtEngine, "_compute", recording)
    events = say(config, sink)
    done = next(event for event in events if isinstance(event, Synthesized))
    assert done.backend.startswith("tensorrt 10.3.0")
    assert done.precision == "fp32"
    assert isinstance(events[-1], Finished)
    assert sink.read[0] in written, "the sink reads where TensorRT wrote"
    assert (cuda_driver.objects, cuda_driver.context_references) == before, "nothing is left on the GPU"


def test_after_a_bad_window_the_status_says_who_computes(config: Config, machine: World) -> None:
    voice_build.build(config, "", "auto")
    machine.faults.output = lambda place: place.fill(float("nan"))
    events = say(config, NullSink(paced=False))
    done = next(event for event in events if isinstance(event, Synthesized))
    assert done.backend == "onnxruntime-cpu"
    assert isinstance(events[-1], Finished)


def test_what_is_named_but_not_there_is_told_at_the_start_and_nothing_is_left_open(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[Journal] = []
    close = Journal.close
    monkeypatch.setattr(Journal, "close", lambda journal: (closed.append(journal), close(journal)))
    voice = config.voice.model_copy(update={"for_languages": ("hall",)})
    styles = StylesConfig(named=("urgent = voice=kokoro-en-us rate=1.2",))
    on_cpu = config.engine.model_copy(update={"backend": "ort"})
    say(config.model_copy(update={"voice": voice, "styles": styles, "engine": on_cpu}), NullSink(paced=False))
    told = [record.getMessage() for record in caplog.records if record.name == "daemon.engine_room"]
    assert told == [
        "voice.for_languages names the voice 'hall', which is not there or is broken",
        "the style 'urgent' names the voice 'kokoro-en-us', which is not there or is broken",
    ]
    assert len(closed) == 1


class TestRenders:
    @pytest.fixture
    def rows(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Record the windows that each run of TensorRT for a render has room for."""
        rows: list[int] = []
        run_into = TrtEngine.run_into

        def recording(engine: TrtEngine, feeds: Feeds, output: Samples) -> None:
            if threading.current_thread().name == "batcher":
                rows.append(len(feeds["latents"]))
            run_into(engine, feeds, output)

        monkeypatch.setattr(TrtEngine, "run_into", recording)
        return rows

    def stream(self, config: Config, *, count: int) -> tuple[list[Event], bytes]:
        """Have commands streamed at once; gives the events and all pages."""
        events: list[Event] = []
        pages = b""
        service = Service(
            config,
            NullSink(paced=False),
            Journal(None),
            publish=lambda event, _: events.append(event),
            report=lambda _: None,
        )
        try:
            service.start()
            for number in range(count):
                speak = Speak(id=str(number), text="This is some text that is rendered.", output="stream")
                service.speaker.handle(SpeakReceived(speak, time.monotonic()), Clock.now())
            while sum(isinstance(event, Finished | Failed) for event in events) < count:
                message = service.inbox.get(timeout=TIMEOUT_S)
                assert not isinstance(message, ThreadDied), message
                if isinstance(message, AudioPage):
                    pages += message.page
                if isinstance(message, RenderEnded):
                    message = service.outputs.end(message)
                    assert message is not None
                service.speaker.handle(message, Clock.now())
        finally:
            service.stop()
        return events, pages

    def test_streams_are_computed_in_batches(
        self,
        config: Config,
        machine: World,
        cuda_driver: SimulatedDriver,
        rows: list[int],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        together = threading.Barrier(2)

        class Patient(Batcher):
            @contextmanager
            def member(self) -> Iterator[None]:
                with super().member():
                    together.wait(TIMEOUT_S)
                    yield

        voice_build.build(config, "", "auto")
        monkeypatch.setattr(shared_backends, "Batcher", partial(Patient, wait_s=TIMEOUT_S))
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
        before = cuda_driver.objects, cuda_driver.context_references
        events, pages = self.stream(config, count=2)
        assert sum(isinstance(event, Finished) for event in events) == 2
        assert pages.startswith(b"OggS")
        assert rows[0] == RENDER_ROWS
        assert (cuda_driver.objects, cuda_driver.context_references) == before, "nothing is left on the GPU"

    def test_a_gpu_that_is_not_to_be_used_is_not_opened(
        self, config: Config, machine: World, cuda_driver: SimulatedDriver, rows: list[int]
    ) -> None:
        voice_build.build(config, "", "auto")
        before = cuda_driver.calls("cuDevicePrimaryCtxRetain")
        on_cpu = config.model_copy(update={"engine": config.engine.model_copy(update={"backend": "ort"})})
        events, pages = self.stream(on_cpu, count=1)
        assert any(isinstance(event, Finished) for event in events)
        assert pages.startswith(b"OggS")
        assert rows == []
        assert cuda_driver.calls("cuDevicePrimaryCtxRetain") == before


class TestStart:
    def test_without_plans_trt_fails_and_says_what_to_do(self, file: Path, machine: World) -> None:
        assert main(["--config", str(file), "say", "Hello."]) == 1

    def test_and_leaves_nothing_on_the_gpu(self, config: Config, machine: World, cuda_driver: SimulatedDriver) -> None:
        before = cuda_driver.objects, cuda_driver.context_references
        with pytest.raises(EngineError, match="`speakd voice build tiny --backend trt --precision fp32`"):
            say(config, NullSink(paced=False))
        assert (cuda_driver.objects, cuda_driver.context_references) == before

    def test_without_a_gpu_trt_fails_loudly(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def no_driver() -> None:
            raise CudaError("import pycuda", "libcuda.so.1: cannot open", "is NVIDIA's driver installed?")

        monkeypatch.setattr(cuda, "load_driver", no_driver)
        assert main(["--config", str(file), "say", "Hello."]) == 1
        assert 'engine.backend = "trt" is not possible here' in capsys.readouterr().err

    def test_without_a_gpu_auto_speaks(self, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_driver() -> None:
            raise CudaError("import pycuda", "not installed")

        monkeypatch.setattr(cuda, "load_driver", no_driver)
        auto = config.model_copy(update={"engine": config.engine.model_copy(update={"backend": "auto"})})
        events = say(auto, NullSink(paced=False))
        assert [event.backend for event in events if isinstance(event, Synthesized)] == ["onnxruntime-cpu"]

    def test_buffers_that_do_not_fit(self, config: Config, machine: World, cuda_driver: SimulatedDriver) -> None:
        before = cuda_driver.objects, cuda_driver.context_references
        memory = config.memory.model_copy(update={"pinned_limit_mb": 1})
        with pytest.raises(PoolTooLargeError):
            say(config.model_copy(update={"memory": memory}), NullSink(paced=False))
        assert (cuda_driver.objects, cuda_driver.context_references) == before


class TestBuild:
    def test_progress_and_layers_are_told(self, file: Path, machine: World, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--config", str(file), "voice", "build", "--for-sm", "87"]) == 0
        told = capsys.readouterr()
        assert told.out.startswith("tiny in fp32: 8 plans built\n  vocoder: layers in ")
        assert "4 windows at once: layers in " in told.out
        assert "fp32, plan 1 of 8: 0%" in told.err
        assert "fp32, plan 8 of 8: 100%, 0 s left" in told.err
        assert main(["--config", str(file), "voice", "build", "tiny", "--backend", "trt"]) == 0
        assert capsys.readouterr().out.startswith("tiny in fp32: 0 plans built, 8 were there")
        assert main(["--config", str(file), "voice", "build", "--backend", "trt", "--again"]) == 0
        assert machine.builds == 16

    def test_for_another_gpu_it_says_where_that_works(
        self, file: Path, machine: World, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["--config", str(file), "voice", "build", "--for-sm", "110"]) == 1
        assert "plans for SM 110 can be built on such a GPU only" in capsys.readouterr().err
        assert machine.builds == 0

    def test_stale_plans_go(self, config: Config, machine: World, tmp_path: Path) -> None:
        voice_build.build(config, "", "auto")
        stale = tmp_path / "plans" / "0123-fp32-64-8.6.1-sm72-6.aside"
        stale.write_bytes(b"x")
        voice_build.build(config, "", "auto")
        assert not stale.exists()
        assert len(list((tmp_path / "plans").glob("*.plan"))) == 8

    def test_a_precision_that_there_is_no_graph_in(
        self, file: Path, machine: World, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["--config", str(file), "voice", "build", "--precision", "int8", "--backend", "trt"]) == 1
        assert "tiny cannot be had in int8: nothing of it passes the quality gate" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("left", "words"), [(None, ""), (3.2, ", 3 s left"), (89, ", 89 s left"), (400, ", 7 min left")]
    )
    def test_the_time_left_is_told_in_words(self, left: float | None, words: str) -> None:
        assert voice_build._left(left) == words


class TestRebuilding:
    """The child has no simulated GPU of its own, so what is run in its place is this test's own script."""

    @pytest.fixture
    def script(self, tmp_path: Path, cuda_driver: SimulatedDriver, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Give the file of what the child runs: by default a real build, with everything simulated."""
        script = tmp_path / "python"
        body = f"""#!{sys.executable}
            import sys
            sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
            from pathlib import Path
            from simulators.cuda_driver import SimulatedDriver
            from simulators.driver_gpu import DriverGpu
            from simulators.tensorrt import World
            assert sys.argv[1:3] == ["-m", "daemon.voice_build"]
            driver = SimulatedDriver(Path({cuda_driver.environment["LD_LIBRARY_PATH"]!r}) / "libcuda.so.1")
            sys.modules["tensorrt"] = World(gpu=DriverGpu(driver)).module()
            from daemon import voice_build
            sys.exit(voice_build.main(sys.argv[3:]))
        """
        script.write_text(textwrap.dedent(body).replace("            ", ""))
        script.chmod(0o755)
        monkeypatch.setattr(plan_rebuild, "sys", SimpleNamespace(executable=str(script)))
        return script

    def damage(self, tmp_path: Path) -> None:
        for path in (tmp_path / "plans").glob("*.plan"):
            path.write_bytes(path.read_bytes()[:-1])

    def test_damaged_plans_are_built_again_at_the_start(
        self, config: Config, machine: World, tmp_path: Path, script: Path
    ) -> None:
        voice_build.build(config, "", "auto")
        self.damage(tmp_path)
        done = next(event for event in say(config, NullSink(paced=False)) if isinstance(event, Synthesized))
        assert done.backend.startswith("tensorrt 10.3.0")
        assert machine.builds == 8, "the others were built by the child"
        assert len(list((tmp_path / "plans").glob("*.plan"))) == 8

    def test_a_long_build_asks_for_time_as_long_as_it_goes_on(
        self, config: Config, tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = tmp_path / "go"
        script.write_text(f"#!/bin/sh\nwhile [ ! -e '{go}' ]; do sleep 0.01; done\n")
        monkeypatch.setattr(plan_rebuild, "_STEP_S", 0.05)
        asked: list[float] = []

        def extend(seconds: float) -> None:
            asked.append(seconds)
            if len(asked) == 3:
                go.touch()

        assert plan_rebuild.Rebuild(config, "joe", "auto", lambda: None).wait(extend) == 0
        assert asked[:3] == [0.1, 0.1, 0.1]

    def test_auto_speaks_meanwhile(self, config: Config, machine: World, tmp_path: Path, script: Path) -> None:
        voice_build.build(config, "", "auto")
        self.damage(tmp_path)
        script.write_text("#!/bin/sh\nexec sleep 100\n")
        auto = config.model_copy(update={"engine": config.engine.model_copy(update={"backend": "auto"})})
        begun = time.monotonic()
        done = next(event for event in say(auto, NullSink(paced=False)) if isinstance(event, Synthesized))
        assert done.backend == "onnxruntime-cpu"
        assert time.monotonic() - begun < 60, "the child was ended"

    def test_a_build_that_is_killed_is_tried_twice_only(
        self, config: Config, machine: World, tmp_path: Path, script: Path
    ) -> None:
        voice_build.build(config, "", "auto")
        self.damage(tmp_path)
        text = script.read_text().replace("sys.exit(", "import os\nos.nice = lambda _: None\nsys.exit(")
        killing = "from daemon import voice_build\nworld.faults.during_build = lambda: os.kill(os.getpid(), 9)"
        script.write_text(
            text.replace(
                "World(gpu=DriverGpu(driver)).module()", "(world := World(gpu=DriverGpu(driver))).module()"
            ).replace("from daemon import voice_build", f"import os\n{killing}")
        )
        for _ in range(2):
            with pytest.raises(EngineError, match="has no fp32 plan"):
                say(config, NullSink(paced=False))
        started = tmp_path / "started"
        script.write_text(f"#!/bin/sh\ntouch {started}\n")
        with pytest.raises(EngineError, match="it was killed 2 times, perhaps for want of memory"):
            say(config, NullSink(paced=False))
        assert not started.exists()

    def test_one_that_ends_with_the_daemon_is_begun_again_at_each_start(
        self, config: Config, machine: World, tmp_path: Path, script: Path
    ) -> None:
        voice_build.build(config, "", "auto")
        self.damage(tmp_path)
        hanging = "(world := World(gpu=DriverGpu(driver))).module()\nimport time"
        hanging += "\nworld.faults.during_build = lambda: time.sleep(100)"
        script.write_text(script.read_text().replace("World(gpu=DriverGpu(driver)).module()", hanging))
        pack = PackStore(packs_folder(config)).get("tiny")
        with closing(Gpu(plans_folder(config), capacity=BUFFER_FRAMES)) as gpu:

            def begun() -> int:
                return sum(mark.stat().st_size for mark in gpu.cache.folder.glob("*.building"))

            def wait_for_another(before: int) -> None:
                wait_until(lambda: begun() > before, "no build has begun", TIMEOUT_S)

            for _ in range(3):
                before = begun()
                rebuild = plan_rebuild.rebuild_if_stale(config, pack, Wanted(), gpu)
                assert rebuild is not None
                wait_for_another(before)
                rebuild.close()

    def test_where_nothing_was_built_nothing_is(
        self, config: Config, machine: World, tmp_path: Path, script: Path
    ) -> None:
        started = tmp_path / "started"
        script.write_text(f"#!/bin/sh\ntouch {started}\n")
        with pytest.raises(EngineError, match="has no fp32 plan"):
            say(config, NullSink(paced=False))
        assert not started.exists()
