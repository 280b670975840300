//! Properties of every program's plan: random small timelines, plausible or not.

use super::*;
use crate::properties::{export, schema, steps};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any site of any program has a plan that can run, or one sentence that says why not.
    #[test]
    fn every_site_has_a_sound_plan(schema in schema(), steps in steps()) {
        let (_folder, path) = export(schema, &steps).write_temp();
        let report = look::report_on(&path, &look::options());
        for id in report.sites.iter().map(|s| s.id.clone()) {
            match plan_of(&path, &site(&id), 1) {
                Ok(plan) => assert_playable(&plan),
                Err(error) => prop_assert!(error.contains("no work to replay") && !error.contains('\n'), "{}", error),
            }
        }
        if let Ok(plan) = plan_of(&path, &ReplayRequest::default(), 1) {
            assert_playable(&plan);
            prop_assert_eq!(plan_of(&path, &ReplayRequest::default(), 3), Ok(plan));
        }
    }

    #[test]
    fn rows_backwards_are_the_same_plan(schema in schema(), steps in steps()) {
        let plain = export(schema, &steps);
        let plan = |e: &Export| {
            let plan = try_plan(e, &site("S1"));
            // Python frames of calls that begin at once may go to either.
            plan.map(|p| Plan { profile: String::new(), sites: Vec::new().into(), ..p }).map_err(|_| ())
        };
        prop_assert_eq!(plan(&plain.rows_backwards()), plan(&plain));
    }
}

/// Everything that an op refers to is there, and events are recorded before a stream waits for them.
fn assert_playable(plan: &Plan) {
    assert_eq!(plan.variants[0].name, "as recorded");
    assert!(plan.repeat > 0 && plan.streams > 0 && plan.stretch.to_ns >= plan.stretch.from_ns, "{plan:?}");
    for variant in &plan.variants {
        let mut recorded = BTreeSet::new();
        let ever: BTreeSet<_> = variant
            .ops
            .iter()
            .filter_map(|a| if let ReplayOp::Record { event, .. } = a { Some(*event) } else { None })
            .collect();
        let mut host = 0;
        for op in &variant.ops {
            match op {
                ReplayOp::Host { ns } => {
                    assert!(*ns > 0);
                    host += ns;
                }
                ReplayOp::Gemm { gemm, stream } => {
                    assert!(gemm.index() < plan.gemms.len() && stream.index() < plan.streams)
                }
                ReplayOp::Spin { ns, stream, .. } => assert!(*ns >= 0 && stream.index() < plan.streams),
                ReplayOp::Copy { stream, site, .. } => {
                    assert!(
                        stream.index() < plan.streams && site.is_none_or(|s| s.index() < plan.sites.len())
                    );
                }
                ReplayOp::Memset { stream, .. } => assert!(stream.index() < plan.streams),
                ReplayOp::Record { event, stream } => {
                    assert!(event.index() < plan.events && stream.index() < plan.streams);
                    recorded.insert(*event);
                }
                ReplayOp::StreamWait { event, stream } => {
                    assert!(recorded.contains(event) && stream.index() < plan.streams, "{plan:?}");
                }
                ReplayOp::Sync { target, site } => {
                    assert!(site.is_none_or(|s| s.index() < plan.sites.len()));
                    match target {
                        Target::Stream(stream) => assert!(stream.index() < plan.streams),
                        Target::Event(event) => assert!(ever.contains(event), "{plan:?}"),
                        Target::Context => {}
                    }
                }
            }
        }
        let length = plan.stretch.to_ns - plan.stretch.from_ns;
        assert!(host <= length, "{host} of {length}: {plan:?}");
        assert!(variant.fixed.iter().all(|s| s.index() < plan.sites.len()));
    }
}
