//! Values that go back to the device: as they came, or after the CPU has worked on them.

use super::tracer::{Next, Tracer, ends};
use super::value::{Sink, Value};
use crate::rules::grade;
use crate::verdict::source::parse::Node;

impl<'a> Tracer<'a, '_> {
    /// The value goes back to the device; as it came, or after the CPU has multiplied it with other data.
    pub(super) fn carried(&mut self, path: &[Node<'a>], value: &Value) -> Next {
        if !value.joined {
            return ends(Sink::Device, "copied back to the device");
        }
        self.sink(path, value, Sink::Compute, "multiplied on the CPU, before it is copied back");
        self.uses.last_mut().into_iter().for_each(|used| used.limit = grade::HANDED_ON);
        Next::Done
    }

    /// A number is asked for a method, though it has none: it was combined with a tensor on the way, or with an array.
    pub(super) fn combined(&mut self, path: &[Node<'a>], value: &Value, method: &str) -> Next {
        if matches!(method, "is_integer" | "hex" | "conjugate" | "bit_length" | "as_integer_ratio") {
            return Next::Up(2);
        }
        self.sink(path, value, Sink::Device, format!("combined with what `.{method}()` is called on"));
        let surely = matches!(method, "cpu" | "cuda" | "detach" | "backward" | "to" | "requires_grad_");
        if let (false, Some(used)) = (surely, self.uses.last_mut()) {
            used.limit = grade::PERHAPS_TENSOR;
        }
        Next::Done
    }
}
