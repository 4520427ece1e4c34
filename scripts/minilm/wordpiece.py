"""The tokenizer of uncased BERT models: words, then the longest pieces that the vocabulary has (Wu et al. 2016,
arXiv:1609.08144). Reads tokenizer.json."""

import json
import unicodedata
from pathlib import Path

LONGEST_WORD = 100   # characters; longer ones are unknown, as in the model's own tokenizer
CJK = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
       (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def stands_alone(c: str) -> bool:
    """Whether a character is a word of its own: punctuation, symbols of ASCII, and CJK ideographs."""
    is_symbol = c.isascii() and c.isprintable() and not c.isalnum() and c != " "
    return is_symbol or unicodedata.category(c).startswith("P") or any(a <= ord(c) <= b for a, b in CJK)


def words(text: str) -> list:
    """Lower-cased words of a text, without accents and control characters."""
    kept = []
    for c in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(c)
        if c.isspace():
            kept.append(" ")
        elif category == "Mn" or category.startswith("C") or c == "\ufffd":
            continue
        else:
            kept.append(f" {c} " if stands_alone(c) else c)
    return "".join(kept).split()


class WordPiece:
    def __init__(self, folder: Path):
        tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self.ids = tokenizer["model"]["vocab"]

    def pieces(self, word: str) -> list:
        found, begin = [], 0
        while begin < len(word):
            mark = "##" if begin > 0 else ""
            end = next((e for e in range(len(word), begin, -1) if mark + word[begin:e] in self.ids), None)
            if end is None or len(word) > LONGEST_WORD:
                return ["[UNK]"]
            found.append(mark + word[begin:end])
            begin = end
        return found

    def tokens(self, text: str) -> list:
        return ["[CLS]", *(piece for word in words(text) for piece in self.pieces(word)), "[SEP]"]

    def encode(self, text: str) -> list:
        return [self.ids[token] for token in self.tokens(text)]
