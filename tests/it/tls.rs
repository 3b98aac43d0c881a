//! A certificate authority nobody trusts unless told to, and encrypted fronts
//! for plain servers.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::support::Door;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), certificate.pem()).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    /// The authority's certificate, for who shall trust it.
    pub(crate) fn file(&self) -> &Path {
        self.file.path()
    }

    /// Speaks TLS as `host` and leads to a plain server.
    pub(crate) async fn front(&self, host: &str, server: SocketAddr) -> Door {
        let acceptor = self.acceptor(host);
        Door::open(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut near) = acceptor.accept(stream).await else {
                    return;
                };
                if let Ok(mut far) = TcpStream::connect(server).await {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            }
        })
        .await
    }

    /// Speaks TLS as `host`.
    pub(crate) fn acceptor(&self, host: &str) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.identity(host)))
    }

    fn identity(&self, host: &str) -> ServerConfig {
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap()
    }
}
