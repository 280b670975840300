//! Places and values of the operands of products.
//!
//! Operands and results of each element type have a ring of device memory each. Every product takes the next
//! piece, so consecutive products touch as much memory as in the recorded program. A ring larger than the
//! cache by [`CACHES`] is like an endless one.

use super::blas::Product;
use super::cuda::Result;
use super::memory::{self, DeviceMemory, PreparedCopy, Ring};
use super::open::Gpu;
use crate::replay::error::ReplayError;
use crate::replay::plan::GemmIx;
use crate::replay::product::{Element, Shape};
use crate::text;
use half::{bf16, f16};
use typed_index_collections::{TiSlice, TiVec};

/// Sizes of the cache after which the oldest data is surely gone from it.
const CACHES: u64 = 4;
/// Pieces begin at multiples of this, as in CUDA's and PyTorch's allocators: cuBLAS chooses by alignment.
const ALIGNMENT: u64 = 512;
/// Share of the free memory; cuBLAS and the driver allocate from the rest.
const USABLE: f64 = 0.8;
/// Length of the sequence of values in the operands: prime, so that rows of no matrix repeat.
const PERIOD: u64 = 1_000_003;

struct Rings {
    element: Element,
    inputs: Ring<DeviceMemory>,
    outputs: Ring<DeviceMemory>,
}

pub struct Operands(Vec<Rings>);

/// Bytes of an element type's rings (operands, results) for `shapes`, in launch order.
fn ring_bytes(shapes: &[Shape], element: Element, cache: u64) -> (u64, u64) {
    let size = element.bytes();
    let piece = |elements: u64| elements.saturating_mul(size).saturating_add(2 * ALIGNMENT);
    let bytes = |of: &dyn Fn(&Shape) -> u64| {
        let mine = || shapes.iter().filter(|s| s.element == element);
        let sum = mine().fold(0u64, |sum, s| sum.saturating_add(of(s)));
        let most = mine().map(of).max().unwrap_or(0);
        sum.min(cache.saturating_mul(CACHES).max(most))
    };
    let inputs = bytes(&|s| piece(s.elements()[0]).saturating_add(piece(s.elements()[1])));
    (inputs, bytes(&|s| piece(s.elements()[2])))
}

fn elements(shapes: &[Shape]) -> Vec<Element> {
    text::distinct(shapes.iter().map(|shape| shape.element))
}

impl Operands {
    /// Room for `shapes`, in launch order, filled.
    pub fn new(gpu: &Gpu, shapes: &[Shape]) -> Result<Self> {
        let ring = |bytes: u64, what| {
            let size = usize::try_from(bytes).unwrap_or(usize::MAX);
            Ok(Ring::new(DeviceMemory::new(&gpu.context, size, what)?, bytes, ALIGNMENT))
        };
        let mut all = Vec::new();
        for element in elements(shapes) {
            let (inputs, outputs) = ring_bytes(shapes, element, gpu.cache);
            let inputs = ring(inputs, "the operands of the products")?;
            fill(gpu, &inputs.memory, element)?;
            all.push(Rings { element, inputs, outputs: ring(outputs, "the results of the products")? });
        }
        Ok(Self(all))
    }

    pub fn place(&mut self, shape: &Shape) -> Result<Product> {
        let unplayable = || ReplayError::Unplayable(format!("cuBLAS takes no product of {shape}"));
        let rings = self.0.iter_mut().find(|r| r.element == shape.element).ok_or_else(unplayable)?;
        let [bytes_a, bytes_b, bytes_c] = shape.elements().map(|elements| elements * shape.element.bytes());
        let a = rings.inputs.take(bytes_a.next_multiple_of(ALIGNMENT) + bytes_b);
        let b = a + bytes_a.next_multiple_of(ALIGNMENT) as usize;
        let c = rings.outputs.take(bytes_c);
        let addresses = [
            rings.inputs.memory.address(a, bytes_a as usize)?,
            rings.inputs.memory.address(b, bytes_b as usize)?,
            rings.outputs.memory.address(c, bytes_c as usize)?,
        ];
        Product::new(shape, addresses).ok_or_else(unplayable)
    }

    /// The next product goes where the first one went.
    pub fn rewind(&mut self) {
        for rings in &mut self.0 {
            rings.inputs.rewind();
            rings.outputs.rewind();
        }
    }
}

/// Fills memory with the values: one period from the host, then copies of it.
fn fill(gpu: &Gpu, memory: &DeviceMemory, element: Element) -> Result<()> {
    let period = period(element);
    let first = period.len().min(memory.bytes());
    memory::write(memory, 0, &period[..first])?;
    let mut filled = first;
    while filled < memory.bytes() {
        // Only whole periods are there, so the sequence goes on seamlessly.
        let bytes = filled.min(memory.bytes() - filled);
        PreparedCopy::inside(memory, filled, memory, 0, bytes)?.move_async(&gpu.stream)?;
        filled += bytes;
    }
    gpu.stream.synchronize()
}

/// One period of pseudo-random values, evenly spread over (−1, 1): a GPU that multiplies zeros draws less
/// power, so its clocks stay higher than the program's.
fn period(element: Element) -> Vec<u8> {
    let values = (0..PERIOD).map(|i| {
        // SplitMix64's finalizer (Steele, Lea, Flood 2014), of which the upper 53 bits are a fraction.
        let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    });
    match element {
        Element::F16 => values.flat_map(|v| f16::from_f64(v).to_le_bytes()).collect(),
        Element::Bf16 => values.flat_map(|v| bf16::from_f64(v).to_le_bytes()).collect(),
        Element::F32 => values.flat_map(|v| (v as f32).to_le_bytes()).collect(),
        Element::F64 => values.flat_map(f64::to_le_bytes).collect(),
    }
}

pub fn launched(order: &[GemmIx], shapes: &TiSlice<GemmIx, Shape>) -> Vec<Shape> {
    order.iter().filter_map(|&i| shapes.get(i)).copied().collect()
}

/// Halves the largest shapes until all fit the GPU's memory; notes say so.
pub fn fitting(
    gpu: &Gpu,
    shapes: &TiVec<GemmIx, Shape>,
    order: &[GemmIx],
    notes: &mut Vec<String>,
) -> Result<TiVec<GemmIx, Shape>> {
    let (free, _) = gpu.context.memory()?;
    let usable = (free as f64 * USABLE) as u64;
    let mut fitting = shapes.clone();
    loop {
        let placed = launched(order, &fitting);
        let needed = elements(&placed).into_iter().fold(0u64, |sum, e| {
            let (inputs, outputs) = ring_bytes(&placed, e, gpu.cache);
            sum.saturating_add(inputs).saturating_add(outputs)
        });
        if needed <= usable {
            break;
        }
        let largest = fitting.keys().max_by_key(|&i| fitting[i].bytes());
        let Some((at, half)) = largest.and_then(|i| Some((i, fitting[i].halved()?))) else {
            return Err(ReplayError::OutOfMemory {
                what: "the smallest products".to_owned(),
                needed: text::bytes(needed),
                free: text::bytes(free),
            });
        };
        fitting[at] = half;
    }
    for (was, is) in shapes.iter().zip(&fitting).filter(|(was, is)| was != is) {
        notes.push(format!(
            "{was} needs {} and {} are free: it runs as {is}, which takes less time than the recorded one.",
            text::bytes(was.bytes()),
            text::bytes(free)
        ));
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::product::FP16;

    #[test]
    fn rings_hold_what_the_program_touched_up_to_some_caches() {
        let small = Shape::square(64, FP16);
        let piece = 64 * 64 * 2 + 2 * ALIGNMENT;
        assert_eq!(ring_bytes(&[small; 3], Element::F16, 1 << 20), (6 * piece, 3 * piece));
        assert_eq!(ring_bytes(&[small; 3], Element::F32, 1 << 20), (0, 0));
        let (inputs, outputs) = ring_bytes(&[small; 1000], Element::F16, 1 << 20);
        assert_eq!((inputs, outputs), (CACHES << 20, CACHES << 20));
        let large = Shape::square(8192, FP16);
        let (inputs, _) = ring_bytes(&[small, large, small], Element::F16, 1 << 20);
        let matrix = 8192 * 8192 * 2;
        assert!((2 * matrix..3 * matrix).contains(&inputs));
    }
}
