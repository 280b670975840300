//! Events of a Chrome JSON trace, as Kineto writes them: one pass, with one event in memory at a time.
//!
//! ```text
//! {"schemaVersion": 1, "deviceProperties": [...], "traceEvents": [
//!   {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 588, "tid": 588,
//!    "ts": 5030193261362.526, "dur": 12.47, "args": {"cbid": 165, "correlation": 56405}}, ...],
//!  "baseTimeNanoseconds": 1790857026000000000}
//! ```
//! Times are µs, whole before 2023, with three decimals since. They are read from their digits: a double is
//! off by a quarter of a µs for times since 1970. A field that is missing or of another type has no value.
//! Older traces are a bare list of events.

use super::super::MAX_TIME;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt::{self, Formatter};
use std::io::Read;
use std::marker::PhantomData;

/// Values that are read beside the events.
const HEADER: [&str; 6] = [
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "with_stack",
    "hip_runtime_version",
    "cuda_runtime_version",
];

pub type Header = Map<String, Value>;

#[derive(Debug)]
pub enum Ending {
    Whole,
    /// The program was killed while it wrote, or the file was cut.
    Cut,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    /// `X` for one with a duration, `M` for a name.
    #[serde(rename = "ph")]
    pub phase: Text,
    #[serde(rename = "cat")]
    pub category: Text,
    pub name: Text,
    pub pid: Number,
    pub tid: Number,
    #[serde(rename = "ts")]
    pub start: Micros,
    #[serde(rename = "dur")]
    pub duration: Micros,
    pub args: Maybe<Args>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Args {
    pub correlation: Number,
    pub device: Number,
    pub context: Number,
    pub stream: Number,
    pub bytes: Number,
    /// Direction asked of a HIP copy (hipMemcpyKind): 1 to the device, 2 to the host.
    pub kind: Number,
    pub grid: Numbers,
    pub block: Numbers,
    #[serde(rename = "registers per thread")]
    pub registers: Number,
    #[serde(rename = "shared memory")]
    pub shared_memory: Number,
    #[serde(rename = "wait_on_cuda_event_id")]
    pub event: Number,
    /// The correlation of the call that recorded it.
    #[serde(rename = "wait_on_cuda_event_record_corr_id")]
    pub record: Number,
    #[serde(rename = "wait_on_stream")]
    pub recorded_on: Number,
    /// Shared by an operator and its backward node in autograd's graph.
    #[serde(rename = "Sequence number")]
    pub sequence: Number,
    #[serde(rename = "Input Dims")]
    pub sizes: Option<Box<RawValue>>,
    #[serde(rename = "Input type")]
    pub types: Option<Box<RawValue>>,
    /// Arguments that are no tensors.
    #[serde(rename = "Concrete Inputs")]
    pub values: Option<Box<RawValue>>,
    #[serde(rename = "Python id")]
    pub python: Number,
    #[serde(rename = "Python parent id")]
    pub python_parent: Number,
    /// `FILE:LINE` of the Python line that called the function.
    #[serde(rename = "CallFrom")]
    pub call_from: Text,
    /// Given by a name event.
    pub name: Text,
}

/// An object; `None` for any other value.
#[derive(Debug)]
pub struct Maybe<T>(pub Option<T>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Object(PhantomData))
    }
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Maybe<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|object| Maybe(Some(object)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Maybe<T>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Maybe(None))
    }

    fn visit_unit<E>(self) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Maybe<T>, E> {
        Ok(Maybe(None))
    }
}

/// Up to three whole numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers(pub [Number; 3]);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(json)?;
        let number = |at: usize| Number(value.get(at).and_then(Value::as_i64).filter(|&number| number >= 0));
        Ok(Self([0, 1, 2].map(number)))
    }
}

/// A whole number; `None` for other values and those below 0: Kineto writes -1 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number(pub Option<i64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(json)?;
        let text = || value.as_str().and_then(|text| text.parse().ok());
        Ok(Self(value.as_i64().or_else(text).filter(|&number| number >= 0)))
    }
}

/// A text; empty for any other value.
#[derive(Debug, Default)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        Ok(Self(if let Value::String(text) = Value::deserialize(json)? { text } else { String::new() }))
    }
}

/// A time in µs, kept in ns; `None` for other values and times beyond [`MAX_TIME`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Micros(pub Option<i64>);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        Ok(Self(nanos(Box::<RawValue>::deserialize(json)?.get())))
    }
}

/// "12.4705" µs as 12,470 ns, from its digits; through a double where there is an exponent.
fn nanos(text: &str) -> Option<i64> {
    let text = text.trim_matches('"');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if text.contains(['e', 'E']) {
        let ns = text.parse::<f64>().ok()? * 1e3;
        return (ns.abs() < MAX_TIME as f64).then_some(ns as i64);
    }
    let mut thousandths = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let digits = thousandths
        .try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))?;
    let sign = if whole.starts_with('-') { -1 } else { 1 };
    let ns = whole.parse::<i64>().ok()?.checked_mul(1_000)?.checked_add(sign * digits)?;
    (-MAX_TIME..=MAX_TIME).contains(&ns).then_some(ns)
}

/// # Errors
/// The text is no JSON (the error has line and column), or cannot be read.
pub fn read(text: impl Read, mut each: impl FnMut(Event)) -> Result<(Header, Ending), serde_json::Error> {
    let mut header = Header::new();
    let mut json = serde_json::Deserializer::from_reader(text);
    let read = json.deserialize_any(Trace { header: &mut header, each: &mut each });
    match read {
        Ok(()) => Ok((header, Ending::Whole)),
        Err(e) if e.is_eof() || e.io_error_kind() == Some(std::io::ErrorKind::UnexpectedEof) => {
            Ok((header, Ending::Cut))
        }
        Err(e) => Err(e),
    }
}

struct Trace<'t> {
    header: &'t mut Header,
    each: &'t mut dyn FnMut(Event),
}

impl<'de> Visitor<'de> for Trace<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("a trace: an object with traceEvents, or a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "traceEvents" => map.next_value_seed(Events(self.each))?,
                key if HEADER.contains(&key) => {
                    self.header.insert(key.to_owned(), map.next_value()?);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        Events(self.each).visit_seq(seq)
    }
}

struct Events<'t>(&'t mut dyn FnMut(Event));

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(Maybe(event)) = seq.next_element::<Maybe<Event>>()? {
            event.into_iter().for_each(&mut *self.0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_their_digits() {
        for (text, ns) in [
            ("5030193261362.526", Some(5_030_193_261_362_526)),
            ("1707417525509335", Some(1_707_417_525_509_335_000)),
            ("1707417525509335.087", Some(1_707_417_525_509_335_087)),
            ("12.4705", Some(12_470)),
            ("-0.5", Some(-500)),
            ("\"7\"", Some(7_000)),
            ("1.5e3", Some(1_500_000)),
            ("1e300", None),
            ("99999999999999999999", None),
            ("null", None),
            ("1.x", None),
        ] {
            assert_eq!(nanos(text), ns, "{text}");
        }
    }

    fn names(text: &str) -> Result<(Vec<String>, Header, Ending), serde_json::Error> {
        let mut names = Vec::new();
        let (header, ending) = read(text.as_bytes(), |event| names.push(event.name.0))?;
        Ok((names, header, ending))
    }

    #[test]
    fn a_trace_is_an_object_or_a_list_and_may_end_early() {
        let whole = r#"{"x": [1, {}], "traceEvents": [{"name": "a", "pid": "Spans", "args": {"grid": [1, 2, 3], "stream": -1}},
                       {"name": "b", "args": null}], "baseTimeNanoseconds": 7}"#;
        let (found, header, ending) = names(whole).expect("JSON");
        assert_eq!(found, ["a", "b"]);
        assert_eq!(header["baseTimeNanoseconds"], 7);
        assert!(matches!(ending, Ending::Whole));
        let (found, _, ending) = names(&whole[..whole.find("args\": null").expect("there")]).expect("JSON");
        assert_eq!(found, ["a"]);
        assert!(matches!(ending, Ending::Cut));
        assert_eq!(names(r#"[{"name": "a"}]"#).expect("JSON").0, ["a"]);
        assert!(names(r#"{"traceEvents": [{"name": "a"} {"name": "b"}]}"#).is_err());
        assert!(names("7").is_err());
    }
}
