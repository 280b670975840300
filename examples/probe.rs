use std::time::Instant;
use sync_report::analysis::{Options, assemble::Assembler};
use sync_report::profile::{Profile, database::Database, ops::Ops, strings::Strings, syncs::Syncs};
use sync_report::{
    cost::{drain, iterations},
    sites::{bundle, context::Context},
    waits,
};
fn main() {
    for f in std::env::args().skip(1) {
        let n: usize = std::env::var("T").ok().and_then(|t| t.parse().ok()).unwrap_or(2);
        let db = Database::open(f.as_ref(), n, None).unwrap();
        let mut s = Strings::default();
        let t = Instant::now();
        let c = Ops::read(&db).unwrap();
        println!("ops {:?} {}", t.elapsed(), c.len());
        drop(c);
        let t = Instant::now();
        let c = Syncs::read(&db).unwrap();
        println!("syncs {:?}", t.elapsed());
        drop(c);
        let t = Instant::now();
        let mut p = Profile::load(f.as_ref(), n, None, |n| waits::api::classify(n).is_some()).unwrap();
        println!("load {:?}", t.elapsed());
        let t = Instant::now();
        let d = waits::device::Devices::new(&p);
        println!("devices {:?}", t.elapsed());
        let t = Instant::now();
        let w = waits::find::find(&p, &d);
        println!("find {:?}", t.elapsed());
        let t = Instant::now();
        let _ = drain::drains(&p, &d, &w);
        println!("drains {:?}", t.elapsed());
        let t = Instant::now();
        let _ = iterations::detect(&mut p);
        println!("iterations {:?}", t.elapsed());
        let t = Instant::now();
        let mut cx = Context::read(&mut p, &w).unwrap();
        println!("context {:?}", t.elapsed());
        let t = Instant::now();
        let b = bundle::form(&mut p, &d, &w, &mut cx, &Default::default()).unwrap();
        println!("bundles {:?} {}", t.elapsed(), b.len());
        let _ = (Options::default(), |o| {
            let _: Assembler = Assembler::new(o);
        });
    }
}
