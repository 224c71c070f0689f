//! TLS on TCP ports: what new connections are greeted with, and the names in a client's certificate.

use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::{EndEntityCert, KeyUsage};

use super::credentials::Names;

/// What gRPC speaks: nobody else is let in.
const HTTP2: &[u8] = b"h2";
/// Failed handshakes are reported so often: who connects decides how many there are.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// After the end of every certificate.
const FAR_AWAY: Duration = Duration::from_secs(1 << 38);

/// What a server shows and what it asks for, each in PEM.
#[derive(Clone, Copy)]
pub struct Certificates<'a> {
    /// The server's certificate, and behind it those of the authorities between it and the clients' root.
    pub chain: &'a [u8],
    pub key: &'a [u8],
    /// The authorities one of which must have signed a client's certificate; `None`: clients show none.
    pub client_ca: Option<&'a [u8]>,
}

/// Which of the certificates cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    Chain(String),
    Key(String),
    ClientCa(String),
}

/// The certificates of a transport. Each new connection gets those of its moment; they can be replaced.
pub struct Tls {
    config: RwLock<Arc<ServerConfig>>,
    reported: Mutex<Option<Instant>>,
}

impl Tls {
    pub fn new(certificates: Certificates<'_>) -> Result<Self, Unusable> {
        Ok(Self {
            config: RwLock::new(config(certificates)?),
            reported: Mutex::default(),
        })
    }

    /// Greets new connections with other certificates. Where those cannot be used, the old ones stay.
    pub fn replace(&self, certificates: Certificates<'_>) -> Result<(), Unusable> {
        let config = config(certificates)?;
        *self.config.write() = config;
        Ok(())
    }

    /// Greets a peer that must speak HTTP/2, and reads the names in its certificate.
    pub(super) async fn shake_hands(
        &self,
        socket: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Names)> {
        let config = Arc::clone(&self.config.read());
        let stream = TlsAcceptor::from(config).accept(socket).await?;
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() != Some(HTTP2) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let names = shown.map(names).transpose().map_err(io::Error::other)?;
        Ok((stream, names))
    }

    /// Whether a failed handshake is to be reported now.
    pub(super) fn is_report_due(&self) -> bool {
        let mut reported = self.reported.lock();
        let is_due = reported.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL);
        if is_due {
            *reported = Some(Instant::now());
        }
        is_due
    }
}

/// When the first certificate of a chain ends, in seconds since 1970.
pub fn expiry(chain: &[u8]) -> Result<u64, Unusable> {
    let chain = certificates(chain).map_err(Unusable::Chain)?;
    let certificate = parsed(&chain[0]).map_err(Unusable::Chain)?;
    // A check at the end of time says when it should have been made.
    let checked = certificate.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &[],
        &[],
        UnixTime::since_unix_epoch(FAR_AWAY),
        KeyUsage::server_auth(),
        None,
        None,
    );
    match checked {
        Err(webpki::Error::CertExpired { not_after, .. }) => Ok(not_after.as_secs()),
        Err(error) => Err(Unusable::Chain(error.to_string())),
        Ok(_) => Err(Unusable::Chain("it never ends".to_owned())),
    }
}

fn config(given: Certificates<'_>) -> Result<Arc<ServerConfig>, Unusable> {
    let provider = Arc::new(ring::default_provider());
    let shown = shown(given, &provider)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Unusable::Chain(error.to_string()))?;
    let builder = match given.client_ca {
        Some(authorities) => builder.with_client_cert_verifier(
            verifier(authorities, provider).map_err(Unusable::ClientCa)?,
        ),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
    config.alpn_protocols = vec![HTTP2.to_vec()];
    // Each connection shows its certificate anew: none of an earlier configuration is resumed.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn shown(given: Certificates<'_>, provider: &CryptoProvider) -> Result<CertifiedKey, Unusable> {
    let chain = certificates(given.chain).map_err(Unusable::Chain)?;
    parsed(&chain[0]).map_err(Unusable::Chain)?;
    let key = PrivateKeyDer::from_pem_slice(given.key)
        .map_err(|error| Unusable::Key(format!("it holds no private key in PEM ({error})")))?;
    let key = provider.key_provider.load_private_key(key);
    let key = key.map_err(|error| Unusable::Key(error.to_string()))?;
    let shown = CertifiedKey::new(chain, key);
    match shown.keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(shown),
        Err(_) => Err(Unusable::Key(
            "it is not the key of the certificate".to_owned(),
        )),
    }
}

fn verifier(
    authorities: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities)? {
        roots.add(authority).map_err(text)?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(text)
}

/// At least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("it holds no certificate in PEM".to_owned()),
        found => found.map_err(text),
    }
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Result<EndEntityCert<'a>, String> {
    EndEntityCert::try_from(certificate).map_err(text)
}

/// The DNS names and URIs among the names of the subject. Both are told apart by the colon.
fn names(certificate: &CertificateDer<'_>) -> Result<Arc<[String]>, String> {
    let certificate = parsed(certificate)?;
    let hosts = certificate
        .valid_dns_names()
        .map(str::to_ascii_lowercase)
        .filter(|name| !name.contains(':'));
    let uris = certificate
        .valid_uri_names()
        .filter(|name| name.contains(':'))
        .map(str::to_owned);
    Ok(hosts.chain(uris).collect())
}

fn text(error: impl Display) -> String {
    error.to_string()
}

impl Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Chain(why) | Self::Key(why) | Self::ClientCa(why)) = self;
        formatter.write_str(why)
    }
}
