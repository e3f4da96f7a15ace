//! Requests for one file: counted, bounded, with redirects.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ureq::http::Response;
use ureq::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, LAST_MODIFIED, LOCATION,
    TRANSFER_ENCODING,
};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body, BodyReader, Error, Proxy, ProxyProtocol};

use crate::answer::Answer;
use crate::guard::{Guard, Guarded, NotResolved};
use crate::limits::Limits;
use crate::url::{Url, has_sound_port};

/// The most redirects of one request.
const REDIRECTS: usize = 10;
/// The time before the second attempt; later ones wait longer.
const PAUSE: Duration = Duration::from_millis(100);
/// The most bytes of an answer's headers.
const HEADERS: usize = 64 << 10;
/// The most bytes of a file of certificates.
const CERTIFICATES: u64 = 16 << 20;

/// The requests for one file.
#[derive(Debug)]
pub(crate) struct Session {
    agent: Agent,
    /// The variable with the URL of the proxy.
    proxy: Option<&'static str>,
    guard: Arc<Guard>,
    limits: Limits,
    started: Instant,
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// A fault that keeps bytes from coming.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) text: String,
    /// `true` if another attempt cannot help.
    pub(crate) is_final: bool,
}

impl Fault {
    pub(crate) fn last(text: impl Into<String>) -> Self {
        Fault { text: text.into(), is_final: true }
    }

    pub(crate) fn again(text: impl Into<String>) -> Self {
        Fault { text: text.into(), is_final: false }
    }

    /// Adds the place that the server redirected to.
    pub(crate) fn at(self, place: &Url, asked: &Url) -> Self {
        if place == asked {
            return self;
        }
        Fault { text: format!("{} (redirected to {place})", self.text), ..self }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        // Readers of formats know no such kind.
        io::Error::other(fault.text)
    }
}

impl Session {
    /// Creates the session of a URL that the user typed.
    pub(crate) fn new(typed: &Url, limits: &Limits) -> io::Result<Self> {
        let proxy = proxy_variable(&|name| std::env::var_os(name)).map_err(io::Error::other)?;
        let wait = Some(limits.wait);
        let mut tls = TlsConfig::builder();
        if let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) {
            let failed = |why: String| io::Error::other(format!("SSL_CERT_FILE: {why}"));
            let file = fs::File::open(&path).map_err(|error| failed(error.to_string()))?;
            let mut text = Vec::new();
            file.take(CERTIFICATES)
                .read_to_end(&mut text)
                .map_err(|error| failed(error.to_string()))?;
            let certificates = parse_pem(&text).filter_map(|item| match item {
                Ok(PemItem::Certificate(one)) => Some(one),
                _ => None,
            });
            let certificates: Vec<_> = certificates.collect();
            if certificates.is_empty() {
                return Err(failed("expected certificates in PEM format".to_owned()));
            }
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(tls.build())
            .user_agent(concat!("offload/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .max_response_header_size(HEADERS)
            .timeout_resolve(wait)
            .timeout_connect(wait)
            .timeout_send_request(wait)
            .timeout_recv_response(wait)
            .timeout_per_read(wait)
            .build();
        let guard = Arc::new(Guard::new(typed.uri()));
        let resolver = Guarded(Arc::clone(&guard));
        Ok(Session {
            agent: Agent::with_parts(config, DefaultConnector::default(), resolver),
            proxy,
            guard,
            limits: *limits,
            started: Instant::now(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Asks for a range, and follows redirects. Returns the place of the answer as well.
    pub(crate) fn request(
        &self,
        asked: &Url,
        range: &Range<u64>,
    ) -> Result<(Url, Response<Body>), Fault> {
        let mut place = asked.clone();
        for _ in 0..=REDIRECTS {
            self.check_time()?;
            let limit = self.limits.requests;
            if self.requests.fetch_add(1, Ordering::Relaxed) >= limit {
                return Err(Fault::last(format!("needs more than the limit of {limit} requests")));
            }
            let last = range.end - 1;
            let request = self
                .agent
                .get(place.uri())
                .header("Range", format!("bytes={}-{last}", range.start))
                .config()
                // Trailers and the extensions of chunks have no other limit.
                .timeout_global(Some(self.limits.time.saturating_sub(self.started.elapsed())))
                .build();
            let response =
                request.call().map_err(|error| self.no_answer(&error, &place).at(&place, asked))?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok((place, response));
            }
            let refused = |why: String| Fault::last(format!("redirect: {why}")).at(&place, asked);
            let location = header(&response, "Location", &LOCATION)
                .and_then(|location| location.ok_or_else(|| "without Location".to_owned()))
                .map_err(&refused)?;
            let to = place.redirected(location).map_err(&refused)?;
            self.guard.check(to.uri()).map_err(|error| refused(error.to_string()))?;
            place = to;
        }
        Err(Fault::last(format!("more than {REDIRECTS} redirects").to_owned()))
    }

    /// Waits before another attempt.
    pub(crate) fn pause(failures: u32) {
        thread::sleep(PAUSE * failures);
    }

    /// Fails if this number of bytes exceeds the limit.
    pub(crate) fn check_size(&self, bytes: u64) -> Result<(), Fault> {
        let limit = self.limits.bytes;
        if bytes <= limit {
            return Ok(());
        }
        Err(Fault::last(format!(
            "needs {bytes} bytes or more: exceeds the limit of {limit} bytes (--max-input)"
        )))
    }

    fn check_time(&self) -> Result<(), Fault> {
        let limit = self.limits.time;
        if self.started.elapsed() <= limit {
            return Ok(());
        }
        Err(self.over_time())
    }

    fn over_time(&self) -> Fault {
        let limit = self.limits.time.as_secs_f32();
        Fault::last(format!("exceeds the limit of {limit} seconds"))
    }

    /// Returns the fault of a request that got no answer. It names the proxy: names are looked up and connections made for that alone.
    fn no_answer(&self, error: &Error, place: &Url) -> Fault {
        let fault = self.fault(error);
        let proxy = self.agent.config().proxy().filter(|proxy| !proxy.is_no_proxy(place.uri()));
        let (Some(variable), Some(proxy)) = (self.proxy, proxy) else { return fault };
        if matches!(error, Error::Timeout(ureq::Timeout::Global)) {
            return fault;
        }
        let before = if is_of_connection(error) { "" } else { "through the " };
        // Its URL may have a password.
        let (host, port) = (proxy.host(), proxy.port());
        Fault {
            text: format!("{before}proxy {host}:{port} of {variable}: {}", fault.text),
            ..fault
        }
    }

    fn fault(&self, error: &Error) -> Fault {
        match error {
            Error::Timeout(ureq::Timeout::Global) => self.over_time(),
            Error::Timeout(_) => {
                Fault::again(format!("no answer within {} seconds", self.limits.wait.as_secs_f32()))
            }
            Error::HostNotFound => Fault::last("host not found"),
            Error::ConnectionFailed => Fault::again("connection failed"),
            Error::Io(error) => Fault::again(plain(error)),
            Error::ConnectProxyFailed(why) => Fault::last(why.as_str()),
            Error::Other(error) => Fault::last(error.to_string()),
            error => Fault::last(error.to_string()),
        }
    }
}

/// Returns whether no connection was made.
fn is_of_connection(error: &Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    match error {
        Error::HostNotFound | Error::ConnectionFailed | Error::ConnectProxyFailed(_) => true,
        Error::Timeout(phase) => {
            matches!(phase, ureq::Timeout::Resolve | ureq::Timeout::Connect)
        }
        Error::Io(error) => {
            NotResolved::is(error)
                || matches!(
                    error.kind(),
                    AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable
                )
        }
        _ => false,
    }
}

/// Returns the system's message without the number of the error.
fn plain(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.find(" (os error ") {
        text.truncate(at);
    }
    text
}

/// Returns the value of a header.
///
/// # Errors
///
/// The header is there with several values.
fn header<'r>(
    response: &'r Response<Body>,
    name: &str,
    key: &HeaderName,
) -> Result<Option<&'r str>, String> {
    let mut values = response.headers().get_all(key).iter();
    let first = values.next();
    if values.any(|value| Some(value) != first) {
        return Err(format!("{name} with different values: expected one"));
    }
    // One that is not text is not one that is understood.
    Ok(first.map(|value| value.to_str().unwrap_or("?")))
}

/// Returns the head of an answer.
///
/// # Errors
///
/// A text about a header with several values.
pub(crate) fn answer(response: &Response<Body>) -> Result<Answer<'_>, String> {
    let header = |name, key| header(response, name, &key);
    Ok(Answer {
        content_range: header("Content-Range", CONTENT_RANGE)?,
        content_length: header("Content-Length", CONTENT_LENGTH)?,
        content_encoding: header("Content-Encoding", CONTENT_ENCODING)?,
        // Its values make a list.
        transfer_encoding: response
            .headers()
            .get_all(TRANSFER_ENCODING)
            .iter()
            .next_back()
            .map(|value| value.to_str().unwrap_or("?")),
        etag: header("ETag", ETAG)?,
        last_modified: header("Last-Modified", LAST_MODIFIED)?,
        ..Answer::new(response.status().as_u16())
    })
}

/// The variables with the URLs of proxies, in the order in which `ureq` asks them.
const PROXIES: [&str; 6] =
    ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// Returns the variable with the URL of the proxy that is used. Fails for one that is set and has no URL of a proxy: without the proxy,
/// requests would go another way. The text does not have the value, which may be a secret.
fn proxy_variable(
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<&'static str>, String> {
    let mut first = None;
    for name in PROXIES {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
        let proxy = value.to_str().and_then(|text| Proxy::new(text).ok());
        let is_one = |proxy: &Proxy| {
            matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https)
                && proxy
                    .uri()
                    .authority()
                    .is_some_and(|it| !it.host().is_empty() && has_sound_port(it))
        };
        if !proxy.as_ref().is_some_and(is_one) {
            return Err(format!(
                "{name}: not the URL of a proxy for HTTP: expected http://HOST:PORT or https://HOST:PORT"
            ));
        }
        first.get_or_insert(name);
    }
    Ok(first)
}

/// The contents of an answer.
pub(crate) struct Received {
    reader: BodyReader<'static>,
}

impl Received {
    pub(crate) fn new(response: Response<Body>) -> Self {
        Received { reader: response.into_body().into_reader() }
    }

    /// Reads some bytes: 0 at the end.
    pub(crate) fn read(&mut self, session: &Session, buf: &mut [u8]) -> Result<usize, Fault> {
        session.check_time()?;
        loop {
            match self.reader.read(buf) {
                Ok(read) => {
                    let before = session.bytes.fetch_add(read as u64, Ordering::Relaxed);
                    session.check_size(before + read as u64)?;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let of_ureq = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
                    return Err(match of_ureq {
                        Some(error) => session.fault(error),
                        None if error.kind() == io::ErrorKind::TimedOut => {
                            session.fault(&Error::Timeout(ureq::Timeout::RecvBody))
                        }
                        None => Fault::again(plain(&error)),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<Option<&'static str>, String> {
        proxy_variable(&|asked| (asked == name).then(|| OsString::from(value)))
    }

    #[test]
    fn variables_of_proxies() {
        for name in PROXIES {
            for value in
                ["", "http://proxy:3128", "https://me:pass@proxy", "proxy:8080", "localhost"]
            {
                let found = Some(name).filter(|_| !value.is_empty());
                assert_eq!(check(name, value), Ok(found), "{value}");
            }
            for value in [
                "http://me:pass@",
                "http://me:pass@proxy:port",
                "htp://me:pass@proxy",
                "me:pass@pro xy",
                "socks5://me:pass@proxy",
                " ",
            ] {
                let error = check(name, value).unwrap_err();
                assert!(error.starts_with(name) && !error.contains("pass"), "{error}");
            }
        }
    }
}
