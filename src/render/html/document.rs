//! The document: template, style, program and data in one file, and the policy that ties them together.

use crate::render::markdown_text::html;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const TEMPLATE: &str = include_str!("template.html");
const STYLE: &str = concat!(include_str!("style.css"), include_str!("style_sites.css"));

/// Its parts share one scope, so that none of its names is global.
const PROGRAM: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("app/format.js"),
    include_str!("app/dom.js"),
    include_str!("app/decode.js"),
    include_str!("app/model.js"),
    include_str!("app/paint.js"),
    include_str!("app/picture.js"),
    include_str!("app/controls.js"),
    include_str!("app/timeline.js"),
    include_str!("app/search.js"),
    include_str!("app/charts.js"),
    include_str!("app/detail.js"),
    include_str!("app/table.js"),
    include_str!("app/sites.js"),
    include_str!("app/ranks.js"),
    include_str!("app/changes.js"),
    include_str!("app/main.js"),
    "})();\n"
);

/// Serialises `data` into the page directly: a drawing of megabytes is not built twice.
pub(super) fn write<T: Serialize>(title: &str, data: &T, out: &mut dyn Write) -> io::Result<()> {
    for (text, name) in parts(TEMPLATE) {
        out.write_all(text.as_bytes())?;
        match name {
            "policy" => out.write_all(policy().as_bytes())?,
            "title" => out.write_all(html(title).as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "program" => out.write_all(PROGRAM.as_bytes())?,
            "data" => data.serialize(&mut Serializer::with_formatter(&mut *out, Harmless))?,
            _ => {}
        }
    }
    Ok(())
}

/// Text, and the placeholder after it; the last has none.
fn parts(template: &str) -> impl Iterator<Item = (&str, &str)> {
    template.split("{{").enumerate().flat_map(|(i, part)| {
        let (name, text) = if i == 0 { ("", part) } else { part.split_once("}}").unwrap_or(("", part)) };
        [("", name), (text, "")]
    })
}

/// Allows one script and one style, and no other source.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(PROGRAM),
        hash(STYLE)
    )
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// JSON for a script element: characters that could end the element or a line of script are escaped in
/// strings, and occur nowhere else.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        const ENDS: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
        for part in text.split_inclusive(ENDS) {
            let plain = part.trim_end_matches(ENDS);
            out.write_all(plain.as_bytes())?;
            part[plain.len()..].chars().try_for_each(|end| write!(out, "\\u{:04x}", u32::from(end)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_known_and_filled() {
        let names: Vec<&str> = parts(TEMPLATE).map(|part| part.1).filter(|name| !name.is_empty()).collect();
        assert_eq!(names, ["policy", "title", "style", "data", "program"]);
    }

    #[test]
    fn the_program_and_the_style_cannot_end_their_elements() {
        assert!(!PROGRAM.to_lowercase().contains("</script") && !PROGRAM.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
    }

    /// No path leads from data to markup or code.
    #[test]
    fn the_program_writes_text_only() {
        for way in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"]
        {
            assert!(!PROGRAM.contains(way), "{way}");
        }
        for request in
            ["fetch(", "XMLHttpRequest", "WebSocket", "import(", "sendBeacon", "http:", "https:", "url("]
        {
            let known = PROGRAM.replace("http://www.w3.org/2000/svg", "");
            assert!(!known.contains(request) && !STYLE.contains(request), "{request}");
        }
    }

    #[test]
    fn data_cannot_end_its_element() {
        let mut out = Vec::new();
        let data = ["</script><script>alert(1)</script>", "<!--", "&amp;", "\u{2028}\u{2029}"];
        data.serialize(&mut Serializer::with_formatter(&mut out, Harmless)).expect("a Vec takes everything");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{text}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).expect("JSON"), data);
    }

    #[test]
    fn titles_are_text() {
        let mut out = Vec::new();
        write("</title><script>\"&", &(), &mut out).expect("a Vec takes everything");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("<title>&lt;/title&gt;&lt;script&gt;&quot;&amp;</title>"));
    }
}
