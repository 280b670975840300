//! Where the operands of products lie, and whether the products are right.
//!
//! Operands and results of each element type have a ring of device memory each. Every product takes the next piece, so
//! that products that follow one another touch as much memory as the recorded program's did; a ring larger than the
//! cache by [`CACHES`] is no different from an endless one.

use super::blas::{Blas, Product};
use super::cuda::Result;
use super::memory::{self, DeviceMemory, HostBuffer, PreparedCopy};
use super::open::Gpu;
use crate::replay::error::ReplayError;
use crate::replay::plan::Element;
use crate::replay::product::{self, PERIOD, Shape};
use crate::text;

/// Sizes of the cache after which what was used first is surely gone from it.
const CACHES: u64 = 4;
/// Pieces begin at multiples of this, as those of CUDA's and PyTorch's allocators do: cuBLAS chooses by alignment.
const ALIGNMENT: u64 = 512;
/// Of the free memory; the rest is for what cuBLAS and the driver allocate on the way.
const USABLE: f64 = 0.8;
/// Elements of each product that are compared.
const SAMPLES: u64 = 16;

struct Ring {
    memory: DeviceMemory,
    next: u64,
}

impl Ring {
    /// Byte offset of the next piece.
    fn take(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        if self.next + bytes > self.memory.bytes() as u64 {
            self.next = 0;
        }
        let at = self.next;
        self.next += bytes;
        at
    }
}

struct Rings {
    element: Element,
    inputs: Ring,
    outputs: Ring,
}

/// A product in its place.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub shape: Shape,
    pub product: Product,
    /// Byte offsets in the rings.
    a: u64,
    b: u64,
    c: u64,
}

pub struct Operands(Vec<Rings>);

/// Bytes that the rings of an element type need for `shapes`, in launch order.
fn ring_bytes(shapes: &[Shape], element: Element, cache: u64) -> (u64, u64) {
    let size = product::size(element);
    let piece = |elements: u64| elements.saturating_mul(size).saturating_add(2 * ALIGNMENT);
    let bytes = |of: &dyn Fn(&Shape) -> u64| {
        let mine = || shapes.iter().filter(|s| s.element == element);
        let sum = mine().fold(0u64, |sum, s| sum.saturating_add(of(s)));
        let most = mine().map(of).max().unwrap_or(0);
        sum.min(cache.saturating_mul(CACHES).max(most))
    };
    let inputs = bytes(&|s| piece(s.elements_a()).saturating_add(piece(s.elements_b())));
    (inputs, bytes(&|s| piece(s.elements_c())))
}

fn elements(shapes: &[Shape]) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::new();
    for shape in shapes {
        if !elements.contains(&shape.element) {
            elements.push(shape.element);
        }
    }
    elements
}

impl Operands {
    /// Room for `shapes`, in launch order, filled.
    pub fn new(gpu: &Gpu, shapes: &[Shape]) -> Result<Self> {
        let ring = |bytes: u64, what| {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            Ok(Ring { memory: DeviceMemory::new(&gpu.context, bytes, what)?, next: 0 })
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
        let unplayable = || ReplayError::Unplayable { reason: format!("cuBLAS takes no product of {shape}") };
        let rings = self.0.iter_mut().find(|r| r.element == shape.element).ok_or_else(unplayable)?;
        let size = product::size(shape.element);
        let (bytes_a, bytes_b) = (shape.elements_a() * size, shape.elements_b() * size);
        let bytes_c = shape.elements_c() * size;
        let a = rings.inputs.take(bytes_a.next_multiple_of(ALIGNMENT) + bytes_b);
        let b = a + bytes_a.next_multiple_of(ALIGNMENT);
        let c = rings.outputs.take(bytes_c);
        let address = |ring: &Ring, at: u64, bytes: u64| ring.memory.address(at as usize, bytes as usize);
        let product = Product::new(
            shape,
            address(&rings.inputs, a, bytes_a)?,
            address(&rings.inputs, b, bytes_b)?,
            address(&rings.outputs, c, bytes_c)?,
        );
        Ok(Placed { shape: *shape, product: product.ok_or_else(unplayable)?, a, b, c })
    }

    /// A read of the first `bytes` of a result, into `to`.
    pub fn read_result(&self, placed: &Placed, to: &HostBuffer, bytes: usize) -> Result<PreparedCopy> {
        PreparedCopy::host(&self.rings(placed)?.outputs.memory, placed.c as usize, to, 0, bytes)
    }

    fn rings(&self, placed: &Placed) -> Result<&Rings> {
        let mut rings = self.0.iter();
        rings.find(|r| r.element == placed.shape.element).ok_or_else(|| ReplayError::Unplayable {
            reason: format!("there is no memory for {}", placed.shape),
        })
    }

    /// The next product goes where the first one went: another pass over the same operands.
    pub fn rewind(&mut self) {
        for rings in &mut self.0 {
            (rings.inputs.next, rings.outputs.next) = (0, 0);
        }
    }

    /// Computes a product anew and compares sampled elements.
    pub fn check(&self, gpu: &Gpu, blas: &Blas, placed: &Placed, found: &mut Checked) -> Result<()> {
        let shape = &placed.shape;
        let rings = self.rings(placed)?;
        let size = product::size(shape.element);
        let stream = &gpu.stream;
        let bytes = shape.elements_c() * size;
        gpu.context.synchronize()?;
        // All ones is not a number in every type: an element that is not written shows.
        memory::fill(&rings.outputs.memory, placed.c as usize, bytes as usize, 0xff, stream)?;
        stream.synchronize()?;
        blas.launch(&placed.product)?;
        gpu.context.synchronize()?;
        for sample in 0..SAMPLES {
            // The corners, then anywhere.
            let anywhere = |salt: u64, below: u64| product::mix(sample * 3 + salt) % below;
            let (batch, row, column) = match sample {
                0 => (0, 0, 0),
                1 => (shape.batch - 1, shape.m - 1, shape.n - 1),
                _ => (anywhere(0, shape.batch), anywhere(1, shape.m), anywhere(2, shape.n)),
            };
            let at = placed.c + (batch * shape.m * shape.n + column * shape.m + row) * size;
            let mut word = [0; 8];
            memory::read(&rings.outputs.memory, at as usize, &mut word[..size as usize])?;
            let value = product::decode(shape.element, word);
            let right = product::expected(shape, placed.a / size, placed.b / size, batch, row, column);
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

/// What comparing results found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub elements: u64,
    /// Largest error relative to the value, or to what its terms amount to where they nearly cancel.
    pub largest_error: f64,
}

/// Fills memory with the sequence of values: one period from the host, then copies of what is there.
fn fill(gpu: &Gpu, memory: &DeviceMemory, element: Element) -> Result<()> {
    let period = product::period(element);
    let first = period.len().min(memory.bytes());
    memory::write(memory, 0, &period[..first])?;
    let mut filled = first;
    while filled < memory.bytes() {
        // What is there is whole periods, so that it goes on seamlessly.
        let bytes = filled.min(memory.bytes() - filled);
        PreparedCopy::inside(memory, filled, memory, 0, bytes)?.move_async(&gpu.stream)?;
        filled += bytes;
    }
    debug_assert_eq!(period.len() as u64, PERIOD * product::size(element));
    gpu.stream.synchronize()
}

/// Shapes made smaller until they fit the GPU's memory together, and notes that say so.
pub fn fitting(gpu: &Gpu, shapes: &[Shape], order: &[usize], notes: &mut Vec<String>) -> Result<Vec<Shape>> {
    let (free, _) = gpu.context.memory()?;
    let usable = (free as f64 * USABLE) as u64;
    let mut fitting = shapes.to_vec();
    loop {
        let placed: Vec<Shape> = order.iter().filter_map(|&i| fitting.get(i)).copied().collect();
        let needed = elements(&placed).into_iter().fold(0u64, |sum, e| {
            let (inputs, outputs) = ring_bytes(&placed, e, gpu.cache);
            sum.saturating_add(inputs).saturating_add(outputs)
        });
        if needed <= usable {
            break;
        }
        let largest = (0..fitting.len()).max_by_key(|&i| fitting[i].bytes());
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
    use crate::replay::plan::Compute;

    #[test]
    fn rings_hold_what_the_program_touched_up_to_some_caches() {
        let small = Shape::square(64, Element::F16, Compute::F32);
        let piece = 64 * 64 * 2 + 2 * ALIGNMENT;
        assert_eq!(ring_bytes(&[small; 3], Element::F16, 1 << 20), (6 * piece, 3 * piece));
        assert_eq!(ring_bytes(&[small; 3], Element::F32, 1 << 20), (0, 0));
        let (inputs, outputs) = ring_bytes(&[small; 1000], Element::F16, 1 << 20);
        assert_eq!((inputs, outputs), (CACHES << 20, CACHES << 20));
        let large = Shape::square(8192, Element::F16, Compute::F32);
        let (inputs, _) = ring_bytes(&[small, large, small], Element::F16, 1 << 20);
        let matrix = 8192 * 8192 * 2;
        assert!((2 * matrix..3 * matrix).contains(&inputs));
    }
}
