//! Which Feishu an app lives on. Feishu and Lark are two platforms: an app of
//! one is unknown to the other.

use url::{Host, Url};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Domain {
    #[default]
    Feishu,
    Lark,
    /// A simulator on this machine, or a private deployment.
    Other(Url),
}

impl Domain {
    /// `feishu`, `lark` or a base URL; plain http only to this machine.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text.trim().to_ascii_lowercase().as_str() {
            "feishu" => return Ok(Self::Feishu),
            "lark" => return Ok(Self::Lark),
            _ => {}
        }
        let url = Url::parse(text.trim()).map_err(|_| "it is neither a name nor a URL")?;
        if url.host().is_none() || !url.username().is_empty() || url.password().is_some() {
            return Err("the URL must name a host and no user");
        }
        if url.query().is_some() || url.fragment().is_some() || url.path() != "/" {
            return Err("the URL must end after the host");
        }
        match url.scheme() {
            "https" => {}
            "http" if is_this_machine(&url) => {}
            "http" => return Err("plain http is only for this machine; use https"),
            _ => return Err("the URL must start with https://"),
        }
        Ok(match url.host_str() {
            Some("open.feishu.cn") => Self::Feishu,
            Some("open.larksuite.com") => Self::Lark,
            _ => Self::Other(url),
        })
    }

    pub fn base(&self) -> Url {
        let fixed = match self {
            Self::Feishu => "https://open.feishu.cn/",
            Self::Lark => "https://open.larksuite.com/",
            Self::Other(url) => return url.clone(),
        };
        Url::parse(fixed).expect("a fixed URL")
    }

    /// The name of the platform an app may really belong to.
    pub fn sibling(&self) -> &'static str {
        match self {
            Self::Feishu => "lark",
            Self::Lark => "feishu",
            Self::Other(_) => "feishu` / `lark",
        }
    }

    /// The name a person knows it by.
    pub fn name(&self) -> &str {
        match self {
            Self::Feishu => "Feishu",
            Self::Lark => "Lark",
            Self::Other(url) => url.host_str().unwrap_or("Feishu"),
        }
    }
}

/// Whether the URL names this machine by loopback address or as `localhost`.
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_urls_are_told_apart() {
        assert_eq!(Domain::parse("feishu"), Ok(Domain::Feishu));
        assert_eq!(Domain::parse(" Lark "), Ok(Domain::Lark));
        assert_eq!(Domain::parse("https://open.feishu.cn"), Ok(Domain::Feishu));
        let local = Domain::parse("http://127.0.0.1:8080/").unwrap();
        assert_eq!(local.base().as_str(), "http://127.0.0.1:8080/");
        assert_eq!(Domain::parse("http://127.0.0.1:8080").unwrap(), local);
    }

    #[test]
    fn what_could_leak_the_secret_is_refused() {
        for bad in [
            "",
            "open.feishu.cn",
            "http://open.feishu.cn",
            "http://127.0.0.1.example.com",
            "http://[::ffff:10.0.0.1]/",
            "https://user:pw@open.feishu.cn",
            "https://open.feishu.cn/path",
            "https://open.feishu.cn/?q=1",
            "ws://127.0.0.1",
            "file:///etc/passwd",
        ] {
            assert!(Domain::parse(bad).is_err(), "{bad}");
        }
    }
}
