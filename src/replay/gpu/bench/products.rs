//! Square products in a loop, with every kind of wait after each.

use super::Work;
use crate::replay::bench::{ProductCost, WayCost};
use crate::replay::gpu::alone::{self, Piece};
use crate::replay::gpu::cuda::Result;
use crate::replay::gpu::memory::HostBuffer;
use crate::replay::gpu::open::Gpu;
use crate::replay::gpu::operands::{Checked, Operands};
use crate::replay::measured::{MeasuredAlone, Spread, Way};
use crate::replay::product::{Shape, TYPES, type_name};
use crate::replay::rounds::Effort;

pub fn measure(
    gpu: &Gpu,
    work: &Work,
    announce: &dyn Fn(&str),
    checked: &mut Checked,
    notes: &mut Vec<String>,
) -> Result<Vec<ProductCost>> {
    let mut all = Vec::new();
    for &size in &work.sizes {
        for &types in &work.types {
            let shape = Shape::square(size, types);
            announce(&shape.to_string());
            let mut operands = Operands::new(gpu, &[shape])?;
            let placed = operands.place(&shape)?;
            operands.check(gpu, &placed, checked)?;
            let pieces = [Piece::Product(placed), Piece::Wait];
            let read = |to: &HostBuffer| operands.read_result(&placed, to, 2);
            let effort = Effort::exactly(work.rounds);
            let mut ways = alone::measure(gpu, (&shape.to_string(), &pieces), Way::ALL, effort, read, notes)?
                .into_iter();
            let without = ways.next().map_or_else(Spread::default, |way| way.wall);
            let cost = |way: MeasuredAlone| WayCost {
                name: way.name,
                wall: way.wall,
                added: way.added.unwrap_or_default(),
            };
            let with = ways.map(cost).collect();
            all.push(ProductCost { size, type_name: type_name(types), without, with });
            operands.check(gpu, &placed, checked)?;
        }
    }
    Ok(all)
}

/// Products of odd sizes in every type, transposed and batched, once each.
pub fn self_test(gpu: &Gpu) -> Result<String> {
    const SIZES: [(u64, u64, u64, u64); 4] =
        [(1, 1, 1, 1), (33, 17, 65, 1), (128, 256, 512, 1), (40, 24, 56, 5)];
    let mut checked = Checked::default();
    let mut products = 0;
    for (element, compute) in TYPES {
        for (m, n, k, batch) in SIZES {
            for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let shape = Shape { m, n, k, batch, transpose_a, transpose_b, element, compute };
                let mut operands = Operands::new(gpu, &[shape])?;
                let placed = operands.place(&shape)?;
                operands.check(gpu, &placed, &mut checked)?;
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
