"""SSML to a script: the part of https://www.w3.org/TR/speech-synthesis11/ that devices use.

speak, p, s, break, say-as, sub, phoneme, prosody, emphasis, voice, lang, mark and audio. What is unknown is left away,
its content kept, and the author warned. What XML can do beyond marking text up is refused: no document type, hence no
entities but the five of XML.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, InputSource, Locator

from defusedxml.common import DefusedXmlException
from defusedxml.sax import make_parser

from engines import blends
from engines.errors import SsmlError, StyleError, excerpt
from engines.text import ssml_values
from engines.text.draft import PARAGRAPH, SENTENCE, Draft, Manner
from engines.text.ipa import clean_ipa
from engines.text.script import Mark, Reading, Script, plain

_DEEPEST: Final = 50
"""Tags within tags. Documents that people write have five."""

_MOST_ELEMENTS: Final = 5000
"""Of one document: bounds passages, marks and readings, each of which costs more than its characters do."""

_MOST_PAUSES_S: Final = 600.0
"""Of all breaks: nobody waits for ten minutes."""

_SLOWEST, _QUICKEST = 0.5, 2.0  # beyond these no voice was trained to be understood
_LOUDEST: Final = 4.0

_EMPHASIS: Final = {"strong": (0.85, 1.35), "moderate": (0.92, 1.15), "reduced": (1.1, 0.8), "none": (1.0, 1.0)}
"""Level -> rate and gain: what a VITS voice can. It takes no stress or pitch from outside."""

_UNSPOKEN: Final = frozenset({"metadata", "meta", "lexicon", "desc", "title"})
"""What is about the text, not of it."""

_TRANSPARENT: Final = frozenset({"lookup"})
"""What says something that we do not need."""

_DECLARATION: Final = re.compile(r"\A(\s+)(<\?xml\s[^<>]{0,200}\?>)")
"""XML wants it at the very start; behind the line breaks of a template it says nothing that we need."""

_FETCHING: Final = frozenset({"src", "fetchtimeout", "fetchhint", "maxage", "maxstale", "xml:lang"})
"""What an <audio> may have and need not: a chime is at hand."""

_SPACE: Final = re.compile(r"\s+")


@dataclass(slots=True)
class _Open:
    """An element whose end has not come."""

    name: str
    attributes: Mapping[str, str]
    manner: Manner
    """What applied outside of it."""
    text: list[str] | None = None
    """Of what takes text only: what came so far."""


def script_of(text: str, *, ssml: bool) -> Script:
    """Give the script of a document, or of a plain text. SsmlError where that is no SSML."""
    return parse(text) if ssml else plain(text)


def parse(document: str) -> Script:
    """Read a document. SsmlError with a code and the place, where it is no SSML or too much of it."""
    reader = _Reader()
    source = InputSource()
    # By way of UTF-16, lone surrogates become U+FFFD, which is silent.
    text = document.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _DECLARATION.sub(lambda found: found[1] + " " * len(found[2]), text)
    source.setByteStream(io.BytesIO(text.encode()))
    source.setEncoding("utf-8")  # whatever the document says it is in
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(reader)
    try:
        parser.parse(source)
    except SAXParseException as error:
        raise _error("ssml", error.getMessage(), error) from None
    except DefusedXmlException:
        raise reader.problem("ssml_unsafe", "document types and entities are refused: write the characters") from None
    return reader.script()


def _error(code: str, reason: str, place: Locator | SAXParseException) -> SsmlError:
    return SsmlError(code, reason, place.getLineNumber() or 1, place.getColumnNumber() or 0)


@dataclass(slots=True)
class _Reader(Draft, ContentHandler):
    """Takes what the parser finds, one thing after another."""

    open: list[_Open] = field(default_factory=list)
    silent: int = 0
    """Elements around that are not spoken."""
    elements: int = 0
    locator: Locator | None = None

    def setDocumentLocator(self, locator: Locator) -> None:  # noqa: N802  the interface's name
        self.locator = locator

    def problem(self, code: str, reason: str) -> SsmlError:
        """Make an error about where the parser is."""
        if self.locator is None:
            return SsmlError(code, reason, 1, 0)
        return _error(code, reason, self.locator)

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802  the interface's name
        self.elements += 1
        if not self.open and name != "speak":
            raise self.problem("ssml", f"the outermost element is <{excerpt(name)}>, it should be <speak>")
        if len(self.open) >= _DEEPEST:
            raise self.problem("ssml_limit", f"more than {_DEEPEST} elements within one another")
        if self.elements > _MOST_ELEMENTS:
            raise self.problem("ssml_limit", f"more than {_MOST_ELEMENTS} elements")
        attributes = dict(attrs.items())
        element = _Open(name, attributes, self.manner)
        self.open.append(element)
        if name in _UNSPOKEN:
            self.silent += 1
        elif self.silent == 0:
            begin = _BEGIN.get(name)
            if begin is not None:
                begin(self, element)
            elif name not in _TRANSPARENT:
                self.warn(f"<{excerpt(name)}> is unknown: its text is spoken as it is")

    def endElement(self, name: str) -> None:  # noqa: N802  the interface's name
        element = self.open.pop()
        if name in _UNSPOKEN:
            self.silent -= 1
        elif self.silent == 0:
            end = _END.get(name)
            if end is not None:
                end(self, element)
            self.change(element.manner)

    def characters(self, content: str) -> None:
        if self.silent:
            return
        taker = next((element for element in reversed(self.open) if element.text is not None), None)
        if taker is not None and taker.text is not None:
            taker.text.append(content)
        else:
            self.spans.append(content.replace(SENTENCE, " ").replace(PARAGRAPH, " "))


def _begins(mark: str) -> Callable[[_Reader, _Open], None]:
    def begin(reader: _Reader, element: _Open) -> None:
        reader.spans.append(mark)
        _lang(reader, element)

    return begin


def _ends(mark: str) -> Callable[[_Reader, _Open], None]:
    return lambda reader, _element: reader.spans.append(mark)


def _lang(reader: _Reader, element: _Open) -> None:
    language = element.attributes.get("xml:lang", "").strip().lower()
    if language:
        reader.change(replace(reader.manner, language=language, voice=""))


def _break(reader: _Reader, element: _Open) -> None:
    time, strength = element.attributes.get("time"), element.attributes.get("strength")
    seconds = ssml_values.pause_s(time, strength)
    if seconds is None:
        reader.warn(f"no pause is as long as {excerpt(time or strength or '')!r}: write 500ms or 1.5s")
        seconds = ssml_values.pause_s(None, strength)
    if seconds is None:
        seconds = ssml_values.pause_s(None, None)
    reader.pause(seconds or 0.0)
    if reader.pauses_s > _MOST_PAUSES_S:
        raise reader.problem("ssml_limit", f"breaks of more than {_MOST_PAUSES_S:g} s in all")


def _prosody(reader: _Reader, element: _Open) -> None:
    factors = {"rate": 1.0, "volume": 1.0}
    for name, value in element.attributes.items():
        if name in factors:
            found = (ssml_values.rate if name == "rate" else ssml_values.volume)(value)
            if found is None:
                reader.warn(f"no {name} is {excerpt(value)!r}")
            else:
                factors[name] = found
        else:
            reader.warn(f"the voice cannot change its {excerpt(name)}")
    _scale(reader, factors["rate"], factors["volume"])


def _emphasis(reader: _Reader, element: _Open) -> None:
    level = element.attributes.get("level", "moderate").strip()
    if level not in _EMPHASIS:
        reader.warn(f"no emphasis is {excerpt(level)!r}")
    _scale(reader, *_EMPHASIS.get(level, (1.0, 1.0)))


def _scale(reader: _Reader, rate: float, gain: float) -> None:
    manner = reader.manner
    scaled = min(max(manner.rate * rate, _SLOWEST), _QUICKEST)
    reader.change(replace(manner, rate=scaled, gain=min(manner.gain * gain, _LOUDEST)))


def _voice(reader: _Reader, element: _Open) -> None:
    name = element.attributes.get("name", "").strip()
    language = element.attributes.get("xml:lang") or element.attributes.get("languages", "").split(" ")[0]
    style = element.attributes.get("style", "").strip()
    for other in element.attributes.keys() - {
        "name",
        "style",
        "xml:lang",
        "languages",
        "required",
        "ordering",
        "onvoicefailure",
    }:
        reader.warn(f"voices are not chosen by {excerpt(other)}")
    try:
        blends.check(style, "")
    except StyleError as error:
        raise reader.problem("style", str(error)) from error
    if name or language:
        known = language.strip().lower() if language else reader.manner.language
        reader.change(replace(reader.manner, voice=name, language=known, style=style))  # a style is of its voice
    elif style:
        reader.change(replace(reader.manner, style=style))


def _mark(reader: _Reader, element: _Open) -> None:
    name = "".join(c for c in element.attributes.get("name", "") if unicodedata.category(c)[0] != "C").strip()
    if not name:
        reader.warn("a <mark> has no name")
    else:
        reader.spans.append(Mark(name[:128]))


def _take_text(reader: _Reader, element: _Open) -> None:
    if not any(outer.text is not None for outer in reader.open):  # within another one, that one's reading counts
        element.text = []


def _of_text(end: Callable[[_Reader, _Open], None]) -> Callable[[_Reader, _Open], None]:
    return lambda reader, element: end(reader, element) if element.text is not None else None


def _written(element: _Open) -> str:
    return _SPACE.sub(" ", "".join(element.text or ()))


def _sub(reader: _Reader, element: _Open) -> None:
    written, alias = _written(element), element.attributes.get("alias", "").strip()
    reader.spans.append(Reading(written, words=_SPACE.sub(" ", alias)) if alias else written)


def _say_as(reader: _Reader, element: _Open) -> None:
    written, kind = _written(element).strip(), element.attributes.get("interpret-as", "").strip().lower()
    form = element.attributes.get("format")
    if not kind:
        reader.warn("a <say-as> has no interpret-as")
    if written:
        reader.spans.append(Reading(written, say_as=kind, form=form and form.strip().lower()) if kind else written)


def _phoneme(reader: _Reader, element: _Open) -> None:
    written, alphabet = _written(element), element.attributes.get("alphabet", "ipa").strip().lower()
    sounds = clean_ipa(element.attributes.get("ph", ""))
    if alphabet != "ipa":
        reader.warn(f"no alphabet but ipa is known, and {excerpt(alphabet)!r} is not it")
    elif not sounds:
        reader.warn("a <phoneme> has no ph with sounds in it")
    else:
        written, reading = "", Reading(written.strip(), ipa=sounds)
        reader.spans.append(reading)
    if written:
        reader.spans.append(written)


def _audio(reader: _Reader, element: _Open) -> None:
    for other in element.attributes.keys() - _FETCHING:
        reader.warn(f"a sound cannot change its {excerpt(other)}")
    if not reader.in_one:
        reader.flush()
    reader.in_one += 1


def _audio_end(reader: _Reader, element: _Open) -> None:
    reader.in_one -= 1
    if reader.in_one:  # one within another: the outer one's end counts
        return
    source = element.attributes.get("src", "").strip()
    if not source:
        reader.warn("an <audio> has no src")
    reader.flush(source)


_BEGIN: Final[Mapping[str, Callable[[_Reader, _Open], None]]] = {
    "speak": _lang,
    "p": _begins(PARAGRAPH),
    "paragraph": _begins(PARAGRAPH),
    "s": _begins(SENTENCE),
    "sentence": _begins(SENTENCE),
    "break": _break,
    "prosody": _prosody,
    "emphasis": _emphasis,
    "voice": _voice,
    "lang": _lang,
    "w": _lang,
    "token": _lang,
    "mark": _mark,
    "sub": _take_text,
    "say-as": _take_text,
    "phoneme": _take_text,
    "audio": _audio,
}

_END: Final[Mapping[str, Callable[[_Reader, _Open], None]]] = {
    "p": _ends(PARAGRAPH),
    "paragraph": _ends(PARAGRAPH),
    "s": _ends(SENTENCE),
    "sentence": _ends(SENTENCE),
    "sub": _of_text(_sub),
    "say-as": _of_text(_say_as),
    "phoneme": _of_text(_phoneme),
    "audio": _audio_end,
}
