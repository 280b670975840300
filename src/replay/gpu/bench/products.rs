//! Square products in a loop, with every kind of wait after each.

use super::Work;
use crate::replay::bench::{ProductCost, TYPES, WayCost};
use crate::replay::gpu::alone::{Compared, Loop, Piece, Way};
use crate::replay::gpu::cuda::Result;
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::{Checked, Operands};
use crate::replay::product::Shape;
use crate::replay::rounds::{self, Effort, Sample};

const WAYS: [Way; 8] = [
    Way::Async,
    Way::Stream,
    Way::Context,
    Way::Event,
    Way::BlockingEvent,
    Way::Value,
    Way::PinnedValue,
    Way::Graph,
];

/// Every size in every type.
pub fn measure(
    gpu: &Gpu,
    work: &Work,
    rounds: u32,
    said: &dyn Fn(&str),
    checked: &mut Checked,
    notes: &mut Vec<String>,
) -> Result<Vec<ProductCost>> {
    let mut all = Vec::new();
    for &size in &work.sizes {
        for &(type_name, element, compute) in &work.types {
            let shape = Shape::square(size, element, compute);
            said(&shape.to_string());
            let mut operands = Operands::new(gpu, &[shape])?;
            let placed = operands.place(&shape)?;
            operands.check(gpu, &gpu.blas, &placed, checked)?;
            let pieces = [Piece::Product(placed), Piece::Wait];
            let mut sequence = Loop::new(gpu, &pieces, |to| operands.read_result(&placed, to, 2))?;
            let mut ways = WAYS.to_vec();
            if let Err(e) = sequence.capture() {
                gpu.context.synchronize()?;
                ways.pop();
                notes.push(format!("{shape} could not be captured as a CUDA graph: {e}."));
            }
            let compared = sequence.measure(&ways, Effort::exactly(rounds))?;
            all.push(cost(size, type_name, &ways, &compared));
            operands.check(gpu, &gpu.blas, &placed, checked)?;
        }
    }
    Ok(all)
}

fn cost(size: u64, type_name: &'static str, ways: &[Way], compared: &Compared) -> ProductCost {
    let wall = |samples: &[Sample]| rounds::spread(samples.iter().map(|s| s.wall));
    let with = ways[1..].iter().zip(&compared.pairs).map(|(&way, pair)| WayCost {
        name: way.name(),
        wall: wall(&pair.own),
        added: compared.added(way, pair),
    });
    ProductCost { size, type_name, without: wall(&compared.base), with: with.collect() }
}

/// Products of odd sizes in every type, transposed and batched, once each.
pub fn self_test(gpu: &Gpu) -> Result<String> {
    const SIZES: [(u64, u64, u64, u64); 4] =
        [(1, 1, 1, 1), (33, 17, 65, 1), (128, 256, 512, 1), (40, 24, 56, 5)];
    let mut checked = Checked::default();
    let mut products = 0;
    for (_, element, compute) in TYPES {
        for (m, n, k, batch) in SIZES {
            for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let shape = Shape { m, n, k, batch, transpose_a, transpose_b, element, compute };
                let mut operands = Operands::new(gpu, &[shape])?;
                let placed = operands.place(&shape)?;
                operands.check(gpu, &gpu.blas, &placed, &mut checked)?;
                products += 1;
            }
        }
    }
    Ok(format!(
        "{products} products in {} types are right: {} elements compared, relative error at most {:.1e}",
        TYPES.len(),
        checked.elements,
        checked.largest_error
    ))
}
