//! What the waits of a site waited for, in words: the same in the details and on the page.

use crate::model::{Awaited, AwaitedOperation, AwaitedStream, BehindCollectives, DriverApi, Narrow, Site};
use crate::text::{self, escape_terminal};

/// Columns of a kernel's name.
const LONG_SYMBOL: usize = 72;

/// Labels and texts; none where nothing is known.
pub(super) fn labelled(site: &Site) -> Vec<(String, String)> {
    let Some(awaited) = &site.awaited else { return Vec::new() };
    let streams = awaited.streams.iter().map(|one| one.device);
    let mut devices = streams.chain(awaited.operations.iter().map(|one| one.device));
    let first = devices.next();
    let words = Words { site, awaited, several_gpus: devices.any(|device| Some(device) != first) };
    let mut pairs: Vec<(String, String)> = awaited.streams.iter().map(|one| words.stream(one)).collect();
    pairs.extend(left_out(awaited.streams_left_out, "stream"));
    for (nth, one) in awaited.operations.iter().enumerate() {
        pairs.push((if nth == 0 { "ran" } else { "" }.to_owned(), words.operation(one)));
    }
    pairs.extend(left_out(awaited.operations_left_out, "operation"));
    if awaited.idle_ns > 0 {
        let words =
            format!("{}: calls' own work, gaps, the way back to the host", words.of_blocked(awaited.idle_ns));
        pairs.push(("nothing ran".to_owned(), words));
    }
    pairs.extend(awaited.collectives.as_ref().map(|one| ("collectives".to_owned(), words.collectives(one))));
    pairs.extend(awaited.narrow.as_ref().map(|one| ("less would do".to_owned(), words.narrow(one))));
    if let Some(idle) = &awaited.idle_gpu {
        let which = if idle.gpus.is_empty() { "another GPU".to_owned() } else { list("GPU", &idle.gpus) };
        let ([waits, all], busy) = ([idle.waits, site.waits].map(text::count), list("GPU", &idle.busy));
        let words = format!(
            "{waits} of {all} waits were for {which}, which had nothing to do, while {busy} worked on"
        );
        pairs.push(("idle GPU".to_owned(), words));
    }
    pairs
}

struct Words<'a> {
    site: &'a Site,
    awaited: &'a Awaited,
    several_gpus: bool,
}

impl Words<'_> {
    /// "1.20 ms (75 %)" of the time blocked.
    fn of_blocked(&self, ns: i64) -> String {
        let blocked = self.site.blocked_ns;
        format!("{} ({})", text::duration(ns), text::share(ns.min(blocked), blocked))
    }

    fn place(&self, device: u32, stream: u32) -> String {
        if self.several_gpus { format!("GPU {device} stream {stream}") } else { format!("stream {stream}") }
    }

    fn stream(&self, one: &AwaitedStream) -> (String, String) {
        let mut words = self.of_blocked(one.pending_ns);
        words += &format!(" until its work was done, in {}", text::counted(one.waits, "wait"));
        if self.awaited.streams.len() > 1 {
            if one.only_ns > 0 {
                words += &format!("; {} for it alone", text::duration(one.only_ns));
            }
            words += match (self.site.driver_api, one.read) {
                (DriverApi::CtxSynchronize, 0) => "; nothing of it is copied to the host here",
                (_, 0) => "",
                _ => "; a copy to the host on it is completed here",
            };
        }
        (self.place(one.device, one.stream), words)
    }

    fn operation(&self, one: &AwaitedOperation) -> String {
        let name = escape_terminal(&one.name);
        let name = text::shorten_symbol(&name, LONG_SYMBOL);
        let times = if one.count > 1 { format!(" × {}", text::count(one.count)) } else { String::new() };
        let place = self.place(one.device, one.stream);
        format!("{}  {name}{times} on {place}", self.of_blocked(one.blocked_ns))
    }

    fn collectives(&self, one: &BehindCollectives) -> String {
        let mut words = format!("{} behind {}", self.of_blocked(one.blocked_ns), escape_terminal(&one.name));
        for rank in &one.late {
            let late = text::duration(rank.late_ns);
            words += &format!("; {late} until {} arrived", escape_terminal(&rank.name()));
        }
        if one.met_ns == 0 {
            words += "; the export does not tell which other ranks took part";
        }
        words
    }

    fn narrow(&self, one: &Narrow) -> String {
        let streams = list("stream", &one.streams);
        let what = match one.copies {
            0 => format!("{streams} alone, where the thread launched last"),
            n if n == one.waits => {
                format!("the copy to the host on {streams} alone (an event recorded after it)")
            }
            _ => format!("the copy or the last launch on {streams} alone"),
        };
        let (ns, waits) = (text::duration(one.shorter_ns), text::counted(one.waits, "wait"));
        let id = escape_terminal(&self.site.id);
        format!("a wait for {what} returns {ns} sooner in all, in {waits}; what it saves: --fix {id}=narrow")
    }
}

/// "stream 7", "streams 7, 13".
fn list(what: &str, numbers: &[u32]) -> String {
    let all: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("{what}{} {}", if all.len() > 1 { "s" } else { "" }, all.join(", "))
}

fn left_out(more: u64, what: &str) -> Option<(String, String)> {
    (more > 0).then(|| (String::new(), format!("and {} more", text::counted(more, what))))
}
