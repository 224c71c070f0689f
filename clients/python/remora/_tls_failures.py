"""Tells what went wrong with TLS from what gRPC says of a connection that failed, and what to do about it."""

import re

_REFUSED = "CERTIFICATE_VERIFY_FAILED"
_CLOSED = r"failed to connect to all addresses.*(Unwrap failed|TSI_|Socket closed|Connection reset|Broken pipe|ALERT)"
"""How a connection ends that the server closes: in TLS 1.3 it looks at the certificate after the client's part."""

_WITH_TLS = tuple(
    (re.compile(said, re.DOTALL), told)
    for said, told in (
        (
            rf"{_REFUSED}: (?P<why>[^:\]]+)",
            "has a TLS certificate that cannot be verified ({why}); Tls(ca_file=...) names who signed it",
        ),
        (
            r"Hostname Verification|[Pp]eer name|not in peer certificate",
            "has a TLS certificate for another name; Tls(server_name=...) says which name it must have",
        ),
        (
            "WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL",
            "speaks no TLS; leave out `tls`, or start it with --tls-cert and --tls-key",
        ),
        (
            r"Tls handshake failed.*routines:(?P<why>.*)",
            "and this client agree on no TLS connection ({why})",
        ),
        (
            _CLOSED,
            "ended the TLS connection; if it requires certificates, Tls(cert_file=..., key_file=...) shows a valid one",
        ),
    )
)
_WITHOUT_TLS = (
    (
        re.compile(_CLOSED, re.DOTALL),
        "closed the connection at once; if it speaks TLS, the client needs tls=Tls(ca_file=...)",
    ),
)


def tls_failure(details: str, endpoint: str, *, tls: bool) -> str:
    """What is told of the server, empty if this has nothing to do with TLS; `tls`: whether the client speaks it."""
    if endpoint.startswith("unix:"):
        return ""
    for said, told in _WITH_TLS if tls else _WITHOUT_TLS:
        if found := said.search(details):
            return told.format(**found.groupdict())
    return ""
