//! Ranks, in the words that all formats for people share.

use super::document::{Cell, Column, Table, Words};
use super::phrase;
use super::style::Tone;
use super::view::escaped;
use crate::model::Per;
use crate::model::ranks::{Late, NamedBy, Odd, Over, RankSite, Ranks};
use crate::text;

/// Labels and texts: the ranks, and how their clocks were put together.
pub(crate) fn facts(ranks: &Ranks) -> Vec<(String, String)> {
    let (Some(first), Some(last)) = (ranks.list.first(), ranks.list.last()) else { return Vec::new() };
    let by = match first.named_by {
        NamedBy::Name => "by names",
        NamedBy::Environment => "by the recorded environment",
        NamedBy::Communicator => "by NCCL's communicator",
        NamedBy::Order => "in the order of names",
    };
    let all = text::count(ranks.list.len() as u64);
    let mut lines =
        vec![("ranks".to_owned(), format!("{all}, {} to {}, numbered {by}", first.rank, last.rank))];
    if let Some(clocks) = ranks.clocks {
        let set = |n: u64, by: &str| (n > 0).then(|| format!("{} set by {by}", text::counted(n, "export")));
        let residual = clocks
            .residual_ns
            .map(|ns| format!(", which then end within {} of each other", text::duration(ns)));
        let collectives =
            set(clocks.by_collectives, "collectives").map(|words| words + &residual.unwrap_or_default());
        let said: Vec<String> =
            [collectives, set(clocks.by_start, "the start of the session")].into_iter().flatten().collect();
        lines.extend((!said.is_empty()).then(|| ("clocks".to_owned(), said.join("; "))));
    }
    lines
}

pub(crate) fn late(ranks: &Ranks) -> impl Iterator<Item = [String; 2]> {
    ranks.late.iter().map(|late| sentences(late, ranks))
}

/// The sentences of [`late`] without the first where that is the answer, a text each.
pub(crate) fn more_late(ranks: &Ranks) -> impl Iterator<Item = String> {
    late(ranks).skip(usize::from(ranks.latest().is_some())).map(|words| words.join(" "))
}

/// The late rank that is the answer; the first of [`late`].
pub(crate) fn latest(ranks: &Ranks) -> Option<[String; 2]> {
    ranks.latest().map(|late| sentences(late, ranks))
}

fn sentences(late: &Late, ranks: &Ranks) -> [String; 2] {
    let (delay, waiting) = late.delay_ns();
    // Names the group where it is not all ranks.
    let communicator = late.communicator.as_deref().filter(|_| late.among < ranks.list.len() as u64);
    let group = communicator.map(|id| format!(" among {} ranks (communicator {})", late.among, escaped(id)));
    let ([times, of], collective) = ([late.times, late.of].map(text::count), short(&late.collective));
    let of_what = if late.per_iteration_ns.is_some() { "an iteration" } else { "the run" };
    let whole = Some(ranks.length_ns()).filter(|&whole| delay <= whole);
    let long = whole.map(|whole| format!(" of {}", text::duration(whole))).unwrap_or_default();
    let share = whole.map(|whole| format!(", {}", text::share(delay, whole))).unwrap_or_default();
    let (rank, group) = (late.rank, group.unwrap_or_default());
    let first = format!(
        "Rank {rank} comes last to {times} of {of} {collective}{group} and delays {of_what}{long} by {}{share}.",
        text::duration(delay)
    );
    let from = if let Some(wait) = &late.wait {
        let id = wait.id.as_deref().map(|id| format!("{} ", escaped(id))).unwrap_or_default();
        let how = if wait.times == late.times { String::new() } else { format!(", {} times", wait.times) };
        let (waiting, place) = (text::duration(waiting), escaped(&wait.place));
        let saves = wait.id.as_ref().and_then(|id| ranks.sites.iter().find(|site| site.id == *id));
        let saves = saves.map(|site| format!("; removing it gains {}", text::duration(site.saves_ns.max)));
        format!("{waiting} of that in its own wait {id}{place}{how}{}.", saves.unwrap_or_default())
    } else {
        let (why, spent) = match late.launched_in_time() {
            true => ("It had launched in time: its GPU had more to do", late.spent.gpu_ns),
            false => ("No wait made it late: its host came later", late.spent.host_ns),
        };
        format!("{why}, {} of the delay.", text::share(spent, late.late_ns))
    };
    [first, from]
}

/// "AllReduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL": the collective, without its algorithm.
fn short(collective: &str) -> String {
    let own = ["ncclDevKernel_", "ncclKernel_"].iter().find_map(|lead| collective.strip_prefix(lead));
    escaped(own.and_then(|rest| rest.split('_').next()).unwrap_or(collective))
}

/// Ranks on which a site stands out: "rank 17: 3.10 ms, median 400 µs".
pub(crate) fn odd(site: &RankSite) -> Option<String> {
    let name = |odd: &Odd| format!("rank {}: {}", odd.rank, text::duration(odd.blocked_ns));
    let named: Vec<String> = site.odd.iter().map(name).collect();
    let median = text::duration(site.blocked_ns.p50);
    (!named.is_empty()).then(|| format!("{}, median {median}", text::first_of(&named, 3)))
}

/// What waits, on how many ranks, how long a single wait, and where the site stands out.
pub(crate) fn notes(site: &RankSite, all: usize) -> Vec<String> {
    let ranks = site.ranks as usize;
    let on = match (ranks, all) {
        (2, 2) => "both ranks".to_owned(),
        _ if ranks == all => "all ranks".to_owned(),
        _ => format!("{ranks} of {all} ranks"),
    };
    let each = format!("p99 {}", text::duration(site.blocked_p99_ns));
    let each = if site.once { "once" } else { &each };
    let disputed = if site.disputed { ", verdicts differ" } else { "" };
    let mut notes = vec![format!("{} on {on}, {each}{disputed}", escaped(&site.api))];
    notes.extend(odd(site));
    notes
}

/// Median; a tenth to nine tenths of the ranks; the most and its rank. With two ranks: the larger, then the other.
pub(crate) fn cells(over: &Over, ranks: &Ranks, print: fn(i64) -> String) -> [String; 3] {
    let [p10, p50, p90, max] = [over.p10, over.p50, over.p90, over.max].map(print);
    if let [one, two] = &ranks.list[..] {
        let other = if over.max_rank == one.rank { two } else { one };
        let apart = [format!("{max} on {}", over.max_rank), format!("{p10} on {}", other.rank)];
        let [larger, rest] = if over.p10 == over.max { [max, String::new()] } else { apart };
        return [larger, rest, String::new()];
    }
    let range = if p10 == p90 { String::new() } else { format!("{p10} – {p90}") };
    [p50, range, if over.max > 0 { format!("{max} on {}", over.max_rank) } else { max }]
}

pub(crate) fn number(count: i64) -> String {
    text::count(count.unsigned_abs())
}

pub(crate) const AMOUNTS: [&str; 4] = ["waits", "blocked", "idle after", "saves"];

pub(crate) fn amounts(site: &RankSite, ranks: &Ranks) -> [[String; 3]; 4] {
    let time = |over| cells(over, ranks, text::duration);
    let known = |cell: &str| !site.saves_at_most || cell.is_empty() || cell.starts_with("0 ns");
    let saves = time(&site.saves_ns).map(|cell| if known(&cell) { cell } else { format!("≤ {cell}") });
    [cells(&site.waits, ranks, number), time(&site.blocked_ns), time(&site.drain_ns), saves]
}

pub(crate) fn not_shown(sites: usize) -> Option<String> {
    let more = text::counted(sites as u64, "more site");
    (sites > 0).then(|| format!("{more} not shown; --top 0 shows all."))
}

pub(crate) fn signs(ranks: &Ranks) -> Vec<String> {
    let mut notes: Vec<String> = not_shown(ranks.sites_omitted).into_iter().collect();
    if ranks.late.iter().any(|late| late.wait.is_some()) {
        notes.push("Without the wait named, the late rank launches earlier, unless the collective needs the work that the wait is for.".to_owned());
    }
    let per = match ranks.per {
        Per::Run => "of the run",
        _ if ranks.sites.iter().all(|site| site.per == Per::Iteration) => "per iteration",
        Per::Iteration => "per iteration, of the run where a site waits in none",
    };
    let over = if ranks.list.len() == 2 {
        "the rank that has more, then the other; once where both have as much"
    } else {
        "the median, a tenth to nine tenths, the most and the rank that has it"
    };
    let named = " Named are ranks that block longer than three quartile ranges above the upper quartile.";
    let named = if ranks.sites.iter().any(|site| !site.odd.is_empty()) { named } else { "" };
    notes.push(format!(
        "Over ranks, times {per}: {over}. p99: of a hundred single waits one blocks longer, on the rank where they block longest. {}{named}",
        phrase::COSTS
    ));
    notes
}

pub(crate) fn table(ranks: &Ranks) -> Table {
    let (all, sites) = (ranks.list.len(), &ranks.sites);
    let verdict = |site: &RankSite| {
        let sure = phrase::confidence(site.class, site.confidence);
        Tone::of(site.class).cell(format!("{} {sure}", site.class.in_words()).trim_end())
    };
    let amount = |at: usize| {
        let cell = move |site: &RankSite| {
            let [median, range, most] = amounts(site, ranks)[at].clone();
            let faint = [range, most].into_iter().filter(|text| !text.is_empty());
            let faint = faint.map(|text| Words::toned(Tone::Faint, text));
            Cell::Stack(std::iter::once(median.into()).chain(faint).collect())
        };
        Column::numbers(AMOUNTS[at], sites.iter().map(cell))
    };
    let place = |site: &RankSite| Cell::place(site.place.clone());
    let columns = [
        Column::words("id", sites.iter().map(|site| site.id.clone())),
        Column::words("verdict", sites.iter().map(verdict)),
        Column::words("", sites.iter().map(|site| Tone::of(site.class).cell(site.kind.in_words()))).under(),
        Column::places("where", sites.iter().map(place)),
        Column::words("wait", sites.iter().map(|site| Cell::Notes(notes(site, all)))).under(),
        amount(0).spare(2),
        amount(1),
        amount(2).spare(1),
        amount(3),
        Column::prose("what to do", sites.iter().map(|site| site.fix.clone().unwrap_or_default())),
    ];
    Table { parted: true, ..Table::new("site", columns) }
}
