//! The tensor given to an operator, from the text of the operator's range.
//!
//! ```text
//!  aten::copy_, sizes = [[256, 512], [256, 512], []], types = ["float", "float", "Scalar"], values = ["", "", "False"]
//!                to           from                                                                           non_blocking
//! ```
//! `sizes` is what `torch.autograd.profiler.emit_nvtx(record_shapes=True)` writes; a trace of torch.profiler has all three.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// More dimensions or larger sizes than this are no tensor's.
const MOST_DIMENSIONS: usize = 64;
const LARGEST: u64 = 1 << 40;

/// C++ types and their `torch.dtype` names.
const TYPES: [(&str, &str); 12] = [
    ("float", "float32"),
    ("double", "float64"),
    ("c10::Half", "float16"),
    ("c10::BFloat16", "bfloat16"),
    ("long int", "int64"),
    ("long", "int64"),
    ("int", "int32"),
    ("short int", "int16"),
    ("signed char", "int8"),
    ("unsigned char", "uint8"),
    ("c10::complex<float>", "complex64"),
    ("c10::complex<double>", "complex128"),
];

/// The tensor that is copied or read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Operand {
    /// `torch.dtype` of the tensor, without "torch."; null where unknown.
    pub dtype: Option<String>,
    /// Sizes of the tensor; empty for a single number.
    pub sizes: Vec<u64>,
    /// `non_blocking` of the copy; null where unknown.
    pub non_blocking: Option<bool>,
}

impl Operand {
    /// `None` for a text without sizes.
    pub fn read(text: &str) -> Option<Self> {
        let operator = text.strip_prefix("aten::")?.split(", ").next()?;
        let texts = |label| after::<Vec<String>>(text, label).unwrap_or_default();
        let place = usize::from(operator == "copy_");
        let sizes = sizes(text).into_iter().nth(place)?;
        let dtype = texts("types = ").into_iter().nth(place).filter(|dtype| !dtype.is_empty());
        let known =
            |dtype: String| TYPES.iter().find(|row| row.0 == dtype).map_or(dtype, |row| row.1.to_owned());
        let flag = texts("values = ").into_iter().nth(2).filter(|_| place == 1);
        let non_blocking = flag.and_then(|flag| match &*flag {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        });
        Some(Self { dtype: dtype.map(known), sizes, non_blocking })
    }
}

/// "float32 [256, 512], non_blocking=False".
impl Display for Operand {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(self.dtype.as_deref().unwrap_or("tensor"))?;
        if !self.sizes.is_empty() {
            write!(f, " {:?}", self.sizes)?;
        }
        match self.non_blocking {
            Some(true) => f.write_str(", non_blocking=True"),
            Some(false) => f.write_str(", non_blocking=False"),
            None => Ok(()),
        }
    }
}

/// One list of sizes for each tensor of an operator; empty for a number or another argument.
pub fn sizes(text: &str) -> Vec<Vec<u64>> {
    let Some((_, list)) = text.split_once("sizes = [") else { return Vec::new() };
    let mut sizes = Vec::new();
    let mut rest = list;
    while let Some(inner) = rest.trim_start_matches([',', ' ']).strip_prefix('[') {
        let Some((numbers, after)) = inner.split_once(']') else { break };
        if numbers.contains('[') || sizes.len() == MOST_DIMENSIONS {
            break; // a list of tensors
        }
        let numbers: Option<Vec<u64>> = numbers
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
            .map(|n| n.parse().ok().filter(|n| *n <= LARGEST))
            .collect();
        sizes.push(numbers.unwrap_or_default());
        rest = after;
    }
    sizes
}

/// The JSON that follows a label.
fn after<'t, T: Deserialize<'t>>(text: &'t str, label: &str) -> Option<T> {
    let (_, json) = text.split_once(label)?;
    serde_json::Deserializer::from_str(json).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_say_what_is_copied_or_read() {
        let sizes = "sizes = [[256, 512], [4, 2], []]";
        let copy = format!(
            r#"aten::copy_, {sizes}, types = ["float", "double", "Scalar"], values = ["", "", "True"]"#
        );
        let said = |text: &str| Operand::read(text).map(|operand| operand.to_string());
        assert_eq!(said(&copy).as_deref(), Some("float64 [4, 2], non_blocking=True"));
        let read = r#"aten::_local_scalar_dense, sizes = [[]], types = ["bool"], values = ["False"]"#;
        assert_eq!(said(read).as_deref(), Some("bool"));
        assert_eq!(said("aten::nonzero, seq = 3, sizes = [[7]]").as_deref(), Some("tensor [7]"), "emit_nvtx");
        assert_eq!(said(r#"aten::nonzero, sizes = [[7]], types = ["x", 3"#).as_deref(), Some("tensor [7]"));
        for text in
            ["aten::item", "step, sizes = [[3]]", "aten::copy_, sizes = [[3]]", "aten::item, sizes = 7"]
        {
            assert_eq!(said(text), None, "{text}");
        }
    }
}
