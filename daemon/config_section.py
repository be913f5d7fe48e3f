"""What the sections of the configuration have in common: their class, and the patterns of what stands in several."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

TOPIC_CHARACTER: Final = r"[^/+#\s\x00-\x1f\x7f-\x9f]"
"""What one level of an MQTT topic may hold. MQTT allows spaces, but people then quote topics wrongly in shells."""

TOPIC: Final = rf"^[^$/+#\s\x00-\x1f\x7f-\x9f]{TOPIC_CHARACTER}*(/{TOPIC_CHARACTER}+)*$"

_HOST_LABEL: Final = r"[^.\s\x00-\x1f\x7f-\x9f]{1,63}"
HOST: Final = rf"^{_HOST_LABEL}(\.{_HOST_LABEL})*\.?$"
"""What resolvers take; Python's raises what no connection attempt would expect for all else."""

TEXT: Final = "printable text of up to 4096 characters"
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$", max_length=4096)]
"""Names and paths for other libraries, which cut them off, or raise, at a NUL."""


class Section(BaseModel):
    """What all sections share: nothing unknown, nothing converted, nothing changed later."""

    # Defaults are validated too: a cross-check must also see a default that clashes with a value given.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=True, allow_inf_nan=False)


def listening_address() -> Any:  # noqa: ANN401  as pydantic has it
    """Give the field of an address that a server of ours listens on."""
    return Field(
        default="127.0.0.1",
        description='Address that it listens on, where anybody may come in, "0.0.0.0" for all; '
        "text of 1 to 253 characters without white space",
        pattern=HOST,
        max_length=253,
    )
