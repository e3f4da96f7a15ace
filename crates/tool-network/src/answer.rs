//! The judgement of a server's answer to a request for a range.

use std::ops::Range;

/// The head of an answer, with the headers that matter.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// The status.
    pub status: u16,
    /// `Content-Range`.
    pub content_range: Option<&'a str>,
    /// `Content-Length`.
    pub content_length: Option<&'a str>,
    /// `Content-Encoding`.
    pub content_encoding: Option<&'a str>,
    /// `Transfer-Encoding`.
    pub transfer_encoding: Option<&'a str>,
    /// `ETag`.
    pub etag: Option<&'a str>,
    /// `Last-Modified`.
    pub last_modified: Option<&'a str>,
}

/// The kind of service, by the first answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Ranges. The answer has the first bytes of the file.
    Ranges {
        /// The length of the file.
        len: u64,
        /// The number of bytes in the answer.
        first: u64,
    },
    /// The whole file, of this many bytes, if that is known.
    Whole(Option<u64>),
}

/// The version of a file on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    len: u64,
    etag: Option<String>,
    last_modified: Option<String>,
}

impl<'a> Answer<'a> {
    /// Creates an answer without headers.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Answer { status, ..Answer::default() }
    }

    /// Judges the answer to the request for the first `asked` bytes of a file.
    ///
    /// # Errors
    ///
    /// A text about the fault.
    pub fn first(&self, asked: u64) -> Result<Served, String> {
        self.check_encoding()?;
        match self.status {
            200 => {
                let len = self.length()?;
                if len.is_none() && !self.is_chunked() {
                    return Err("status 200 with neither Content-Length nor chunks: expected one, because the file may be incomplete".to_owned());
                }
                return Ok(Served::Whole(len));
            }
            // No byte of an empty file can be asked for.
            416 => {
                return match self.content_range.map(str::trim) {
                    Some("bytes */0") => Ok(Served::Ranges { len: 0, first: 0 }),
                    _ => {
                        Err(format!("status 416 for the first {asked} bytes: expected 206 or 200"))
                    }
                };
            }
            206 => {}
            status => return Err(unexpected(status)),
        }
        let (range, len) = self.range()?;
        let expected = 0..asked.min(len);
        self.check_range(&range, &expected)?;
        Ok(Served::Ranges { len, first: range.end })
    }

    /// Returns the version of the file of this length.
    #[must_use]
    pub fn version(&self, len: u64) -> Version {
        let (etag, last_modified) =
            (self.etag.map(str::to_owned), self.last_modified.map(str::to_owned));
        Version { len, etag, last_modified }
    }

    /// Judges the answer to a later request.
    ///
    /// # Errors
    ///
    /// A text about the fault.
    pub fn later(&self, asked: &Range<u64>, version: &Version) -> Result<(), String> {
        self.check_encoding()?;
        match self.status {
            206 => {}
            200 => {
                return Err(format!("the whole file in answer to a request for {}", shown(asked)));
            }
            status => {
                return Err(format!("{} to a request for {}", unexpected(status), shown(asked)));
            }
        }
        let (range, len) = self.range()?;
        if len != version.len {
            let before = version.len;
            return Err(format!(
                "the file was changed while it was read: {len} bytes, {before} before"
            ));
        }
        let changed = |what| Err(format!("the file was changed while it was read: {what}"));
        // A server that has an ETag sends it with each range.
        match (self.etag, version.etag.as_deref()) {
            (Some(_), None) => return changed("an ETag, none before"),
            (None, Some(_)) => return changed("no ETag, one before"),
            (now, before) if now != before => return changed("another ETag"),
            _ => {}
        }
        let [now, before] = [self.last_modified, version.last_modified.as_deref()];
        if now.is_some() && before.is_some() && now != before {
            return changed("another Last-Modified");
        }
        self.check_range(&range, asked)
    }

    fn check_range(&self, found: &Range<u64>, asked: &Range<u64>) -> Result<(), String> {
        if found != asked {
            return Err(format!("{} in answer to a request for {}", shown(found), shown(asked)));
        }
        match self.length()? {
            Some(len) if len != asked.end - asked.start => {
                let expected = asked.end - asked.start;
                Err(format!(
                    "Content-Length {len}: expected {expected}, the length of {}",
                    shown(asked)
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_encoding(&self) -> Result<(), String> {
        match self.content_encoding.map(str::trim) {
            None | Some("" | "identity") => Ok(()),
            Some(encoding) => {
                let encoding: String = encoding.chars().take(32).collect();
                Err(format!(
                    "Content-Encoding {encoding:?}: expected the bytes of the file as they are"
                ))
            }
        }
    }

    /// Returns whether the answer says where it ends, without a length.
    fn is_chunked(&self) -> bool {
        let last = self.transfer_encoding.and_then(|text| text.rsplit(',').next());
        last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
    }

    fn length(&self) -> Result<Option<u64>, String> {
        let Some(text) = self.content_length else { return Ok(None) };
        let text = text.trim();
        let bad = || {
            let text: String = text.chars().take(32).collect();
            format!("Content-Length {text:?}: expected a number of bytes")
        };
        number(text).map(Some).ok_or_else(bad)
    }

    /// Returns the range of the answer, and the length of the file.
    fn range(&self) -> Result<(Range<u64>, u64), String> {
        let Some(text) = self.content_range else {
            return Err("status 206 without Content-Range".to_owned());
        };
        let parse = || {
            let (range, len) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
            let (start, last) = range.split_once('-')?;
            let (start, last, len) = (number(start)?, number(last)?, number(len)?);
            let end = last.checked_add(1)?;
            (start < end && end <= len).then_some((start..end, len))
        };
        parse().ok_or_else(|| {
            let text: String = text.chars().take(64).collect();
            format!("Content-Range {text:?}: expected 'bytes FIRST-LAST/LENGTH' within the file")
        })
    }
}

/// Reads digits: `parse` permits a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn shown(range: &Range<u64>) -> String {
    format!("bytes {:#x} to {:#x}", range.start, range.end)
}

/// Returns the text for a status that is neither 200 nor 206.
fn unexpected(status: u16) -> String {
    let what = match status {
        401 | 407 => " (not authorized)",
        403 => " (forbidden)",
        404 => " (not found)",
        410 => " (gone)",
        429 => " (too many requests)",
        500..=599 => " (the server failed)",
        _ => "",
    };
    format!("status {status}{what}: expected 206 or 200")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(content_range: &str) -> Answer<'_> {
        Answer { content_range: Some(content_range), ..Answer::new(206) }
    }

    #[test]
    fn first_answers() {
        let ranges = |len, first| Ok(Served::Ranges { len, first });
        assert_eq!(partial("bytes 0-99/1000").first(100), ranges(1000, 100));
        assert_eq!(partial("bytes 0-9/10").first(100), ranges(10, 10));
        assert_eq!(
            Answer { content_range: Some("bytes */0"), ..Answer::new(416) }.first(9),
            ranges(0, 0)
        );
        for chunked in ["chunked", "Chunked ", "gzip, chunked"] {
            let answer = Answer { transfer_encoding: Some(chunked), ..Answer::new(200) };
            assert_eq!(answer.first(9), Ok(Served::Whole(None)));
        }
        let whole = Answer { content_length: Some("77"), ..Answer::new(200) };
        assert_eq!(whole.first(9), Ok(Served::Whole(Some(77))));
        for bad in [
            partial("bytes 0-98/1000"),
            partial("bytes 0-100/1000"),
            partial("bytes 1-100/1000"),
            partial("bytes 0-99/99"),
            partial("bytes 0-99/*"),
            partial("bytes 0-18446744073709551615/18446744073709551615"),
            partial("bytes +0-99/1000"),
            partial("items 0-99/1000"),
            partial(""),
            Answer::new(206),
            Answer::new(200),
            Answer { transfer_encoding: Some("identity"), ..Answer::new(200) },
            Answer::new(404),
            Answer::new(416),
            Answer { content_length: Some("99"), ..partial("bytes 0-99/1000") },
            Answer { content_length: Some("-1"), ..Answer::new(200) },
            Answer { content_encoding: Some("gzip"), ..partial("bytes 0-99/1000") },
        ] {
            assert!(bad.first(100).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn later_answers_are_of_the_same_file_and_place() {
        let with = |content_range, etag, last_modified| Answer {
            etag,
            last_modified,
            ..partial(content_range)
        };
        let version = with("", Some("\"1\""), Some("Monday")).version(1000);
        let later = |answer: Answer<'_>| answer.later(&(10..20), &version);
        assert_eq!(later(with("bytes 10-19/1000", Some("\"1\""), Some("Monday"))), Ok(()));
        let without_date = with("bytes 10-19/1000", Some("\"1\""), None);
        assert_eq!(later(without_date), Ok(()));
        let untagged = with("", None, None).version(1000);
        assert_eq!(partial("bytes 10-19/1000").later(&(10..20), &untagged), Ok(()));
        let error = without_date.later(&(10..20), &untagged).unwrap_err();
        assert!(error.ends_with("an ETag, none before"), "{error}");
        for (answer, why) in [
            (with("bytes 10-19/1000", Some("\"2\""), None), "another ETag"),
            (with("bytes 10-19/1000", Some("W/\"1\""), None), "another ETag"),
            (partial("bytes 10-19/1000"), "no ETag, one before"),
            (with("bytes 10-19/1000", Some("\"1\""), Some("Tuesday")), "another Last-Modified"),
            (partial("bytes 10-19/1001"), "1001 bytes, 1000 before"),
            (
                with("bytes 11-19/1000", Some("\"1\""), None),
                "bytes 0xb to 0x14 in answer to a request for bytes 0xa to 0x14",
            ),
            (Answer::new(200), "the whole file"),
            (Answer::new(503), "status 503 (the server failed)"),
        ] {
            let error = later(answer).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
