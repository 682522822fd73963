"""TLS for the raw client; in a module of its own, so that clients without TLS need not load it."""

import ssl

from .raw_errors import AuthenticationFailed
from .raw_settings import Security


def tls_context(security: Security) -> ssl.SSLContext:
    """The context for TLS connections, made once for all of them."""
    try:
        context = ssl.create_default_context(cafile=security.ca_file, cadata=security.ca_text)
        if security.certificate_file is not None:
            context.load_cert_chain(security.certificate_file, security.key_file, security.key_password)
    except (OSError, ssl.SSLError) as error:
        raise AuthenticationFailed(f"the certificates cannot be used: {error}; they must be PEM files") from error
    context.check_hostname = security.check_host
    return context
