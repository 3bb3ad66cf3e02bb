"""The public's side: no key. Find the releases, verify them, download them."""

from corevault import Client, Pseudocoreset, Release

from demo.failure import demand


def verified_releases(public: Client, dataset_id: str) -> list[tuple[Release, Pseudocoreset]]:
    """All releases of the dataset, oldest first: signature and all four representations verified."""
    found = []
    for release in list(public.releases.list(dataset_id=dataset_id))[::-1]:
        statement = public.releases.verify(release)
        demand(statement["size"] == release.size, "The certificate is about another size.")
        found.append((release, public.releases.download(release)))
    return found
