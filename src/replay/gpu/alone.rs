//! The awaited products alone, in a loop, with each kind of wait where the recorded ones stood.

use super::blas::Blas;
use super::cuda::{Event, EventKind, Graph, Result};
use super::memory::{HostBuffer, PreparedCopy};
use super::open::Gpu;
use super::operands::Placed;
use crate::replay::error::ReplayError;
use crate::replay::measured::{MeasuredAlone, Spread};
use crate::replay::rounds::{self, Effort, Paired, Sample};
use std::time::Instant;

/// A run should take this long: clocks and timers are exact then, and a hundred runs are done in a few seconds.
const RUN_NS: i64 = 20_000_000;
/// Fewer would leave little between a wait after each and the one at the end.
const FEWEST_PASSES: i64 = 6;
const MOST_PASSES: i64 = 2_000;
/// Runs of this length are rarer: their times spread less.
const LONG_RUN_NS: i64 = 50_000_000;

/// One element of the sequence.
#[derive(Clone, Copy)]
pub enum Piece {
    Product(Placed),
    Wait,
}

/// What stands where a wait stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Async,
    Stream,
    Context,
    Event,
    /// As `Event`, but the host sleeps.
    BlockingEvent,
    /// A copy of four bytes to pageable memory and a stream synchronisation, as `.item()`.
    Value,
    PinnedValue,
    Graph,
}

impl Way {
    pub const fn name(self) -> &'static str {
        match self {
            Way::Async => "async",
            Way::Stream => "stream synchronised",
            Way::Context => "context synchronised",
            Way::Event => "event synchronised",
            Way::BlockingEvent => "event synchronised, sleeping",
            Way::Value => "one value read",
            Way::PinnedValue => "one value read into pinned memory",
            Way::Graph => "CUDA graph",
        }
    }
}

/// A sequence of products, ready to run in every way.
pub struct Loop<'g> {
    gpu: &'g Gpu,
    blas: &'g Blas,
    pieces: &'g [Piece],
    event: Event,
    blocking: Event,
    from: Event,
    to: Event,
    read: PreparedCopy,
    read_pinned: PreparedCopy,
    graph: Option<Graph>,
    /// Copies write here.
    _pageable: HostBuffer,
    _pinned: HostBuffer,
}

impl<'g> Loop<'g> {
    /// `read`: prepares the read of a value into a buffer.
    pub fn new(
        gpu: &'g Gpu,
        pieces: &'g [Piece],
        read: impl Fn(&HostBuffer) -> Result<PreparedCopy>,
    ) -> Result<Self> {
        let event = |kind| Event::new(&gpu.context, kind);
        let pageable = HostBuffer::pageable(&gpu.context, 8);
        let pinned = HostBuffer::pinned(&gpu.context, 8)?;
        Ok(Self {
            gpu,
            blas: &gpu.blas,
            pieces,
            event: event(EventKind::Order)?,
            blocking: event(EventKind::Blocking)?,
            from: event(EventKind::Timing)?,
            to: event(EventKind::Timing)?,
            read: read(&pageable)?,
            read_pinned: read(&pinned)?,
            graph: None,
            _pageable: pageable,
            _pinned: pinned,
        })
    }

    /// Captures the products, for [`Way::Graph`].
    pub fn capture(&mut self) -> Result<()> {
        let (blas, pieces) = (self.blas, self.pieces);
        let graph = Graph::capture(&self.gpu.stream, || {
            pieces.iter().try_for_each(|piece| match piece {
                Piece::Product(placed) => blas.launch(&placed.product),
                Piece::Wait => Ok(()),
            })
        });
        self.graph = Some(graph?);
        Ok(())
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
            Way::Value => self.read.read_async(stream).and_then(|()| stream.synchronize()),
            Way::PinnedValue => self.read_pinned.read_async(stream).and_then(|()| stream.synchronize()),
        }
    }

    fn pass(&self, way: Way) -> Result<()> {
        if way == Way::Graph {
            let graph = self.graph.as_ref();
            let none = || ReplayError::Unplayable { reason: "the graph was not captured".to_owned() };
            return graph.ok_or_else(none)?.launch(&self.gpu.stream);
        }
        for piece in self.pieces {
            match piece {
                Piece::Product(placed) => self.blas.launch(&placed.product)?,
                Piece::Wait => self.wait(way)?,
            }
        }
        Ok(())
    }

    /// Host and GPU time of one pass, of `passes` in a row.
    pub fn run(&self, way: Way, passes: i64) -> Result<Sample> {
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

    /// How long one pass takes.
    fn once(&self) -> Result<i64> {
        self.run(Way::Stream, 2)?;
        Ok(self.run(Way::Stream, 3)?.wall.max(1))
    }

    /// All ways, each beside the first.
    pub fn measure(&self, ways: &[Way], effort: Effort) -> Result<Compared> {
        let once = self.once()?;
        let passes = (RUN_NS / once).clamp(FEWEST_PASSES, MOST_PASSES);
        let long = once * passes > LONG_RUN_NS;
        let effort = if long { effort.halved() } else { effort };
        let (base, pairs) = rounds::paired(ways.len(), &effort, 1, |way| self.run(ways[way], passes))?;
        Ok(Compared { passes, base, pairs })
    }
}

/// The first way, and what the others are beside it.
pub struct Compared {
    passes: i64,
    pub base: Vec<Sample>,
    pub pairs: Vec<Paired>,
}

impl Compared {
    /// What a way adds to one pass of the first: a run without waits ends with one too, so `passes` products are one
    /// wait short of telling them apart.
    pub fn added(&self, way: Way, pair: &Paired) -> Spread {
        let waits = if way == Way::Graph { self.passes } else { self.passes - 1 };
        let added =
            pair.base.iter().zip(&pair.own).map(|(b, o)| (o.wall - b.wall) * self.passes / waits.max(1));
        rounds::spread(added)
    }
}

/// The loop of a replay: in every way that a program could wait.
pub fn measure(
    gpu: &Gpu,
    pieces: &[Piece],
    effort: Effort,
    read: impl Fn(&HostBuffer) -> Result<PreparedCopy>,
    notes: &mut Vec<String>,
) -> Result<Vec<MeasuredAlone>> {
    let mut sequence = Loop::new(gpu, pieces, read)?;
    let mut ways = vec![Way::Async, Way::Stream, Way::Context, Way::Event, Way::Value, Way::Graph];
    if let Err(e) = sequence.capture() {
        // A GPU that still works goes on; the rest does not need the graph.
        gpu.context.synchronize()?;
        ways.pop();
        notes.push(format!("The products could not be captured as a CUDA graph: {e}."));
    }
    let compared = sequence.measure(&ways, effort)?;
    let measured = |way: Way, samples: &[Sample], added| MeasuredAlone {
        name: way.name().to_owned(),
        wall: rounds::spread(samples.iter().map(|s| s.wall)),
        gpu: rounds::spread(samples.iter().map(|s| s.gpu)),
        added,
    };
    let mut all = vec![measured(ways[0], &compared.base, None)];
    for (&way, pair) in ways[1..].iter().zip(&compared.pairs) {
        all.push(measured(way, &pair.own, Some(compared.added(way, pair))));
    }
    Ok(all)
}
