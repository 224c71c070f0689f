"""Certificates as an authority issues them, in files.

`python tests/certificates.py FOLDER` makes some for the tests of clients in other languages.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

DAY = dt.timedelta(days=1)
_TO_SIGN = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""Since 3.13, Python demands of certificates what RFC 5280 does (`ssl.VERIFY_X509_STRICT`)."""


class Issued(Struct, frozen=True):
    """A certificate and its key, in PEM."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; its own is `file`."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._name = _subject(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._issued = 0
        self.file = directory / f"{name}.pem"
        builder = _builder(self._name, self._name, self._key.public_key(), ends_in=DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_TO_SIGN, critical=True)
        own = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        builder = builder.add_extension(own, critical=False)
        self.file.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, *names: str, ends_in: dt.timedelta = DAY) -> Issued:
        """A certificate of a server with these hosts and addresses."""
        return self._issue(names or ("localhost", "127.0.0.1"), ExtendedKeyUsageOID.SERVER_AUTH, ends_in)

    def client(self, *names: str, ends_in: dt.timedelta = DAY) -> Issued:
        """A certificate of a client with these hosts and URIs."""
        return self._issue(names, ExtendedKeyUsageOID.CLIENT_AUTH, ends_in)

    def _issue(self, names: tuple[str, ...], use: x509.ObjectIdentifier, ends_in: dt.timedelta) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject("subject"), self._name, key.public_key(), ends_in)
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(signer, critical=False)
        self._issued += 1
        stem = self.file.stem
        issued = Issued(
            self._directory / f"{stem}-{self._issued}.pem", self._directory / f"{stem}-{self._issued}-key.pem"
        )
        issued.cert.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        issued.key.touch(mode=0o600)
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return issued


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, ends_in: dt.timedelta
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * DAY)
        .not_valid_after(now + ends_in)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _name(name: str) -> x509.GeneralName:
    if ":" in name:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def main() -> None:
    """Make an authority, a server's certificate, a client's and one that has expired, and another authority."""
    folder = Path(sys.argv[1])
    authority = Authority(folder)
    for name, issued in (
        ("server", authority.server()),
        ("client", authority.client("agent.example")),
        ("expired", authority.client("agent.example", ends_in=-DAY)),
    ):
        issued.cert.rename(folder / f"{name}.pem")
        issued.key.rename(folder / f"{name}-key.pem")
    Authority(folder, "stranger")


if __name__ == "__main__":
    main()
