//! The web page that stands in for a Feishu client. Its files are part of the
//! binary; it talks to the control interface and to nothing else.

use std::net::SocketAddr;

use axum::body::Body;
use axum::http::Response;
use axum::response::IntoResponse as _;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file of the page: path, type, content.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("page/index.html")),
    ("/style.css", STYLE, include_str!("page/style.css")),
    ("/stage.css", STYLE, include_str!("page/stage.css")),
    ("/card.css", STYLE, include_str!("page/card.css")),
    ("/app.js", SCRIPT, include_str!("page/app.js")),
    ("/card.js", SCRIPT, include_str!("page/card.js")),
    ("/dialog.js", SCRIPT, include_str!("page/dialog.js")),
    ("/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/guide.js", SCRIPT, include_str!("page/guide.js")),
    ("/markdown.js", SCRIPT, include_str!("page/markdown.js")),
    ("/sheet.js", SCRIPT, include_str!("page/sheet.js")),
    ("/tally.js", SCRIPT, include_str!("page/tally.js")),
    ("/terminal.js", SCRIPT, include_str!("page/terminal.js")),
    ("/travel.js", SCRIPT, include_str!("page/travel.js")),
    ("/words.js", SCRIPT, include_str!("page/words.js")),
];

/// Nothing inline, nothing from elsewhere, nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where the page is. A fragment reaches no server and no other page, and the
/// page takes it out of its address when it has read it.
pub fn address(control: SocketAddr, lang: &str, token: Option<&str>) -> String {
    let query = if lang.is_empty() {
        String::new()
    } else {
        format!("?lang={lang}")
    };
    let fragment = token.map_or(String::new(), |token| format!("#{token}"));
    format!("http://{control}/{query}{fragment}")
}

/// The file at this path, or `None`.
pub(in crate::simulator) fn file(path: &str) -> Option<Response<Body>> {
    let (_, kind, content) = FILES.iter().find(|(name, ..)| *name == path)?;
    let headers = [
        ("content-type", *kind),
        ("content-security-policy", POLICY),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    Some((headers, *content).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_a_page_asks_for_is_there() {
        let mut asked = 0;
        for (name, _, content) in FILES {
            for mark in ["src=\"", "href=\"", "from \"."] {
                for found in content.split(mark).skip(1) {
                    let path = found.split('"').next().unwrap_or_default();
                    if path.starts_with('/') {
                        asked += 1;
                        assert!(file(path).is_some(), "{name} asks for {path}");
                    }
                }
            }
        }
        assert!(asked > 8, "{asked}");
        assert!(file("/../Cargo.toml").is_none());
    }

    #[test]
    fn card_content_is_never_parsed_as_html() {
        for (name, _, content) in FILES {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!content.contains(word), "{name} uses {word}");
            }
            for inline in [" style=\"", " onclick=", "<script>", "http://", "https://"] {
                assert!(!content.contains(inline), "{name} has {inline}");
            }
        }
    }
}
