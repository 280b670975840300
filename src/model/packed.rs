//! Numbers as few characters: LEB128 in base64, for a page to decode.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

/// Bytes that are written as base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Vec<u8>);

impl Packed {
    /// Length as base64, in characters.
    pub fn len(&self) -> usize {
        self.0.len().div_ceil(3) * 4
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes before base64.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Seven bits a byte, low ones first, the top bit set on all but the last. Negative numbers are damage:
    /// 0.
    pub(crate) fn push(&mut self, number: i64) {
        let mut rest = number.max(0) as u64;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    /// Appends a number of either sign: 0, -1, 1, -2, … as 0, 1, 2, 3, …
    pub(crate) fn push_signed(&mut self, number: i64) {
        // Half the range is more than any capture lasts.
        let number = number.clamp(i64::MIN / 4, i64::MAX / 4);
        self.push(if number < 0 { -2 * number - 1 } else { 2 * number });
    }

    pub(crate) fn push_byte(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

/// Reads what [`Packed::push`] wrote.
#[cfg(test)]
pub(crate) fn numbers(packed: &Packed) -> Vec<i64> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0i64, 0);
    for &byte in &packed.0 {
        number |= i64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut packed = Packed::default();
        for number in [0, 1, 127, 128, 300, 1 << 40, i64::MAX] {
            packed.push(number);
        }
        packed.push_signed(-3);
        packed.push_signed(2);
        assert_eq!(numbers(&packed), [0, 1, 127, 128, 300, 1 << 40, i64::MAX, 5, 4]);
        assert_eq!(serde_json::to_string(&Packed(vec![0xff, 0])).expect("JSON"), "\"/wA=\"");
    }
}
