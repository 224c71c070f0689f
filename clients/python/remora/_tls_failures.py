"""Tells what went wrong with TLS from what gRPC says of a connection that failed, and what to do about it."""

import re
from typing import NamedTuple

from remora.errors import TlsFault

_REFUSED = "CERTIFICATE_VERIFY_FAILED"
_CLOSED = r"failed to connect to all addresses.*(Unwrap failed|TSI_|Socket closed|Connection reset|Broken pipe|ALERT)"
"""How a connection ends that the server closes: in TLS 1.3 it looks at the certificate after the client's part."""

_WITH_TLS = tuple(
    (re.compile(said, re.DOTALL), fault, finding)
    for said, fault, finding in (
        (
            "Failed to create security handshaker",
            TlsFault.UNUSABLE_FILES,
            "cannot be asked with these TLS files: one is damaged, or the key is not that of the certificate",
        ),
        (
            rf"{_REFUSED}: (?P<why>[^:\]]+)",
            TlsFault.UNTRUSTED,
            "has a TLS certificate that cannot be verified ({why})",
        ),
        (
            r"Hostname Verification|[Pp]eer name|not in peer certificate",
            TlsFault.OTHER_NAME,
            "has a TLS certificate for another name",
        ),
        ("WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL", TlsFault.PLAIN_SERVER, "speaks no TLS"),
        (
            r"Tls handshake failed.*routines:(?P<why>.*)",
            TlsFault.DISAGREED,
            "and this client agree on no TLS connection ({why})",
        ),
        (_CLOSED, TlsFault.ENDED, "ended the TLS connection"),
    )
)
_WITHOUT_TLS = ((re.compile(_CLOSED, re.DOTALL), TlsFault.PLAIN_CLIENT, "closed the connection at once"),)
_REMEDIES = {
    TlsFault.UNTRUSTED: "Tls(ca_file=...) names who signed it",
    TlsFault.OTHER_NAME: "Tls(server_name=...) says which name it must have",
    TlsFault.PLAIN_SERVER: "leave out `tls`, or start it with --tls-cert and --tls-key",
    TlsFault.ENDED: "if it requires certificates, Tls(cert_file=..., key_file=...) shows a valid one",
    TlsFault.UNUSABLE_FILES: "check those of Tls(ca_file=..., cert_file=..., key_file=...)",
    TlsFault.PLAIN_CLIENT: "if it speaks TLS, the client needs tls=Tls(ca_file=...)",
}


class TlsFailure(NamedTuple):
    """What went wrong, and what is told of the server."""

    fault: TlsFault
    finding: str

    @property
    def remedy(self) -> str:
        """What to do about it in this client; empty if that is not known."""
        return _REMEDIES.get(self.fault, "")


def tls_failure(details: str, endpoint: str, *, tls: bool) -> TlsFailure | None:
    """None if this has nothing to do with TLS. `tls`: whether the client speaks it."""
    if endpoint.startswith("unix:"):
        return None
    for said, fault, finding in _WITH_TLS if tls else _WITHOUT_TLS:
        if found := said.search(details):
            return TlsFailure(fault, f"the server at {endpoint} {finding.format(**found.groupdict())}")
    return None
