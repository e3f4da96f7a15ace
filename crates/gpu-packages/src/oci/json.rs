//! JSON texts with places, so that a change keeps all other bytes.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// A JSON text and its values with their places.
#[derive(Clone)]
pub(super) struct Json {
    text: String,
    pub(super) root: Node,
}

/// A value of a JSON text.
#[derive(Clone)]
pub(super) struct Node {
    place: Range<usize>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Object(Vec<Entry>),
    Array(Vec<Node>),
    Text(String),
    Number(Option<u64>),
    Other,
}

/// A key of an object with its value.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The key as a value.
    pub(super) name: Node,
    pub(super) value: Node,
}

/// Changes of a JSON text, by the place where a value starts.
#[derive(Default)]
pub(super) struct Changes(BTreeMap<usize, Change>);

enum Change {
    Text(String),
    Removed,
}

impl Changes {
    /// Gives a text, or the name of a key, another value.
    pub(super) fn set_text(&mut self, node: &Node, text: &str) {
        self.0.insert(node.place.start, Change::Text(Value::from(text).to_string()));
    }

    /// Gives a number another value.
    pub(super) fn set_number(&mut self, node: &Node, number: u64) {
        self.0.insert(node.place.start, Change::Text(number.to_string()));
    }

    /// Removes a value of an array, or a key of an object with its value.
    pub(super) fn remove(&mut self, node: &Node) {
        self.0.insert(node.place.start, Change::Removed);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Node {
    /// Returns the value of a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Returns the keys of an object with their values; none of another value.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Object(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the values of an array; none of another value.
    pub(super) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array(_))
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self) -> Option<u64> {
        match self.kind {
            Kind::Number(number) => number,
            _ => None,
        }
    }
}

/// Returns the error for a text that is not JSON.
fn no_json(text: &str, error: &serde_json::Error) -> Error {
    let at = if error.is_eof() {
        text.len()
    } else {
        // Lines and columns count from 1; the end of a line is column 0 of the next.
        let lines = text.split_inclusive('\n').take(error.line().max(1) - 1);
        (lines.map(str::len).sum::<usize>() + error.column()).max(1) - 1
    };
    let found = match text.get(at..).and_then(|rest| rest.chars().next()) {
        Some(found) => format!("{found:?}"),
        None if at >= text.len() => "the end of the file".to_owned(),
        None => "another character".to_owned(),
    };
    let why = error.to_string();
    let why = why.split(" at line ").next().unwrap_or(&why);
    let why = format!("{why}: expected JSON, found {found}");
    Error::at(ErrorKind::Malformed, at as u64, why)
}

impl Json {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) for a text that is not JSON, or has a key twice in one object.
    pub(super) fn parse(text: Vec<u8>) -> Result<Self, Error> {
        let malformed = |why: String| Error::new(ErrorKind::Malformed, why);
        let text = String::from_utf8(text).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let found = error.as_bytes().get(at).map(|byte| format!("the byte {byte:#04x}"));
            let found = found.as_deref().unwrap_or("the end of the file");
            let why = format!("expected JSON in UTF-8, found {found}");
            Error::at(ErrorKind::Malformed, at as u64, why)
        })?;
        // Checks the syntax, and bounds the depth.
        let _: Value = serde_json::from_str(&text).map_err(|error| no_json(&text, &error))?;
        let mut parser = Parser { text: &text, at: 0 };
        let root = parser.value().ok_or_else(|| malformed("expected a value".to_owned()))?;
        let json = Json { text, root };
        match json.root.twice() {
            Some(key) => Err(malformed(format!("the key '{key}' is there twice in one object"))),
            None => Ok(json),
        }
    }

    /// Returns as many values as a text may have, before it is parsed.
    pub(super) fn most_values(text: &[u8]) -> u64 {
        1 + text.iter().filter(|byte| b",:[{".contains(byte)).count() as u64
    }

    /// Returns the text with changes.
    pub(super) fn changed(&self, changes: &Changes) -> Vec<u8> {
        let mut out = String::with_capacity(self.text.len());
        out.push_str(self.slice(0..self.root.place.start));
        self.write(&self.root, changes, &mut out);
        out.push_str(self.slice(self.root.place.end..self.text.len()));
        out.into_bytes()
    }

    fn slice(&self, place: Range<usize>) -> &str {
        self.text.get(place).unwrap_or("")
    }

    fn write(&self, node: &Node, changes: &Changes, out: &mut String) {
        if let Some(Change::Text(text)) = changes.0.get(&node.place.start) {
            out.push_str(text);
            return;
        }
        let children: Vec<(&Node, &Node)> = match &node.kind {
            Kind::Object(entries) => entries.iter().map(|it| (&it.name, &it.value)).collect(),
            Kind::Array(items) => items.iter().map(|item| (item, item)).collect(),
            _ => {
                out.push_str(self.slice(node.place.clone()));
                return;
            }
        };
        // The bracket before the children, and the one after them.
        let (mut at, end) = (node.place.start + 1, node.place.end.max(1) - 1);
        out.push_str(self.slice(node.place.start..at));
        // The space after the last child, and after the last one that was written.
        let (mut tail, mut written) = (at..end, None);
        for (nth, (first, last)) in children.iter().enumerate() {
            let next = children.get(nth + 1).map_or(end, |(next, _)| next.place.start);
            let between = self.slice(last.place.end..next);
            let comma = between.find(',').map_or(end, |comma| last.place.end + comma);
            tail = last.place.end..comma;
            if !matches!(changes.0.get(&first.place.start), Some(Change::Removed)) {
                if let Some(space) = written.replace(tail.clone()) {
                    out.push_str(self.slice(space));
                    out.push(',');
                }
                out.push_str(self.slice(at..first.place.start));
                self.write(first, changes, out);
                if !std::ptr::eq(*first, *last) {
                    out.push_str(self.slice(first.place.end..last.place.start));
                    self.write(last, changes, out);
                }
            }
            at = comma + 1;
        }
        out.push_str(self.slice(tail));
        out.push_str(self.slice(end..node.place.end));
    }
}

impl Node {
    /// Returns a key that an object has twice, if one does.
    fn twice(&self) -> Option<&str> {
        let mut known = HashSet::new();
        for entry in self.entries() {
            if !known.insert(&entry.key) {
                return Some(&entry.key);
            }
            if let Some(key) = entry.value.twice() {
                return Some(key);
            }
        }
        self.items().iter().find_map(Node::twice)
    }
}

/// A parser of a text that is known to be JSON.
struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    /// Passes over white space, and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self) -> Option<Node> {
        let first = self.peek()?;
        let start = self.at;
        let kind = match first {
            b'{' => {
                self.at += 1;
                let mut entries = Vec::new();
                while !self.take(b'}') {
                    self.take(b',');
                    let name = self.value()?;
                    let key = name.text()?.to_owned();
                    self.take(b':').then_some(())?;
                    entries.push(Entry { key, name, value: self.value()? });
                }
                Kind::Object(entries)
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.take(b']') {
                    self.take(b',');
                    items.push(self.value()?);
                }
                Kind::Array(items)
            }
            b'"' => Kind::Text(self.string()?),
            _ => {
                let rest = self.text.get(start..)?;
                let end = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                self.at += end;
                match first {
                    b'-' | b'0'..=b'9' => Kind::Number(rest.get(..end)?.parse().ok()),
                    _ => Kind::Other,
                }
            }
        };
        Some(Node { place: start..self.at, kind })
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_all_other_bytes() {
        let text =
            "\n{ \"a\" : [1, 2 ,\t3 ],\"b\":{\"x\":\"\\u0041\\\"\",\"y\": -1.5e3}, \"c\":null }\n";
        let json = Json::parse(text.into()).unwrap();
        assert_eq!(json.changed(&Changes::default()), text.as_bytes());
        let b = json.root.get("b").unwrap();
        assert_eq!(b.get("x").unwrap().text(), Some("A\""));
        assert_eq!(b.get("y").unwrap().number(), None);
        let mut changes = Changes::default();
        let items = json.root.get("a").unwrap().items();
        changes.remove(&items[0]);
        changes.set_number(&items[1], 20);
        changes.remove(&items[2]);
        changes.set_text(b.get("x").unwrap(), "new\n");
        changes.remove(&b.entries()[1].name);
        changes.set_text(&json.root.entries()[2].name, "d");
        let expected = "\n{ \"a\" : [ 20 ],\"b\":{\"x\":\"new\\n\"}, \"d\":null }\n";
        assert_eq!(String::from_utf8(json.changed(&changes)).unwrap(), expected);
    }

    #[test]
    fn arrays_may_lose_all() {
        let json = Json::parse(b"[ [ ], {}, [1,{\"a\":2}] ]".to_vec()).unwrap();
        let mut changes = Changes::default();
        json.root.items().iter().for_each(|item| changes.remove(item));
        assert_eq!(json.changed(&changes), b"[ ]");
        for bad in [&b"{"[..], b"{\"a\":1,\"a\":2}", b"[{\"b\":{\"c\":1,\"c\":2}}]", b"\xff", b""] {
            assert!(Json::parse(bad.to_vec()).is_err(), "{bad:?}");
        }
    }
}
