"""Which of a few languages a sentence is in: by its script, then by the little words that each language has.

Only the languages of the installed voices are told apart, and only clear cases count: a wrong voice is worse than the
usual one. A model that knows a hundred languages would be 10 to 100 MB for what needs these lists.
"""

# ruff: noqa: RUF001  words and marks of many scripts are what this is about

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from engines.text.alphabets import languages_in, script_of
from engines.text.script import Passage, Script, Span

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")

_LITTLE: Final = {
    "en": "the of and to in is are you that it for on with as was be this have from or had by not but what all were "
    "we when your can said there use an each which she do how their if will up other about out many then them "
    "these so please open closed now here my me our hello welcome i he they has its at",
    "de": "der die das und ist nicht ein eine einen einem zu den mit sich auf für im dem es auch als wird von sie "
    "ich wir ihr bitte nach bei aus war noch wie oder sind hat ihre ihren zum zur nur über wenn kann haben "
    "mein dein kein guten hier jetzt heute willkommen geöffnet geschlossen danke hallo am um bis vor durch ab",
    "fr": "le la les de des un une et est en à que dans pour qui sur pas plus au avec ce il elle sont du par vous "
    "nous je tu votre vos notre ne se cette ces mais ou où être avez avons merci bonjour veuillez bienvenue "
    "ici maintenant aux l'entrée c'est d'un d'une très s'il plaît ouvert fermé",
    "es": "el la los las de que y en un una es no se por con para su al del lo como más pero sus le ya este esta "
    "son está usted nosotros muy sin sobre también hasta hay donde bienvenido gracias hola buenos días favor "
    "aquí ahora abierto cerrado puerta mi nuestro",
    "it": "il lo la i gli le di che e un una è non per con del della dei delle da in si sono al alla nel nella ma "
    "come tra fra più anche questo questa ha suo sua noi voi lei molto benvenuto benvenuti grazie ciao "
    "buongiorno prego qui adesso ora aperto chiuso l'ingresso c'è",
    "pt": "o a os as de que e do da em um uma para com não é por mais dos das como mas ao ele ela seu sua ou quando "
    "muito nos já também só pelo pela até isso está são você nós bem-vindo obrigado obrigada olá bom dia aqui "
    "agora aberto fechado no na ao à às",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar bij nog uit wordt naar "
    "heeft u je wij ik deze dit welkom dank graag hier nu geopend gesloten alstublieft hallo goedemorgen door "
    "over kan",
    "sv": "och att det i en som är på för med den till inte av om ett har de så jag vi du från men var kan ska här "
    "nu välkommen tack hej öppet stängt vänligen era ert din",
    "da": "og at det i en som er på for med den til ikke af om et har de så jeg vi du fra men var kan skal her nu "
    "velkommen tak hej åbent lukket venligst jeres din",
    "nb": "og at det i en som er på for med den til ikke av om et har de så jeg vi du fra men var kan skal her nå "
    "velkommen takk hei åpent stengt vennligst deres din",
    "pl": "i w na z się nie do jest że to o jak po co za od przez czy tak dla są ma pan pani proszę dziękuję witamy "
    "dzień dobry teraz tutaj otwarte zamknięte oraz lub może już tylko",
    "cs": "a v na se je že s z do o to jako po k ve pro si by za nebo jsou má prosím děkuji vítejte dobrý den nyní "
    "zde otevřeno zavřeno může již jen také",
    "hu": "a az és hogy nem egy is van ez csak de meg már el mint kérem köszönöm üdvözöljük jó napot most itt "
    "nyitva zárva vagy lesz volt",
    "fi": "ja on ei se että en oli hän mutta ovat kun niin myös tai joka tämä olen ole kiitos tervetuloa hyvää "
    "päivää nyt tässä avoinna suljettu voi vain",
    "ro": "și în de la cu pe nu este un o care să din ce mai pentru au sunt al ale dar sau vă rugăm mulțumesc bine "
    "ați venit bună ziua aici acum deschis închis",
    "tr": "ve bir bu da de için ile çok ne daha gibi en var olarak lütfen teşekkür hoş geldiniz merhaba şimdi "
    "burada açık kapalı değil mi ya ama",
    "ca": "el la els les de que i en un una és no es per amb del al com més però aquest aquesta són està molt sense "
    "benvingut gràcies hola bon dia aquí ara obert tancat",
    "ru": "и в не на что он с как это по но из у за от то для мы вы я так же добро пожаловать спасибо здравствуйте",
    "uk": "і в не на що він з як це по але із у за від то для ми ви я так ж ласкаво просимо дякую вітаємо та є",
    "bg": "и в не на че той с как това по но от у за то за ние вие аз така добре дошли благодаря здравейте е са",
    "sr": "и у не на да он са као ово по али из код за од то ми ви ја тако добро дошли хвала здраво је су",
}
"""Language -> the words that most sentences have one of, and what devices say."""

_LETTERS: Final = {
    "de": "äöüß", "fr": "àâçéèêëîïôœùû", "es": "ñáéíóú¿¡", "it": "àèéìòù", "pt": "ãõáâàéêíóôúç", "sv": "åäö",
    "da": "æøå", "nb": "æøå", "pl": "ąćęłńóśźż", "cs": "áčďéěíňóřšťúůýž", "hu": "áéíóöőúüű", "fi": "äö",
    "ro": "ăâîșț", "tr": "çğıöşü", "ca": "àçèéíòóú", "uk": "іїєґ", "ru": "ыэъё", "bg": "ъ", "sr": "ђјљњћџ",
}  # fmt: skip
"""Language -> letters that English has not."""

_ENOUGH: Final = 1.0
"""Points that the likeliest language needs, and by how many it must be ahead of the next: a word makes one."""

_LETTER_POINTS: Final = 0.5
"""Of a word with a letter that a language has and English has not."""

_END: Final = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+|\n")
"""Of a sentence. The look-behind keeps a run of dots from being tried from each of its places."""


@functools.lru_cache(maxsize=64)
def _words(language: str) -> frozenset[str]:
    return frozenset(_LITTLE.get(language, "").split())


def guess(text: str, languages: Sequence[str]) -> str | None:
    """Give which of `languages`, named as espeak-ng does, a sentence is in; None where that is not clear."""
    fitting = languages_in(script_of(text), list(languages))
    bases = list(dict.fromkeys(language.lower().split("-")[0] for language in fitting))
    if len(bases) > 1 or (bases and not script_of(text)):
        bases = _likeliest(text.lower().replace("’", "'"), bases)
    if len(bases) != 1:
        return None
    return next(language for language in fitting if language.lower().split("-")[0] == bases[0])


def _likeliest(text: str, bases: list[str]) -> list[str]:
    words = _WORD.findall(text)
    points = {
        base: sum(
            (word in _words(base)) + _LETTER_POINTS * any(letter in word for letter in _LETTERS.get(base, ""))
            for word in words
        )
        for base in bases
    }
    first, *others = sorted(points, key=lambda base: -points[base])
    ahead = points[first] - (points[others[0]] if others else 0.0)
    return [first] if points[first] >= _ENOUGH and ahead >= _ENOUGH else []


def by_language(script: Script, own: str, languages: Sequence[str]) -> Script:
    """Have each sentence that says nothing of its language said in the one that it is in, where that is clear.

    `own` is the language of the utterance's voice, `languages` those of all voices. Foreign words stay with their
    sentence's voice. A script whose voices all speak one language comes back as it is.
    """
    if len({language.lower().split("-")[0] for language in languages}) < 2:  # noqa: PLR2004  one has no choice
        return script
    others = [own, *(language for language in languages if language != own)]
    passages = [part for passage in script.passages for part in _divided(passage, own, others)]
    return replace(script, passages=tuple(passages))


def _divided(passage: Passage, own: str, languages: Sequence[str]) -> list[Passage]:
    if passage.voice or passage.language is not None or not passage.spans:
        return [passage]
    if not all(isinstance(span, str) for span in passage.spans):
        return [_told(passage, passage.spans, own, guess(passage.text, languages))]
    runs: list[tuple[str | None, list[str]]] = []
    start = 0
    text = passage.text
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        sentence, start = text[start:end], end
        found = guess(sentence, languages) if any(map(str.isalpha, sentence)) else None
        if not runs or (found not in {None, runs[-1][0]} and runs[-1][0] is not None):
            runs.append((found, [sentence]))
        else:  # what is in no clear language goes with what is beside it
            runs[-1] = (runs[-1][0] or found, runs[-1][1])
            runs[-1][1].append(sentence)
    parts = [_told(passage, ("".join(sentences),), own, found) for found, sentences in runs]
    return [*(replace(part, pause_s=0.0) for part in parts[:-1]), replace(parts[-1], pause_s=passage.pause_s)]


def _told(passage: Passage, spans: tuple[Span, ...], own: str, found: str | None) -> Passage:
    same = found is None or found.lower().split("-")[0] == own.lower().split("-")[0]
    return replace(passage, spans=spans, language=None if same else found)
