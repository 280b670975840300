//! The awaited products alone, in a loop, with each kind of wait where the recorded ones stood.

use super::cuda::{Event, EventKind, Graph, Result};
use super::memory::{HostBuffer, PreparedCopy};
use super::open::Gpu;
use super::operands::Placed;
use crate::replay::measured::{MeasuredAlone, Way};
use crate::replay::rounds::{self, Effort, Sample};
use std::time::Instant;

/// A run should take this long: clocks and timers are exact then, and a hundred runs are done in a few seconds.
const RUN_NS: i64 = 20_000_000;
/// Fewer would leave little between a wait after each and the one at the end.
const FEWEST_PASSES: i64 = 6;
const MOST_PASSES: i64 = 2_000;
/// Runs of this length are rarer: their times spread less.
const LONG_RUN_NS: i64 = 50_000_000;

#[derive(Clone, Copy)]
pub enum Piece {
    Product(Placed),
    Wait,
}

/// A sequence of products, ready to run in every way.
struct Loop<'g> {
    gpu: &'g Gpu,
    pieces: &'g [Piece],
    event: Event,
    blocking: Event,
    from: Event,
    to: Event,
    /// Of a value, into pageable and into pinned memory.
    reads: [PreparedCopy; 2],
    graph: Option<Graph>,
    /// Where those write.
    _buffers: [HostBuffer; 2],
}

impl<'g> Loop<'g> {
    fn new(
        gpu: &'g Gpu,
        pieces: &'g [Piece],
        read: impl Fn(&HostBuffer) -> Result<PreparedCopy>,
    ) -> Result<Self> {
        let event = |kind| Event::new(&gpu.context, kind);
        let buffers = [HostBuffer::pageable(&gpu.context, 8)?, HostBuffer::pinned(&gpu.context, 8)?];
        Ok(Self {
            gpu,
            pieces,
            event: event(EventKind::Order)?,
            blocking: event(EventKind::Blocking)?,
            from: event(EventKind::Timing)?,
            to: event(EventKind::Timing)?,
            reads: [read(&buffers[0])?, read(&buffers[1])?],
            graph: None,
            _buffers: buffers,
        })
    }

    #[inline]
    fn wait(&self, way: Way) -> Result<()> {
        let stream = &self.gpu.stream;
        match way {
            Way::Async | Way::Graph => Ok(()),
            Way::Stream => stream.synchronize(),
            Way::Context => self.gpu.context.synchronize(),
            Way::Event => self.event.record(stream).and_then(|()| self.event.synchronize()),
            Way::BlockingEvent => self.blocking.record(stream).and_then(|()| self.blocking.synchronize()),
            Way::Value => self.reads[0].read_async(stream).and_then(|()| stream.synchronize()),
            Way::PinnedValue => self.reads[1].read_async(stream).and_then(|()| stream.synchronize()),
        }
    }

    fn pass(&self, way: Way) -> Result<()> {
        if let (Way::Graph, Some(graph)) = (way, &self.graph) {
            return graph.launch(&self.gpu.stream);
        }
        for piece in self.pieces {
            match piece {
                Piece::Product(placed) => self.gpu.blas.launch(&placed.product)?,
                Piece::Wait => self.wait(way)?,
            }
        }
        Ok(())
    }

    /// Host and GPU time of one pass, of `passes` in a row.
    fn run(&self, way: Way, passes: i64) -> Result<Sample> {
        self.gpu.context.synchronize()?;
        let start = Instant::now();
        self.from.record(&self.gpu.stream)?;
        for _ in 0..passes {
            self.pass(way)?;
        }
        self.to.record(&self.gpu.stream)?;
        self.gpu.stream.synchronize()?;
        let wall = start.elapsed().as_nanos() as i64;
        Ok(Sample { wall: wall / passes.max(1), gpu: self.from.until(&self.to)? / passes.max(1) })
    }
}

/// Measures a loop over `pieces` in several ways, each beside the first, which does not wait; of a graph, which is the
/// last way, only where one can be captured. `name` of the products, for a note; `read` prepares the read of a value into
/// a buffer.
pub fn measure(
    gpu: &Gpu,
    (name, pieces): (&str, &[Piece]),
    ways: &[Way],
    effort: Effort,
    read: impl Fn(&HostBuffer) -> Result<PreparedCopy>,
    notes: &mut Vec<String>,
) -> Result<Vec<MeasuredAlone>> {
    let mut sequence = Loop::new(gpu, pieces, read)?;
    let mut ways = ways.to_vec();
    match Graph::capture(&gpu.stream, || sequence.pass(Way::Async)) {
        Ok(graph) => sequence.graph = Some(graph),
        Err(e) => {
            // A GPU that still works goes on; the rest does not need the graph.
            gpu.context.synchronize()?;
            ways.pop();
            notes.push(format!("{name} could not be captured as a CUDA graph: {e}."));
        }
    }
    sequence.run(Way::Stream, 2)?;
    let once = sequence.run(Way::Stream, 3)?.wall.max(1);
    let passes = (RUN_NS / once).clamp(FEWEST_PASSES, MOST_PASSES);
    let effort = if once * passes > LONG_RUN_NS { effort.halved() } else { effort };
    let (base, pairs) = rounds::paired(ways.len(), &effort, 1, |way| sequence.run(ways[way], passes))?;
    let measured = |way: Way, samples: &[Sample], added| MeasuredAlone {
        name: way,
        wall: rounds::wall(samples),
        gpu: rounds::gpu(samples),
        added,
    };
    let mut all = vec![measured(ways[0], &base, None)];
    for (&way, pair) in ways[1..].iter().zip(&pairs) {
        // A run without waits ends with one too, so `passes` products are one wait short of telling them apart.
        let waits = if way == Way::Graph { passes } else { passes - 1 };
        let added = rounds::spread(pair.saved().map(|saved| -saved * passes / waits.max(1)));
        all.push(measured(way, &pair.own, Some(added)));
    }
    Ok(all)
}
