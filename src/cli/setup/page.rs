//! The code to scan on a page of this machine's own, for terminals it does not
//! fit. Whoever scans it becomes the owner, so the page is for this user: on
//! loopback, under a name nobody can guess, for as long as the scan is awaited.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::super::wording::Words;
use crate::cli::output::qr;

const MAX_GUESTS: usize = 8;
const MAX_HEAD: usize = 8 << 10;
const SERVED_WITHIN: Duration = Duration::from_secs(5);

/// Served until dropped.
pub(super) struct SetupPage {
    pub(super) address: String,
    _server: AbortOnDropHandle<()>,
}

impl SetupPage {
    /// Shows this link as a code.
    pub(super) async fn open(link: &str, words: Words) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let host = listener.local_addr()?.to_string();
        let path = format!("/{:032x}", rand::random::<u128>());
        let address = format!("http://{host}{path}");
        let door = Arc::new(PageDoor {
            path,
            host,
            html: html(link, words),
        });
        let server = tokio::spawn(async move {
            let guests = Arc::new(Semaphore::new(MAX_GUESTS));
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(guest) = Arc::clone(&guests).try_acquire_owned() else {
                    continue;
                };
                let door = Arc::clone(&door);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(SERVED_WITHIN, door.serve(stream)).await;
                    drop(guest);
                });
            }
        });
        Ok(Self {
            address,
            _server: AbortOnDropHandle::new(server),
        })
    }
}

struct PageDoor {
    path: String,
    host: String,
    html: String,
}

impl PageDoor {
    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut head = Vec::new();
        let mut chunk = [0; 1024];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD {
            match stream.read(&mut chunk).await? {
                0 => break,
                read => head.extend_from_slice(&chunk[..read]),
            }
        }
        stream.write_all(&self.answer(&head)).await?;
        stream.shutdown().await
    }

    /// Another name for this machine is a page of somebody else's.
    fn answer(&self, head: &[u8]) -> Vec<u8> {
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let mut asked = lines.next().unwrap_or_default().split(' ');
        let is_get = asked.next() == Some("GET");
        let is_here = asked.next() == Some(&self.path);
        let mut fields = lines.filter_map(|line| line.split_once(':'));
        let host = fields.find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let is_us = host.is_some_and(|(_, host)| host.trim() == self.host);
        let (status, body) = if is_get && is_here && is_us {
            ("200 OK", self.html.as_str())
        } else {
            ("404 Not Found", "")
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
             Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

fn html(link: &str, words: Words) -> String {
    let link = escaped(link);
    let code = qr::svg(&link.replace("&amp;", "&")).unwrap_or_default();
    let (lang, title, text, open) = words.scan_page();
    format!(
        "<!doctype html><html lang=\"{lang}\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>body{{font:16px system-ui,sans-serif;max-width:34rem;margin:2rem auto;\
         padding:0 1rem;text-align:center}}svg{{width:min(100%,26rem);background:#fff}}</style>\
         <h1>{title}</h1><p>{text}</p>{code}\
         <p><a rel=\"noreferrer\" href=\"{link}\">{open}</a></p></html>"
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn only_the_person_with_the_address_sees_the_code() {
        let door = PageDoor {
            path: "/secret".to_owned(),
            host: "127.0.0.1:7".to_owned(),
            html: html("https://x.example/?a=1&b=\"2", Words(Lang::En)),
        };
        let asked = |line: &str, host: &str| {
            let head = format!("{line} HTTP/1.1\r\naccept: */*\r\nhOST: {host}\r\n\r\n");
            String::from_utf8(door.answer(head.as_bytes())).unwrap()
        };
        let page = asked("GET /secret", "127.0.0.1:7");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("<svg"), "{page}");
        assert!(page.contains("href=\"https://x.example/?a=1&amp;b=&quot;2\""));
        for (line, host) in [
            ("GET /", "127.0.0.1:7"),
            ("GET /secret/", "127.0.0.1:7"),
            ("GET /secre", "127.0.0.1:7"),
            ("POST /secret", "127.0.0.1:7"),
            // A name that somebody else leads here.
            ("GET /secret", "rebound.example:7"),
            ("GET /secret", "127.0.0.1"),
        ] {
            let refused = asked(line, host);
            assert!(refused.starts_with("HTTP/1.1 404"), "{line} {host}");
            assert!(!refused.contains("x.example"), "{line} {host}");
        }
        assert!(door.answer(b"\xff\r\n").starts_with(b"HTTP/1.1 404"));
        assert!(door.answer(b"").starts_with(b"HTTP/1.1 404"));
    }

    #[tokio::test]
    async fn the_page_is_there_until_the_scan_and_then_gone() {
        let page = SetupPage::open("https://x.example/", Words(Lang::Zh))
            .await
            .unwrap();
        let address = page.address.strip_prefix("http://").unwrap().to_owned();
        let (host, path) = address.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).await.unwrap();
        let ask = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        drop(page);
        while TcpStream::connect(host).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
