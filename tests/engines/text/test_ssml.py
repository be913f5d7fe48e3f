from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import SsmlError
from engines.text.script import Mark, Passage, Reading
from engines.text.ssml import parse, script_of


def passages(inside: str) -> tuple[Passage, ...]:
    return parse(f"<speak>{inside}</speak>").passages


def only(inside: str) -> Passage:
    (passage,) = passages(inside)
    return passage


def test_text_is_text_whatever_white_space_it_is_written_with() -> None:
    assert only("\n  Hello,\n\t world &amp; you &lt;3.\n").spans == (" Hello, world & you <3. ",)


def test_a_plain_text_is_no_markup() -> None:
    text = "a < b & c [[h@l'oU]] <break time='5s'/>"
    assert script_of(text, ssml=False).passages == (Passage((text,)),)


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<s>One</s> <s>two</s>", "One\ntwo"),
        ("<p><s>One</s><s>two</s></p>three", "One\ntwo\n\nthree"),
        ("<w>in</w><token>side</token>", "inside"),
        ('A <lookup ref="names">name</lookup> here', "A name here"),
        ("<![CDATA[a < b & c]]><!-- no --> &#233;&#x41;", "a < b & c éA"),
    ],
)
def test_paragraphs_and_sentences_are_parted_by_lines(inside: str, text: str) -> None:
    assert only(inside).text.strip() == text


@pytest.mark.parametrize(
    ("attributes", "seconds"),
    [
        ('time="500ms"', 0.5),
        ('time="1.5s"', 1.5),
        ('time="+2s"', 2.0),
        ('strength="x-strong"', 1.2),
        ('strength="weak" time="1s"', 1.0),
        ("", 0.5),
        ('time="soon"', 0.5),
        ('time="soon" strength="weak"', 0.25),
        ('time=".25S"', 0.25),
        ('strength="STRONG"', 0.8),
    ],
)
def test_a_break_is_silence_after_what_came(attributes: str, seconds: float) -> None:
    before, after = passages(f"One. <break {attributes}/> Two.")
    assert (before.text.strip(), before.pause_s, after.text.strip(), after.pause_s) == ("One.", seconds, "Two.", 0)


def test_breaks_add_up_and_may_stand_alone() -> None:
    (passage,) = passages('<break time="1s"/><break time="250ms"/>')
    assert (passage.spans, passage.pause_s) == ((), 1.25)
    assert passages('a<break strength="none"/>b')[0].pause_s == 0
    assert passages('a<break time="soon" strength="none"/>b')[0].pause_s == 0


def test_a_sentence_that_a_break_cuts_sounds_as_if_it_went_on() -> None:
    assert [passage.text for passage in passages("Turn <break/> left. <break/> Then right <break/> Stop")] == [
        "Turn,",
        " left. ",
        " Then right ",
        " Stop",
    ]


def test_a_reading_that_is_told_does_not_divide_its_sentence() -> None:
    passage = only(
        'On <say-as interpret-as="date" format="dmy">3/4</say-as> <sub alias="kilometres">km</sub> and '
        '<phoneme alphabet="ipa" ph="/təmˈeɪtəʊ/">tomato</phoneme> <mark name="here"/>now.'
    )
    assert [span for span in passage.spans if not isinstance(span, str)] == [
        Reading("3/4", say_as="date", form="dmy"),
        Reading("km", words="kilometres"),
        Reading("tomato", ipa="təmˈeɪtəʊ"),
        Mark("here"),
    ]


@pytest.mark.parametrize(
    ("tag", "rate", "gain"),
    [
        ('prosody rate="slow"', 0.8, 1.0),
        ('prosody rate="50%"', 0.5, 1.0),
        ('prosody rate="Fast" volume="LOUD"', 1.25, 1.41),
        ('prosody rate="+20%" volume="-6dB"', 1.2, 0.501),
        ('prosody volume="silent"', 1.0, 0.0),
        ('prosody volume="50"', 1.0, 0.5),
        ('prosody rate="0.01"', 0.5, 1.0),
        ('prosody rate="999" volume="+900dB"', 2.0, 4.0),
        ('emphasis level="strong"', 0.85, 1.35),
        ("emphasis", 0.92, 1.15),
    ],
)
def test_prosody_and_emphasis_are_rate_and_gain(tag: str, rate: float, gain: float) -> None:
    before, inside, after = passages(f"one <{tag}>two</{tag.split(' ', maxsplit=1)[0]}> three")
    assert (inside.rate, inside.gain) == pytest.approx((rate, gain), abs=0.001)
    assert (before.rate, before.gain, after.rate, after.gain) == (1, 1, 1, 1)


def test_manners_within_one_another_multiply() -> None:
    inner = passages('<prosody rate="50%">a<prosody rate="150%" volume="50">b</prosody></prosody>')[1]
    assert (inner.rate, inner.gain) == (0.75, 0.5)


def test_voices_and_languages() -> None:
    assert [
        (p.voice, p.language) for p in passages('a<voice name="joe">b<lang xml:lang="DE-de">c</lang>d</voice>')
    ] == [("", None), ("joe", None), ("", "de-de"), ("joe", None)]
    assert [(p.text, p.language) for p in passages('a <w xml:lang="fr">chat</w> b')][1] == ("chat", "fr")
    assert parse('<speak xml:lang="fr"><p xml:lang="it">a</p>b</speak>').passages[0].language == "it"


def test_audio_has_its_text_for_when_there_is_no_such_sound() -> None:
    before, sound, after = passages('One <audio src="bell"><desc>a bell</desc>Ding <break/>dong</audio> two')
    assert (before.clip, sound.clip, after.clip) == ("", "bell", "")
    assert sound.text == "Ding dong"


def test_what_is_about_the_text_is_not_spoken() -> None:
    assert only("<metadata><title>x</title></metadata>Hello<meta/>").text == "Hello"


@pytest.mark.parametrize(
    ("inside", "warning"),
    [
        ("<foo:bar x='1'>a</foo:bar>", "foo:bar"),
        ("<blink>a</blink>", "blink"),
        ('<prosody pitch="high">a</prosody>', "pitch"),
        ('<prosody rate="soon">a</prosody>', "soon"),
        ('a<break time="soon"/>', "soon"),
        ("<mark/>a", "mark"),
        ('<phoneme alphabet="x-sampa" ph="t">a</phoneme>', "x-sampa"),
        ('<phoneme ph="...">a</phoneme>', "ph"),
        ('<voice gender="female">a</voice>', "gender"),
        ("<say-as>a</say-as>", "interpret-as"),
        ("<audio>a</audio>", "src"),
        ('<audio src="bell" repeatCount="2" fetchtimeout="2s">a</audio>', "repeatCount"),
    ],
)
def test_what_cannot_be_done_is_told_and_its_text_kept(inside: str, warning: str) -> None:
    script = parse(f"<speak>{inside}</speak>")
    assert script.text == "a"
    assert len(script.warnings) == 1
    assert warning in script.warnings[0]


@pytest.mark.parametrize(
    ("document", "code", "place"),
    [
        ("", "ssml", (1, 0)),
        ("Hello", "ssml", (1, 0)),
        ("<p>Hello</p>", "ssml", (1, 0)),
        ("<speak>\n <p>Hello</speak>", "ssml", (2, 11)),
        ("<speak>a &nbsp; b</speak>", "ssml", (1, 9)),
        ("<speak>a</speak><speak/>", "ssml", (1, 16)),
        ("<speak>\0</speak>", "ssml", (1, 7)),
        ('<!DOCTYPE speak SYSTEM "http://x/y.dtd"><speak>a</speak>', "ssml_unsafe", None),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><speak>&a;</speak>', "ssml_unsafe", None),
        ("<speak>" + "<p>" * 51, "ssml_limit", None),
        ("<speak>" + "<break/>" * 5001 + "</speak>", "ssml_limit", None),
        ('<speak><break time="601s"/></speak>', "ssml_limit", None),
    ],
)
def test_what_is_no_ssml_or_too_much_is_refused_with_its_place(
    document: str, code: str, place: tuple[int, int] | None
) -> None:
    with pytest.raises(SsmlError) as caught:
        parse(document)
    assert caught.value.code == code
    assert f"line {caught.value.line}" in str(caught.value)
    if place is not None:
        assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("before", ["", "\n", "\ufeff", "  \r\n\t"])
def test_a_document_may_declare_that_it_is_xml(before: str) -> None:
    declaration = '<?xml version="1.0" encoding="UTF-16"?>'
    assert parse(f"{before}{declaration}\n<speak>é</speak>").text == "é"
    error = refusal(f"{before}{declaration} <speak>é</p></speak>")
    assert error is not None
    assert error.line == before.count("\n") + 1


def test_a_billion_laughs_are_refused_at_once() -> None:
    entities = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    began = time.perf_counter()
    with pytest.raises(SsmlError) as caught:
        parse(f'<!DOCTYPE l [<!ENTITY l0 "ha">{entities}]><speak>&l9;</speak>')
    assert caught.value.code == "ssml_unsafe"
    assert time.perf_counter() - began < 20


TAGS = st.sampled_from(
    ["speak", "p", "s", "break", "say-as", "sub", "phoneme", "prosody", "emphasis", "voice", "lang", "mark", "audio"]
)
NAMES = st.sampled_from(["time", "rate", "volume", "pitch", "name", "src", "alias", "ph", "xml:lang", "interpret-as"])
VALUES = st.one_of(
    st.sampled_from(["500ms", "slow", "+6dB", "-9e9%", "ipa", "", "1" * 40]), st.text("a1<&\"' %s.", max_size=9)
)
TEXTS = st.text(max_size=12)


def escaped(text: str) -> str:
    text = "".join(c for c in text if c.isprintable() or c in "\n\t")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def build(tag: str, attributes: dict[str, str], content: list[str]) -> str:
        written = "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items())
        return f"<{tag}{written}>{''.join(content)}</{tag}>"

    return st.builds(build, TAGS, st.dictionaries(NAMES, VALUES, max_size=3), st.lists(children, max_size=4))


def refusal(document: str) -> SsmlError | None:
    try:
        parse(document)
    except SsmlError as error:
        return error
    return None


@given(inside=st.lists(st.recursive(TEXTS.map(escaped), element, max_leaves=12), max_size=4))
def test_any_document_is_read_without_harm(inside: list[str]) -> None:
    document = f"<speak>{''.join(inside)}</speak>"
    if (error := refusal(document)) is not None:
        assert error.code in {"ssml", "ssml_limit"}
        return
    script = parse(document)
    for passage in script.passages:
        assert 0.5 <= passage.rate <= 2
        assert 0 <= passage.gain <= 4
        assert 0 <= passage.pause_s <= 600
    assert all(warning.isprintable() for warning in script.warnings)


@given(document=st.text(st.sampled_from("<>/&;!?[]-\"'=speakbr CDATx\n\ud800\u00e9"), max_size=60))
def test_any_characters_are_read_or_refused(document: str) -> None:
    for error in (refusal(document), refusal(f"<speak>{document}</speak>")):
        assert error is None or (error.line >= 1 and error.column >= 0)


@given(text=st.text())
def test_no_text_is_lost(text: str) -> None:
    assert "".join(parse(f"<speak>{escaped(text)}</speak>").text.split()) == "".join(
        c for c in text if (c.isprintable() or c in "\n\t") and not c.isspace()
    )
