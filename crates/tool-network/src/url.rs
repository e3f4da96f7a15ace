//! URLs: what is accepted, and what is printed of them.

use std::fmt;

use ureq::http::Uri;
use ureq::http::uri::Authority;

/// A URL of a file: `http` or `https`, without a user name. Its fragment is left out.
///
/// It is printed without its query, which may be a secret: `https://example.com/foo.whl?...`.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    uri: Uri,
}

/// Returns whether an authority has no port, or one that is a number: others are ignored.
pub(crate) fn has_sound_port(authority: &Authority) -> bool {
    let text = authority.as_str();
    let place = text.rsplit_once('@').map_or(text, |(_, place)| place);
    place == authority.host() || authority.port_u16().is_some()
}

/// The most characters of a URL.
const MOST: usize = 8 << 10;

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// A text about the fault, without the URL.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST {
            return Err(format!("a URL of {} bytes: expected at most {MOST}", text.len()));
        }
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        let uri: Uri = text.parse().map_err(|error| format!("not a URL: {error}"))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(scheme) => {
                return Err(format!("URL with the scheme {scheme}: expected http or https"));
            }
            None => return Err("not a URL: expected http:// or https://".to_owned()),
        }
        let Some(authority) = uri.authority().filter(|all| !all.host().is_empty()) else {
            return Err("URL without a host".to_owned());
        };
        if !has_sound_port(authority) {
            return Err("URL with a port that is not a number up to 65535".to_owned());
        }
        if authority.as_str().contains('@') {
            return Err("URL with a user name or a password: expected none, because none is sent"
                .to_owned());
        }
        Ok(Url { uri })
    }

    /// Reads the place that a server redirects to.
    ///
    /// # Errors
    ///
    /// A text about the fault.
    pub(crate) fn redirected(&self, location: &str) -> Result<Self, String> {
        let location = location.trim();
        let authority = self.uri.authority();
        let origin = || format!("{}://{}", self.scheme(), authority.map_or("", |all| all.as_str()));
        let text = if location
            .split_once("://")
            .is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']))
        {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{}:{location}", self.scheme())
        } else if location.starts_with('/') {
            format!("{}{location}", origin())
        } else {
            let directory = self.uri.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{}{directory}/{location}", origin())
        };
        let to = Url::parse(&text)?;
        if self.scheme() == "https" && to.scheme() != "https" {
            return Err(format!("from https to http: {to}"));
        }
        Ok(to)
    }

    fn scheme(&self) -> &str {
        self.uri.scheme_str().unwrap_or("")
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the path: `/simple/foo.whl`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.uri.path()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{authority}{}", self.scheme(), self.uri.path())?;
        f.write_str(if self.uri.query().is_some() { "?..." } else { "" })
    }
}

/// Prints it as a message does.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn what_is_refused_and_printed() {
        let url =
            Url::parse("https://example.com:8443/a/b.whl?X-Signature=secret#sha256=1").unwrap();
        assert_eq!(url.to_string(), "https://example.com:8443/a/b.whl?...");
        assert_eq!(format!("{url:?}"), "Url(https://example.com:8443/a/b.whl?...)");
        assert_eq!(url.uri().to_string(), "https://example.com:8443/a/b.whl?X-Signature=secret");
        for (bad, why) in [
            ("s3://b/k", "scheme s3: expected http or https"),
            ("https://me:secret@x/y", "user name"),
            ("https:///y", "not a URL"),
            ("https://x:port/y", "port"),
            ("https://x:65536/y", "port"),
            ("https://[::1]:99999/y", "port"),
            ("https://x/a b", "not a URL"),
            ("x/y", "not a URL"),
        ] {
            let error = Url::parse(bad).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret"), "{bad}: {error}");
        }
        assert!(Url::parse(&format!("https://x/{}", "y".repeat(9000))).is_err());
    }

    #[test]
    fn redirects() {
        let url = Url::parse("https://x/a/b.whl?q").unwrap();
        for (to, found) in [
            ("c.whl?z", "https://x/a/c.whl?z"),
            ("/c.whl", "https://x/c.whl"),
            ("//y/c", "https://y/c"),
            ("https://y:1/c#f", "https://y:1/c"),
        ] {
            assert_eq!(url.redirected(to).unwrap().uri().to_string(), found);
        }
        for bad in ["http://x/c", "ftp://x/c", "https://me@x/c", "https://"] {
            assert!(url.redirected(bad).is_err(), "{bad}");
        }
        let plain = Url::parse("http://x/").unwrap();
        assert_eq!(plain.redirected("https://x/y").unwrap().to_string(), "https://x/y");
    }
}
