//! Plans made by hand.

use sync_report::replay::plan::*;
use sync_report::replay::product::{Compute, Element, Shape};
use sync_report::vocabulary::{Direction, HostMemory};

pub fn gemm(m: u64, n: u64, k: u64, element: Element) -> Gemm {
    let compute = if element == Element::F64 { Compute::F64 } else { Compute::F32 };
    Gemm {
        shape: Shape { m, n, k, ..Shape::square(1, (element, compute)) },
        certainty: Certainty::Exact,
        recorded_ns: 10_000,
        kernel: "a_kernel".to_owned(),
        basis: "by hand".to_owned(),
    }
}

pub fn plan(gemms: Vec<Gemm>, variants: Vec<(&str, Vec<ReplayOp>)>) -> Plan {
    let stretch = Stretch {
        from_ns: 0,
        to_ns: 1_000_000,
        iteration: Some(1),
        iterations: 10,
        gpu_busy_ns: 500_000,
        chosen: "by hand".to_owned(),
    };
    Plan {
        plan_version: PLAN_VERSION,
        profile: "by_hand.sqlite".to_owned(),
        gpu: GpuModel::default(),
        sites: Vec::new().into(),
        stretch,
        repeat: 4,
        host: HostTime::Recorded,
        matching: Matching::Peak,
        streams: 2,
        events: 1,
        gemms: gemms.into(),
        variants: variants
            .into_iter()
            .enumerate()
            .map(|(i, (name, acts))| Variant {
                name: name.to_owned(),
                fixed: if i == 0 { Vec::new() } else { vec![0.into()] },
                all_false: false,
                ops: acts,
                predicted_saving_ns: (i > 0).then_some(100_000),
            })
            .collect(),
        notes: Vec::new(),
    }
}

/// 100 µs of host work and 100 µs of GPU work in turn: without the wait they overlap.
pub fn loop_with_sync() -> Plan {
    let work = [
        ReplayOp::Host { ns: 100_000 },
        ReplayOp::Gemm { gemm: 0.into(), stream: 0.into() },
        ReplayOp::Spin { ns: 100_000, stream: 0.into() },
    ];
    let mut waiting = work.to_vec();
    waiting.push(ReplayOp::Sync { target: Target::Stream(0.into()), site: Some(0.into()) });
    plan(vec![gemm(64, 48, 32, Element::F16)], vec![("as recorded", waiting), ("S1 fixed", work.to_vec())])
}

pub fn everything() -> Plan {
    let copy = |direction, memory, blocking: bool| ReplayOp::Copy {
        direction,
        bytes: 10_000,
        memory,
        stream: usize::from(!blocking).into(),
        blocking,
        site: None,
    };
    use Direction::{DeviceToDevice, DeviceToHost, HostToDevice, HostToHost, Other};
    use HostMemory::{Managed, Pageable, Pinned, Unknown};
    let mut acts = vec![
        ReplayOp::Host { ns: 5_000 },
        ReplayOp::Host { ns: 0 },
        ReplayOp::Gemm { gemm: 0.into(), stream: 0.into() },
        ReplayOp::Gemm { gemm: 1.into(), stream: 1.into() },
        ReplayOp::Record { event: 0.into(), stream: 1.into() },
        ReplayOp::StreamWait { event: 0.into(), stream: 0.into() },
        ReplayOp::Spin { ns: 3_000, stream: 0.into() },
        ReplayOp::Memset { bytes: 4096, stream: 1.into() },
        ReplayOp::Sync { target: Target::Event(0.into()), site: None },
        ReplayOp::Sync { target: Target::Stream(1.into()), site: None },
        ReplayOp::Sync { target: Target::Context, site: None },
    ];
    for direction in [HostToDevice, DeviceToHost, DeviceToDevice, HostToHost, Other] {
        for memory in [Pageable, Pinned, Managed, Unknown] {
            acts.push(copy(direction, memory, false));
            acts.push(copy(direction, memory, true));
        }
    }
    let mut batched = gemm(40, 24, 56, Element::F32);
    (batched.shape.batch, batched.shape.transpose_a) = (3, true);
    plan(vec![gemm(33, 17, 65, Element::Bf16), batched], vec![("as recorded", acts)])
}
