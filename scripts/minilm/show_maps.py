"""Sends a sentence through the trained layers of a server, and shows at which words each word looks.

Only attention runs on the server; the rest of the model (embeddings, layer norms, feed-forward) runs here, in numpy.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from encoder import Encoder
from forward_client import ForwardClient
from wordpiece import WordPiece

ROOT = Path(__file__).resolve().parents[2]
SPECIAL = ("[CLS]", "[SEP]")   # which the model puts around a sentence, and looks at when it has nothing to look for


def print_map(words: list, weights: np.ndarray) -> None:
    """weights: [words, words], a row for each word that looks."""
    width = max(6, *(len(word) + 2 for word in words))
    print(" " * width + "".join(f"{word:>{width}}" for word in words) + f" |{'sum':>{width}}")
    for word, row in zip(words, weights):
        cells = "".join(f"{weight:>{width}.2f}" if weight >= 0.005 else f"{'.':>{width}}" for weight in row)
        print(f"{word:<{width}}{cells} |{row.sum():>{width}.3f}")


def head_to_show(words: list, weights: np.ndarray) -> int:
    """The head whose words look least at [CLS], [SEP] and themselves; weights: [heads, words, words]."""
    inner = [i for i, word in enumerate(words) if word not in SPECIAL]
    among = weights[:, inner][:, :, inner]
    return int((among.sum((1, 2)) - among.trace(axis1=1, axis2=2)).argmax())


class Show:
    """Attends through the server, shows each layer's map, and keeps what is said at the end."""

    def __init__(self, client: ForwardClient, encoder: Encoder, words: list):
        self.client, self.encoder, self.words = client, encoder, words
        self.compute_us, self.output_error, self.weights_error = 0.0, 0.0, 0.0

    def attend(self, layer: int, hidden: np.ndarray) -> np.ndarray:
        sent = hidden[None].astype(np.float32)
        reply = self.client.forward(f"minilm/{layer}", sent)
        output, weights = reply.output[0], reply.weights[0]
        head = head_to_show(self.words, weights)
        print(f"\nLayer minilm/{layer}, head {head}: how much each word (row) looks at each word (column).\n")
        print_map(self.words, weights[head])
        want = self.encoder.attend(layer, sent[0].astype(np.float64))
        self.output_error = max(self.output_error, abs(output - want.output).max())
        self.weights_error = max(self.weights_error, abs(weights - want.weights).max())
        self.compute_us += reply.timings.compute_ns / 1e3
        return output.astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True, help="the server, as gRPC names it")
    parser.add_argument("--model", type=Path, required=True,
                        help="folder of config.json, model.safetensors and tokenizer.json")
    parser.add_argument("--sentence", default="The bank by the river was steep")
    arguments = parser.parse_args()

    encoder, tokenizer = Encoder(arguments.model), WordPiece(arguments.model)
    words, ids = tokenizer.tokens(arguments.sentence), tokenizer.encode(arguments.sentence)
    if len(ids) > encoder.positions:
        sys.exit(f"the sentence has {len(ids)} tokens; the model takes {encoder.positions}")
    print(f'"{arguments.sentence}": {len(ids)} tokens, each {encoder.model_dim} wide, through {encoder.layers} trained '
          f"layers of {encoder.heads} heads.")
    print("Of each layer, the head whose words look most at other words. A dot is less than 0.005.")
    client = ForwardClient(arguments.target, ROOT)
    show = Show(client, encoder, words)
    _, embedding = encoder.encode(ids, show.attend)
    client.close()
    _, exact = encoder.encode(ids, lambda layer, hidden: encoder.attend(layer, hidden).output)
    print(f"\nThe server computed for {show.compute_us:.0f} us, all layers together.")
    print(f"The same layers by numpy in double precision: outputs differ by at most {show.output_error:.1e}, "
          f"weights by at most {show.weights_error:.1e}.")
    print("The sentence's embedding, by the server's attention and by numpy's: "
          f"cosine 1 - {max(0.0, 1 - embedding @ exact):.1e}.")


if __name__ == "__main__":
    main()
