"""Each pack to the family that loads it."""

from __future__ import annotations

from engines.backends import Gpu, Wanted, load_voice
from engines.kokoro import KokoroVoice
from engines.kokoro_backends import ConcurrentKokoro, load_kokoro
from engines.pack import AnyPack, KokoroPack
from engines.pack_info import AnyInfo, KokoroInfo
from engines.precedence import Precedence
from engines.shared_backends import RenderOn, load_shared
from engines.shared_voices import SharedVoice
from engines.spoken import Abilities
from engines.vits import VitsVoice
from engines.voice import Voice


def load(pack: AnyPack, wanted: Wanted, gpu: Gpu | None = None) -> Voice:
    """Load a pack for one thread. EngineError where nothing that is wanted works."""
    return load_kokoro(pack, wanted) if isinstance(pack, KokoroPack) else load_voice(pack, wanted, gpu)


def abilities(info: AnyInfo) -> Abilities:
    """Tell what a voice can do, loaded or not."""
    return KokoroVoice.abilities if isinstance(info, KokoroInfo) else VitsVoice.abilities


def load_for_many(pack: AnyPack, precedence: Precedence, on: RenderOn | None, wanted: Wanted) -> SharedVoice:
    """Load a pack for renders, to sound as speech does that is computed as `wanted`: see `load_shared`."""
    if isinstance(pack, KokoroPack):
        return ConcurrentKokoro(pack, precedence, wanted)
    return load_shared(pack, precedence, on)
