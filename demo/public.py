"""The public's steps, without an API key: list, verify and download releases."""

from corevault import Client, Pseudocoreset, Release

from demo.failure import demand


def verify_releases(public: Client, dataset_id: str) -> list[tuple[Release, Pseudocoreset]]:
    """All releases of the dataset, oldest first, with signature and all formats verified."""
    pairs = []
    for release in list(public.releases.list(dataset_id=dataset_id))[::-1]:
        statement = public.releases.verify(release)
        demand(statement["size"] == release.size, "The certificate states another size.")
        pairs.append((release, public.releases.download(release)))
    return pairs
