//! Ranks on the page: a map of sites by ranks, and who comes late.

use crate::model::ranks::{RankSite, Ranks};
use crate::render::ranks as words;
use crate::render::view::escaped;
use crate::text;
use crate::vocabulary::Class;
use serde::Serialize;

/// Columns of the map: of more ranks, each is of several, with the most of them.
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
    /// Blocked time in each column, as a share of the most in the map: its square root, so that small ones show.
    heat: Vec<f64>,
    /// The same in words.
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
        let cells = site.blocked_by_rank_ns.chunks(each).map(|part| part.iter().copied().max().unwrap_or(0));
        let cells: Vec<i64> = cells.collect();
        RowView {
            id: escaped(&site.id),
            class: site.class,
            place: escaped(&site.place),
            notes: words::notes(site, ranks.list.len()),
            over: words::cells(&site.blocked_ns, text::duration),
            heat: cells.iter().map(|&ns| (ns.max(0) as f64 / most as f64).sqrt()).collect(),
            blocked: cells.iter().map(|&ns| text::duration(ns)).collect(),
        }
    };
    RanksView {
        columns: ranks.list.chunks(each).map(column).collect(),
        rows: ranks.sites.iter().map(row).collect(),
        late: words::late(ranks),
    }
}
