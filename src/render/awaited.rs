//! What the waits of a site waited for, as a paragraph: the same in the details and on the page.

use crate::model::{Awaited, BehindCollectives, IdleGpu, Narrow, Site};
use crate::text::{self, escape_terminal};

/// Columns of a kernel's name.
const LONG_SYMBOL: usize = 72;
/// JSON lists more.
const NAMED: usize = 3;

/// Empty where nothing is known.
pub(super) fn paragraph(site: &Site) -> String {
    let Some(awaited) = &site.awaited else { return String::new() };
    let words = Words { site, awaited };
    let sentences = [
        words.streams(),
        words.operations(),
        awaited.collectives.as_ref().map(|one| words.collectives(one)),
        awaited.narrow.as_ref().map(|one| words.narrow(one)),
        awaited.idle_gpu.as_ref().map(|one| words.idle_gpu(one)),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

struct Words<'a> {
    site: &'a Site,
    awaited: &'a Awaited,
}

impl Words<'_> {
    /// "1.20 ms (75 %)" of the time blocked.
    fn of_blocked(&self, ns: i64) -> String {
        let blocked = self.site.blocked_ns;
        format!("{} ({})", text::duration(ns), text::share(ns.min(blocked), blocked))
    }

    /// `stream 7`, with its GPU where there are several.
    fn place(&self, device: u32, stream: u32) -> String {
        let mut devices = self.awaited.streams.iter().map(|one| one.device);
        let several = devices.any(|other| other != device)
            || self.awaited.operations.iter().any(|one| one.device != device);
        if several { format!("GPU {device} stream {stream}") } else { format!("stream {stream}") }
    }

    fn streams(&self) -> Option<String> {
        let all = self.awaited.streams.iter().take(NAMED);
        let named = all.map(|one| {
            let alone = text::duration(one.only_ns);
            let alone = if one.only_ns > 0 && self.awaited.streams.len() > 1 {
                format!(", {alone} for it alone")
            } else {
                String::new()
            };
            format!("{} for {}{alone}", self.of_blocked(one.pending_ns), self.place(one.device, one.stream))
        });
        listed(named, self.awaited.streams.len() as u64 + self.awaited.streams_left_out)
            .map(|streams| format!("Blocked {streams}."))
    }

    fn operations(&self) -> Option<String> {
        let all = self.awaited.operations.iter().take(NAMED);
        let named = all.map(|one| {
            let name = escape_terminal(&one.name);
            format!("{} {}", text::shorten_symbol(&name, LONG_SYMBOL), self.of_blocked(one.blocked_ns))
        });
        listed(named, self.awaited.operations.len() as u64 + self.awaited.operations_left_out)
            .map(|operations| format!("Longest meanwhile: {operations}."))
    }

    fn collectives(&self, one: &BehindCollectives) -> String {
        let mut words =
            format!("{} passed behind {}", self.of_blocked(one.blocked_ns), escape_terminal(&one.name));
        for rank in &one.late {
            let late = text::duration(rank.late_ns);
            words += &format!("; {late} until {} arrived", escape_terminal(&rank.name()));
        }
        words + if one.met_ns == 0 { "; the export does not say which other ranks took part." } else { "." }
    }

    fn narrow(&self, one: &Narrow) -> String {
        let streams = list("stream", &one.streams);
        let what = match one.copies {
            0 => format!("{streams} alone, where the thread launched last,"),
            n if n == one.waits => format!("the D2H copy on {streams} alone (an event recorded after it)"),
            _ => format!("the D2H copy or the last launch on {streams} alone"),
        };
        let (ns, waits) = (text::duration(one.shorter_ns), text::counted(one.waits, "wait"));
        let id = escape_terminal(&self.site.id);
        format!("A wait for {what} returns {ns} sooner in all, in {waits}: --fix {id}=narrow simulates it.")
    }

    fn idle_gpu(&self, idle: &IdleGpu) -> String {
        let which = if idle.gpus.is_empty() { "another GPU".to_owned() } else { list("GPU", &idle.gpus) };
        let ([waits, all], busy) = ([idle.waits, self.site.waits].map(text::count), list("GPU", &idle.busy));
        format!("{waits} of {all} waits were for {which}, which was idle, while {busy} worked.")
    }
}

/// "a, b and 3 more"; `None` of nothing.
fn listed(named: impl Iterator<Item = String>, count: u64) -> Option<String> {
    let named: Vec<String> = named.collect();
    let more = count.saturating_sub(named.len() as u64);
    let more = if more > 0 { format!(" and {} more", text::count(more)) } else { String::new() };
    (!named.is_empty()).then(|| named.join(", ") + &more)
}

/// "stream 7", "streams 7, 13".
fn list(what: &str, numbers: &[u32]) -> String {
    let all: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("{what}{} {}", if all.len() > 1 { "s" } else { "" }, all.join(", "))
}
