//! What `sync-report bench` measured, for people.

use super::document::{Block, Table};
use crate::model::replay::bench::Bench;
use crate::model::replay::measured::cuda_version;
use crate::model::replay::measured::{ReplayGpu, Spread, Way};
use crate::text;

/// Tables of what was measured.
pub(crate) fn document(bench: &Bench) -> Vec<Block> {
    let mut blocks = vec![Block::Paragraph(header(bench).into())];
    blocks.extend([
        synchronised(bench),
        other_waits(bench),
        calls(bench),
        copies(bench),
        loops(bench),
        constants(bench),
    ]);
    blocks.push(Block::lines(footer(bench)));
    blocks
}

fn header(bench: &Bench) -> String {
    let ReplayGpu { name, device, compute_capability: (major, minor), driver, cublas } = &bench.gpu;
    let driver = cuda_version(*driver);
    format!(
        "GPU {device} of {}: {name}, compute capability {major}.{minor}, driver for CUDA {driver}, cuBLAS {cublas}",
        bench.gpus
    )
}

fn footer(bench: &Bench) -> Vec<String> {
    let (elements, error) = (text::count(bench.checked), bench.largest_error);
    let mut lines = vec![format!(
        "{elements} elements of products compared with a reference: the largest relative error is {error:.1e}."
    )];
    const ONE: &str = "One GPU: what synchronising an idle one costs beside a busy one was not measured.";
    lines.extend((bench.gpus < 2).then(|| ONE.to_owned()));
    lines.extend(bench.notes.iter().cloned());
    lines
}

/// A title and a table, of which the first `left` columns are words.
fn sheet(
    title: &str,
    titles: &[&'static str],
    left: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> Block {
    Block::section(title, [Block::Table(Table::sheet(titles, left, &rows.collect::<Vec<_>>()))])
}

/// How far the rounds were apart.
fn ranged(spread: &Spread) -> String {
    format!("{} to {}", text::duration(spread.low_ns), text::duration(spread.high_ns))
}

fn synchronised(bench: &Bench) -> Block {
    let rows = bench.products.iter().filter_map(|product| {
        let way = product.with.iter().find(|way| way.name == Way::Stream)?;
        let (without, added) = (product.without.median_ns, way.added.median_ns);
        Some(vec![
            product.size.to_string(),
            product.type_name.to_owned(),
            text::duration(without),
            text::duration(way.wall.median_ns),
            format!("{:+.4} ms", added as f64 / 1e6),
            format!("{:+.1} µs", added as f64 / 1e3),
            format!("{:+.2} %", added as f64 / without.max(1) as f64 * 100.0),
            ranged(&way.added),
        ])
    });
    let title =
        "Product of two square matrices, in a loop: no wait against a stream synchronisation after each";
    let titles = ["size", "type", "async", "synchronised", "added", "added", "added", "rounds"];
    sheet(title, &titles, 2, rows)
}

fn other_waits(bench: &Bench) -> Block {
    const WAYS: [(Way, &str); 7] = [
        (Way::Stream, "stream"),
        (Way::Context, "context"),
        (Way::Event, "event"),
        (Way::BlockingEvent, "event, sleeping"),
        (Way::Value, "value read"),
        (Way::PinnedValue, "value, pinned"),
        (Way::Graph, "CUDA graph"),
    ];
    let rows = bench.products.iter().map(|product| {
        let without = text::duration(product.without.median_ns);
        let mut row = vec![product.size.to_string(), product.type_name.to_owned(), without];
        row.extend(WAYS.iter().map(|(name, _)| {
            let way = product.with.iter().find(|way| way.name == *name);
            way.map_or_else(|| "–".to_owned(), |way| signed(way.added.median_ns))
        }));
        row
    });
    let titles = [&["size", "type", "async"][..], &WAYS.map(|(_, title)| title)].concat();
    sheet("What each kind of wait adds to a product", &titles, 2, rows)
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "" } else { "+" };
    format!("{sign}{}", text::duration(ns))
}

fn calls(bench: &Bench) -> Block {
    let rows = bench.calls.iter().map(|call| {
        let (name, pending) = (call.name.to_string(), call.pending.to_string());
        vec![name, pending, text::duration(call.host.median_ns), ranged(&call.host)]
    });
    let titles = ["call", "the GPU has to do", "host time", "rounds"];
    sheet("Host time of single calls", &titles, 2, rows)
}

fn copies(bench: &Bench) -> Block {
    let rows = bench.copies.iter().map(|copy| {
        let [returned, done] = [&copy.returned, &copy.done].map(|time| text::duration(time.median_ns));
        let speed = format!("{:.1} GB/s", copy.bytes_per_ns);
        vec![copy.name.to_string(), text::bytes(copy.bytes), returned, done, speed]
    });
    let titles = ["copy", "size", "call returns after", "data is there after", "speed"];
    sheet("Large copies", &titles, 1, rows)
}

fn loops(bench: &Bench) -> Block {
    let rows = bench
        .loops
        .iter()
        .map(|one| vec![one.name.clone(), text::duration(one.wall.median_ns), ranged(&one.wall)]);
    sheet("Several streams and GPUs, in loops", &["loop", "one pass", "rounds"], 1, rows)
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
    use crate::model::replay::bench::{
        BENCH_VERSION, Call, CallCost, CopyCost, CopyWay, LoopCost, Pending, ProductCost, WayCost,
    };
    use crate::model::replay::constants::Constants;
    use crate::render::document::{markdown, terminal};
    use crate::render::style::Style;

    fn spread(median_ns: i64) -> Spread {
        Spread { median_ns, low_ns: median_ns * 9 / 10, high_ns: median_ns * 12 / 10, runs: 10 }
    }

    fn way(name: Way, wall: i64, added: i64) -> WayCost {
        WayCost { name, wall: spread(wall), added: spread(added) }
    }

    /// Times as on an H200; the graph of the large product could not be captured.
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
            way(Way::BlockingEvent, 26_857, 20_089),
            way(Way::Value, 23_508, 16_902),
            way(Way::Graph, 4_229, -2_474),
        ];
        let large = vec![way(Way::Stream, 1_706_457, 16_259)];
        Bench {
            bench_version: BENCH_VERSION,
            gpu: gpu.clone(),
            gpus: 1,
            products: vec![
                ProductCost { size: 8192, type_name: "fp16", without: spread(1_693_983), with: large },
                ProductCost { size: 512, type_name: "fp16", without: spread(6_702), with: small },
            ],
            calls: vec![CallCost { name: Call::Value, pending: Pending::Nothing, host: spread(6_701) }],
            copies: vec![CopyCost {
                name: CopyWay::PinnedUploadAsync,
                bytes: 64 << 20,
                returned: spread(2_497),
                done: spread(1_218_095),
                bytes_per_ns: 55.1,
            }],
            loops: vec![LoopCost { name: "products on 4 streams, no wait".to_owned(), wall: spread(27_016) }],
            constants: Constants {
                gpu,
                stream_return_ns: 1_555,
                queue_depth: Some(1_022),
                ..Constants::default()
            },
            checked: 256,
            largest_error: 3.1e-3,
            notes: vec!["8192×8192×8192 fp16 could not be | captured".to_owned()],
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
