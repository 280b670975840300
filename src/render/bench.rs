//! What `sync-report bench` measured, for people.

use super::document::{Block, Table};
use crate::model::replay::bench::{Bench, Way};
use crate::model::replay::measured::cuda_version;
use crate::model::replay::measured::{ReplayGpu, Spread};
use crate::text;

pub(crate) fn document(bench: &Bench) -> Vec<Block> {
    vec![
        Block::Paragraph(header(bench).into()),
        products(bench),
        constants(bench),
        Block::lines(bench.notes.iter().cloned()),
    ]
}

fn header(bench: &Bench) -> String {
    let ReplayGpu { name, device, compute_capability: (major, minor), driver, cublas } = &bench.gpu;
    let driver = cuda_version(*driver);
    format!(
        "GPU {device}: {name}, compute capability {major}.{minor}, driver for CUDA {driver}, cuBLAS {cublas}"
    )
}

/// The first `left` columns are words.
fn sheet(
    title: &str,
    titles: &[&'static str],
    left: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> Block {
    Block::section(title, [Block::Table(Table::sheet(titles, left, &rows.collect::<Vec<_>>()))])
}

fn ranged(spread: &Spread) -> String {
    format!("{} to {}", text::duration(spread.low_ns), text::duration(spread.high_ns))
}

/// A stream synchronisation in full, the other waits by what they add.
fn products(bench: &Bench) -> Block {
    let rows = bench.products.iter().filter_map(|product| {
        let of = |name| product.with.iter().find(|way| way.name == name);
        let way = of(Way::Stream)?;
        let (without, added) = (product.without.median_ns, way.added.median_ns);
        let added_by = |name| of(name).map_or_else(|| "–".to_owned(), |way| signed(way.added.median_ns));
        Some(vec![
            product.size.to_string(),
            product.type_name.to_owned(),
            text::duration(without),
            text::duration(way.wall.median_ns),
            signed(added),
            format!("{:+.2} %", added as f64 / without.max(1) as f64 * 100.0),
            ranged(&way.added),
            added_by(Way::Event),
            added_by(Way::Value),
        ])
    });
    let titles = [
        "size",
        "type",
        "no wait",
        "stream synchronised",
        "added",
        "of no wait",
        "rounds",
        "by event",
        "by value read",
    ];
    sheet("Product of two square matrices, in a loop: what a wait after each adds", &titles, 2, rows)
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "" } else { "+" };
    format!("{sign}{}", text::duration(ns))
}

fn constants(bench: &Bench) -> Block {
    let c = &bench.constants;
    let times = [
        ("from the end of awaited work to the return: stream", c.stream_return_ns),
        ("… event", c.event_return_ns),
        ("… context", c.context_return_ns),
        ("synchronising with nothing pending: stream", c.stream_floor_ns),
        ("… event", c.event_floor_ns),
        ("… context", c.context_floor_ns),
        ("reading a value with nothing pending", c.value_read_ns),
        ("a kernel launch takes the host", c.launch_call_ns),
        ("a product takes the host", c.product_call_ns),
        ("an asynchronous copy takes the host", c.async_copy_call_ns),
        ("a kernel starts after its launch returned", c.after_call_ns),
        ("a kernel starts after the one before it", c.after_previous_ns),
        ("a copy takes besides its bytes", c.copy_overhead_ns),
    ];
    let speeds = [
        ("H2D copy from pinned memory", c.pinned_upload),
        ("read into pinned memory", c.pinned_read),
        ("H2D copy from pageable memory", c.pageable_upload),
        ("read into pageable memory", c.pageable_read),
    ];
    let depth = c.queue_depth.map_or_else(|| "not reached".to_owned(), |depth| text::count(depth.into()));
    let times = times.map(|(name, ns)| (name, text::duration(ns))).into_iter();
    let speeds = speeds.map(|(name, speed)| (name, format!("{speed:.1} GB/s")));
    let rows = times.chain(speeds).chain([("launches that a stream takes before one blocks", depth)]);
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    sheet("Constants for simulations (--save FILE stores them)", &["constant", "value"], 1, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::replay::bench::{BENCH_VERSION, ProductCost, WayCost};
    use crate::model::replay::constants::Constants;
    use crate::render::document::{markdown, terminal};
    use crate::render::style::Style;

    fn spread(median_ns: i64) -> Spread {
        Spread { median_ns, low_ns: median_ns * 9 / 10, high_ns: median_ns * 12 / 10, runs: 10 }
    }

    fn way(name: Way, wall: i64, added: i64) -> WayCost {
        WayCost { name, wall: spread(wall), added: spread(added) }
    }

    /// Times as on an H200.
    fn sample() -> Bench {
        let gpu = ReplayGpu {
            name: "NVIDIA H200".to_owned(),
            device: 0,
            compute_capability: (9, 0),
            driver: 13_000,
            cublas: 130_100,
        };
        let small = vec![
            way(Way::Stream, 14_595, 7_883),
            way(Way::Event, 15_904, 9_192),
            way(Way::Value, 23_508, 16_902),
        ];
        let large = vec![way(Way::Stream, 1_706_457, 16_259)];
        Bench {
            bench_version: BENCH_VERSION,
            gpu: gpu.clone(),
            products: vec![
                ProductCost { size: 8192, type_name: "fp16", without: spread(1_693_983), with: large },
                ProductCost { size: 512, type_name: "fp16", without: spread(6_702), with: small },
            ],
            constants: Constants {
                gpu,
                stream_return_ns: 1_555,
                queue_depth: Some(1_022),
                ..Constants::default()
            },
            notes: vec!["3 GiB of the GPU's | 4 GiB are in use".to_owned()],
        }
    }

    #[test]
    fn in_a_pipe_and_as_markdown() {
        let document = document(&sample());
        let printed = [terminal::text(&document, &Style::default()), markdown::text(&document, usize::MAX)];
        insta::assert_snapshot!(printed.join("\n"));
    }

    #[test]
    fn tables_fit_the_terminal() {
        for width in [80, 120] {
            let style = Style { width: Some(width), color: false };
            let printed = terminal::text(&document(&sample()), &style);
            for line in printed.lines() {
                assert!(text::width(line) <= width, "{width}: {line}");
            }
        }
    }
}
