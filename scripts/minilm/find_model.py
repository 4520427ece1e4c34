"""Takes the model's files out of an installed package: lying there as they are, or in a zip archive.

Usage: find_model.py FOLDER_OF_THE_ENVIRONMENT FOLDER_TO_WRITE
"""

import shutil
import sys
import zipfile
from pathlib import Path

FILES = ["config.json", "model.safetensors", "tokenizer.json"]


def main(environment: Path, target: Path) -> None:
    target.mkdir()
    for weights in environment.rglob(FILES[1]):
        for name in FILES:
            shutil.copyfile(weights.parent / name, target / name)
        return
    for archive in environment.rglob("model.zip"):
        with zipfile.ZipFile(archive) as files:
            for name in FILES:
                with files.open(name) as source, open(target / name, "wb") as copy:
                    shutil.copyfileobj(source, copy)
        return
    sys.exit(f"no {FILES[1]} below {environment}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
