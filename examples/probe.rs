use sync_report::{profile::Profile, waits};
use std::time::Instant;
fn main() {
    for f in std::env::args().skip(1) {
        let t = Instant::now();
        match Profile::load(f.as_ref(), 2) {
            Err(e) => println!("{f}: ERR {e}"),
            Ok(p) => {
                let t1 = t.elapsed();
                let d = waits::device::Devices::new(&p);
                let w = waits::find::find(&p, &d);
                let mut by = std::collections::BTreeMap::new();
                for x in &w { *by.entry((p.calls.base_name(x.call).to_string(), format!("{:?}", x.found), x.copy.map(|c| c.direction.as_str()), x.completes.is_some())).or_insert(0) += 1; }
                println!("{f}: calls {} ops {} ranges {} marks {} waits {} load {:?} all {:?}", p.calls.len(), p.ops.len(), p.nvtx.ranges.start.len(), p.nvtx.call_marks.len(), w.len(), t1, t.elapsed());
                for (k, v) in by { println!("   {v} {k:?}"); }
            }
        }
    }
}
