//! Kernels of a given length, in place of all kernels that are no matrix products.

use super::cuda::{Event, EventKind, Function, Module, Result, Stream};
use super::memory::{self, DeviceMemory};
use crate::replay::error::ReplayError;
use std::ffi::CString;
use std::rc::Rc;

/// Nsight's length of an empty kernel: the shortest of 8 H200 captures are 544 to 736 ns. A waiting kernel is
/// longer than its wait by this.
pub const EMPTY_NS: i64 = 700;
/// Coarser timers are no use for kernels of a few µs: the multiprocessor's clock replaces them.
const COARSE_NS: u64 = 64;

#[derive(Clone, Copy, Debug)]
enum Clock {
    Timer,
    /// Cycles of the multiprocessor's clock in a ns.
    Cycles(f64),
}

pub struct Spin {
    stream: Rc<Stream>,
    function: Function,
    clock: Clock,
    /// From the end of a kernel to the start of the next on the same stream.
    pub gap_ns: i64,
    /// Owns the functions.
    _module: Module,
}

/// Length of the kernels that measure the gap.
const LONG_NS: i64 = 10_000;

/// A kernel of a given length: nanoseconds, clock cycles, and the address that it writes 1 to at its end.
#[derive(Clone, Copy, Debug)]
pub struct Kernel([u64; 3]);

impl Kernel {
    /// `flag`: an address that the GPU can write.
    pub fn flagged(self, flag: u64) -> Self {
        let Self([ns, cycles, _]) = self;
        Self([ns, cycles, flag])
    }

    fn of_cycles(cycles: u64) -> Self {
        Self([0, cycles, 0])
    }
}

impl Spin {
    pub fn new(stream: &Rc<Stream>) -> Result<Self> {
        let ptx = CString::new(include_str!("spin.ptx"))
            .map_err(|_| ReplayError::Unplayable("a kernel's text is damaged".to_owned()))?;
        let module = Module::new(stream.context(), &ptx)?;
        let tick = tick(stream, &module)?;
        let (stream, function) = (Rc::clone(stream), module.function(c"spin")?);
        let mut spin = Self { stream, function, clock: Clock::Timer, gap_ns: 0, _module: module };
        if tick > COARSE_NS {
            spin.clock = Clock::Cycles(spin.cycles_per_ns()?);
        }
        spin.gap_ns = (spin.spacing(spin.kernel(LONG_NS))? - LONG_NS).max(0);
        Ok(spin)
    }

    /// Nsight would record this kernel of one block as `ns` long.
    pub fn kernel(&self, ns: i64) -> Kernel {
        let wait = (ns - EMPTY_NS).max(0) as u64;
        match self.clock {
            Clock::Timer => Kernel([wait, 0, 0]),
            Clock::Cycles(per_ns) => Kernel::of_cycles((wait as f64 * per_ns) as u64),
        }
    }

    #[inline]
    pub fn launch(&self, stream: &Stream, kernel: Kernel) -> Result<()> {
        self.function.launch(stream, kernel.0)
    }

    pub fn describe(&self) -> String {
        match self.clock {
            Clock::Timer => "the GPU's nanosecond timer".to_owned(),
            Clock::Cycles(per_ns) => format!("the multiprocessors' clock, {:.0} MHz now", per_ns * 1e3),
        }
    }

    /// Time from one kernel to the next in a full queue.
    pub fn spacing(&self, kernel: Kernel) -> Result<i64> {
        const KERNELS: usize = 32;
        let run = || self.queued(KERNELS, |_| self.launch(&self.stream, kernel));
        run()?;
        median_of_three(run)
    }

    /// GPU time of each of `count` launches, queued while the GPU is busy: it never waits for the host.
    pub fn queued(&self, count: usize, mut launch: impl FnMut(usize) -> Result<()>) -> Result<i64> {
        // A launch takes the host 2 to 7 µs. Many need no such lead: the GPU works on them meanwhile.
        const HEAD_START_NS: i64 = 20_000;
        const LONGEST_NS: i64 = 3_000_000;
        let (stream, event) = (&*self.stream, || Event::new(self.stream.context(), EventKind::Timing));
        let (from, to) = (event()?, event()?);
        self.launch(stream, self.kernel((HEAD_START_NS * (count as i64 + 1)).min(LONGEST_NS)))?;
        from.record(stream)?;
        for index in 0..count {
            launch(index)?;
        }
        to.record(stream)?;
        stream.synchronize()?;
        Ok(from.until(&to)? / count.max(1) as i64)
    }

    fn cycles_per_ns(&self) -> Result<f64> {
        const CYCLES: [u64; 2] = [20_000, 220_000];
        let [short, long] = CYCLES.map(|cycles| self.spacing(Kernel::of_cycles(cycles)));
        let ns = [short?, long?];
        let per_ns = (CYCLES[1] - CYCLES[0]) as f64 / (ns[1] - ns[0]) as f64;
        // From the slowest clock of a power-saving GPU to one faster than any.
        if (0.05..10.0).contains(&per_ns) {
            return Ok(per_ns);
        }
        Err(ReplayError::Unplayable(format!(
            "kernels of {CYCLES:?} cycles took {ns:?} ns, which fits no clock; the GPU may be busy"
        )))
    }
}

pub fn median_of_three(mut measure: impl FnMut() -> Result<i64>) -> Result<i64> {
    let mut times = [measure()?, measure()?, measure()?];
    times.sort_unstable();
    Ok(times[1])
}

/// Least step of the nanosecond timer, of a few measurements.
fn tick(stream: &Stream, module: &Module) -> Result<u64> {
    let function = module.function(c"tick")?;
    let memory = DeviceMemory::new(stream.context(), 8, "a few bytes")?;
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
