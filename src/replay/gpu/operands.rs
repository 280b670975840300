//! Where the operands of products lie, and whether the products are right.
//!
//! Operands and results of each element type have a ring of device memory each. Every product takes the next piece, so
//! that products that follow one another touch as much memory as the recorded program's did; a ring larger than the
//! cache by [`CACHES`] is no different from an endless one.

use super::blas::Product;
use super::cuda::Result;
use super::memory::{self, DeviceMemory, HostBuffer, PreparedCopy, Ring};
use super::open::Gpu;
use super::reference::{self, PERIOD};
use crate::replay::error::ReplayError;
use crate::replay::plan::GemmIx;
use crate::replay::product::{Element, Shape};
use crate::text;
use typed_index_collections::{TiSlice, TiVec};

/// Sizes of the cache after which what was used first is surely gone from it.
const CACHES: u64 = 4;
/// Pieces begin at multiples of this, as those of CUDA's and PyTorch's allocators do: cuBLAS chooses by alignment.
const ALIGNMENT: u64 = 512;
/// Of the free memory; the rest is for what cuBLAS and the driver allocate on the way.
const USABLE: f64 = 0.8;
/// Elements of each product that are compared.
const SAMPLES: u64 = 16;

struct Rings {
    element: Element,
    inputs: Ring<DeviceMemory>,
    outputs: Ring<DeviceMemory>,
}

#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub shape: Shape,
    pub product: Product,
    /// Byte offsets of A, B and C in the rings.
    at: [usize; 3],
}

pub struct Operands(Vec<Rings>);

/// Bytes that the rings of an element type need for `shapes`, in launch order.
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

    /// The next place for a product.
    pub fn place(&mut self, shape: &Shape) -> Result<Placed> {
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
        let product = Product::new(shape, addresses);
        Ok(Placed { shape: *shape, product: product.ok_or_else(unplayable)?, at: [a, b, c] })
    }

    /// A read of the first `bytes` of a result, into `to`.
    pub fn read_result(&self, placed: &Placed, to: &HostBuffer, bytes: usize) -> Result<PreparedCopy> {
        PreparedCopy::host(&self.rings(placed)?.outputs.memory, placed.at[2], to, 0, bytes)
    }

    fn rings(&self, placed: &Placed) -> Result<&Rings> {
        let none = || ReplayError::Unplayable(format!("there is no memory for {}", placed.shape));
        self.0.iter().find(|r| r.element == placed.shape.element).ok_or_else(none)
    }

    /// The next product goes where the first one went: another pass over the same operands.
    pub fn rewind(&mut self) {
        for rings in &mut self.0 {
            rings.inputs.rewind();
            rings.outputs.rewind();
        }
    }

    /// Computes a product anew and compares sampled elements.
    pub fn check(&self, gpu: &Gpu, placed: &Placed, found: &mut Checked) -> Result<()> {
        let shape = &placed.shape;
        let rings = self.rings(placed)?;
        let size = shape.element.bytes();
        let stream = &gpu.stream;
        let [a, b, c] = placed.at;
        gpu.context.synchronize()?;
        // All ones is not a number in every type: an element that is not written shows.
        let (memory, bytes) = (&rings.outputs.memory, (shape.elements()[2] * size) as usize);
        PreparedCopy::inside(memory, c, memory, c, bytes)?.memset_async(0xff, stream)?;
        stream.synchronize()?;
        gpu.blas.launch(&placed.product)?;
        gpu.context.synchronize()?;
        for sample in 0..SAMPLES {
            // The corners, then anywhere.
            let anywhere = |salt: u64, below: u64| reference::mix(sample * 3 + salt) % below;
            let (batch, row, column) = match sample {
                0 => (0, 0, 0),
                1 => (shape.batch - 1, shape.m - 1, shape.n - 1),
                _ => (anywhere(0, shape.batch), anywhere(1, shape.m), anywhere(2, shape.n)),
            };
            let at = c + ((batch * shape.m * shape.n + column * shape.m + row) * size) as usize;
            let mut word = [0; 8];
            memory::read(&rings.outputs.memory, at, &mut word[..size as usize])?;
            let value = reference::decode(shape.element, word);
            let [a, b] = [a, b].map(|at| at as u64 / size);
            let right = reference::expected(shape, a, b, batch, row, column);
            let error = (value - right.value).abs();
            if error.is_nan() || error > right.tolerance {
                let (product, expected) = (shape.to_string(), right.value);
                return Err(ReplayError::Wrong { product, row, column, found: value, expected });
            }
            found.elements += 1;
            if right.scale > 0.0 {
                found.largest_error = found.largest_error.max(error / right.value.abs().max(right.scale));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub elements: u64,
    /// Largest error relative to the value, or to what its terms amount to where they nearly cancel.
    pub largest_error: f64,
}

/// Fills memory with the sequence of values: one period from the host, then copies of what is there.
fn fill(gpu: &Gpu, memory: &DeviceMemory, element: Element) -> Result<()> {
    let period = reference::period(element);
    let first = period.len().min(memory.bytes());
    memory::write(memory, 0, &period[..first])?;
    let mut filled = first;
    while filled < memory.bytes() {
        // What is there is whole periods, so that it goes on seamlessly.
        let bytes = filled.min(memory.bytes() - filled);
        PreparedCopy::inside(memory, filled, memory, 0, bytes)?.move_async(&gpu.stream)?;
        filled += bytes;
    }
    debug_assert_eq!(period.len() as u64, PERIOD * element.bytes());
    gpu.stream.synchronize()
}

/// Of some shapes those that are launched, in that order.
pub fn launched(order: &[GemmIx], shapes: &TiSlice<GemmIx, Shape>) -> Vec<Shape> {
    order.iter().filter_map(|&i| shapes.get(i)).copied().collect()
}

/// Shapes made smaller until they fit the GPU's memory together, and notes that say so.
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
