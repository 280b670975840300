//! Collectives of groups of ranks: tensor and data parallel.

use super::*;
use crate::export::Payload;

/// Hashes of the communicators of ranks 01, 23, 02, 13, one of them larger than SQLite's numbers.
const PAIRS: [u64; 4] = [0x8e1f_0000_0000_0001, 0x23, 0x02, 0x13];

/// A step of rank r of four, which meets its neighbour (01, 23) and then its peer in the other pair (02, 13), in kernels
/// of one name. Rank 2 waits for work of its own first.
///
/// ```text
///  rank 0   [k][all 01~~]  [all 02, stands ~~~~~~~~~~~~~~~~~~~~~~~|~~~]
///  rank 1   [k][all 01~~]  [all 13, stands ~~~~~~~~~~~~~~~~~~~~~~~|~~~]
///  rank 2   [k~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~][all 23~~]  [all 02]
///  rank 3   [k][all 23, stands ~~~~~~~~~~~~~~~~~~~~|~~~~~~~~]  [all 13]
///           100 µs, or LATE more               +110       +140     +160   +200
/// ```
fn steps_of(e: &mut Export, rank: i64, gpu: Gpu, back: i64) {
    let pid = 100 + rank;
    let t = e.thread(pid, pid);
    let work = |rank| if rank == 2 { 100_000 + LATE } else { 100_000 };
    let (tensor, data) = (PAIRS[(rank / 2) as usize], PAIRS[(2 + rank % 2) as usize]);
    let mut at = 1_000_000 - back;
    for i in 0..STEPS {
        let (own, slowest, last) =
            (at + work(rank), at + work(rank).max(work(rank ^ 1)), at + 100_000 + LATE + 200_000);
        e.launch(t, at..at + 5_000, gpu, at + 10_000..own, "k");
        let wait = e.sync(t, "cudaStreamSynchronize", at + 12_000..own + 3_000, gpu);
        e.python(wait, &[("step", "/w/train.py", 24)]);
        e.nccl(t, own + 99_000..own + 106_000, "ncclAllReduce", Some(tensor));
        e.launch(t, own + 100_000..own + 105_000, gpu, own + 110_000..slowest + 140_000, ALL_REDUCE);
        // As PyTorch calls several at once: launched where the group ends.
        let group = own + 107_000;
        e.nccl(t, group..group + 1_000, "ncclGroupStart", None);
        e.nccl(t, group + 1_000..group + 3_000, "ncclAllReduce", Some(data));
        e.nccl(t, group + 4_000..group + 12_000, "ncclGroupEnd", None);
        e.launch(t, group + 5_000..group + 10_000, gpu, slowest + 160_000..last, ALL_REDUCE);
        let wait = e.device_sync(t, group + 13_000..last + 3_000, gpu.device);
        e.python(wait, &[("step", "/w/train.py", 50)]);
        at = last + 100_000 + i * i * 7 % 11 * 37_000;
    }
}

/// `apart`: by how much the machines' clocks disagree.
fn pairs(folder: &Path, payload: Payload, apart: i64) -> Value {
    for rank in 0..4 {
        let mut e = Export::new(Schema::V2026_2);
        e.payload(payload);
        steps_of(&mut e, rank, GPU0, SKEW * rank);
        let clock = (SKEW + apart) * rank;
        e.sql(format!("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + {clock}"));
        e.write(&folder.join(format!("rank_{rank}.sqlite")));
    }
    report(folder)
}

/// (late rank, among how many, communicator, cost in ns)
fn late(ranks: &Value) -> Vec<(u64, u64, String, i64)> {
    let told = |late: &Value| -> Option<_> {
        let communicator = late["communicator"].as_str()?.to_owned();
        Some((late["rank"].as_u64()?, late["among"].as_u64()?, communicator, late["cost_ns"].as_i64()?))
    };
    let late = ranks["late"].as_array().expect("a list");
    late.iter().map(|late| told(late).expect("told")).collect()
}

fn told() -> Vec<(u64, u64, String, i64)> {
    [(2, "0x2"), (2, "0x23"), (3, "0x13")].map(|(rank, id)| (rank, 2, id.to_owned(), STEPS * LATE)).to_vec()
}

/// Each group for itself, with the clock of rank 3 set by way of a rank that meets both it and the first.
#[test]
fn groups_are_told_apart_by_their_communicators() {
    for payload in [Payload::Json, Payload::Blob] {
        let folder = tempfile::tempdir().expect("a folder");
        let found = pairs(folder.path(), payload, 700_000);
        let ranks = &found["ranks"];
        assert_eq!(codes(&found), Vec::<&str>::new());
        assert_eq!((&ranks["met"], &ranks["alone"]), (&(4 * STEPS).into(), &0.into()));
        let clock = |rank: i64| ranks["list"][rank as usize]["clock_ns"].as_i64();
        assert_eq!([0, 1, 2, 3].map(clock), [0, 1, 2, 3].map(|rank| Some(SKEW * rank)));
        assert_eq!(
            (&ranks["clocks"]["by_collectives"], &ranks["clocks"]["residual_ns"]),
            (&3.into(), &0.into())
        );
        assert_eq!(late(ranks), told());
        let table = program(&[folder.path().as_os_str(), "--width".as_ref(), "100".as_ref()]).stdout;
        let said = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(
                "AllReduce among 2 ranks (communicator 0x23) and delays an iteration of 3.66 ms by 3.00 ms"
            ),
            "{said}"
        );
    }
}

/// Unknown communicators make half of the collectives seem to meet on all ranks: that is rejected.
#[test]
fn groups_that_nothing_tells_apart_are_not_matched() {
    for apart in [0, 2_000_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let found = pairs(folder.path(), Payload::Nothing, apart);
        assert_eq!(codes(&found), ["collectives-not-matched"]);
        assert_eq!((&found["ranks"]["met"], &found["ranks"]["late"]), (&0.into(), &Value::Array(Vec::new())));
        let warnings = found["warnings"].to_string();
        assert!(
            warnings.contains("do not fit together by name and order") && warnings.contains("NCCL names"),
            "{warnings}"
        );
    }
}

#[test]
fn groups_of_one_export_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut e = Export::new(Schema::V2026_2);
    (0..4).for_each(|rank| steps_of(&mut e, rank, Gpu { device: rank, ..GPU0 }, 0));
    let path = folder.path().join("all.sqlite");
    e.write(&path);
    let found = report(&path);
    assert_eq!((&found["ranks"]["clocks"], late(&found["ranks"])), (&Value::Null, told()));
    let sites = found["sites"].as_array().expect("sites");
    let behind = |pid: i64| {
        let own = |site: &&Value| site["process"]["pid"] == pid && site["user_frame"]["line"] == 50;
        let site = sites.iter().find(own).expect("a site of the process");
        site["awaited"]["collectives"]["late"][0]["process"]["pid"].as_i64()
    };
    assert_eq!([100, 101, 102].map(behind), [Some(102), Some(103), None]);
}

/// NCCL gives the ranks if neither names nor the environment tell: a process has its rank in the largest
/// communicator.
///
/// ```text
///  process     host-a 100    host-a 200    host-b 100
///  0xbb        0                           1               made first
///  0xffff…     2             0             1               of all
/// ```
#[test]
fn the_largest_communicator_numbers_the_ranks() {
    const ALL: u64 = u64::MAX - 5;
    for (payload, of_b, said) in [
        (Payload::Json, ALL, "communicator"),
        (Payload::Blob, ALL, "communicator"),
        (Payload::Nothing, ALL, "order"),
        // Another program of three ranks: its numbers are no ranks of this one.
        (Payload::Json, 0xcc, "order"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, processes) in [("host-a.4711", &[(100, 2), (200, 0)][..]), ("host-b.4242", &[(100, 1)])] {
            let mut e = Export::new(Schema::V2026_2);
            e.payload(payload);
            for (device, &(pid, rank)) in processes.iter().enumerate() {
                let t = e.thread(pid, pid);
                if pid == 100 {
                    e.nccl_init(t, 1_000..2_000, 0xbb, rank % 2, 2);
                }
                e.nccl_init(t, 3_000..4_000, if rank == 1 { of_b } else { ALL }, rank, 3);
                steps(&mut e, pid, Gpu { device: device as i64, ..GPU0 }, 0, 100_000, 100_000, 24);
            }
            e.write(&folder.path().join(format!("{name}.sqlite")));
        }
        let found = report(folder.path());
        let list = found["ranks"]["list"].as_array().expect("ranks");
        let own = |rank: &Value| {
            let host =
                rank["profile"].as_str().and_then(|path| path.split("host-").nth(1)).map(|name| &name[..1]);
            format!("{} {} {} {}", rank["rank"], host.unwrap_or_default(), rank["pid"], rank["named_by"])
        };
        let expected = match said {
            "order" => ["0 a 100", "1 a 200", "2 b 100"],
            _ => ["0 a 200", "1 b 100", "2 a 100"],
        };
        let list: Vec<String> = list.iter().map(own).collect();
        assert_eq!(list, expected.map(|rank| format!("{rank} \"{said}\"")), "{payload:?} {of_b:#x}");
    }
}
