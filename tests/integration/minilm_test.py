"""A trained model, all-MiniLM-L6-v2: its whole encoder in double precision, against the server's attention.

Arguments: triad-server, triad, a folder that keeps the model between runs. Exit code 77: the model cannot be had here.
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

import layer_server
from encoder import Encoder
from wordpiece import WordPiece

SERVER, TRIAD, FOLDER = None, None, None
SKIPPED = 77          # for ctest
NO_NETWORK = 75       # of scripts/fetch-minilm

SENTENCES = [
    "The bank by the river was steep.",
    "A cat sits on the mat.",
    "A kitten rests on a rug.",
    "Stock prices fell sharply on Monday, the third consecutive loss; analysts were unsurprised.",
    "Naïve café owners in 東京!",
    "Attention",
]


class MiniLmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.encoder = Encoder(FOLDER / "model")
        tokenizer = WordPiece(FOLDER / "model")
        cls.ids = [tokenizer.encode(sentence) for sentence in SENTENCES]
        exact = lambda layer, x: cls.encoder.attend(layer, x).output
        encoded = [cls.encoder.encode(ids, exact) for ids in cls.ids]
        # What goes into each layer, as sent: [layer][sentence] of [tokens, model_dim] in f32.
        cls.inputs = [[inputs[layer].astype(np.float32) for inputs, _ in encoded] for layer in range(cls.encoder.layers)]
        cls.embeddings = np.array([embedding for _, embedding in encoded])
        cls.serving = layer_server.serving(SERVER, FOLDER / "layers")
        cls.client = cls.serving.__enter__()
        cls.addClassCleanup(cls.serving.__exit__, None, None, None)

    def test_tokens_are_those_of_the_model(self):
        self.assertEqual(self.ids[0], [101, 1996, 2924, 2011, 1996, 2314, 2001, 9561, 1012, 102])

    def test_the_encoder_is_the_model(self):
        """Sentences that mean the same lie close together; if the encoder were wrong they would not."""
        alike = self.embeddings @ self.embeddings.T
        self.assertGreater(alike[1, 2], 0.6)            # cat on mat, kitten on rug
        self.assertLess(abs(alike[1, [0, 3, 4]]).max(), 0.2)

    def test_every_layer_answers_for_every_sentence(self):
        for layer in range(self.encoder.layers):
            for sentence, hidden in zip(SENTENCES, self.inputs[layer]):
                with self.subTest(layer=layer, sentence=sentence):
                    reply = self.client.forward(f"minilm/{layer}", hidden[None])
                    want = self.encoder.attend(layer, hidden.astype(np.float64))
                    self.assertLessEqual(layer_server.normalised_error(reply.output[0], want.output), 1e-11)
                    self.assertLessEqual(abs(reply.weights[0] - want.weights).max(),
                                         layer_server.weights_bound(want.largest_score))

    def test_a_sentence_among_others_gets_the_same_bytes(self):
        longest = max(map(len, self.ids))
        for layer in range(self.encoder.layers):
            batch = np.full((len(SENTENCES), longest, self.encoder.model_dim), np.nan, np.float32)   # padding is not read
            for row, hidden in zip(batch, self.inputs[layer]):
                row[: len(hidden)] = hidden
            together = self.client.forward(f"minilm/{layer}", batch, lengths=[len(ids) for ids in self.ids])
            for index, hidden in enumerate(self.inputs[layer]):
                alone = self.client.forward(f"minilm/{layer}", hidden[None])
                self.assertEqual(together.output[index, : len(hidden)].tobytes(), alone.output.tobytes())

    def test_embeddings_survive_the_whole_encoder(self):
        """Six layers with the server's attention in them give the embedding of the f64 encoder."""
        attend = lambda layer, x: self.client.forward(f"minilm/{layer}", x[None]).output[0].astype(np.float64)
        for ids, want in zip(self.ids, self.embeddings):
            _, embedding = self.encoder.encode(ids, attend)
            self.assertLessEqual(layer_server.normalised_error(embedding, want), 1e-11)


def fetch() -> None:
    script = layer_server.ROOT / "scripts/fetch-minilm"
    status = subprocess.run([script, "--dir", FOLDER, "--triad", TRIAD]).returncode
    if status == NO_NETWORK and os.environ.get("CI") != "true":
        print("SKIPPED: pip could not get the model")
        sys.exit(SKIPPED)
    if status != 0:
        sys.exit(f"{script.name} ended with {status}")


if __name__ == "__main__":
    SERVER, TRIAD, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    fetch()
    unittest.main(argv=sys.argv[:1])
