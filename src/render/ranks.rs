//! What is said over ranks, in the words that all formats for people share.

use super::grid::{self, Column};
use super::phrase;
use super::style::{GAP, Style, Tone};
use super::view::escaped;
use crate::model::ranks::{Late, NamedBy, Odd, Over, RankSite, Ranks};
use crate::text;
use crate::vocabulary::Per;

/// What the ranks are, and how their clocks were put together: labels and texts.
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

/// The ranks that come late: the delay of each, and where it came from.
pub(crate) fn late(ranks: &Ranks) -> impl Iterator<Item = [String; 2]> {
    ranks.late.iter().map(|late| sentences(late, ranks))
}

/// Those of [`late`] that are not the answer, which stands above, a text each.
pub(crate) fn more_late(ranks: &Ranks) -> impl Iterator<Item = String> {
    late(ranks).skip(usize::from(ranks.latest().is_some())).map(|words| words.join(" "))
}

/// The rank that is the answer; the first of [`late`].
pub(crate) fn latest(ranks: &Ranks) -> Option<[String; 2]> {
    ranks.latest().map(|late| sentences(late, ranks))
}

fn sentences(late: &Late, ranks: &Ranks) -> [String; 2] {
    let (delay, waiting) = late.delay_ns();
    // The group is said where it is not all ranks.
    let communicator = late.communicator.as_deref().filter(|_| late.among < ranks.list.len() as u64);
    let group = communicator.map(|id| format!(" among {} ranks (communicator {})", late.among, escaped(id)));
    let ([times, of], collective) = ([late.times, late.of].map(text::count), escaped(&late.collective));
    let of_what = if late.per_iteration_ns.is_some() { "an iteration" } else { "the run" };
    let share = Some(ranks.length_ns()).filter(|&whole| delay <= whole);
    let share = share.map(|whole| format!(", {} of it", text::share(delay, whole))).unwrap_or_default();
    let (rank, group) = (late.rank, group.unwrap_or_default());
    let first = format!(
        "Rank {rank} comes last to {times} of {of} {collective}{group} and delays {of_what} by {}{share}.",
        text::duration(delay)
    );
    let from = if let Some(wait) = &late.wait {
        let id = wait.id.as_deref().map(|id| format!("{} ", escaped(id))).unwrap_or_default();
        let how =
            if wait.times == late.times { "each time".to_owned() } else { format!("{} times", wait.times) };
        let (waiting, place) = (text::duration(waiting), escaped(&wait.place));
        format!("{waiting} of the delay pass in its own wait {id}{place}, {how}.")
    } else {
        let (why, spent) = match late.launched_in_time() {
            true => ("It had launched in time: its GPU had more to do", late.spent.gpu_ns),
            false => ("No wait made it late: its host came later", late.spent.host_ns),
        };
        format!("{why}, {} of the delay.", text::share(spent, late.late_ns))
    };
    [first, from]
}

/// Ranks on which a site stands out: "rank 17: 3.10 ms, median 400 µs".
pub(crate) fn odd(site: &RankSite) -> Option<String> {
    let name = |odd: &Odd| format!("rank {}: {}", odd.rank, text::duration(odd.blocked_ns));
    let named: Vec<String> = site.odd.iter().map(name).collect();
    let median = text::duration(site.blocked_ns.p50);
    (!named.is_empty()).then(|| format!("{}, median {median}", text::first_of(&named, 3)))
}

/// What waits, on how many ranks, how long a single wait, and where it stands out.
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

/// The notes, and below them what to do.
pub(crate) fn advised(site: &RankSite, all: usize) -> Vec<String> {
    let fix = site.fix.as_deref().map(|fix| format!("→ {}", escaped(fix)));
    notes(site, all).into_iter().chain(fix).collect()
}

/// Median; a tenth and nine tenths of the ranks; the most, and whose it is. Of two ranks the larger, and what the other has.
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

/// Titles of what [`amounts`] gives.
pub(crate) const AMOUNTS: [&str; 4] = ["waits", "blocked", "idle after", "saves"];

/// The four amounts of a site.
pub(crate) fn amounts(site: &RankSite, ranks: &Ranks) -> [[String; 3]; 4] {
    let time = |over| cells(over, ranks, text::duration);
    let known = |cell: &str| !site.saves_at_most || cell.is_empty() || cell.starts_with("0 ns");
    let saves = time(&site.saves_ns).map(|cell| if known(&cell) { cell } else { format!("≤ {cell}") });
    [cells(&site.waits, ranks, number), time(&site.blocked_ns), time(&site.drain_ns), saves]
}

/// How many sites a table leaves out.
pub(crate) fn not_shown(sites: usize) -> Option<String> {
    let more = text::counted(sites as u64, "more site");
    (sites > 0).then(|| format!("{more} not shown; --top 0 shows all."))
}

/// What the columns mean.
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

/// The sites over ranks as marked text: three lines a site, into a pipe one.
pub(crate) fn table(ranks: &Ranks, style: &Style) -> String {
    const PLACE: usize = 24;
    let all = ranks.list.len();
    let stacked = style.width.is_some();
    let sites = &ranks.sites;
    let verdict = |site: &RankSite| {
        let tone = Tone::of(site.class);
        let sure = phrase::confidence(site.class, site.confidence);
        let class = tone.paint(format!("{} {sure}", site.class.in_words()).trim_end());
        let kind = tone.paint(site.kind.in_words());
        if stacked { vec![class, kind] } else { vec![format!("{class} {kind}")] }
    };
    let amount = |at: usize| {
        let cell = |site: &RankSite| {
            let [median, range, most] = &amounts(site, ranks)[at];
            let all = [median.clone(), Tone::Faint.paint(range), Tone::Faint.paint(most)];
            let told = || all.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("; ");
            if stacked { all.to_vec() } else { vec![told()] }
        };
        Column::right(&[AMOUNTS[at]], sites.iter().map(cell).collect())
    };
    let columns = |width: Option<usize>, amounts: &[usize]| {
        let place = |site: &RankSite| {
            let Some(width) = width else {
                return vec![[vec![escaped(&site.place)], advised(site, all)].concat().join("; ")];
            };
            let notes = advised(site, all).into_iter().flat_map(|note| text::wrap(&note, width));
            let mut lines = vec![text::shorten_middle(&escaped(&site.place), width).into_owned()];
            lines.extend(notes.map(|line| Tone::Faint.paint(line)));
            lines
        };
        let ids = sites.iter().map(|site| vec![escaped(&site.id)]).collect();
        let verdicts = Column::left(&["verdict"], sites.iter().map(verdict).collect());
        let mut columns = vec![Column::left(&["id"], ids), verdicts];
        if width != Some(0) {
            columns.push(Column::left(&["where"], sites.iter().map(place).collect()));
        }
        columns.extend(amounts.iter().map(|&at| amount(at)));
        columns
    };
    let left = |amounts: &[usize]| {
        style.width.map(|width| width.saturating_sub(grid::width(&columns(Some(0), amounts)) + GAP))
    };
    // A narrow terminal does without the idle time.
    const ALL: [usize; AMOUNTS.len()] = [0, 1, 2, 3];
    let all_fit = left(&ALL).is_none_or(|room| room >= PLACE);
    let amounts = if all_fit { &ALL[..] } else { &[0, 1, 3] };
    grid::set(&columns(left(amounts).map(|room| room.max(PLACE)), amounts), stacked, stacked)
}
