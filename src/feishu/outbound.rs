//! The one way out to the network: one trust store, one proxy policy, one
//! rule for unencrypted addresses, shared by REST calls and the long
//! connection. Never reads the environment and never follows a redirect.

mod dial;
mod error;
mod proxy;
mod trust;

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

pub use self::error::OutboundError;
use self::trust::Platform;
use super::domain::is_this_machine;

/// How long opening a connection may take when the caller has no opinion:
/// name lookup, proxy, TCP and TLS together.
pub const OPEN_WITHIN: Duration = Duration::from_secs(10);

const USER_AGENT: &str = concat!("nod/", env!("CARGO_PKG_VERSION"));

/// Proxy settings in the forms curl takes, empty meaning unset.
#[derive(Clone, Default)]
pub struct Proxies {
    pub https: Option<String>,
    pub http: Option<String>,
    pub all: Option<String>,
    pub no_proxy: Option<String>,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| {
            value
                .as_deref()
                .map(|text| parse_proxy(text).map_or("(not usable)".into(), |url| redacted(&url)))
        };
        f.debug_struct("Proxies")
            .field("https", &shown(&self.https))
            .field("http", &shown(&self.http))
            .field("all", &shown(&self.all))
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// A byte stream to the other side, encrypted where the address asked for it.
pub type Stream = Box<dyn Io>;

/// What a WebSocket or HTTP client needs of a connection.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {
    /// Lets its close be a reset, which waits for nothing sent before.
    fn reset_on_close(&self);
}

impl Io for TcpStream {
    fn reset_on_close(&self) {
        let _ = self.set_zero_linger();
    }
}

impl Io for TlsStream<Stream> {
    fn reset_on_close(&self) {
        self.get_ref().0.reset_on_close();
    }
}

/// Opens connections and makes HTTP clients under one policy; cheap to clone.
#[derive(Clone)]
pub struct Outbound {
    tls: Arc<ClientConfig>,
    policy: Arc<Policy>,
    http: Arc<RwLock<reqwest::Client>>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").finish_non_exhaustive()
    }
}

impl Outbound {
    /// Builds the policy. `extra_ca` is a PEM file trusted beside the
    /// platform's own store.
    pub fn new(proxies: &Proxies, extra_ca: Option<&Path>) -> Result<Self, OutboundError> {
        let policy = Arc::new(Policy::new(proxies)?);
        let tls = tls_config(extra_ca)?;
        let http = http_client(&tls, &policy)?;
        Ok(Self {
            tls: Arc::new(tls),
            policy,
            http: Arc::new(RwLock::new(http)),
        })
    }

    /// The shared HTTP client. Pass every address through [`Self::check`]
    /// before using it and every failure through [`Self::fault`].
    pub fn http_client(&self) -> reqwest::Client {
        let http = self.http.read().unwrap_or_else(PoisonError::into_inner);
        http.clone()
    }

    /// Leaves behind every connection kept for the next call. After an outage
    /// they look alive and swallow it.
    pub fn forget_idle(&self) {
        if let Ok(fresh) = http_client(&self.tls, &self.policy) {
            *self.http.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
    }

    /// An HTTP client for the machines beside this one: never by a proxy,
    /// which would look names up in our place, and only to addresses that
    /// `admit` takes. A name is looked up once per connection, and what was
    /// judged is what is dialled.
    pub fn direct_client(
        &self,
        admit: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static,
        connect_within: Duration,
        idle: Duration,
    ) -> Result<reqwest::Client, OutboundError> {
        let client = client(&self.tls, dial::Judged::new(admit))
            .connect_timeout(connect_within)
            .pool_idle_timeout(idle)
            .pool_max_idle_per_host(4);
        built(client)
    }

    /// Refuses an address that would carry secrets unencrypted off this
    /// machine, or that is no network address at all.
    pub fn check(url: &Url) -> Result<(), OutboundError> {
        target(url).map(drop)
    }

    /// The proxy `url` would go through, without user name and password.
    pub fn proxy_for(&self, url: &Url) -> Option<String> {
        self.policy.proxy(url).map(redacted)
    }

    /// Says in one sentence why a request to `url` failed.
    pub fn fault(&self, url: &Url, error: &reqwest::Error) -> OutboundError {
        let host = url.host_str().unwrap_or_default();
        error::from_reqwest(host, self.proxy_for(url).as_deref(), error)
    }

    /// Opens a connection to the host of an `http(s)` or `ws(s)` address:
    /// straight or through the proxy, with TLS where the scheme asks for it,
    /// all of it within `limit`.
    pub async fn open(&self, url: &Url, limit: Duration) -> Result<Stream, OutboundError> {
        let target = target(url)?;
        match tokio::time::timeout(limit, self.open_unlimited(url, &target)).await {
            Ok(opened) => opened,
            Err(_) => Err(OutboundError::TimedOut {
                peer: match self.proxy_for(url) {
                    Some(proxy) => format!("`{}` through the proxy `{proxy}`", target.host),
                    None => format!("`{}`", target.host),
                },
            }),
        }
    }

    /// As [`Self::open`], for a peer that says its first line before anything
    /// is encrypted, as a NATS server does. Gives that line, too.
    pub async fn open_late(
        &self,
        url: &Url,
        limit: Duration,
        max_line: usize,
    ) -> Result<(Stream, Vec<u8>), OutboundError> {
        let target = target(url)?;
        let peer = format!("`{}`", target.host);
        let opening = async {
            let mut stream = self.open_plain(url, &target).await?;
            let mut line = Vec::new();
            // Byte by byte: what follows the line is encrypted.
            while line.last() != Some(&b'\n') && line.len() < max_line {
                let byte = stream.read_u8().await;
                line.push(byte.map_err(|error| error::from_io(&target.host, &peer, &error))?);
            }
            Ok((self.encrypt(&target.host, stream).await?, line))
        };
        let opened = tokio::time::timeout(limit, opening).await;
        opened.unwrap_or_else(|_| Err(OutboundError::TimedOut { peer: peer.clone() }))
    }

    async fn open_plain(&self, url: &Url, target: &DialTarget) -> Result<Stream, OutboundError> {
        match self.policy.intercept(url) {
            None => {
                let peer = format!("`{}`", target.host);
                let stream = dial::connect(&target.host, target.port, &peer).await?;
                Ok(Box::new(stream))
            }
            Some(proxy) => self.open_by_proxy(&proxy, target).await,
        }
    }

    async fn open_unlimited(
        &self,
        url: &Url,
        target: &DialTarget,
    ) -> Result<Stream, OutboundError> {
        let stream = self.open_plain(url, target).await?;
        if target.encrypted {
            self.encrypt(&target.host, stream).await
        } else {
            Ok(stream)
        }
    }

    async fn open_by_proxy(
        &self,
        proxy: &Intercept,
        target: &DialTarget,
    ) -> Result<Stream, OutboundError> {
        let uri = proxy.uri();
        let host = uri
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .to_owned();
        let scheme = uri.scheme_str().unwrap_or("http");
        let port = uri.port_u16().unwrap_or(match scheme {
            "https" => 443,
            "http" => 80,
            _ => 1080,
        });
        let shown = format!("{scheme}://{host}:{port}");
        let tcp = dial::connect(&host, port, &format!("the proxy `{shown}`")).await?;
        if scheme.starts_with("socks") {
            let mut tcp = tcp;
            proxy::socks5(
                &mut tcp,
                &shown,
                proxy.raw_auth(),
                &target.host,
                target.port,
                scheme == "socks5",
            )
            .await?;
            return Ok(Box::new(tcp));
        }
        let mut stream: Stream = Box::new(tcp);
        if scheme == "https" {
            stream = self.encrypt(&host, stream).await?;
        }
        let auth = proxy
            .basic_auth()
            .map(reqwest::header::HeaderValue::as_bytes);
        proxy::connect(&mut stream, &shown, auth, &target.host, target.port).await?;
        Ok(stream)
    }

    async fn encrypt(&self, host: &str, stream: Stream) -> Result<Stream, OutboundError> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| OutboundError::BadAddress {
                problem: "its host is not a valid name",
            })?;
        let secured = TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, stream)
            .await
            .map_err(|error| error::from_io(host, &format!("`{host}`"), &error))?;
        Ok(Box::new(secured))
    }
}

/// The body of an answer; `None` for one of more than `most` bytes.
pub async fn body_within(
    response: &mut reqwest::Response,
    most: u64,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    if response
        .content_length()
        .is_some_and(|length| length > most)
    {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if (body.len() + chunk.len()) as u64 > most {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Where an address leads, once it is known to be allowed.
struct DialTarget {
    host: String,
    port: u16,
    encrypted: bool,
}

fn target(url: &Url) -> Result<DialTarget, OutboundError> {
    let bad = |problem| OutboundError::BadAddress { problem };
    let encrypted = match url.scheme() {
        "https" | "wss" => true,
        "http" | "ws" => false,
        _ => return Err(bad("its scheme is none of https, wss, http, ws")),
    };
    let host = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(ip)) => ip.to_string(),
        Some(Host::Ipv6(ip)) => ip.to_string(),
        None => return Err(bad("it has no host")),
    };
    if !encrypted && !is_this_machine(url) {
        return Err(OutboundError::PlainText { host });
    }
    let port = url.port_or_known_default().ok_or(bad("it has no port"))?;
    Ok(DialTarget {
        host,
        port,
        encrypted,
    })
}

/// Which proxy serves which address.
struct Policy {
    https: Option<Url>,
    http: Option<Url>,
    matcher: Matcher,
}

impl Policy {
    fn new(proxies: &Proxies) -> Result<Self, OutboundError> {
        let read = |name, value: &Option<String>| match value.as_deref().map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => parse_proxy(text)
                .map(Some)
                .ok_or(OutboundError::BadProxy { name }),
        };
        let all = read("ALL_PROXY", &proxies.all)?;
        let https = read("HTTPS_PROXY", &proxies.https)?.or_else(|| all.clone());
        let http = read("HTTP_PROXY", &proxies.http)?.or(all);
        let text = |url: &Option<Url>| url.as_ref().map_or(String::new(), Url::to_string);
        let matcher = Matcher::builder()
            .https(text(&https))
            .http(text(&http))
            .no(proxies.no_proxy.clone().unwrap_or_default())
            .build();
        Ok(Self {
            https,
            http,
            matcher,
        })
    }

    fn intercept(&self, url: &Url) -> Option<Intercept> {
        if is_this_machine(url) {
            return None;
        }
        // The matcher knows only the two HTTP schemes and takes anything else
        // for a direct connection.
        let scheme = match url.scheme() {
            "wss" | "https" => "https",
            _ => "http",
        };
        let asked = format!("{scheme}://{}/", url.host_str()?).parse().ok()?;
        self.matcher.intercept(&asked)
    }

    fn proxy(&self, url: &Url) -> Option<&Url> {
        self.intercept(url)?;
        match url.scheme() {
            "wss" | "https" => self.https.as_ref(),
            _ => self.http.as_ref(),
        }
    }
}

fn parse_proxy(text: &str) -> Option<Url> {
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        Url::parse(&format!("http://{text}"))
    }
    .ok()?;
    let usable = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h")
        && url.host_str().is_some_and(|host| !host.is_empty());
    usable.then_some(url)
}

fn redacted(proxy: &Url) -> String {
    let host = proxy.host_str().unwrap_or_default();
    match proxy.port() {
        Some(port) => format!("{}://{host}:{port}", proxy.scheme()),
        None => format!("{}://{host}", proxy.scheme()),
    }
}

fn tls_config(extra_ca: Option<&Path>) -> Result<ClientConfig, OutboundError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| OutboundError::NoTls {
            reason: error.to_string(),
        })?;
    let verifier: Arc<dyn ServerCertVerifier> = match extra_ca {
        None => Arc::new(Platform::new(provider)),
        Some(path) => {
            let verifier = Verifier::new_with_extra_roots(read_certificates(path)?, provider);
            Arc::new(verifier.map_err(|error| bad_ca_file(path, &error))?)
        }
    };
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OutboundError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| bad_ca_file(path, &error))?;
    if certificates.is_empty() {
        return Err(bad_ca_file(path, &"it holds no PEM certificate"));
    }
    Ok(certificates)
}

fn bad_ca_file(path: &Path, why: &dyn fmt::Display) -> OutboundError {
    OutboundError::BadCaFile {
        file: path.to_owned(),
        reason: why.to_string(),
    }
}

fn http_client(tls: &ClientConfig, policy: &Arc<Policy>) -> Result<reqwest::Client, OutboundError> {
    let policy = Arc::clone(policy);
    let proxy = reqwest::Proxy::custom(move |url| policy.proxy(url).cloned());
    let client = client(tls, dial::Judged::new(|_, _| true))
        .proxy(proxy)
        .connect_timeout(OPEN_WITHIN)
        .tcp_keepalive(dial::KEEPALIVE_IDLE)
        .tcp_keepalive_interval(dial::KEEPALIVE_INTERVAL)
        .tcp_keepalive_retries(dial::KEEPALIVE_PROBES)
        .pool_idle_timeout(Duration::from_mins(1))
        .pool_max_idle_per_host(16);
    built(client)
}

/// What every client of ours has: our trust, our names, no proxy but one that
/// is set afterwards, and no step to where nobody sent it.
fn client(tls: &ClientConfig, names: dial::Judged) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(USER_AGENT)
        .dns_resolver(names)
        .tcp_nodelay(true)
}

fn built(client: reqwest::ClientBuilder) -> Result<reqwest::Client, OutboundError> {
    client.build().map_err(|error| OutboundError::NoTls {
        reason: error.without_url().to_string(),
    })
}

#[cfg(test)]
mod tests;
