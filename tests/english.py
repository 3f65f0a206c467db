"""Find English sentences in what the course prints in Chinese."""

import errno
import os
import re

# what is quoted: code, paths, names of settings and of examples, texts in English quotation marks
_QUOTED = re.compile(
    r"`[^`]*`|\S*[/=_<]\S*|--?[a-z][\w-]*|\"[^\"]*\"|Linux Foundation"
    r"|^(?: +(?:course|示例)|用法：).*$",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"[A-Za-z']+(?: [A-Za-z']+){2,}")
NAMES = {"NVIDIA H100 HBM", os.strerror(errno.ENOENT)}  # the second is what Linux says


def find_english(text: str) -> list[str]:
    """Return three English words or more in a row, outside of what is quoted."""
    return [words for words in _SENTENCE.findall(_QUOTED.sub("|", text)) if words not in NAMES]
