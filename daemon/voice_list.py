"""Which voices are imported, in the words of events."""

from __future__ import annotations

from daemon.events import VoiceInfo
from engines.families import abilities
from engines.pack import BrokenPack
from engines.pack_store import PackStore


def voice_infos(store: PackStore) -> list[VoiceInfo]:
    """Give those that can be used. For any thread."""
    infos = [pack.info for pack in store.list() if not isinstance(pack, BrokenPack)]
    return [
        VoiceInfo(
            name=info.name,
            language=info.language,
            speakers=tuple(info.speaker_names),
            family=info.family,
            streaming=abilities(info).streaming,
            styles=abilities(info).styles,
        )
        for info in infos
    ]
