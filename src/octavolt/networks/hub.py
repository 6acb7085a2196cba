"""Folders of weights from the Hugging Face Hub, or from its cache on this machine."""

import re
from pathlib import Path

from octavolt.errors import OctavoltError

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""What a repository is called: 'owner/name'."""
FILES = ("*.json", "*.safetensors", "*.txt", "*.model")
"""What is fetched: pickles only where there is nothing else."""


def fetched_folder(repository: str) -> Path:
    """Return the folder of a repository in the library's cache, fetched first if it isn't there.

    HF_ENDPOINT, a mirror, and HF_HUB_OFFLINE are honoured by the library.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(huggingface_hub.snapshot_download(repository, allow_patterns=[*FILES]))
        if not any(folder.glob("*.safetensors*")):
            allowed = [*FILES, "*.bin"]
            folder = Path(huggingface_hub.snapshot_download(repository, allow_patterns=allowed))
    except (OSError, ValueError, HfHubHTTPError, LocalEntryNotFoundError) as error:
        # The library's advice follows its reason, and is for people who call it themselves.
        why = " ".join(str(error).split()).split(". ")[0].rstrip(".")
        raise OctavoltError(
            f"Can't fetch {repository} from the Hugging Face Hub: {why}. Fetch its config.json, "
            "its weights and the files of its tokenizer elsewhere into one folder, and give that "
            "with --weights; HF_ENDPOINT names a mirror."
        ) from error
    return folder
