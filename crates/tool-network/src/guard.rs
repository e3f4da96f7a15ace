//! Addresses that servers may lead to.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Keeps redirects, and names whose addresses change, from leading to addresses that are not public. Where the URL that the user typed
/// has such an address itself, all are allowed.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The host of the URL that the user typed.
    host: String,
    /// `true` if none of its addresses is public.
    is_local: OnceLock<bool>,
}

/// The error about a host with an address that is not public.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotPublic(String, IpAddr);

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotPublic(host, address) = self;
        write!(
            f,
            "{host} has the address {address}: expected a public address, as of the given URL"
        )
    }
}

impl StdError for NotPublic {}

/// The error about a host whose name was not resolved, with the reason of the system.
#[derive(Debug)]
pub(crate) struct NotResolved(String);

impl NotResolved {
    /// Puts it in the place of an error of the resolver.
    fn of(error: Error) -> Error {
        let Error::Io(error) = error else { return error };
        let text = error.to_string();
        // The standard library's words on Unix.
        let why = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        Error::Io(io::Error::new(error.kind(), NotResolved(why.to_owned())))
    }

    /// Returns whether an error is one.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl fmt::Display for NotResolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host not found: {}", self.0)
    }
}

impl StdError for NotResolved {}

impl Guard {
    /// Creates the guard for a URL that the user typed.
    pub(crate) fn new(typed: &Uri) -> Self {
        let guard = Guard { host: host(typed), is_local: OnceLock::new() };
        if let Some(address) = literal(typed) {
            guard.is_local.get_or_init(|| !is_public(address));
        }
        guard
    }

    /// Fails for a URL with an address that is not allowed. One with a name is judged when the name is resolved.
    pub(crate) fn check(&self, uri: &Uri) -> Result<(), NotPublic> {
        literal(uri).map_or(Ok(()), |address| self.judge(uri, &[address]))
    }

    /// Judges the addresses of the host of a URL.
    fn judge(&self, uri: &Uri, addresses: &[IpAddr]) -> Result<(), NotPublic> {
        let host = host(uri);
        let local = addresses.iter().find(|address| !is_public(**address));
        let is_allowed = if host == self.host {
            let is_local = || addresses.iter().all(|address| !is_public(*address));
            *self.is_local.get_or_init(is_local)
        } else {
            self.is_local.get().is_some_and(|is_local| *is_local)
        };
        match local {
            Some(address) if !is_allowed => Err(NotPublic(host, *address)),
            _ => Ok(()),
        }
    }
}

/// The resolver of names with a guard.
#[derive(Debug)]
pub(crate) struct Guarded(pub(crate) std::sync::Arc<Guard>);

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let addresses = DefaultResolver::default().resolve(uri, config, timeout);
        let addresses = addresses.map_err(NotResolved::of)?;
        // The proxy is the user's.
        let is_proxy =
            config.proxy().is_some_and(|proxy| proxy.uri().authority() == uri.authority());
        if !is_proxy {
            let all: Vec<IpAddr> = addresses.iter().map(|address| address.ip()).collect();
            self.0.judge(uri, &all).map_err(|error| Error::Other(Box::new(error)))?;
        }
        Ok(addresses)
    }
}

fn host(uri: &Uri) -> String {
    uri.host().map_or_else(String::new, str::to_ascii_lowercase)
}

/// Returns the address that a URL has in the place of a name.
fn literal(uri: &Uri) -> Option<IpAddr> {
    let host = uri.host()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse().ok()
}

/// Returns whether an address is one of the Internet: not of this machine, of a local network, or reserved.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && b & 0xc0 == 64;
    let is_of_protocols = (a, b, c) == (192, 0, 0) || a == 198 && b & 0xfe == 18;
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || is_shared
        || is_of_protocols)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, .., y, z] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // An address of version 4, mapped, compatible or translated.
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _]
        | [0, 0, 0, 0, 0xffff, 0, _, _]
        | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => is_public_v4(v4(y, z)),
        [0x2002, ..] => is_public_v4(v4(b, c)),
        // Translated in a local network; unique and local; local to a link or a site; multicast.
        [0x64, 0xff9b, 1, ..] => false,
        // Tunnels (Teredo), which may end anywhere.
        [0x2001, 0, ..] => false,
        _ => a & 0xfe00 != 0xfc00 && a & 0xff80 != 0xfe80 && a & 0xff00 != 0xff00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    const LOCAL: [&str; 25] = [
        "127.0.0.1",
        "10.1.2.3",
        "172.31.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "192.0.0.1",
        "198.19.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "::ffff:0:127.0.0.1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];

    #[test]
    fn addresses_of_the_internet() {
        for address in LOCAL {
            assert!(!is_public(ip(address)), "{address}");
        }
        for address in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(ip(address)), "{address}");
        }
    }

    #[test]
    fn a_public_url_leads_to_no_local_address() {
        for typed in ["https://1.1.1.1/x", "https://files.example.com/x"] {
            let guard = Guard::new(&uri(typed));
            guard.judge(&uri(typed), &[ip("1.1.1.1")]).unwrap();
            guard.check(&uri("https://9.9.9.9/")).unwrap();
            for address in LOCAL {
                let host =
                    if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
                let error = guard.check(&uri(&format!("http://{host}/"))).unwrap_err();
                assert_eq!(error, NotPublic(host, ip(address)));
                let named = guard.judge(&uri("http://x/"), &[ip("1.1.1.1"), ip(address)]);
                assert_eq!(named, Err(NotPublic("x".to_owned(), ip(address))));
                // A name whose address changes.
                assert!(guard.judge(&uri(typed), &[ip(address)]).is_err(), "{typed} {address}");
            }
        }
    }

    #[test]
    fn one_public_address_makes_a_host_public() {
        let typed = uri("https://files.example.com/x");
        let guard = Guard::new(&typed);
        let mixed = guard.judge(&typed, &[ip("1.2.3.4"), ip("127.0.0.1")]);
        assert_eq!(mixed, Err(NotPublic("files.example.com".to_owned(), ip("127.0.0.1"))));
        assert!(guard.check(&uri("http://169.254.169.254/latest")).is_err());
    }

    #[test]
    fn a_local_url_leads_anywhere() {
        for typed in ["http://127.0.0.1:8080/x", "http://[::1]/", "http://Wheels.internal/x"] {
            let guard = Guard::new(&uri(typed));
            guard.judge(&uri(typed), &[ip("10.0.0.1")]).unwrap();
            guard.check(&uri("http://192.168.0.1/")).unwrap();
            guard.judge(&uri("http://other/"), &[ip("127.0.0.1")]).unwrap();
            guard.judge(&uri("http://other/"), &[ip("8.8.8.8")]).unwrap();
        }
    }

    #[test]
    fn a_name_that_was_not_resolved_is_taken_for_public() {
        // A proxy resolves it.
        let guard = Guard::new(&uri("http://files.example.com/x"));
        assert!(guard.check(&uri("http://169.254.169.254/latest")).is_err());
    }
}
