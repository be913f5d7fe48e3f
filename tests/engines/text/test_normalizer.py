# ruff: noqa: RUF001  signs that look like others are what it reads
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulators.pairs import bare, pairs, wrong

from engines.text.normalize.english.numbers import cardinal, ordinal, year
from engines.text.normalize.markup import emoji, plain, unescape
from engines.text.normalize.pipeline import Normalizer
from engines.text.normalize.repair import repair
from engines.text.normalize.say_as import say_as

SETS = sorted((Path(__file__).parent / "normalization/en").glob("*.txt"))
UNSEEN = sorted((Path(__file__).parent / "normalization/en-unseen").glob("*.txt"))
"""Written before looking at the rules, which were then mended by kinds."""

american, british = Normalizer("en-us"), Normalizer("en-gb")


@pytest.mark.parametrize("file", SETS, ids=lambda file: file.stem)
def test_written_forms_are_read_as_an_announcer_would(file: Path) -> None:
    assert wrong(file, american.normalize) == []


@pytest.mark.parametrize("file", UNSEEN, ids=lambda file: file.stem)
def test_others_of_each_kind_too(file: Path) -> None:
    assert wrong(file, american.normalize) == []


def test_there_are_pairs_of_every_kind() -> None:
    assert len(SETS) == 17
    assert sum(1 for file in SETS for _ in pairs(file)) >= 400
    assert sum(1 for file in UNSEEN for _ in pairs(file)) >= 1000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Amounts: the unit behind the number, millions too.
        ("The pack costs $18 and £7.20.", "The pack costs eighteen dollars and seven pounds twenty pence."),
        ("A grant of €4.5 million", "A grant of four point five million euros"),
        # Long numbers lose no digit.
        ("22,361 rows", "twenty two thousand three hundred sixty one rows"),
        ("0.00042 A", "zero point zero zero zero four two amperes"),
        # Years, and numbers that are none.
        ("In 1920 and 1908", "In nineteen twenty and nineteen oh eight"),
        ("1907 steps up", "one thousand nine hundred seven steps up"),
        # Roman numerals, also Unicode's own.
        ("World War II ended", "World War two ended"),
        ("Henry Ⅷ in Bay Ⅻ", "Henry the eighth in Bay twelve"),
        # A wrong suffix is read by value.
        ("the 22th, 23th and 101th guest", "the twenty second, twenty third and one hundred first guest"),
        # Dates by locale; ISO is year, month, day everywhere.
        ("on 03/04/2026", "on march fourth twenty twenty six"),
        ("on 2026-04-03", "on april third twenty twenty six"),
        # Clock times without stray zeros.
        ("09:04, 03:00 and 21:00", "nine oh four, three o'clock and twenty one hundred"),
        # Figure by figure: telephone numbers and codes, not quantities.
        ("Code: 300, room 300", "Code: three zero zero, room three hundred"),
        ("Dial +49 (0) 30 555123", "Dial plus four nine, zero, three zero, five five five one two three"),
        # Addresses: short, and the tail is spoken.
        (
            "See http://www.robot.org/help?x=1&y=2#top, then call.",
            "See robot dot org slash help, then call.",
        ),
        # Units, plural by value.
        ("1 km, 2 km, 1.0 km", "one kilometer, two kilometers, one point zero kilometers"),
        # Abbreviations end no sentence.
        ("Mr. and Mrs. Kim met Gen. Lee.", "mister and misses Kim met general Lee."),
        ("He works for the U.N. in the U.S. now.", "He works for the UN in the US now."),
        ("It opens at 9 a.m. Be there.", "It opens at nine AM. Be there."),
        # Capitals stay what they are: words as words.
        ("STOP NOW, NHS 24", "STOP NOW, NHS twenty four"),
        # A minus is always said.
        ("-5, −4 and -0.4 °C", "minus five, minus four and minus zero point four degrees Celsius"),
        ("between -5 and +3", "between minus five and plus three"),
        # Fractions, but not what is no fraction.
        ("1/4 full, 2 3/4, ½, 24/7", "one quarter full, two and three quarters, one half, twenty four seven"),
        # In a sentence a range is read by its sense; on its own as it stands.
        ("rows 2-5", "rows two to five"),
        ("2-5", "two five"),
        ("See https://a.io", "See a dot io"),
        ("https://a.io", "https colon slash slash a dot io"),
        ("Mon-Fri 9am-5pm, Sat. 10-16", "Monday to Friday nine AM to five PM, Saturday ten to sixteen"),
        ("at 2026-04-03T08:05:00Z", "at april third twenty twenty six, eight oh five UTC"),
        ("Invoice no. 2024-0815", "Invoice number two zero two four, zero eight one five"),
        ("ISBN 978-3-16-148410-0", "ISBN nine seven eight, three, one six, one four eight four one zero, zero"),
        ("He ran 100 m in 9.58 s.", "He ran one hundred meters in nine point five eight seconds."),
        ("at 52.52° N", "at fifty two point five two degrees north"),
        ("10⁻³ m, H₂O", "ten to the power of minus three m, H two O"),
        ("Ask Dr. Smith at Oak Dr. now", "Ask doctor Smith at Oak Drive now"),
        ("Mr. & Mrs. Smith", "mister and misses Smith"),
        # Letters by name, where espeak-ng would make a word of them.
        ("our EPAM team", "our E.P.A.M team"),
        ("the GPU and NASA", "the GPU and NASA"),
        # What touches is parted.
        ("x£5y", "x five pounds y"),
        # Two sides of something are no opening hours.
        ("A 24 x 7 inch board, 24x7 cm", "A twenty four by seven inch board, twenty four by seven centimeters"),
        ("open 24x7 in May", "open twenty four seven in May"),
        # What begins like thousands may be the address of a computer.
        (
            "Host 192.168.100.200 in the lab",
            "Host one nine two dot one six eight dot one zero zero dot two zero zero in the lab",
        ),
        ("1.000.000 m", "one million meters"),
        # A thousand of something is no temperature.
        ("100 K users, 250 K of them new", "one hundred K users, two hundred fifty K of them new"),
        ("A 6500 K lamp at 300 K.", "A six thousand five hundred kelvin lamp at three hundred kelvins."),
        ("Dr.$0", "doctor zero dollars"),
    ],
)
def test_what_users_reported(text: str, words: str) -> None:
    assert bare(american.normalize(text)) == bare(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("on Wed. 5 May", "on Wednesday the fifth of may"),
        ("Mon and Wed. at 5", "Monday and Wednesday at five"),
        ("On Sat and Sun. We rest at 5.", "On Saturday and Sunday. We rest at five."),
    ],
)
def test_the_stop_of_a_day_ends_a_sentence_only_where_one_ends(text: str, words: str) -> None:
    assert american.normalize(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("03/04/2026", "the third of april twenty twenty six"),
        ("2026-04-03", "the third of april twenty twenty six"),
        ("205 and 1,001 steps", "two hundred and five and one thousand and one steps"),
        ("5 km", "five kilometres"),
        ("a 50p coin", "a fifty pence coin"),
    ],
)
def test_british_english_is_read_as_in_britain(text: str, words: str) -> None:
    assert british.normalize(text) == words


def test_the_order_of_dates_can_be_told() -> None:
    text = "03/04/2026"
    assert Normalizer("en-us", date_order="day-month").normalize(text) == british.normalize(text)
    assert Normalizer("en-gb", date_order="month-day").normalize(text) == american.normalize(text)


def test_without_written_forms_only_noise_goes() -> None:
    quiet = Normalizer("en-us", written_forms=False)
    assert quiet.normalize("<b>It</b> costs\u200b $5 😂") == "It costs $5  "


PLAIN = ["the", "train", "will", "Berlin", "leave;", "now,", "this?", "fine!", "mother-in-law", "don't", "I", "end."]


@given(words=st.lists(st.sampled_from(PLAIN)))
def test_plain_words_stay_as_they_are(words: list[str]) -> None:
    assert american.normalize(" ".join(words)) == " ".join(words)


def test_each_step_tells_what_it_made() -> None:
    text = "<b>Dr.</b> Ode’s 2 cats 😂"
    steps = american.steps(text)
    assert [step.name for step in steps] == [
        *("text", "unicode", "html", "emoji", "abbreviations", "whole numbers", "spaces"),
    ]
    assert steps[0].text == text
    assert steps[-1].text == american.normalize(text) == "doctor Ode's two cats"


def test_several_threads_may_share_one() -> None:
    texts = [f"It costs ${i}.50 on July {i % 28 + 1}, {1900 + i}." for i in range(200)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(american.normalize, texts)) == [american.normalize(text) for text in texts]


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("cafe\u0301", "café"),
        ("a\u00a0b\u2009c\u3000d", "a b c d"),
        ("zero\u200bwidth soft\u00adhyphen \ufefffirst", "zerowidth softhyphen first"),
        ("\u202bright\u202c", "right"),
        ("“go” ‘now’ don’t don`t", "\"go\" 'now' don't don't"),
        ("nul\x00 bell\x07", "nul  bell "),
        ("lone \ud83d end", "lone \ufffd end"),
        ("pair \ud83d\ude02", "pair 😂"),
        ("ＡＢＣ １２３ ﬁne 𝐛𝐨𝐥𝐝", "ABC 123 fine bold"),
        ("١٢٣ ४२", "123 42"),
        ("2½ ¾", "2 1/2 3/4"),
        ("① ②", "1 2"),
        ("5−3, −4", "5−3, -4"),
        ("m² km³", "m² km³"),
        ("a\r\nb\u2028c", "a\nb\nc"),
        ("plain text", "plain text"),
    ],
)
def test_unicode_is_repaired(broken: str, whole: str) -> None:
    assert repair(broken) == whole


@pytest.mark.parametrize(
    ("marked", "bare_text"),
    [
        ("<b>Go</b> &amp; stop", "Go & stop"),
        ("a < b > c", "a < b > c"),
        ("a <b", "a <b"),
        ("&quot;hi&quot; &#65; &lt;b&gt;", '"hi" A <b>'),
        ("&amp;lt;", "&lt;"),
        ("one<br/>two<p class='x'>three</p>", "one\ntwo\nthree\n"),
        ("AT&T &nosuch; x &ndash; y", "AT&T &nosuch; x – y"),
        ("<script>alert(1)</script>hi <!-- no --> you", " hi   you"),
        ("<3 you, <john@x.org>", "<3 you, <john@x.org>"),
    ],
)
def test_html_is_unescaped_once_and_stripped(marked: str, bare_text: str) -> None:
    assert unescape(marked) == bare_text


@pytest.mark.parametrize(
    ("marked", "bare_text"),
    [
        ("**Stop** now, *please*, ***very*** __much__ _so_", "Stop now, please, very much so"),
        ("# Alert\n\n## Two ##", "Alert\n\nTwo"),
        ("- one\n* two\n+ three\n- [x] four", "one\ntwo\nthree\nfour"),
        ("[the map](https://x.org/a_b) and ![a picture](p.png)", "the map and a picture"),
        ("`code` and ~~old~~", "code and old"),
        ("> quoted\n---\nafter", "quoted\n\nafter"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a, b\n\n1, 2"),
        ("2*3*4 snake_case_name a - b", "2*3*4 snake_case_name a - b"),
        ("```python\nx\n```", "\nx\n"),
    ],
)
def test_markdown_is_stripped(marked: str, bare_text: str) -> None:
    assert plain(marked) == bare_text


@pytest.mark.parametrize(
    ("text", "dropped", "named"),
    [
        ("Well done 😂😂😂!", "Well done !", "Well done face with tears of joy!"),
        ("👩‍🔬 works", "works", "woman scientist works"),
        ("✅ Done", "Done", "check mark button Done"),
        ("Go 🇩🇪", "Go", "Go Germany"),
        ("👍🏽 yes", "yes", "thumbs up medium skin tone yes"),
        ("press 1️⃣", "press 1", "press 1"),
        ("🙂", "", "slightly smiling face"),
    ],
)
def test_emoji_are_dropped_or_named_once(text: str, dropped: str, named: str) -> None:
    assert " ".join(emoji(text, "drop").split()).replace(" !", "!") == dropped.replace(" !", "!")
    assert " ".join(emoji(text, "name").split()).replace(" !", "!") == named
    assert emoji(text, "keep") == text


@given(number=st.integers(-(10**21), 10**21))
def test_every_number_has_words(number: int) -> None:
    words = cardinal(number)
    assert words.replace(" ", "").isalpha()
    assert ("minus" in words) == (number < 0)
    assert cardinal(number, british=True).replace(" and ", " ") == words
    assert ordinal(abs(number)).replace(" ", "").isalpha()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        *((1000, "one thousand"), (1005, "one thousand five"), (1066, "ten sixty six"), (1900, "nineteen hundred")),
        *((1909, "nineteen oh nine"), (2000, "two thousand"), (2010, "twenty ten"), (2101, "twenty one oh one")),
    ],
)
def test_years(number: int, words: str) -> None:
    assert year(number) == words


@pytest.mark.parametrize(
    ("text", "kind", "form", "words"),
    [
        ("12", "cardinal", None, "twelve"),
        ("-3.5", "cardinal", None, "minus three point five"),
        ("XII", "ordinal", None, "twelfth"),
        ("21st", "ordinal", None, "twenty first"),
        ("0042", "digits", None, "zero zero four two"),
        ("aB1", "characters", None, "A, B, one"),
        ("03/04/2026", "date", "dmy", "april third twenty twenty six"),
        ("20260403", "date", "yyyymmdd", "april third twenty twenty six"),
        ("4/2026", "date", "my", "april twenty twenty six"),
        ("17:05", "time", "hms24", "seventeen oh five"),
        ("9", "time", None, "nine o'clock"),
        ("555 1234", "telephone", None, "five five five, one two three four"),
        ("$5.20", "currency", None, "five dollars twenty cents"),
        ("5.20", "currency", "eur", "five euros twenty cents"),
        ("10 kg", "unit", None, "ten kilograms"),
        ("10", "measure", "kg", "ten kilograms"),
        ("2+1/2", "fraction", None, "two and a half"),
        ("3/20", "fraction", None, "three twentieths"),
        ("AB", "verbatim", None, "A, B"),
        ("0403", "date", "md", "april third"),
        ("03042026", "date", "dmy", "april third twenty twenty six"),
        ("1430", "time", "hms24", "fourteen thirty"),
        ("0230p", "time", None, "two thirty PM"),
        ("555 1234 ext 9", "telephone", None, "five five five, one two three four, extension, nine"),
        ("1/x", "fraction", None, None),
        ("9999", "time", None, None),
        ("hello", "cardinal", None, None),
        ("99/99", "date", "md", None),
        ("5", "nothing", None, None),
        ("", "digits", None, None),
    ],
)
def test_what_is_told_of_a_text_is_heeded(text: str, kind: str, form: str | None, words: str | None) -> None:
    assert say_as(text, kind, form, "en-us") == words


KINDS = ["cardinal", "ordinal", "digits", "characters", "fraction", "date", "time", "telephone", "currency", "unit"]


@given(
    text=st.text(max_size=20) | st.from_regex(r"[0-9]{1,4}[-/:. ]?[0-9a-z]{0,4}[-/:. ]?[0-9]{0,4}", fullmatch=True),
    kind=st.sampled_from(KINDS),
    form=st.none() | st.sampled_from(["dmy", "y", "md", "eur", "km", "x"]),
)
def test_any_text_may_be_told_to_be_anything(text: str, kind: str, form: str | None) -> None:
    said = say_as(text, kind, form, "en-us")
    assert said is None or not any(sign.isdecimal() for sign in said)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Press the RED button", "Press the red button"),
        ("LOW battery, turn it OFF", "low battery, turn it off"),
        ("LOW BATTERY", "LOW BATTERY"),
        ("the LiDAR's RAM and RFID", "the LiDAR's ram and R.F.I.D"),
        ("the FBI and the ICE", "the FBI and the ICE"),
        ("Gate A is open", "Gate A-is open"),
        ("GATE A IS OPEN", "GATE A-IS OPEN"),
        ("Terminals A and B", "Terminals A-and B"),
        ("Take the A train", "Take the A-train"),
        ("A robot. A man. Once Upon A Time", "A robot. A man. Once Upon A Time"),
        ("AT&T", "A.T and T"),
    ],
)
def test_letters_are_letters_and_words_are_words_to_espeak_ng(text: str, words: str) -> None:
    assert american.normalize(text) == words
