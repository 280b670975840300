//! Ranks on the page: a map of sites by ranks, and who comes late.

use crate::model::Class;
use crate::model::ranks::{RankSite, Ranks};
use crate::render::ranks as words;
use crate::render::view::escaped;
use crate::text;
use serde::Serialize;

/// Columns of the map. More ranks share columns, which show the most of them.
const MOST: usize = 128;

#[derive(Serialize)]
pub(super) struct RanksView {
    /// "rank 3", "ranks 8 to 15".
    columns: Vec<String>,
    rows: Vec<RowView>,
    late: Vec<String>,
}

#[derive(Serialize)]
struct RowView {
    id: String,
    class: Class,
    place: String,
    notes: Vec<String>,
    /// Blocked time over ranks: median, a tenth to nine tenths, most.
    over: [String; 3],
    /// Blocked time per column: the square root of its share of the map's maximum, so that small values show.
    heat: Vec<f64>,
    /// Blocked time per column, in words.
    blocked: Vec<String>,
}

pub(super) fn view(ranks: &Ranks) -> RanksView {
    let each = ranks.list.len().div_ceil(MOST).max(1);
    let column = |ranks: &[crate::model::ranks::Rank]| match ranks {
        [first, .., last] => format!("ranks {} to {}", first.rank, last.rank),
        [only] => format!("rank {}", only.rank),
        [] => String::new(),
    };
    let most = ranks.sites.iter().map(|site| site.blocked_ns.max).max().unwrap_or(0).max(1);
    let row = |site: &RankSite| {
        let most_of = |part: &[i64]| part.iter().copied().max().unwrap_or(0);
        let cells: Vec<i64> = site.blocked_by_rank_ns.chunks(each).map(most_of).collect();
        RowView {
            id: escaped(&site.id),
            class: site.class,
            place: escaped(&site.place),
            notes: advised(site, ranks.list.len()),
            over: words::cells(&site.blocked_ns, ranks, text::duration),
            heat: cells.iter().map(|&ns| (ns.max(0) as f64 / most as f64).sqrt()).collect(),
            blocked: cells.iter().map(|&ns| text::duration(ns)).collect(),
        }
    };
    RanksView {
        columns: ranks.list.chunks(each).map(column).collect(),
        rows: ranks.sites.iter().map(row).collect(),
        late: words::more_late(ranks).collect(),
    }
}

fn advised(site: &RankSite, all: usize) -> Vec<String> {
    let fix = site.fix.as_deref().map(|fix| format!("→ {}", escaped(fix)));
    words::notes(site, all).into_iter().chain(fix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ranks::{Over, Rank};
    use crate::model::{Kind, Per};

    /// Of 200 ranks two share a column, which shows the one that blocks longer.
    #[test]
    fn many_ranks_share_columns() {
        let blocked: Vec<i64> = (0..200).map(|rank| if rank == 150 { 400 } else { 100 }).collect();
        let site = RankSite {
            id: "S1".into(),
            key: String::new(),
            class: Class::False,
            kind: Kind::Explicit,
            confidence: 0.9,
            disputed: false,
            place: "<b>".into(),
            api: "cudaStreamSynchronize".into(),
            fix: None,
            once: false,
            per: Per::Iteration,
            saves_at_most: false,
            late_rank: None,
            ranks: 200,
            waits: Over::default(),
            blocked_ns: Over { p10: 100, p50: 100, p90: 100, max: 400, max_rank: 150 },
            blocked_p99_ns: 0,
            drain_ns: Over::default(),
            saves_ns: Over::default(),
            odd: Vec::new(),
            blocked_by_rank_ns: blocked,
        };
        let list = (0..200).map(|rank| Rank { rank, ..Rank::default() }).collect();
        let ranks = Ranks { list, sites: vec![site], ..Ranks::default() };
        let view = view(&ranks);
        assert_eq!((view.columns.len(), view.columns[75].as_str()), (100, "ranks 150 to 151"));
        let row = &view.rows[0];
        assert_eq!((row.heat[74], row.heat[75], row.blocked[75].as_str()), (0.5, 1.0, "400 ns"));
        assert_eq!(row.over, ["100 ns", "", "400 ns on 150"]);
    }
}
