//! Loopback stand-ins for tests, of this room above all: an HTTP server
//! whose answers are a closure, plain or encrypted, and a private CA. Never
//! part of the program.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::outbound::{Outbound, Proxies};

/// One request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    pub(crate) fn is_login(&self) -> bool {
        self.line.contains("tenant_access_token")
    }
}

/// What the server does with a request.
pub(crate) enum Reply {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Reads the request and closes without a word.
    HangUp,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::Answer {
            status,
            headers: vec![("Content-Type", "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }

    pub(crate) fn ok(data: &Value) -> Self {
        Self::json(200, &json!({"code": 0, "msg": "success", "data": data}))
    }

    pub(crate) fn refusal(status: u16, code: i64) -> Self {
        Self::json(status, &json!({"code": code, "msg": "words"}))
    }

    pub(crate) fn token(token: &str) -> Self {
        let body = json!({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": 7200});
        Self::json(200, &body)
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

/// A listener on loopback that runs one task per connection until dropped.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl Listener {
    pub(crate) async fn start<F, W>(work: W) -> Self
    where
        W: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(work(stream));
            }
        });
        Self {
            address,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

type Script = Arc<dyn Fn(&Seen, usize) -> Reply + Send + Sync>;

/// An HTTP server that answers by a script and remembers what it saw.
pub(crate) struct Fake {
    pub(crate) listener: Listener,
    seen: Arc<Mutex<Vec<Seen>>>,
    encrypted: bool,
}

impl Fake {
    /// `script` gets each request and how many came before it.
    pub(crate) async fn start(
        script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::serve(None, Arc::new(script)).await
    }

    pub(crate) async fn start_encrypted(
        tls: ServerConfig,
        script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Some(TlsAcceptor::from(Arc::new(tls))), Arc::new(script)).await
    }

    async fn serve(tls: Option<TlsAcceptor>, script: Script) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let encrypted = tls.is_some();
        let listener = Listener::start(move |stream| {
            let (tls, script, log) = (tls.clone(), Arc::clone(&script), Arc::clone(&log));
            async move {
                match tls {
                    None => converse(stream, script, log).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            converse(stream, script, log).await;
                        }
                    }
                }
            }
        })
        .await;
        Self {
            listener,
            seen,
            encrypted,
        }
    }

    /// The address of this server under the name `host`.
    pub(crate) fn base(&self, host: &str) -> Url {
        let scheme = if self.encrypted { "https" } else { "http" };
        let port = self.listener.address.port();
        Url::parse(&format!("{scheme}://{host}:{port}")).expect("an address")
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no test panicked").clone()
    }

    pub(crate) fn logins(&self) -> usize {
        self.seen().iter().filter(|seen| seen.is_login()).count()
    }

    pub(crate) fn calls(&self) -> Vec<Seen> {
        let mut calls = self.seen();
        calls.retain(|seen| !seen.is_login());
        calls
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    script: Script,
    log: Arc<Mutex<Vec<Seen>>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(seen) = read_request(&mut stream).await {
        let before = {
            let mut log = log.lock().expect("no test panicked");
            log.push(seen.clone());
            log.len() - 1
        };
        let Reply::Answer {
            status,
            headers,
            body,
        } = script(&seen, before)
        else {
            return;
        };
        let lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let bytes = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{}\r\n",
            body.len(),
            lines.concat()
        );
        let sent = async {
            stream.write_all(bytes.as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.flush().await
        };
        if sent.await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut BufReader<impl AsyncRead + Unpin>) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.trim().parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen {
        line: head.lines().next().unwrap_or_default().to_owned(),
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// A certificate authority nobody trusts unless told to.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), certificate.pem()).expect("a written file");
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    pub(crate) fn file(&self) -> &Path {
        self.file.path()
    }

    /// A server for `host`, whose certificate `adjust` may spoil.
    pub(crate) fn server(
        &self,
        host: &str,
        adjust: impl FnOnce(&mut CertificateParams),
    ) -> ServerConfig {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        adjust(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("a private key"),
            )
            .expect("a server")
    }
}

/// The way out with no proxy at all.
pub(crate) fn direct() -> Outbound {
    Outbound::new(&Proxies::default(), None).expect("a way out")
}
