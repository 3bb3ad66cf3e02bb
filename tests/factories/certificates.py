"""A certificate authority for tests, and server certificates that are valid for an hour."""

from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.db import now


class Authority:
    """A certificate authority; its certificate is in ``file``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        own = _make_builder(self._name, self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        self.file = folder / "authority.pem"
        signed = own.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def vouch_for(self, *names: str) -> tuple[Path, Path]:
        """Issue a certificate for names and addresses; return the files with its chain and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = _make_builder(subject, self._name, key.public_key()).add_extension(
            x509.SubjectAlternativeName([_make_general_name(name) for name in names]), critical=False
        )
        signed = certificate.sign(self._key, hashes.SHA256())
        chain, secret = self._folder / f"{len(list(self._folder.iterdir()))}.pem", self._folder / "server.key"
        chain.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        secret.chmod(0o600)
        return chain, secret


def _make_builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now() - timedelta(minutes=5))
    return builder.not_valid_after(now() + timedelta(hours=1))


def _make_general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
