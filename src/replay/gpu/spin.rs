//! Kernels of a given length, which stand for all kernels that are no matrix products.

use super::cuda::{Context, Event, EventKind, Function, Module, Result, Stream};
use super::memory::{self, DeviceMemory};
use crate::replay::error::ReplayError;
use crate::replay::occupancy::{Limits, StandIn};
use std::cell::Cell;
use std::ffi::CString;
use std::rc::Rc;

/// What Nsight records for a kernel that does nothing: the shortest of 8 H200 captures are 544 to 736 ns long. A kernel
/// that waits is longer than its wait by this.
pub const EMPTY_NS: i64 = 700;
/// Coarser timers are no use for kernels of a few µs; they last by the clock of their multiprocessor instead.
const COARSE_NS: u64 = 64;

/// How the kernel knows that its time has come.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// The GPU's nanosecond timer.
    Timer,
    /// The multiprocessor's clock, at this many cycles in a ns.
    Cycles(f64),
}

pub struct Spin {
    function: Function,
    clock: Clock,
    /// From the end of a kernel to the start of the next on the same stream.
    pub gap_ns: i64,
    /// How much longer one that holds the whole GPU takes than one block; known once places are taken.
    filling_ns: Cell<i64>,
    /// The functions are its.
    _module: Module,
}

/// Kernels of this length tell what one takes besides.
const LONG_NS: i64 = 10_000;

/// Arguments of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Length([u64; 3]);

impl Spin {
    pub fn new(context: &Rc<Context>, stream: &Stream) -> Result<Self> {
        let ptx = CString::new(include_str!("spin.ptx"))
            .map_err(|_| ReplayError::Unplayable { reason: "a kernel's text is damaged".to_owned() })?;
        let module = Module::new(context, &ptx)?;
        let tick = tick(context, stream, &module)?;
        let function = module.function(c"spin")?;
        let mut spin =
            Self { function, clock: Clock::Timer, gap_ns: 0, filling_ns: Cell::new(0), _module: module };
        if tick > COARSE_NS {
            spin.clock = Clock::Cycles(spin.cycles_per_ns(stream)?);
        }
        let length = spin.length(LONG_NS);
        spin.gap_ns = (spin.spacing(stream, StandIn::NOTHING, length)? - LONG_NS).max(0);
        Ok(spin)
    }

    /// Arguments for a kernel that Nsight would call `ns` long.
    pub fn length(&self, ns: i64) -> Length {
        let wait = (ns - EMPTY_NS).max(0) as u64;
        match self.clock {
            Clock::Timer => Length([wait, 0, 0]),
            Clock::Cycles(per_ns) => Length([0, (wait as f64 * per_ns) as u64, 0]),
        }
    }

    /// From here on kernels can take the places of others. Measures what that costs.
    pub fn take_places(&self, stream: &Stream, limits: &Limits) -> Result<()> {
        let all = StandIn::of_all(limits);
        self.function.allow_shared(all.shared)?;
        let length = self.length(LONG_NS);
        let filling = self.spacing(stream, all, length)? - self.spacing(stream, StandIn::NOTHING, length)?;
        self.filling_ns.set(filling.clamp(0, LONG_NS));
        Ok(())
    }

    /// As `length`, of a kernel in the place of another: more blocks take longer to begin and to end.
    pub fn length_in_place(&self, ns: i64, place: StandIn, limits: &Limits) -> Length {
        let share = f64::from(place.blocks - 1) / f64::from(limits.multiprocessors.max(2) - 1);
        self.length(ns - (self.filling_ns.get() as f64 * share) as i64)
    }

    #[inline]
    pub fn launch(&self, stream: &Stream, length: Length) -> Result<()> {
        self.function.launch(stream, length.0)
    }

    #[inline]
    pub fn launch_in_place(&self, stream: &Stream, place: StandIn, length: Length) -> Result<()> {
        self.function.launch_blocks(stream, place, length.0)
    }

    /// As `launch`; at its end the kernel writes 1 to `flag`, an address that the GPU can write.
    pub fn launch_flagged(&self, stream: &Stream, length: Length, flag: u64) -> Result<()> {
        let Length([ns, cycles, _]) = length;
        self.function.launch(stream, [ns, cycles, flag])
    }

    /// What clock it goes by, for the curious.
    pub fn describe(&self) -> String {
        match self.clock {
            Clock::Timer => "the GPU's nanosecond timer".to_owned(),
            Clock::Cycles(per_ns) => format!("the multiprocessors' clock, {:.0} MHz now", per_ns * 1e3),
        }
    }

    /// Time from one kernel to the next of a full queue.
    pub fn spacing(&self, stream: &Stream, place: StandIn, length: Length) -> Result<i64> {
        const KERNELS: usize = 32;
        let run = || queued(stream, self, KERNELS, |_| self.launch_in_place(stream, place, length));
        run()?;
        let mut times = [run()?, run()?, run()?];
        times.sort_unstable();
        Ok(times[1])
    }

    fn cycles_per_ns(&self, stream: &Stream) -> Result<f64> {
        const CYCLES: [u64; 2] = [20_000, 220_000];
        let mut ns = [0; 2];
        for (ns, cycles) in ns.iter_mut().zip(CYCLES) {
            *ns = self.spacing(stream, StandIn::NOTHING, Length([0, cycles, 0]))?;
        }
        let per_ns = (CYCLES[1] - CYCLES[0]) as f64 / (ns[1] - ns[0]) as f64;
        // From the slowest clock of a GPU that saves power to one faster than any.
        if (0.05..10.0).contains(&per_ns) {
            return Ok(per_ns);
        }
        Err(ReplayError::Unplayable {
            reason: format!(
                "kernels of {CYCLES:?} cycles took {ns:?} ns, which fits no clock; the GPU may be busy"
            ),
        })
    }
}

/// GPU time of each of `count` launches, put into the queue while the GPU is kept busy, so that it never waits for the
/// host.
pub fn queued(
    stream: &Stream,
    spin: &Spin,
    count: usize,
    mut launch: impl FnMut(usize) -> Result<()>,
) -> Result<i64> {
    // A launch takes the host 2 to 7 µs. Many need no such lead, since the GPU works on them meanwhile.
    const HEAD_START_NS: i64 = 20_000;
    const LONGEST_NS: i64 = 3_000_000;
    let context = stream.context();
    let (from, to) = (Event::new(context, EventKind::Timing)?, Event::new(context, EventKind::Timing)?);
    spin.launch(stream, spin.length((HEAD_START_NS * (count as i64 + 1)).min(LONGEST_NS)))?;
    from.record(stream)?;
    for index in 0..count {
        launch(index)?;
    }
    to.record(stream)?;
    stream.synchronize()?;
    Ok(from.until(&to)? / count.max(1) as i64)
}

/// How far the nanosecond timer jumps at a time: the least of a few.
fn tick(context: &Rc<Context>, stream: &Stream, module: &Module) -> Result<u64> {
    let function = module.function(c"tick")?;
    let memory = DeviceMemory::new(context, 8, "a few bytes")?;
    let mut least = u64::MAX;
    for _ in 0..4 {
        function.launch(stream, [memory.address(0, 8)?])?;
        stream.synchronize()?;
        let mut word = [0; 8];
        memory::read(&memory, 0, &mut word)?;
        least = least.min(u64::from_le_bytes(word));
    }
    Ok(least)
}
