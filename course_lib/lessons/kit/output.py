"""A moving picture as the output of a cell: one piece of HTML with its data, the kit and the
picture's own script.

It fetches nothing and needs no notebook kernel, so it still moves after save and reopening, and on
a web page. If scripts do not run, its alt text is shown, and in the notebooks that the course ships
a PNG (made by ``authoring/notebooks.py``).
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_lib.base.errors import CourseError
from course_lib.base.translation import gettext as _
from course_lib.base.translation import translate, translate_filled
from course_lib.lessons.kit import palette

CATALOG = "pictures"  # the translations of what scripts say
_HERE = Path(__file__).parent
_MARKED = re.compile(
    r"(?<![\w.`])tr`((?:[^`\\]|\\.)*)`|(?<![\w.])count\((?:[^()\"`]|\([^()]*\))*, \"([^\"]+)\"(?:,"
    r" \"([^\"]+)\")?\)",
    re.DOTALL,
)
# of a template: ${...}, with at most one more pair of braces within
_VALUE = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_WRITTEN = re.compile(r'<div data-picture="(?P<name>\w+)-[0-9a-f]+"[^>]*><p>(?P<alt>[^<]*)</p>')
_WORD = re.compile(r"[\w.-]*")  # of data: it may name a state or a colour
_EXERCISE = re.compile(r"(\d\d)[a-e] (.+)")  # of data: an exercise's id, and its title
_CALL = ", picture, "  # of what make_html writes: behind it stands the data
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?:default )?", re.MULTILINE)


@dataclass(frozen=True)
class MovingPicture:
    """One moving picture; a notebook shows it as HTML.

    Attributes:
        name: the picture's folder, whose ``picture.js`` draws it: in ``lessons/pictures`` or in the
            folder of a lesson.
        data: the script's data, of types that JSON has; NaN and the infinities become null, "Inf"
            and "-Inf".
        alt: describes the picture at its start, for learners who cannot see it.
    """

    name: str
    data: Mapping[str, Any]
    alt: str

    def make_html(self) -> str:
        data = json.dumps(
            _encode(self.data), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        kit = _read_script(_HERE / "kit.js")
        picture = _read_script(find_script(self.name))
        key = f"{self.name}-{hashlib.sha256((kit + picture + data).encode()).hexdigest()[:12]}"
        marked = _list_marked_once(kit + picture)
        words = {
            english: translated
            for english in marked
            if (translated := translate(english, CATALOG)) != english
        }
        call = (
            f"mount({json.dumps(key)}, {json.dumps(_make_css())}{_CALL}{data},"
            f" {json.dumps(words, ensure_ascii=False)});"
        )
        return (
            f'<div data-picture="{key}"'
            f' data-lm-suppress-shortcuts="true"><p>{html.escape(self.alt)}</p>'
            f"<p><em>{_('Run this cell to wake the picture.')}</em></p></div>\n"
            # The picture is in a block, so that its names cannot clash with the kit's.
            f'<script type="module">\n{kit}\n{{\n{picture}\n{_escape(call)}\n}}\n</script>'
        )

    def make_page(self) -> str:
        """Return a page for a browser that shows the picture alone."""
        return (
            f"<!doctype html><meta charset=utf-8><title>{html.escape(self.alt)}</title><body"
            f" style='margin: 16px'>{self.make_html()}\n"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/html": self.make_html(), "text/plain": self.alt}


@cache
def find_script(name: str) -> Path:
    """Find the script of a picture by the picture's name.

    Raises: CourseError if no picture, or more than one, has the name.
    """
    scripts = sorted(_HERE.parent.glob(f"*/{name}/picture.js"))
    if len(scripts) != 1:
        raise CourseError(
            f"there are {len(scripts)} folders lessons/*/{name} with a picture.js, and a picture"
            " has one. Give the new picture another name."
        )
    return scripts[0]


def read_picture(markup: str) -> MovingPicture | None:
    """Return the picture that ``make_html`` wrote in English, in the chosen language: what Python
    said is translated, too. None if it is no picture."""
    match = _WRITTEN.match(markup)
    if match is None:
        return None
    at = markup.index(_CALL, markup.rindex("\nmount(")) + len(_CALL)
    data, _end = json.JSONDecoder().raw_decode(markup[at:].replace("<\\!--", "<!--"))
    return MovingPicture(
        match["name"],
        _translate(data, frozenset(_list_keys(data))),
        _translate_alt(html.unescape(match["alt"]), data.get("alt", "")),
    )


def _translate_alt(alt: str, described: str) -> str:
    """Translate an alt text. That of a chart is its title and ``described``, which its data has,
    too."""
    title = alt.removesuffix(f". {described}")
    if not described or title == alt:
        return translate_filled(alt, "interface")
    return _("{title}. {alt}").format(
        title=translate_filled(title, "interface"), alt=translate_filled(described, "interface")
    )


def _translate(data: Any, keys: frozenset[str], *, is_shown: bool = False) -> Any:
    """Translate the texts of data that was saved in English.

    A text that is also a key of the data stays, because a state may name the key by it; so does a
    single word that is not known to be ``is_shown``.
    """
    if isinstance(data, dict):  # {"two halves": "two halves"} is the name that is shown of a key
        # a series, a bar or a box
        of_chart = not data.keys().isdisjoint(("dots", "parts", "at_top"))
        return {
            key: _translate(part, keys - {key}, is_shown=of_chart and key in ("name", "words"))
            for key, part in data.items()
        }
    if isinstance(data, list):
        return [_translate(part, keys) for part in data]
    if not isinstance(data, str) or data in keys or (not is_shown and _WORD.fullmatch(data)):
        return data
    return "\n".join(map(_translate_line, data.split("\n")))


def _translate_line(line: str) -> str:
    if (exercise := _EXERCISE.fullmatch(line)) is None:
        return translate_filled(line, "interface")
    lesson, title = exercise.groups()
    return line.removesuffix(title) + translate(title, f"lesson{lesson}")


def _list_keys(data: Any) -> Iterator[str]:
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _list_keys(part)
    yield from data if isinstance(data, dict) else ()


def list_marked(script: str) -> Iterator[str]:
    """Yield the English of what a script says in the learner's language: of tr`at ${place}` "at
    {0}", of count(n, "warp") "{0} warps".

    A marked text holds no other backquote, and no brace but those around its values.
    """
    for template, noun, plural in _MARKED.findall(script):
        if noun:
            yield (
                f"{{0}} {plural or noun + ('es' if noun.endswith(('ch', 'sh', 's', 'x')) else 's')}"
            )
        else:
            parts = _VALUE.split(template)
            english = (
                "".join(part + f"{{{index}}}" for index, part in enumerate(parts[:-1])) + parts[-1]
            )
            yield _ESCAPE.sub(lambda sign: chr(int(sign[1], 16)) if sign[1] else sign[2], english)
            for value in _VALUE.findall(template):
                yield from list_marked(value)


@cache
def _list_marked_once(script: str) -> tuple[str, ...]:
    return tuple(list_marked(script))


def _encode(value: Any) -> Any:
    """Convert ``value`` to types that JSON has; a float keeps twelve significant digits."""
    if isinstance(value, Mapping):
        return {str(key): _encode(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_encode(part) for part in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "Inf" if value > 0 else "-Inf"
        value = float(f"{value:.12g}")
        return int(value) if value == int(value) and abs(value) < 1e15 else value
    return value


@cache
def _read_script(file: Path) -> str:
    """Read a module without its imports and exports, because kit and picture share one module in
    the page."""
    return _EXPORT.sub("", _IMPORT.sub("", file.read_text(encoding="utf-8")))


@cache
def _make_css() -> str:
    return palette.make_css() + (_HERE / "kit.css").read_text(encoding="utf-8")


def _escape(strings: str) -> str:
    """Escape the texts that would end the script element; in a JavaScript string the result means
    the same."""
    return strings.replace("</", "<\\/").replace("<!--", "<\\!--")
