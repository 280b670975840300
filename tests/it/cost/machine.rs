//! Random programs on a machine that keeps to the rules: three threads of two processes, two devices with two
//! streams each, kernels, graphs, copies, events. Properties of their prices, before any cut.

use super::*;
use crate::export::{Copy, Memory};
use proptest::prelude::*;
use sync_report::cost::simulate::run;
use sync_report::cost::simulate::run::Variant;
use sync_report::vocabulary::Change;

#[derive(Clone, Debug)]
struct Act {
    thread: usize,
    host: i64,
    gpu: usize,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Launch {
        work: i64,
        graph: bool,
    },
    Sync,
    Device,
    /// Records an event and waits for it: for what the stream held then.
    Event,
    Await {
        event: i64,
        until: i64,
    },
    Upload {
        bytes: i64,
        pinned: bool,
    },
    Item {
        work: i64,
    },
}

const GPUS: [Gpu; 4] = [GPU0, SIDE, Gpu { device: 1, stream: 7 }, Gpu { device: 1, stream: 13 }];

fn act() -> impl Strategy<Value = Act> {
    let what = prop_oneof![
        6 => (1_000..150_000i64, 0..5u8).prop_map(|(work, graph)| What::Launch { work, graph: graph == 0 }),
        2 => Just(What::Sync),
        1 => Just(What::Device),
        1 => Just(What::Event),
        1 => (1..400_000i64, any::<bool>()).prop_map(|(bytes, pinned)| What::Upload { bytes, pinned }),
        2 => (1_000..3_000i64).prop_map(|work| What::Item { work }),
    ];
    (0..3usize, 200..60_000i64, 0..GPUS.len(), what).prop_map(|(thread, host, gpu, what)| Act {
        thread,
        host,
        gpu,
        what,
    })
}

/// Length of a call, latency of an op, time of a wait's return, in ns.
const CALL: i64 = 5_000;
const LATENCY: i64 = 2_000;
const BACK: i64 = 4_000;

/// Runs a program, the thread that is furthest behind first, and draws what happens. Returns its end.
fn draw(e: &mut Export, list: &[Act]) -> i64 {
    let threads = [e.thread(100, 100), e.thread(100, 101), e.thread(200, 200)];
    // A process has its own streams.
    let (mut now, mut free, mut end, mut event) = ([0i64; 3], [[i64::MIN / 2; 4]; 2], 0, 0);
    let mut left: [Vec<Act>; 3] =
        std::array::from_fn(|t| list.iter().rev().filter(|a| a.thread == t).cloned().collect());
    // Calls are in the order of their starts.
    let next = |left: &[Vec<Act>; 3], now: &[i64; 3]| {
        let at = |t: usize| left[t].last().map(|act| (now[t] + act.host, t));
        (0..3).filter_map(at).min()
    };
    while let Some((begins, thread)) = next(&left, &now) {
        let Some(act) = left[thread].pop() else { break };
        now[thread] = begins;
        let (t, gpu, at) = (threads[thread], GPUS[act.gpu], now[thread]);
        let streams = &mut free[thread / 2];
        let mut enqueue = |from: i64, work: i64| {
            let start = (from + LATENCY).max(streams[act.gpu] + 1_500);
            streams[act.gpu] = start + work;
            start..start + work
        };
        let waited =
            |from: i64, until: i64| (from + LATENCY).max(if until > from { until + BACK } else { 0 });
        let mut then = Vec::new();
        now[thread] = match act.what {
            What::Launch { work, graph } => {
                let op = enqueue(at + CALL, work);
                match graph {
                    true => e.graph_launch(t, at..at + CALL, gpu, op),
                    false => e.launch(t, at..at + CALL, gpu, op, "k"),
                };
                at + CALL
            }
            What::Sync => {
                let back = waited(at, streams[act.gpu]);
                e.sync(t, "cudaStreamSynchronize", at..back, gpu);
                back
            }
            What::Device => {
                let other = act.gpu ^ 1;
                let back = waited(at, streams[act.gpu].max(streams[other]));
                e.device_sync(t, at..back, gpu.device);
                back
            }
            What::Event => {
                event += 1;
                e.event_record(t, at..at + 1_000, gpu, event);
                then.push(What::Await { event, until: streams[act.gpu] });
                at + 1_000
            }
            What::Await { event, until } => {
                let back = waited(at, until);
                e.event_sync(t, at..back, event);
                back
            }
            What::Upload { bytes, pinned: true } => {
                let op = enqueue(at + CALL, 1_000 + bytes / 50);
                e.memcpy(t, at..at + CALL, Copy::h2d(bytes, Memory::Pinned), gpu, op);
                at + CALL
            }
            What::Upload { bytes, .. } => {
                // Staged by the host, then waited for.
                let staged = at + CALL + bytes / 10;
                let op = enqueue(staged - LATENCY, 1_000 + bytes / 8);
                let returned = staged.max(op.start + 1);
                e.memcpy(t, at..returned, Copy::h2d(bytes, Memory::Pageable), gpu, op);
                then.push(What::Sync);
                returned
            }
            What::Item { work } => {
                let op = enqueue(at + CALL, work);
                e.memcpy(t, at..at + CALL, Copy::d2h(4, Memory::Pinned), gpu, op);
                then.push(What::Sync);
                at + CALL
            }
        };
        end = end.max(now[thread]);
        left[thread].extend(then.into_iter().map(|what| Act { host: 500, what, ..act }));
    }
    free.iter().flatten().copied().fold(end, i64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// No fix changes nothing; any fix of any wait lengthens nothing; all fixes save at least the best one;
    /// savings lie inside their bounds; idle and busy time add up to the span.
    #[test]
    fn prices_keep_to_what_can_be(
        list in prop::collection::vec(act(), 3..60),
        fixes in prop::collection::vec(prop::sample::select(Change::ALL.to_vec()), 1..6),
    ) {
        let (mut e, _) = empty();
        let end = draw(&mut e, &list);
        let found = look::analysed(&e);
        let program = look::program(&found);
        let run = |fixes: Vec<Change>| run(&program, &Variant { fixes: fixes.into(), ..Variant::default() });
        let none = run(Vec::new());
        prop_assert_eq!(none.end + program.origin, end, "nothing is fixed");
        for (i, wait) in found.waits.iter().enumerate() {
            let mut only = vec![Change::Keep; found.waits.len()];
            only[i] = fixes[i % fixes.len()];
            let without = run(only);
            prop_assert!(without.end <= none.end, "{:?}: {} {}", wait, without.end, none.end);
        }
        let prices = &found.prices;
        prop_assert_eq!(prices.cut, 0, "{:?}", prices.sites);
        assert_sound(&look::report(&e));
    }
}
